"""Measures a unit's training step for `migrate-agent assess --measure`: by the TPU compiler where it is installed, else by its jaxpr."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from migrate_agent.agent.config.config import load_config
from migrate_agent.agent.config.errors import UsageError
from migrate_agent.agent.loop.services import Services
from migrate_agent.agent.repository.git import open_repository
from migrate_agent.agent.runs.progress import Progress
from migrate_agent.agent.tpu.command import TpuOptions, prepared
from migrate_agent.tools.assess.accelerators import Accelerators
from migrate_agent.tools.assess.step_cost import StepCost, compiled_cost, counted_cost, traffic_of
from migrate_agent.tools.portable.ahead import Ahead, PortableError, Target, Variant, has_compiler
from migrate_agent.tools.portable.shapes import batch_of

TRAIN = ("train",)


def measure(
    root: Path,
    module: str,
    options: TpuOptions,
    kinds: Sequence[Accelerators],
    steps: float,
    prices: Mapping[str, float],
    services: Services,
    progress: Progress,
) -> list[StepCost]:
    """The cost of one training step, and of `steps` of them, on each of `kinds`. `prices` has the price of an hour by chip or GPU.

    Raises `UserError`.
    """
    repository = open_repository(root)
    config = load_config(repository.root)
    with prepared(repository, config, module, options, services, progress) as (ahead, _):
        progress.stage(ahead.unit.id, "measuring the training step")
        try:
            return list(_costs(ahead, Variant(options.batch, options.length, options.dtype), kinds, steps, prices))
        except PortableError as error:
            raise UsageError(f"{ahead.unit.id}: {error}") from None


def _costs(ahead: Ahead, variant: Variant, kinds: Sequence[Accelerators], steps: float, prices: Mapping[str, float]) -> list[StepCost]:
    (facts,) = ahead.facts([variant], TRAIN)
    refused = facts.get("refused") or facts["train"].get("refused")
    if refused:
        raise PortableError(f"its training step cannot be had: {refused['text'].splitlines()[0]} {refused['line']}".strip())
    counted, batch = facts["train"]["counted"], batch_of(ahead.resized(variant))
    grids = [kind.topology for kind in kinds if kind.topology is not None] if has_compiler() else []
    compiled = {cost.topology: cost for cost in ahead.costs(variant, [Target(grid) for grid in grids], TRAIN)} if grids else {}
    counted |= traffic_of(list(compiled.values()), counted)
    return [
        compiled_cost(kind, compiled[kind.name], counted, steps, prices.get(kind.kind))
        if kind.name in compiled
        else counted_cost(kind, counted, batch, steps, prices.get(kind.kind))
        for kind in kinds
    ]
