"""What the nodes work with: the seams, the run's folder and settings, and what earlier nodes left in that folder."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from migrate_agent.agent.config.config import Config
from migrate_agent.agent.config.json_files import read, write
from migrate_agent.agent.loop.services import Services
from migrate_agent.agent.loop.speculation import Ahead
from migrate_agent.agent.model.interface import Model
from migrate_agent.agent.repository.git import Branch, Identity, Repository
from migrate_agent.agent.runs.folder import RunFolder
from migrate_agent.agent.runs.progress import Progress
from migrate_agent.agent.runs.state import Plan, RunState, Settings
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
        return self.place_folder(state["position"])

    def place_folder(self, place: int) -> Path:
        """The folder of the unit at this place of the plan."""
        return self.folder.unit(place, self.inventory.unit(self.plan.order[place]).name)

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
        for position in range(min(before, len(self.plan.order))):
            if position not in self._settled:
                self._settled[position] = read(self.place_folder(position) / "result.json", UnitReport)
        return {identifier: self._settled[position] for position, identifier in enumerate(self.plan.order[:before])}

    def reopen(self, place: int) -> None:
        """Forget how the units from this place on ended."""
        for position in range(place, len(self.plan.order)):
            self._settled.pop(position, None)
            (self.place_folder(position) / "result.json").unlink(missing_ok=True)
            self.wait(position, False)

    def accepted(self, state: RunState) -> list[str]:
        """Ids of the units that were committed before the unit at work, oldest first."""
        return [identifier for identifier, result in self.settled(state["position"]).items() if result.status == "verified"]

    def lost(self, state: RunState) -> list[str]:
        """Ids of the units before the unit at work that an example runs, and that are neither committed nor wait to be."""
        runs = {*self.recording.errors, *(example.unit for example in self.recording.examples)}
        settled = enumerate(self.settled(state["position"]).items())
        return [name for place, (name, done) in settled if done.status != "verified" and name in runs and not self.waits(place)]

    def waits(self, place: int) -> bool:
        """Whether the unit at this place was accepted on the condition that its circle is."""
        return self._waiting(place).exists()

    def wait(self, place: int, yes: bool) -> None:
        """Note that the unit at this place waits for its circle, or no longer."""
        if yes:
            write(self._waiting(place), self.plan.circle(self.plan.order[place]))
        else:
            self._waiting(place).unlink(missing_ok=True)

    def _waiting(self, place: int) -> Path:
        return self.place_folder(place) / "waiting.json"

    def settle(self, state: RunState, report: UnitReport) -> None:
        """Note how the unit at work ended."""
        self.resettle(state["position"], report)

    def resettle(self, place: int, report: UnitReport) -> None:
        """Note how the unit at this place ended after all."""
        write(self.place_folder(place) / "result.json", report)
        self._settled.pop(place, None)


def usage(state: RunState) -> Usage:
    """Model calls and tokens spent on the unit at work."""
    tokens = (state.get("input_tokens", 0), state.get("output_tokens", 0))
    return Usage(state.get("calls", 0), *tokens, round(state.get("cost", 0.0), 6), round(state.get("model_seconds", 0.0), 3))
