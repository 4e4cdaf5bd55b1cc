"""Accelerators to train on: TPU topologies (`v5e:4x4`) and numbers of GPUs (`h100:8`), by their published figures."""

from __future__ import annotations

import re
from dataclasses import dataclass

from migrate_agent.tools.assess.ways import facts
from migrate_agent.tools.portable.chips import CHIPS, Topology, TopologyError, topology


@dataclass(frozen=True)
class Accelerators:
    """`count` chips or GPUs of one kind. `memory` is bytes, `bandwidth` bytes a second, `bf16` operations a second, each of one of them."""

    name: str
    kind: str
    count: int
    memory: float
    bandwidth: float
    bf16: float
    topology: Topology | None = None
    """The grid, of TPUs: what the compiler can be asked about."""


def accelerators(text: str) -> Accelerators:
    """`CHIP:SHAPE` or `GPU:COUNT`. Raises `TopologyError`."""
    match = re.fullmatch(r"([a-z0-9]+)(?::(\d+))?", text.strip().lower())
    gpu = next((gpu for gpu in facts().gpus if match and gpu.name == match[1]), None)
    if match and gpu:
        count = int(match[2] or 1)
        if count == 0:
            raise TopologyError(f"{text!r} has no GPU: write {gpu.name}:8")
        return Accelerators(f"{gpu.name}:{count}", gpu.name, count, gpu.memory, gpu.bandwidth, gpu.bf16)
    try:
        grid = topology(text)
    except TopologyError as error:
        if any(text.strip().lower().startswith(f"{chip.name}:") for chip in CHIPS):
            raise
        names = ", ".join(gpu.name for gpu in facts().gpus)
        raise TopologyError(f"{error}, or GPU:COUNT with one of {names}, such as h100:8") from None
    return Accelerators(grid.name, grid.chip.name, grid.chips, grid.chip.hbm, grid.chip.bandwidth, grid.chip.bf16, grid)
