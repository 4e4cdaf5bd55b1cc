"""What `migrate-agent check` found out about one unit."""

from __future__ import annotations

from dataclasses import dataclass, field

from migrate_agent.agent.loop.verified_units import Verified
from migrate_agent.tools.types import Evidence


@dataclass(frozen=True)
class Checked:
    """A unit that was verified before. `changes` since then; `evidence` where it was verified again, else why not in `reason`."""

    then: Verified
    changes: tuple[str, ...] = ()
    evidence: Evidence | None = None
    reason: str = ""
    notes: tuple[str, ...] = field(default=())

    @property
    def holds(self) -> bool:
        """Whether the port is known to match."""
        return not self.reason if self.evidence is None else self.evidence.status == "verified"

    @property
    def status(self) -> str:
        """For people: `unchanged`, or what verifying it again came to."""
        if self.evidence is None:
            return "stale" if self.reason else "unchanged"
        return self.evidence.status
