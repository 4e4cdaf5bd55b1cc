"""Prompts: one Markdown template each, rendered strictly, in parts that can be left out when the model's context is small.

A template is plain Jinja, where a name that is not given is an error. A line `<!-- part NAME RANK -->` begins a part: rank 0 always stays, and the
part of the highest rank is the first to go. Text of the user's repository goes through the filter `code`, which fences it so that nothing in it
can end the fence.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

_PART = re.compile(r"^<!-- part (\w+) (\d+) -->\n", re.MULTILINE)
_RUN = re.compile(r"`+")


class Part(NamedTuple):
    """A part of a prompt. Parts are kept or left out whole, so that code is never cut."""

    name: str
    rank: int
    text: str


def render(name: str, **values: Any) -> tuple[Part, ...]:
    """The parts of `prompts/<name>.md`; those that say nothing are left out. Raises `jinja2.UndefinedError` for a name that is not given."""
    pieces = _PART.split(_environment().get_template(f"{name}.md").render(**values))
    parts = [Part("head", 0, pieces[0]), *(Part(pieces[i], int(pieces[i + 1]), pieces[i + 2]) for i in range(1, len(pieces), 3))]
    return tuple(Part(part.name, part.rank, part.text.strip()) for part in parts if part.text.strip())


def code(text: str, language: str = "python") -> str:
    """A fenced block, with a fence longer than any run of backticks in the text."""
    text = str(text)  # of a name that was not given, this raises
    longest = max((len(run) for run in _RUN.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def names() -> list[str]:
    """All prompts."""
    return sorted(path.stem for path in Path(__file__).parent.glob("*.md"))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["code"] = code
    return environment
