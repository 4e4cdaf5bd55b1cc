"""Units that run their original through torchax: which were asked for, what stands in their place, and whether the installed torchax works."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path

from migrate_agent.agent.config.config import Config
from migrate_agent.agent.config.errors import MissingError, require
from migrate_agent.agent.loop.context import Context
from migrate_agent.tools.rewrite import wrapper
from migrate_agent.tools.types import Inventory, Side, Unit
from migrate_agent.tools.verify.evidence.torchax import lay_originals, wrapped_units

WORKING = "0.0.4"
"""The newest torchax that works with the torch that this package is tested with (docs/torchax.md)."""


def asked_for(config: Config, identifier: str) -> bool:
    """Whether the configuration wants the unit of this id run through torchax."""
    return any(table.module == identifier and table.strategy == "torchax" for table in config.unit)


def wrapper_texts(context: Context, unit: Unit) -> Mapping[str, str]:
    """The proposal that runs the unit's original: `file:name` → text. Raises `Unwrappable`."""
    return {unit.id: wrapper(context.inventory, unit.id)}


def require_torchax(purpose: str) -> None:
    """Raises `MissingError`, with the versions that work, where torchax is not installed or cannot be imported."""
    require("torchax", purpose)
    problem = import_error()
    if problem:
        raise MissingError(
            f"torchax {version('torchax')} does not work with torch {version('torch')} ({problem}), and is needed for {purpose}: "
            f"torchax {WORKING} works with torch 2.13 and jax 0.10.2: pip install torchax=={WORKING}"
        )


@cache
def import_error() -> str:
    """What importing torchax raises here; "" where it imports. Imported apart: it changes torch for the whole process."""
    done = subprocess.run([sys.executable, "-c", "import torchax; torchax.default_env()"], capture_output=True, text=True, check=False)
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return "" if not done.returncode else lines[-1][:200] if lines else f"exit status {done.returncode}"


def side_of(unit: Unit, inventory: Inventory, tree: Path) -> Side:
    """The side of the sandbox that a unit of a mirror's tree runs on; where that is `torchax`, the originals are laid out in the tree.

    Raises `MissingError` where torchax is needed and does not work.
    """
    needed = wrapped_units(unit, inventory, tree).needed
    if not needed:
        return "candidate"
    require_torchax(f"{unit.id}, which runs the original of {', '.join(one.id for one in needed)}")
    lay_originals(needed, inventory, inventory.root, tree)
    return "torchax"
