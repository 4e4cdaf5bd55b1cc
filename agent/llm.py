"""The seam for a language model: what it is asked, and what it may answer. Its answers are proposals, judged by the verifier alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from migrate_agent.tools.types import Draft, Evidence, Unit, Usage


@dataclass(frozen=True)
class Request:
    """A draft with holes, or one that the verifier refused (then with the evidence)."""

    unit: Unit
    source: str
    """Text of the original file."""
    draft: Draft
    attempt: int
    evidence: Evidence | None = None


@dataclass(frozen=True)
class Proposal:
    """Texts that take the place of rewritten classes (as `compose` takes them in `overrides`), and what they cost. Empty: gave up."""

    overrides: Mapping[str, str] = field(default_factory=dict)
    usage: Usage = Usage()


class Model(Protocol):
    """Proposes what the rules could not."""

    def fill(self, request: Request) -> Proposal:
        """Propose texts for the holes of a draft."""
        ...

    def repair(self, request: Request) -> Proposal:
        """Propose texts in place of those that the verifier refused."""
        ...
