"""The seam for a language model: what it is asked, and what it may answer. Its answers are proposals, judged by the verifier alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from migrate_agent.tools.types import Draft, Evidence, Example, Inventory, Observed, Span, Unit, Usage

Proposer = Literal["rules", "repair", "llm", "human", "torchax"]
"""Who wrote a proposal; `repair` is a deterministic one, and `torchax` is no rewrite but the original behind torchax."""


@dataclass(frozen=True)
class Attempt:
    """A proposal and what became of it: `texts` (`file:name` → text), and why it was not used, or the evidence on it."""

    number: int
    by: Proposer
    texts: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    """Of the model, or of the deterministic repair."""
    refused: str = ""
    evidence: Evidence | None = None


@dataclass(frozen=True)
class Request:
    """A draft with holes, or one that the verifier refused (then with the evidence), and all that may be said about it."""

    unit: Unit
    draft: Draft
    """The latest one."""
    attempt: int
    evidence: Evidence | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    """Texts of the original files by path."""
    inventory: Inventory | None = None
    rules: Draft | None = None
    """What the rules alone made of it."""
    observed: Mapping[Span, Observed] = field(default_factory=dict)
    examples: tuple[Example, ...] = ()
    history: tuple[Attempt, ...] = ()
    hint: str = ""
    """What the user said, in a session."""


@dataclass(frozen=True)
class Proposal:
    """Texts that take the place of rewritten statements (as `compose` takes them in `overrides`), and what they cost.

    `refused` says why an answer was not used: another attempt may be made. Without texts and without that, the model gave up, for the reason in
    `gave_up`. `others` are proposals of further models, to be tried when this one is not verified.
    """

    overrides: Mapping[str, str] = field(default_factory=dict)
    usage: Usage = Usage()
    refused: str = ""
    gave_up: str = ""
    name: str = ""
    others: tuple[Mapping[str, str], ...] = ()


class Model(Protocol):
    """Proposes what the rules could not."""

    def fill(self, request: Request) -> Proposal:
        """Propose texts for the holes of a draft."""
        ...

    def repair(self, request: Request) -> Proposal:
        """Propose texts in place of those that the verifier refused."""
        ...

    def ask(self, request: Request, question: str) -> tuple[str, Usage]:
        """Answer a user's question about the unit; gives what it cost, too."""
        ...
