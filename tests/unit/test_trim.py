"""scripts/node/trim.py: both layouts of ``docker save``, made by hand, without the layers that a receiver has."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import tarfile

import pytest

from sparkyard.guard import node_script_path
from sparkyard.layer_words import chains, held, trim_head

TRIM = (sys.executable, "-I", str(node_script_path("trim.py")))
BODIES = (b"lowest layer " * 100, b"middle layer " * 200, b"top layer " * 300)
OTHER = "sha256:" + "0" * 64
ODD = ("a name\nwith a line feed", "caf\udce9", "x" * 180, "sparse\t\\name", "blobs/sha256/../odd")


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def diff_ids(bodies=BODIES):
    return ["sha256:" + digest(body) for body in bodies]


def pack(members, form=tarfile.PAX_FORMAT):
    """An archive; a value of None is a folder, of str a symbolic link to it."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form, errors="surrogateescape") as tar:
        for name, content in members:
            entry = tarfile.TarInfo(name)
            if content is None:
                entry.type = tarfile.DIRTYPE
            elif isinstance(content, str):
                entry.type, entry.linkname = tarfile.SYMTYPE, content
            else:
                entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content) if isinstance(content, bytes) else None)
    return buffer.getvalue()


def oci(bodies=BODIES):
    """The members that Docker 25 and later write: a blob a layer, in the order of their digests."""
    config = json.dumps({"rootfs": {"type": "layers", "diff_ids": diff_ids(bodies)}}).encode()
    blobs = {digest(body): body for body in (config, *bodies)}
    layers = [f"blobs/sha256/{digest(body)}" for body in bodies]
    manifest = [{"Config": f"blobs/sha256/{digest(config)}", "RepoTags": ["x:1"], "Layers": layers}]
    return [
        ("blobs", None),
        ("blobs/sha256", None),
        *((f"blobs/sha256/{name}", blobs[name]) for name in sorted(blobs)),
        ("index.json", b"{}"),
        ("manifest.json", json.dumps(manifest).encode()),
        ("oci-layout", b'{"imageLayoutVersion": "1.0.0"}'),
    ]


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def legacy(bodies=BODIES):
    """The members that Docker wrote before: a folder a layer, whose name is a hash; one that comes again is a link."""
    members, paths = [], []
    seen: dict[str, str] = {}
    chain = parent = ""
    for number, diff_id in enumerate(diff_ids(bodies)):
        chain = "sha256:" + digest(f"{chain} {diff_id}".encode()) if chain else diff_id
        said = {"created": "1970-01-01T00:00:00Z", "container_config": {"Cmd": None, "Labels": None}}
        top = number == len(bodies) - 1
        if top:
            said |= {"config": {"Labels": {"é": "<b>"}}, "os": "linux"}
        hashed = dict(
            sorted({**said, "layer_id": chain, **({"parent": "sha256:" + parent} if parent else {})}.items())
        )
        name = digest(escaped(hashed))
        written = {"id": name, **({"parent": parent} if parent else {}), **said, "os": "linux"}
        body = f"../{seen[diff_id]}/layer.tar" if diff_id in seen else bodies[number]
        folder = [
            (name, None),
            (f"{name}/VERSION", b"1.0"),
            (f"{name}/json", escaped(written)),
            (f"{name}/layer.tar", body),
        ]
        members.append((name, folder))
        paths.append(f"{name}/layer.tar")
        seen.setdefault(diff_id, name)
        parent = name
    listed = [member for _name, folder in sorted(members) for member in folder]
    return [*listed, ("manifest.json", json.dumps([{"Layers": paths}]).encode())], paths


def escaped(value):
    """As Go writes JSON: without spaces, and nothing in it that HTML minds."""
    return compact(value).replace("<", "\\u003c").replace(">", "\\u003e").encode()


def trim(archive, layers, count, *, status=0):
    """What comes out, and the diff ids that it says it left out."""
    done = subprocess.run(TRIM, input=trim_head(layers, count) + archive, capture_output=True, check=False)
    assert done.returncode == status, done.stderr.decode()
    told = [line.split("\t") for line in done.stderr.decode().splitlines() if line.startswith("left-out")]
    left = sum(int(fields[1]) for fields in told)
    if not status:
        assert len(done.stdout) + left == len(archive)
    return done.stdout, [fields[2] for fields in told], done.stderr.decode()


def content(archive):
    with tarfile.open(fileobj=io.BytesIO(archive), errors="surrogateescape") as tar:
        return {
            entry.name: file.read() if entry.isreg() and (file := tar.extractfile(entry)) else entry.linkname
            for entry in tar
        }


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_oci_layout(count, form):
    archive = pack(oci(), form)
    out, left, _ = trim(archive, diff_ids(), count)
    assert sorted(left) == sorted(diff_ids()[:count])
    gone = {"blobs/sha256/" + layer.removeprefix("sha256:") for layer in left}
    whole = content(archive)
    assert content(out) == {name: data for name, data in whole.items() if name not in gone}


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_layout_before_docker_25(count):
    members, paths = legacy()
    archive = pack(members)
    out, left, _ = trim(archive, diff_ids(), count)
    assert sorted(left) == sorted(diff_ids()[:count])
    whole = content(archive)
    assert content(out) == {name: data for name, data in whole.items() if name not in paths[:count]}


def test_with_nothing_to_leave_out_every_byte_is_passed_on():
    for archive in (pack(oci()), pack(legacy()[0]), pack([]), pack([]) + bytes(50_000)):
        assert trim(archive, diff_ids(), 0)[0] == archive
        assert trim(archive, [OTHER], 1)[0] == archive


def test_only_the_first_layers_of_a_chain_count():
    head = f"{json.dumps(diff_ids())}\n{json.dumps(diff_ids()[1:])}\n{json.dumps([OTHER, *diff_ids()])}\n\n"
    archive = pack(oci())
    done = subprocess.run(TRIM, input=head.encode() + archive, capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (archive, b"")


def test_the_longest_of_several_chains_counts():
    lines = [diff_ids(), diff_ids()[:1], [*diff_ids()[:2], OTHER], []]
    head = "".join(json.dumps(line) + "\n" for line in lines) + "\n"
    done = subprocess.run(TRIM, input=head.encode() + pack(oci()), capture_output=True, check=True)
    assert done.stderr.count(b"left-out") == 2


def test_a_layer_that_comes_again_higher_up_is_sent():
    """Docker opens it for the second place, where another chain id asks for it."""
    bodies = (BODIES[0], BODIES[1], BODIES[0])
    layers = diff_ids(bodies)
    assert trim(pack(oci(bodies)), layers, 1)[1] == []
    assert trim(pack(oci(bodies)), layers, 2)[1] == [layers[1]]
    members, paths = legacy(bodies)
    out, left, _ = trim(pack(members), layers, 2)
    assert left == [layers[1]]
    assert content(out)[paths[0]] == BODIES[0]
    assert content(out)[paths[2]] == f"../{paths[0]}"
    assert sorted(trim(pack(members), layers, 3)[1]) == sorted(set(layers))


def test_a_compressed_blob_has_another_name_and_is_sent():
    archive = pack([("blobs/sha256/" + digest(b"compressed"), b"compressed")])
    assert trim(archive, diff_ids(), 3)[0] == archive


@pytest.mark.parametrize(
    "said",
    [b"", b"{", b"{}", b"[]", b'"x"', b'{"id":', b'{"parent":1}', b"\xff", b'{"a":1}x', b"null", b"{1:2}"],
)
def test_a_folder_that_cannot_be_read_is_sent(said):
    name = "a" * 64
    archive = pack([(f"{name}/json", said), (f"{name}/layer.tar", BODIES[0])])
    assert trim(archive, diff_ids(), 3)[0] == archive


def test_a_folder_whose_name_is_not_the_hash_of_what_it_says_is_sent():
    members = [(name.replace("a", "b"), data) for name, data in legacy()[0] if "manifest" not in name]
    assert trim(pack(members), diff_ids(), 3)[1] == []


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_unknown_members_and_odd_names_are_passed_on(form):
    odd = [(name, name.encode(errors="surrogateescape")) for name in ODD]
    archive = pack([*odd, *oci(), *odd, ("link" * 40, "to" * 80)], form)
    out, left, _ = trim(archive, diff_ids(), 3)
    assert len(left) == 3
    assert set(content(archive)) - set(content(out)) == {"blobs/sha256/" + layer[7:] for layer in left}


def header(name, size, kind=b"0"):
    entry = tarfile.TarInfo(name)
    entry.size, entry.type = size, kind
    return entry.tobuf(tarfile.GNU_FORMAT)


def blocks(data):
    return data + bytes(-len(data) % 512)


def record(text):
    """A record of a PAX header; its length counts itself."""
    size = len(text) + 2
    return f"{size + len(str(size + len(str(size))))} {text}\n".encode()


def test_a_long_headers_size_and_name_are_those_of_the_member():
    """As for layers of more than 8 GiB, whose size does not fit into the plain header."""
    body = BODIES[0]
    said = record(f"size={len(body)}") + record(f"path=blobs/sha256/{digest(body)}")
    plain = header("short", 0)
    archive = header("x", len(said), b"x") + blocks(said) + plain + blocks(body) + pack(oci()[-1:])
    out, left, _ = trim(archive, diff_ids(), 1)
    assert left == diff_ids()[:1]
    assert out == pack(oci()[-1:])
    assert trim(archive, diff_ids(), 0)[0] == archive


@pytest.mark.parametrize("make", [oci, lambda: legacy()[0]])
def test_an_archive_that_was_cut_short_is_no_success(make):
    archive = pack(make())
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        last = tar.getmembers()[-1]
    for place in (0, 511, 512, len(archive) // 4, len(archive) // 2, last.offset, last.offset_data + 5):
        _, _, said = trim(archive[:place], diff_ids(), 2, status=1)
        assert said.splitlines()[-1] == "trim: the archive was cut short"


@pytest.mark.parametrize(
    ("archive", "said"),
    [
        (b"x" * 2048, "trim: the input cannot be read: invalid header"),
        (header("s", 0, b"S"), "cannot be copied: s"),
        (header("x", 1 << 30, b"x"), "a header of the archive is too long"),
        (header("x", 9, b"x") + blocks(b"size=none") + header("f", 0), "cannot be read: invalid literal"),
        (header("x", 512, b"x") + blocks(b"9 size=9\n") + bytes(1024), "ends behind a header"),
        (header("f", -512), "cannot be copied: f"),
    ],
)
def test_what_docker_does_not_write_is_refused(archive, said):
    assert said in trim(archive, diff_ids(), 1, status=1)[2]


@pytest.mark.parametrize("head", [b"", b"[]", b"[]\n[]\n", b"nothing\n\n", b'["sha256:a"\n\n'])
def test_a_beginning_that_is_none_is_refused(head):
    done = subprocess.run(TRIM, input=head, capture_output=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(b"trim: the input ")
    assert done.stdout == b""


def test_memory_does_not_grow_with_the_image():
    """300 MB of layers through a program that may have 120 MB of addresses."""
    size, piece = 150_000_000, bytes(1_000_000)
    limited = ("sh", "-c", 'ulimit -v 120000; exec "$@"', "sh", *TRIM)
    layer = "1" * 64
    with subprocess.Popen(
        limited, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as running:
        assert running.stdin is not None
        assert running.stderr is not None
        running.stdin.write(trim_head([f"sha256:{layer}"], 1))
        for name in (f"blobs/sha256/{layer}", "other"):
            running.stdin.write(header(name, size))
            for _ in range(size // len(piece)):
                running.stdin.write(piece)
            running.stdin.write(bytes(-size % 512))
        running.stdin.write(bytes(1024))
        running.stdin.close()
        told = running.stderr.read()
    assert running.returncode == 0
    assert told.split(b"\t")[1] == str(512 + size + -size % 512).encode()


def test_how_many_layers_are_there():
    assert held("abc", []) == 0
    assert held("abc", ["xbc", "", "ab", "abx", "a"]) == 2
    assert held("abc", ["abcd"]) == 3
    assert held("", ["abc"]) == 0


def test_chains_are_read_from_whatever_else_a_login_prints():
    text = 'Welcome!\n["a","b"]\n\nnull\n{"a": 1}\n[1]\n[]\n["a"'
    assert chains(text) == (("a", "b"), ())
