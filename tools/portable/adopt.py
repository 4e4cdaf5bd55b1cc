"""Replaces plain JAX by kernels of the library, one by one.

A kernel is adopted where it compiles for the target, is live in the compiled program, is predicted to
help, and computes the same.

The prediction is a bound: FLOPs are those of the plain program (a kernel computes no less), bytes those of the compiled program and of each
kernel's operands and results, which the compiler leaves out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from migrate_agent.tools.portable.ahead import Ahead, Target, Variant
from migrate_agent.tools.portable.chips import Topology
from migrate_agent.tools.portable.cost import Cost, roofline
from migrate_agent.tools.portable.kernel_calls import KernelCall, kernel_calls, with_kernels
from migrate_agent.tools.portable.kernel_check import check
from migrate_agent.tools.portable.mesh_check import StepCheck

PROGRAM = "train"
GAIN = 0.98
"""A kernel helps where the bound or the peak of memory falls below this share of the plain program's, and the other does not rise."""


@dataclass(frozen=True)
class KernelTrial:
    """One kernel on one topology. `bound` and `peak` are seconds and bytes with it, `plain_bound` and `plain_peak` without."""

    kernel: str
    places: tuple[str, ...]
    topology: str
    live: int = 0
    bound: float = 0.0
    peak: int = 0
    plain_bound: float = 0.0
    plain_peak: int = 0
    helps: bool = False
    why: str = ""


@dataclass(frozen=True)
class Adoption:
    """All trials, the adopted kernels, the check of all of them together, and the files that change."""

    tried: tuple[KernelTrial, ...]
    kernels: tuple[str, ...]
    check: StepCheck | None
    files: Mapping[str, str]


def adopt(ahead: Ahead, variant: Variant, topologies: Sequence[Topology]) -> Adoption:
    """Try each kernel that the rewrite could take. Raises `ExtraMissing`, `PortableError`."""
    files = {path.relative_to(ahead.candidate).as_posix(): path.read_text(encoding="utf-8") for path in ahead.candidate.rglob("*.py")}
    candidates = kernel_calls(files)
    names = sorted({call.kernel for call in candidates})
    targets = [Target(topology, {"data": 1} if topology.chips == 1 else {}) for topology in topologies]
    plain = ahead.costs(variant, targets, [PROGRAM]) if names else []
    trials: list[KernelTrial] = []
    for name in names:
        chosen = [call for call in candidates if call.kernel == name]
        with _with_kernels(ahead, files, chosen) as fused:
            costs = fused.costs(variant, targets, [PROGRAM])
            (facts,) = fused.facts([variant], [PROGRAM])
        trials += [
            judge_kernel(name, chosen, target, before, after, facts.get(PROGRAM, {}))
            for target, before, after in zip(targets, plain, costs, strict=True)
        ]
    # One tree of source serves all topologies, so a kernel must help on each of them.
    helping = [name for name in names if all(row.helps for row in trials if row.kernel == name)]
    if not helping:
        return Adoption(tuple(trials), (), None, {})
    chosen = [call for call in candidates if call.kernel in helping]
    with _with_kernels(ahead, files, chosen) as fused:
        checked = check(ahead, fused)
    # Kernels are checked together, because they run together; one that differs drops all of them.
    adopted = tuple(helping) if checked.equal else ()
    return Adoption(tuple(trials), adopted, checked, with_kernels(files, chosen) if adopted else {})


@contextmanager
def _with_kernels(ahead: Ahead, files: Mapping[str, str], chosen: Sequence[KernelCall]) -> Iterator[Ahead]:
    """The unit with these calls replaced by their kernels, in a folder of its own."""
    root = ahead.folder / f"with-{'-'.join(sorted({call.kernel for call in chosen}))}"
    for path, text in {**files, **with_kernels(files, chosen)}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    with replace(ahead, candidate=root, _folder=None, _facts={}) as fused:
        yield fused


def judge_kernel(
    name: str, chosen: Sequence[KernelCall], target: Target, plain: Cost, fused: Cost, facts: Mapping[str, Any]
) -> KernelTrial:
    """The trial of one kernel: whether it compiles for the target, is live in the compiled program, and is predicted to help."""
    row = KernelTrial(name, tuple(f"{Path(call.file).as_posix()}:{call.line}" for call in chosen), target.topology.name)
    if fused.refused is not None:
        return replace(row, why=f"refused ({fused.refused.kind}): {fused.refused.text}")
    # The compiler keeps dead kernels, and the traced program keeps ones that the compiler removes.
    live = min(fused.kernels, int(facts.get("live", 0)))
    if not live:
        dead = "it is dead code" if facts.get("kernels") else "plain JAX runs in its place"
        return replace(row, why=f"no kernel is live in the compiled program: {dead}")
    row = replace(row, live=live, peak=fused.peak, bound=predicted_bound(plain, fused, target.topology, facts.get("kernels") or ()))
    if plain.refused is not None:
        return replace(row, helps=True, why=f"the plain program is refused ({plain.refused.kind})")
    row = replace(row, plain_bound=plain.bound, plain_peak=plain.peak)
    ratios = {"bound": row.bound / row.plain_bound, "memory": row.peak / row.plain_peak}
    helps = min(ratios.values()) < GAIN and max(ratios.values()) <= 1
    return replace(row, helps=helps, why=", ".join(f"{ratio:.2f} of the plain {quantity}" for quantity, ratio in ratios.items()))


def predicted_bound(plain: Cost, fused: Cost, topology: Topology, kernels: Sequence[Mapping[str, Any]]) -> float:
    """The bound of the program with the kernels, in seconds."""
    moved = sum(
        math.prod(shape) * np.dtype("uint8" if "float8" in dtype else "uint16" if dtype == "bfloat16" else dtype).itemsize
        for kernel in kernels
        for shape, dtype in zip(kernel["shapes"], kernel["dtypes"], strict=True)
    )
    per_chip = 2 if topology.chip.name in ("v4", "tpu7x") else 1
    return roofline(max(plain.flops, fused.flops), fused.bytes + moved / max(fused.devices, 1), topology, topology.chips * per_chip)[0]
