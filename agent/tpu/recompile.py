"""What a recording's calls cost in compilations, and the padding that saves them where one is exact."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from migrate_agent.tools.portable import shapes
from migrate_agent.tools.portable.ahead import PACKAGE, Ahead, JobRun, texts
from migrate_agent.tools.portable.cost import Cost
from migrate_agent.tools.portable.recompile import Axis, Padding, VaryingAxis, try_padding, varying_axes
from migrate_agent.tools.types import Example, Job


@dataclass(frozen=True)
class Recompiled:
    """`calls` that were seen need `programs`, by the axes that vary; one took `seconds` to compile here (0: not known)."""

    calls: int
    programs: int
    varies: tuple[VaryingAxis, ...]
    seconds: float
    paddings: tuple[Padding, ...]


def count_programs(ahead: Ahead, examples: Sequence[Example], costs: Sequence[Cost]) -> Recompiled:
    """Look at all calls of the unit. Raises `PortableError`."""
    tensors = {f"tensors{index}": example.tensors for index, example in enumerate(examples) if example.tensors is not None}
    root = (ahead.original or ahead.inventory.root) / ahead.file.import_root
    arguments = {"module": ahead.file.module, "examples": [texts(example) for example in examples]}
    with JobRun(ahead.sandbox, Job("original", f"{PACKAGE}.inputs_side:describe", root, arguments, tensors, ahead.limits)) as ran:
        # An example that raises has no program to compile.
        calls = [shapes.leaves_of(row["leaves"]) for row in ran.result["examples"] if "error" not in row]
    programs, varies = varying_axes(calls)
    seconds = max((cost.seconds for cost in costs if cost.refused is None), default=0.0)
    varying: list[tuple[Axis, tuple[int, ...]]] = []
    for axis, size_of in (("batch", shapes.batch_of), ("length", shapes.length_of)):
        sizes = tuple(sorted({size_of(call) for call in calls} - {0}))
        if len(sizes) > 1:
            varying.append(("batch" if axis == "batch" else "length", sizes))
    return Recompiled(len(calls), programs, varies, seconds, tuple(try_padding(ahead, axis, sizes) for axis, sizes in varying))


def recompilation_lines(result: Recompiled) -> Iterator[str]:
    """For people."""
    duration = f", about {result.seconds:.0f} s each on this machine" if result.seconds else ""
    yield f"{result.calls} calls seen, {result.programs} programs to compile{duration}"
    for axis in result.varies:
        yield f"array {axis.argument}, axis {axis.axis} varies: {', '.join(map(str, axis.sizes))}"
    for padding in result.paddings:
        saved = f"{len(padding.sizes)} sizes become {len(padding.buckets)}: {', '.join(map(str, padding.buckets))}"
        mask = "" if padding.mask is None else f", masks padded with {padding.mask}"
        if padding.exact:
            yield f"pad the {padding.axis} to powers of two{mask}: {saved}; tried, and exact (worst {padding.measured:.1e}, limit {padding.limit:.0e})"
        else:
            yield f"no exact padding of the {padding.axis} was found: {padding.why}"
    if result.programs > 1 and not result.paddings:
        yield "what varies is neither the batch nor the length: no padding was tried"


def smaller(recompiled: Recompiled) -> Recompiled:
    """Without what JSON cannot hold: an error that is no number becomes -1."""
    paddings = tuple(replace(row, measured=-1.0) if row.measured == float("inf") else row for row in recompiled.paddings)
    return replace(recompiled, paddings=paddings)
