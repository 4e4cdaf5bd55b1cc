"""What the nodes work with: the seams, the run's folder and settings, and what earlier nodes left in that folder."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from migrate_agent.agent.ahead import Ahead
from migrate_agent.agent.config import Config
from migrate_agent.agent.folder import RunFolder
from migrate_agent.agent.git import Branch, Identity, Repository
from migrate_agent.agent.llm import Model
from migrate_agent.agent.progress import Progress
from migrate_agent.agent.services import Services
from migrate_agent.agent.state import Plan, RunState, Settings
from migrate_agent.agent.store import read, write
from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.record.store import load_recording
from migrate_agent.tools.types import Draft, Evidence, Inventory, Recording, Unit, UnitReport, Usage


@dataclass(frozen=True)
class Context:
    """Everything a node needs besides the state. Files are the truth; what is cached here never changes once written."""

    services: Services
    settings: Settings
    folder: RunFolder
    repository: Repository
    config: Config
    sandbox: Sandbox
    progress: Progress
    model: Model | None = None
    debug: bool = False
    ahead: Ahead = field(default_factory=Ahead)
    _settled: dict[int, UnitReport] = field(default_factory=dict)

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
        """What the scan node found."""
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
        return self.inventory.unit(self.plan.order[state["position"]])

    def unit_folder(self, state: RunState) -> Path:
        """The folder of the unit at work."""
        return self.folder.unit(state["position"], self.unit(state).name)

    def draft(self, state: RunState) -> Draft:
        """The rewrite node's draft of the unit at work."""
        return read(self.unit_folder(state) / "draft.json", Draft)

    def rules(self, state: RunState) -> Draft:
        """What the rules alone made of the unit at work."""
        return read(self.unit_folder(state) / "rules.json", Draft)

    def evidence(self, state: RunState) -> Evidence | None:
        """The verify node's evidence on the unit at work, `None` where it did not come so far."""
        path = self.unit_folder(state) / "evidence.json"
        return read(path, Evidence) if path.exists() else None

    def settled(self, before: int) -> dict[str, UnitReport]:
        """Unit id → result, of the units at places before this one."""
        for position, identifier in enumerate(self.plan.order[:before]):
            if position not in self._settled:
                folder = self.folder.unit(position, self.inventory.unit(identifier).name)
                self._settled[position] = read(folder / "result.json", UnitReport)
        return {identifier: self._settled[position] for position, identifier in enumerate(self.plan.order[:before])}

    def reopen(self, place: int) -> None:
        """Forget how the units from this place on ended."""
        for position, identifier in list(enumerate(self.plan.order))[place:]:
            self._settled.pop(position, None)
            (self.folder.unit(position, self.inventory.unit(identifier).name) / "result.json").unlink(missing_ok=True)

    def accepted(self, state: RunState) -> list[str]:
        """Ids of the units that were committed before the unit at work, oldest first."""
        return [identifier for identifier, result in self.settled(state["position"]).items() if result.status == "verified"]

    def settle(self, state: RunState, report: UnitReport) -> None:
        """Note how the unit at work ended."""
        write(self.unit_folder(state) / "result.json", report)


def usage(state: RunState) -> Usage:
    """Model calls and tokens spent on the unit at work."""
    tokens = (state.get("input_tokens", 0), state.get("output_tokens", 0))
    return Usage(state.get("calls", 0), *tokens, round(state.get("cost", 0.0), 6), round(state.get("model_seconds", 0.0), 3))
