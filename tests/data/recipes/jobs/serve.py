"""An engine that answers everything with one token. Arguments: its port."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

REPLY = {
    "choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}],
    "usage": {"completion_tokens": 1},
}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.answer({})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.answer(REPLY)

    def answer(self, document: object) -> None:
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


print("serving", flush=True)
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
