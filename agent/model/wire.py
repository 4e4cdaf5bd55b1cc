"""What goes to an endpoint and what comes back, as plain data, so that it can be hashed, kept and replayed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple

Structured = Literal["auto", "schema", "tool", "text"]
"""How an answer's form is asked for: the first that the server takes, a JSON schema, a tool call, or fenced code blocks."""


class Message(NamedTuple):
    """One message of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class Ask:
    """A whole request: nothing else that is sent can change the answer."""

    endpoint: str
    """Base URL, "" for the client's default."""
    model: str
    messages: tuple[Message, ...]
    output_tokens: int
    temperature: float | None = None
    structured: Structured = "auto"
    schema: Mapping[str, Any] = field(default_factory=dict)
    """JSON schema of the answer; empty where prose is wanted."""

    @property
    def key(self) -> str:
        """SHA-256 of the request, by which answers are kept."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True, ensure_ascii=False).encode()).hexdigest()


@dataclass(frozen=True)
class Reply:
    """An answer. `form` says how `text` is to be read; `cut` that the tokens ran out; `refusal` why there is none, in the server's words.

    `calls` counts the requests that the server answered, those whose stream broke off included; so do the tokens.
    """

    text: str
    form: Literal["json", "text"] = "text"
    refusal: str = ""
    cut: bool = False
    calls: int = 1
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0


class EndpointError(Exception):
    """The endpoint gave no usable answer after all retries; one line. `reply` holds what was spent on the way."""

    def __init__(self, message: str, spent: Reply) -> None:
        super().__init__(message)
        self.spent = spent


def estimate(text: str) -> int:
    """Tokens of a text, on the high side: three bytes each. Code takes 3.2 to 4 with the tokenisers in use."""
    return -(-len(text.encode()) // 3)


def request_tokens(ask: Ask) -> int:
    """Estimated input tokens of a request, its schema and the frame of each message included."""
    schema = json.dumps(ask.schema) if ask.schema else ""
    return sum(estimate(message.content) + 8 for message in ask.messages) + estimate(schema)
