"""The real services: each seam's function, imported when a command needs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from migrate_agent.agent.config import Config
from migrate_agent.agent.errors import ConfigError, MissingError, UsageError
from migrate_agent.agent.services import Services
from migrate_agent.sandbox import SandboxError, SandboxUnavailable, open_sandbox
from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.record import record
from migrate_agent.tools.record.examples import ExampleError, from_config, from_convention
from migrate_agent.tools.record.infer import infer
from migrate_agent.tools.rewrite import compose, translate
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Evidence, Example, Inventory, Recording, Unit
from migrate_agent.tools.verify import Options, verify


def services(warn: Callable[[str], None]) -> Services:
    """What a run calls. `warn` is told where the sandbox protects little."""
    return Services(
        scan=scan,
        examples=_examples,
        record=_record,
        infer=_infer,
        compose=compose,
        translate=translate,
        verify=_verify,
        open_sandbox=lambda kind: _open(kind, warn),
    )


def _examples(inventory: Inventory, config: Config) -> tuple[Example, ...]:
    try:
        return (*from_config(inventory, config.example), *from_convention(inventory))
    except ExampleError as error:
        raise ConfigError(f"configuration: {error}") from error
