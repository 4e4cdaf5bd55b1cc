"""A scripted endpoint: a real HTTP server on this machine that speaks the protocol of OpenAI's chat completions. Plumbing: it is no model.

`answer(request, number)` says what is done with the number-th request (from 0): a string is streamed as the answer's text, and the moves below do
what servers do on bad days. Requests with an `Idempotency-Key` that was answered before get the same answer, and are not paid again.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Status:
    """An error status, with headers."""

    code: int
    headers: Mapping[str, str] = field(default_factory=dict)
    message: str = "scripted"


@dataclass(frozen=True)
class Cut:
    """The text is streamed, and then the line goes dead before the answer's end."""

    text: str


@dataclass(frozen=True)
class Hang:
    """Nothing comes until the client has gone away, or the server ends."""


@dataclass(frozen=True)
class Refusal:
    """The model declines."""

    text: str


@dataclass(frozen=True)
class Long:
    """The text is streamed, and the tokens run out."""

    text: str


Move = str | Status | Cut | Hang | Refusal | Long
INPUT, OUTPUT = 100, 10
"""Tokens that each answer is said to have cost."""


@dataclass
class Script:
    """What the server was asked, and what it was paid for."""

    answer: Callable[[dict[str, Any], int], Move]
    asked: list[dict[str, Any]] = field(default_factory=list)
    paid: dict[str, int] = field(default_factory=dict)
    """Idempotency key → how often an answer to it was paid."""
    sent: dict[str, int] = field(default_factory=dict)
    """Idempotency key → how often the request came, answered or not."""
    url: str = ""
    over: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    kept: dict[str, Move] = field(default_factory=dict)

    def move(self, request: dict[str, Any], key: str) -> Move:
        """What to do with a request."""
        with self.lock:
            self.sent[key] = self.sent.get(key, 0) + 1
            if key in self.kept:
                return self.kept[key]
            self.asked.append(request)
            move = self.answer(request, len(self.asked) - 1)
            if isinstance(move, (str, Refusal, Long)):
                self.paid[key] = self.paid.get(key, 0) + 1
                self.kept[key] = move
            return move


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    script: Script

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        """`/v1/chat/completions`."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        move = self.script.move(request, self.headers.get("Idempotency-Key", ""))
        match move:
            case Status():
                self._error(move)
            case Hang():
                self.script.over.wait(30)
                self.close_connection = True
            case _:
                self._stream(request, move)

    def _error(self, move: Status) -> None:
        body = json.dumps({"error": {"message": move.message, "type": "scripted", "code": None}}).encode()
        self.send_response(move.code)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **move.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, request: dict[str, Any], move: Move) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        text = move if isinstance(move, str) else "" if isinstance(move, Refusal) else getattr(move, "text", "")
        for start in range(0, len(text), 400):
            self._event(request, self._delta(request, text[start : start + 400]), None)
        if isinstance(move, Refusal):
            self._event(request, {"refusal": move.text}, None)
        if isinstance(move, Cut):
            return
        self._event(request, {}, "length" if isinstance(move, Long) else "stop")
        usage = {"prompt_tokens": INPUT, "completion_tokens": OUTPUT, "total_tokens": INPUT + OUTPUT}
        self._send({**_frame(request), "choices": [], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")

    @staticmethod
    def _delta(request: dict[str, Any], text: str) -> dict[str, Any]:
        if "tools" in request:
            return {"tool_calls": [{"index": 0, "id": "call", "type": "function", "function": {"name": "answer", "arguments": text}}]}
        return {"content": text}

    def _event(self, request: dict[str, Any], delta: dict[str, Any], finish: str | None) -> None:
        self._send({**_frame(request), "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    def _send(self, event: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
        self.wfile.flush()


def _frame(request: dict[str, Any]) -> dict[str, Any]:
    return {"id": "scripted", "object": "chat.completion.chunk", "created": 0, "model": request["model"]}


@contextmanager
def endpoint(answer: Callable[[dict[str, Any], int], Move] | Sequence[Move], kind: type[Script] = Script) -> Iterator[Script]:
    """Serve while the block runs. A list of moves is gone through in order; after its last one the server has no more to say (status 418)."""
    moves = answer if callable(answer) else lambda request, number: answer[number] if number < len(answer) else Status(418)
    script = kind(moves)
    handler = type("Scripted", (Handler,), {"script": script})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    script.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield script
    finally:
        script.over.set()
        server.shutdown()
        thread.join()
        server.server_close()
