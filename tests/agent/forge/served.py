"""Small HTTP servers for the stand-ins, and git's own `http-backend` behind them."""

from __future__ import annotations

import base64
import os
import subprocess
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def payload(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def give(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Tests read what was sent, not a log."""


def serve(answer: Callable[[Handler], None]) -> ThreadingHTTPServer:
    def handle(self: Handler) -> None:
        answer(self)

    methods = {f"do_{name}": handle for name in ("GET", "POST", "PATCH", "PUT", "DELETE")}
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Handler,), methods))
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    return server


def serve_git(request: Handler, folder: Path, prefix: str, token: str, pushes: list[str]) -> None:
    """git's own server behind ours, over the repositories of a folder (`prefix` stands before their names); it asks for the token as a password."""
    parts = urlsplit(request.path)
    pushing = "receive-pack" in request.path
    given = base64.b64decode((request.headers.get("Authorization") or "Basic ").partition(" ")[2]).decode()
    payload = request.payload()
    if given.partition(":")[2] != token:
        request.give(401, b"who are you?", {"WWW-Authenticate": 'Basic realm="stand-in"'})
        return
    environment = {
        "PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": str(folder), "GIT_HTTP_EXPORT_ALL": "1", "REMOTE_USER": "robot",
        "PATH_INFO": parts.path.removeprefix(prefix), "QUERY_STRING": parts.query, "REQUEST_METHOD": request.command,
        "CONTENT_TYPE": request.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(payload)), "REMOTE_ADDR": "127.0.0.1",
        "HTTP_CONTENT_ENCODING": request.headers.get("Content-Encoding", ""), "GIT_PROTOCOL": request.headers.get("Git-Protocol", ""),
    }  # fmt: skip
    done = subprocess.run(["git", "http-backend"], input=payload, env=environment, capture_output=True, check=True)
    head, _, body = done.stdout.partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
    if pushing and request.command == "POST":
        pushes.append(parts.path)
    request.give(int(headers.pop("Status", "200").split()[0]), body, headers)
