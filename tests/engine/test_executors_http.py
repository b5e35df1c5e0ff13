"""The client of a lane's API against servers that do what servers must not do: real sockets, every byte ours."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from sparkyard.executors import http
from sparkyard.executors.http import UNSENT, Api, ask

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
SHORT = 0.5
"""Seconds, where a server never ends its answer."""
LONG = 60.0
"""Seconds, where the answer comes at once: nobody waits for their end."""

Answer = Callable[[socket.socket], None]


@dataclass
class Server:
    """Answers each connection as it is told; keeps what it was asked."""

    answer: Answer
    asked: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.leave = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            if self.leave.is_set():
                connection.close()
                return
            with contextlib.suppress(OSError), connection:
                self.asked.append(_request(connection))
                self.answer(connection)

    def close(self) -> None:
        self.leave.set()
        with socket.create_connection(self._socket.getsockname()):
            self._thread.join()
        self._socket.close()


def _request(connection: socket.socket) -> bytes:
    """A whole request: its head, and as many bytes of a body as it says. Raises ConnectionError for one that ends early."""
    told = b""
    while b"\r\n\r\n" not in told:
        told += _received(connection)
    head, _, body = told.partition(b"\r\n\r\n")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    wanted = int(lengths[0].partition(b":")[2]) if lengths else 0
    while len(body) < wanted:
        body += _received(connection)
    return head + b"\r\n\r\n" + body


def _received(connection: socket.socket) -> bytes:
    found = connection.recv(65536)
    if not found:
        raise ConnectionError
    return found


@pytest.fixture
def serving() -> Iterator[Callable[[Answer], Server]]:
    with contextlib.ExitStack() as stack:

        def begin(answer: Answer) -> Server:
            server = Server(answer)
            stack.callback(server.close)
            return server

        yield begin


Serving = Callable[[Answer], Server]


def saying(data: bytes) -> Answer:
    return lambda connection: connection.sendall(data)


def dripping(first: bytes, piece: bytes) -> Answer:
    """One piece after another, until the client goes."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(first)
        while True:
            connection.sendall(piece)
            connection.settimeout(0.02)
            with contextlib.suppress(TimeoutError):
                if not connection.recv(1):
                    return

    return answer


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("first", "piece"),
    [
        pytest.param(HEAD + b"X-A: ", b"x", id="head"),
        pytest.param(HEAD + b"\r\n", b"x", id="body without an end of line"),
        pytest.param(HEAD + b"\r\n", b"data: {}\n", id="lines"),
        pytest.param(
            HEAD + b"Content-Encoding: gzip\r\n\r\n\x1f\x8b\x08\x08\0\0\0\0\0\0", b"n", id="nothing unpacked"
        ),
        pytest.param(b"", b"", id="nothing"),
    ],
)
def test_an_answer_that_never_ends_is_late(
    serving: Serving, first: bytes, piece: bytes, stream: bool
) -> None:
    """Bytes that come one by one do not prolong the time limit, wherever they come."""
    reply = ask(Api(serving(dripping(first, piece)).url), "POST", "/v1", {"a": 1}, SHORT, stream)
    assert reply.late
    assert reply.unheard == "no whole answer within 0.5 s"


def test_a_server_that_does_not_read_is_late() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        reply = ask(Api(url), "POST", "/v1", {"a": "x" * (32 << 20)}, SHORT)
    assert reply.late


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_without_measure_is_left(
    serving: Serving, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    monkeypatch.setattr(http, "LONGEST", 1 << 20)
    reply = ask(Api(serving(dripping(HEAD + b"\r\n", b"x" * 300_000)).url), "GET", "/v1", None, LONG, stream)
    assert reply.unheard == "the answer is longer than 1 MiB"


@pytest.mark.parametrize(
    ("key", "sent"),
    [("a b", b"a b"), ("schlüssel", "schlüssel".encode()), ("€", "€".encode()), ('"%&=:', b'"%&=:')],
)
def test_keys_of_odd_characters_are_sent_as_they_are(serving: Serving, key: str, sent: bytes) -> None:
    server = serving(saying(HEAD + b"Content-Length: 2\r\n\r\n{}"))
    assert ask(Api(server.url, key), "GET", "/v1", None, LONG).document == {}
    assert b"\r\nAuthorization: Bearer " + sent + b"\r\n" in server.asked[0]


@pytest.mark.parametrize("key", ["se\ncret", "se\r\nX: cret", "secret ", "\0secret"])
def test_a_key_that_http_cannot_carry_is_not_quoted(serving: Serving, key: str) -> None:
    server = serving(saying(HEAD + b"Content-Length: 2\r\n\r\n{}"))
    assert ask(Api(server.url, key), "GET", "/v1", None, LONG).unheard == UNSENT


def test_the_answer_is_wanted_unpacked(serving: Serving) -> None:
    server = serving(saying(HEAD + b"Content-Length: 2\r\n\r\n{}"))
    ask(Api(server.url), "GET", "/v1", None, LONG)
    assert b"\r\nAccept-Encoding: identity\r\n" in server.asked[0]


def streamed(data: str) -> bytes:
    return HEAD + b"\r\n" + f"data: {data}\n\ndata: [DONE]\n\n".encode()


def test_ends_of_lines_within_a_text_end_no_line(serving: Serving) -> None:
    text = "a\u2028b\u2029c\x85d"
    server = serving(saying(streamed(f'{{"choices": [{{"delta": {{"content": "{text}"}}}}]}}')))
    reply = ask(Api(server.url), "POST", "/v1", {}, LONG, stream=True)
    assert (reply.unheard, reply.document["content"]) == ("", text)


def test_lines_may_end_with_carriage_returns_and_come_in_pieces(serving: Serving) -> None:
    whole = streamed('{"choices": [{"text": "ab"}]}').replace(b"\n\n", b"\r\n\r\n")

    def answer(connection: socket.socket) -> None:
        for number in range(len(whole)):
            connection.sendall(whole[number : number + 1])

    reply = ask(Api(serving(answer).url), "POST", "/v1", {}, LONG, stream=True)
    assert (reply.unheard, reply.document["content"]) == ("", "ab")


@pytest.mark.parametrize(
    "data",
    [
        "[" * 100_000,
        "[" * 300 + "]" * 300,
        "[1]",
        '{"choices": 3}',
        '{"choices": ["x"]}',
        '{"choices": [{"delta": "x"}]}',
        '{"choices": [{"delta": {"content": ["x"]}}]}',
        '{"choices": [{"delta": {"tool_calls": [{"index": [1]}]}}]}',
        '{"choices": [{"delta": {"tool_calls": [{"index": "a"}]}}]}',
        '{"choices": [{"delta": {"tool_calls": ["x"]}}]}',
    ],
)
def test_a_chunk_of_another_form_is_told(serving: Serving, data: str) -> None:
    reply = ask(Api(serving(saying(streamed(data))).url), "POST", "/v1", {}, LONG, stream=True)
    assert reply.unheard.startswith("the stream holds something that is not JSON: ")


@pytest.mark.parametrize("data", ["[" * 100_000, "[" * 300 + "]" * 300, "<html>", "", "\xff"])
def test_an_answer_that_is_no_json_has_no_document(serving: Serving, data: str) -> None:
    body = data.encode("latin-1")
    server = serving(saying(HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode() + body))
    reply = ask(Api(server.url), "GET", "/v1", None, LONG)
    assert (reply.status, reply.document, reply.unheard) == (200, None, "")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"SSH-2.0-OpenSSH_9\r\n",
        b"\x16\x03\x01\r\n\r\n",
        HEAD,
        HEAD + b"Content-Length: 9\r\n\r\n{}",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
        HEAD + b"Content-Encoding: gzip\r\n\r\nno gzip",
    ],
)
def test_what_is_no_whole_answer_is_told(serving: Serving, data: bytes) -> None:
    reply = ask(Api(serving(saying(data)).url), "POST", "/v1", {}, LONG)
    assert (reply.status, reply.late, reply.refused) == (0, False, False)
    assert reply.unheard.startswith("the answer was cut short: ")


def test_a_redirect_is_not_followed(serving: Serving) -> None:
    server = serving(saying(b"HTTP/1.1 307 T\r\nLocation: http://[::bad\r\nContent-Length: 0\r\n\r\n"))
    assert ask(Api(server.url), "GET", "/v1", None, LONG).status == 307


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_a_port_where_nothing_listens_is_refused(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as bound:  # bound and not listening: nobody else takes it
        bound.bind((host.strip("[]"), 0))
        reply = ask(Api(f"http://{host}:{bound.getsockname()[1]}"), "GET", "/v1", None, LONG)
    assert reply.refused


@pytest.mark.parametrize("url", ["http://[::1", "http://a..b:80", "http://" + "a" * 70, "ftp://x"])
def test_an_address_that_is_none_is_told(url: str) -> None:
    assert ask(Api(url), "GET", "/v1", None, LONG).unheard == UNSENT
