"""What the nodes work with: the seams, the run's folder and settings, and what earlier nodes left in that folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol

from migrate_agent.agent.cluster.workers import Workers
from migrate_agent.agent.config.config import Config
from migrate_agent.agent.config.json_files import read
from migrate_agent.agent.loop.services import Services
from migrate_agent.agent.loop.unit_work import SettledUnit, UnitWork, load_settled, load_work, reopen_work, save_work
from migrate_agent.agent.model.interface import Model
from migrate_agent.agent.repository.git import Branch, Identity, Repository
from migrate_agent.agent.runs.folder import RunFolder
from migrate_agent.agent.runs.progress import Progress
from migrate_agent.agent.runs.state import Plan, RunState, Settings
from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.record.store import load_recording
from migrate_agent.tools.types import Draft, Evidence, Inventory, Recording, Unit, UnitReport, Usage


@dataclass(frozen=True)
class Situation:
    """What the draft of one unit depends on, besides the code: its position in the plan, and what came of the units before it."""

    position: int
    accepted: tuple[str, ...]
    """Ids of the units that were committed, oldest first."""
    rejected: tuple[str, ...]
    """Ids of the units that were tried and not committed; stubs stand in their place."""
    texts: Mapping[str, str]
    """Proposals of models and people that count: `file:name` → text."""


class DraftVerifier(Protocol):
    """Verifies the draft of the unit at work, and may begin with the units after it (`speculation.Speculation`)."""

    def verify(self, context: Context, situation: Situation, draft: Draft, folder: Path, tell: Callable[[str], None]) -> Evidence:
        """The evidence on the draft; what it leaves lies in `folder`. `tell` is called with the name of each stage."""
        ...

    def look_ahead(self, context: Context, situation: Situation) -> None:
        """Begin with the next units while the unit at work waits for its model."""
        ...


@dataclass(frozen=True)
class Context:
    """Everything a node needs besides the state. Files are the truth; what is cached here never changes once written, but the scope (`widen_scope`)."""

    services: Services
    settings: Settings
    folder: RunFolder
    repository: Repository
    config: Config
    sandbox: Sandbox
    progress: Progress
    verifier: DraftVerifier
    workers: Workers
    model: Model | None = None
    debug: bool = False
    _settled: dict[int, SettledUnit] = field(default_factory=dict)

    @property
    def original(self) -> Path:
        """The files of the base commit."""
        return self.folder / "original"

    @cached_property
    def branch(self) -> Branch:
        """The branch that verified units are committed to."""
        settings = self.settings
        return Branch(self.repository, settings.branch, self.folder.worktree, Identity(settings.author, settings.email), settings.time)

    @cached_property
    def inventory(self) -> Inventory:
        """What the scan node wrote."""
        return read(self.folder / "inventory.json", Inventory)

    @cached_property
    def scope(self) -> Plan:
        """What the plan node decided: which units are tried, in the order of their code."""
        return read(self.folder / "scope.json", Plan)

    @cached_property
    def plan(self) -> Plan:
        """The final order, which the record node decided by what the examples name."""
        return read(self.folder / "plan.json", Plan)

    @cached_property
    def recording(self) -> Recording:
        """What the record node saw."""
        return load_recording(self.folder / "recorded")

    def unit(self, state: RunState) -> Unit:
        """The unit at work."""
        return self.unit_at(state["position"])

    def unit_at(self, position: int) -> Unit:
        """The unit at a position of the plan."""
        return self.inventory.unit(self.plan.order[position])

    def unit_folder(self, position: int) -> Path:
        """The folder of the unit at a position of the plan."""
        return self.folder.unit(position, self.unit_at(position).name)

    def load(self, state: RunState) -> UnitWork:
        """The work on the unit at work, as far as the checkpoint knows of it."""
        return load_work(self.unit_folder(state["position"]), state.get("attempts", 0))

    def save(self, position: int, before: UnitWork, after: UnitWork) -> None:
        """Write what changed in the work on the unit at a position of the plan."""
        save_work(before, after)
        self._settled.pop(position, None)

    def settled(self, before: int) -> dict[str, UnitReport]:
        """Unit id → result, of the units before a position of the plan."""
        return {identifier: self._settled_at(position).report for position, identifier in enumerate(self.plan.order[:before])}

    def waits(self, position: int) -> bool:
        """Whether the unit at a position of the plan was accepted on the condition that its whole cycle is."""
        return self._settled_at(position).waits

    def _settled_at(self, position: int) -> SettledUnit:
        if position not in self._settled:
            self._settled[position] = load_settled(self.unit_folder(position))
        return self._settled[position]

    def reopen(self, position: int) -> None:
        """Forget how the units from a position of the plan on ended."""
        for later in range(position, len(self.plan.order)):
            self._settled.pop(later, None)
            reopen_work(self.unit_folder(later))

    def accepted(self, before: int) -> tuple[str, ...]:
        """Ids of the units before a position of the plan that were committed, oldest first."""
        return tuple(identifier for identifier, result in self.settled(before).items() if result.status == "verified")

    def rejected(self, before: int) -> tuple[str, ...]:
        """Ids of the units before a position of the plan that an example runs, and that are neither committed nor wait for their cycle."""
        exercised = {*self.recording.errors, *(example.unit for example in self.recording.examples)}
        settled = enumerate(self.settled(before).items())
        return tuple(
            identifier
            for position, (identifier, result) in settled
            if result.status != "verified" and identifier in exercised and not self.waits(position)
        )

    def texts(self, before: int) -> dict[str, str]:
        """Proposals for the units before a position of the plan that are committed, or wait for their cycle: `file:name` → text."""
        texts: dict[str, str] = {}
        for unit in map(self._settled_at, range(min(before, len(self.plan.order)))):
            if unit.report.status == "verified" or unit.waits:
                texts.update(unit.texts)
        return texts

    def situation(self, state: RunState, work: UnitWork) -> Situation:
        """What the next draft of the unit at work depends on."""
        position = state["position"]
        own = work.texts if work.texts is not None and state.get("proposer", "rules") != "rules" else {}
        return Situation(position, self.accepted(position), self.rejected(position), {**self.texts(position), **own})


def usage(state: RunState) -> Usage:
    """Model calls and tokens spent on the unit at work."""
    tokens = (state.get("input_tokens", 0), state.get("output_tokens", 0))
    return Usage(state.get("calls", 0), *tokens, round(state.get("cost", 0.0), 6), round(state.get("model_seconds", 0.0), 3))
