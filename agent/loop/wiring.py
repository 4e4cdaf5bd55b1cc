"""The real services: each seam's function, with the errors of other folders told as the user's."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from migrate_agent.agent.config.config import Config
from migrate_agent.agent.config.errors import ConfigError, MissingError
from migrate_agent.agent.loop.cached_verdicts import Place, cache_of, copy_key_of, key_of, of_copy, through
from migrate_agent.agent.loop.services import Services
from migrate_agent.agent.model.interface import Model
from migrate_agent.agent.runs.folder import RunFolder
from migrate_agent.agent.runs.state import Settings
from migrate_agent.sandbox import SandboxError, open_sandbox
from migrate_agent.sandbox.base import Device, Sandbox
from migrate_agent.tools.record import record
from migrate_agent.tools.record.examples import ExampleError, from_config, from_convention
from migrate_agent.tools.record.further import further_examples
from migrate_agent.tools.record.infer import infer, infer_methods
from migrate_agent.tools.rewrite import compose, mentions, translate
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Draft, Evidence, Example, Inventory, Observations, Unit
from migrate_agent.tools.verify import Options, Performance, Portable, verify
from migrate_agent.tools.verify.contract.settings import Unreached

UNITS, COPIES = "units", "copies"
"""Folders of a run: of its units, and of evidence that holds for copies of them."""


def services(warn: Callable[[str], None]) -> Services:
    """What a run calls. `warn` is told where the sandbox protects little."""

    def opened(kind: str, device: Device) -> Sandbox:
        try:
            return open_sandbox(kind, device=device, warn=lambda text: warn(text.removeprefix("warning: ")))
        except SandboxError as error:
            raise MissingError(str(error)) from error

    seams = (scan, _examples, record, infer, _compose, mentions, translate, _verify, opened, further_examples, infer_methods)
    return Services(*seams, connect=_connect, on_nodes=node_services)


def node_services() -> Services:
    """The services of a node of a cluster. Where the sandbox protects little, the driver was told."""
    return services(lambda text: None)


def _connect(settings: Settings, config: Config, folder: RunFolder, tell: Callable[[str], None]) -> Model:
    from migrate_agent.agent.model.connect import connect

    return connect(settings, config, folder, tell)


def _examples(inventory: Inventory, config: Config) -> tuple[Example, ...]:
    try:
        return (*from_config(inventory, config.example), *from_convention(inventory))
    except ExampleError as error:
        raise ConfigError(f"configuration: {error}") from error


def _compose(
    inventory: Inventory,
    observations: Observations,
    units: Iterable[str],
    overrides: Mapping[str, str],
    examples: Sequence[Example],
    refused: Collection[str] = (),
) -> Draft:
    return compose(inventory, observations, units, overrides, examples, refused)


def _verify(
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
    performance = Performance(config.verify.timing, config.verify.max_slowdown)
    portable = Portable(config.tpu.topology, config.tpu.batch, config.tpu.dtype)
    unreached: Unreached = "keep" if config.run.keep_unreached else "stub" if stubs else ""
    options = Options(
        config.limits.limits(),
        seed=config.verify.seed,
        seconds=config.verify.seconds,
        performance=performance,
        portable=portable,
        unreached=unreached,
        reached_before=reached_before,
    )

    def judge() -> Evidence:
        return verify(unit, examples, translated, original, candidate, inventory, sandbox, folder, options, progress)

    cache = cache_of(config)
    if cache is None:
        units = folder.parents[1]
        if units.name != UNITS:  # no run's folder
            return judge()
        key = copy_key_of(unit, examples, translated, (original, candidate), inventory, options, config.run.device)
        return of_copy(units.with_name(COPIES), Place.of(unit, inventory), key, judge)
    settings = {"options": options, "device": config.run.device}
    return through(cache, key_of(unit, examples, translated, (original, candidate), inventory, settings), judge)
