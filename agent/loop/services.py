"""What the agent's nodes call: the seams of the other folders, as functions, so that the graph can be run with others in their place."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from migrate_agent.agent.config.config import Config
from migrate_agent.agent.model.interface import Model
from migrate_agent.agent.runs.folder import RunFolder
from migrate_agent.agent.runs.state import Settings
from migrate_agent.sandbox.base import Device, Sandbox
from migrate_agent.tools.record.apart import observe_apart
from migrate_agent.tools.record.infer import Guess
from migrate_agent.tools.rewrite.assemble.mirror_style import mirror_style
from migrate_agent.tools.types import Draft, Evidence, Example, Inventory, Limits, Observations, Recording, Unit


class Verify(Protocol):
    """`tools.verify.verify`."""

    def __call__(
        self,
        unit: Unit,
        examples: Sequence[Example],
        translated: Sequence[Example],
        original: Path,
        candidate: Path,
        inventory: Inventory,
        sandbox: Sandbox,
        folder: Path,
        config: Config,
        progress: Callable[[str], None],
        stubs: bool = False,
        reached_before: Mapping[str, Sequence[str]] = MappingProxyType({}),
    ) -> Evidence:
        """Judge the candidate tree's `unit` against the original's. With `stubs`, the caller replaces what no call ran."""
        ...


class Compose(Protocol):
    """`tools.rewrite.compose`."""

    def __call__(
        self,
        inventory: Inventory,
        observations: Observations,
        units: Sequence[str],
        overrides: Mapping[str, str],
        examples: Sequence[Example],
        refused: Collection[str] = (),
    ) -> Draft:
        """The target files that these units, and the texts of these examples, need; the `refused` units are there as stubs only."""
        ...


@dataclass(frozen=True)
class Services:
    """One function for each seam (docs/architecture.md)."""

    scan: Callable[[Path], Inventory]
    examples: Callable[[Inventory, Config], tuple[Example, ...]]
    record: Callable[[Inventory, Sequence[Example], Sandbox, Path, Limits], Recording]
    infer: Callable[[Inventory, Unit, Sandbox, Path, Limits], Guess]
    compose: Compose
    mentions: Callable[[Inventory, Observations, str, Sequence[Example]], tuple[str, ...]]
    translate: Callable[[Inventory, Observations, Example], Example]
    verify: Verify
    open_sandbox: Callable[[str, Device], Sandbox]
    further: Callable[[Inventory, Sequence[tuple[Unit, Sequence[Example]]], Recording, Sandbox, Limits], Sequence[Example]] = (
        lambda *arguments: ()
    )
    infer_methods: (
        Callable[[Inventory, Sequence[Example], Sequence[Example], Sandbox, Limits], tuple[tuple[Example, ...], dict[str, str]]] | None
    ) = None
    """Gives calls of the methods that no example calls; without it, none is guessed."""
    observe_apart: Callable[[Inventory, Sequence[Example], Sandbox, Limits], Sequence[Observations | None]] = observe_apart
    """Gives what each of several examples shows alone."""
    model: Model | None = None
    """What fills holes and repairs; without one, the rules do the work alone."""
    connect: Callable[[Settings, Config, RunFolder, Callable[[str], None]], Model] | None = None
    """Gives a run the model that its settings name."""

    on_nodes: Callable[[], Services] | None = None
    """Gives the same services on a node of a cluster: a function that is imported there."""

    def scanned(self, root: Path, config: Config) -> Inventory:
        """What `scan` finds, with the style that the configuration asks of ports, or that a mirror has which is there."""
        inventory = self.scan(root)
        return replace(inventory, style=config.rewrite.style or mirror_style(inventory), scan_layers=config.rewrite.scan_layers)
