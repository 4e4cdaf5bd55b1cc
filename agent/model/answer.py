"""What a model may answer, and how its text is read: JSON by the schema where the server has that, fenced blocks of code where not."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from migrate_agent.agent.model.splice import Refused
from migrate_agent.agent.model.wire import Reply

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "holes": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"number": {"type": "integer"}, "code": {"type": "string"}},
                "required": ["number", "code"],
                "additionalProperties": False,
            },
        },
        "whole_class": {"type": "string", "description": "The whole class, only where the holes alone cannot do it; else empty."},
        "reason": {"type": "string", "description": "Why the whole class is needed; else empty."},
    },
    "required": ["holes", "whole_class", "reason"],
    "additionalProperties": False,
}
"""The form of an answer."""

_FENCE = re.compile(r"^(?P<fence>`{3,}|~{3,})[^\S\n]*(?P<info>[^\n]*)\n(?P<code>.*?)^(?P=fence)[^\S\n]*$", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"\bhole[\s=:#_-]*(\d+)", re.IGNORECASE)
_REASON = re.compile(r"^\s*reason\s*:\s*(.+)$", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class Answer:
    """Texts for holes by number, or a whole class with the reason for it."""

    holes: Mapping[int, str] = field(default_factory=dict)
    whole_class: str = ""
    reason: str = ""


def parse_reply(reply: Reply) -> Answer:
    """The answer in a reply. Raises `Refused` where the model declined, ran out of tokens, or answered in no form that we know."""
    if reply.refusal:
        raise Refused(f"the model declined: {reply.refusal[:200]}")
    if reply.cut:
        raise Refused("the answer was cut off: its tokens ran out")
    text = reply.text.strip()
    if reply.form == "json" or text.startswith("{"):
        return _from_json(text)
    return _from_fences(text)


def _from_json(text: str) -> Answer:
    inner = _FENCE.search(f"{text}\n")
    for candidate in (text, *([inner["code"]] if inner else [])):
        try:
            return _checked(json.loads(candidate))
        except json.JSONDecodeError as error:
            problem = f"the answer is no JSON: {error.msg} at character {error.pos}"
    if inner:
        return _from_fences(text)
    raise Refused(problem)


def _checked(document: Any) -> Answer:
    match document:
        case {"holes": list() as rows, "whole_class": str() as text, "reason": str() as reason}:
            holes: dict[int, str] = {}
            for row in rows:
                match row:
                    case {"number": int() as number, "code": str() as code} if number not in holes:
                        holes[number] = code
                    case _:
                        raise Refused("the answer's holes are not each one number with its code")
            return _complete(Answer(holes, text.strip("\n"), reason.strip()))
        case _:
            raise Refused("the answer's JSON is not of the form that was asked for")


def _from_fences(text: str) -> Answer:
    holes: dict[int, str] = {}
    classes: list[str] = []
    for block in _FENCE.finditer(text + "\n"):
        number = _NUMBER.search(block["info"]) or _NUMBER.search(
            block["code"].partition("\n")[0] if block["code"].lstrip().startswith("#") else ""
        )
        if number and int(number[1]) in holes:
            raise Refused(f"hole {number[1]} was answered twice")
        if number:
            holes[int(number[1])] = block["code"]
        else:
            classes.append(block["code"])
    if len(classes) > 1 or (classes and holes):
        raise Refused("the answer holds code that belongs to no hole")
    reason = _REASON.search(_FENCE.sub("", text + "\n"))
    return _complete(Answer(holes, classes[0] if classes else "", reason[1].strip() if reason else ""))


def _complete(answer: Answer) -> Answer:
    if not answer.holes and not answer.whole_class:
        raise Refused("the answer holds no code")
    if answer.holes and answer.whole_class:
        raise Refused("the answer holds both holes and a whole class")
    return answer
