"""Compiling ahead of time for TPUs: done where the configuration names a topology, on the first example that ran."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from migrate_agent.tools.portable import shapes
from migrate_agent.tools.portable.ahead import Ahead, Target, Variant, device_count
from migrate_agent.tools.portable.chips import topology
from migrate_agent.tools.portable.cost import Cost

if TYPE_CHECKING:
    from migrate_agent.tools.verify.evidence.candidate import Results


@dataclass(frozen=True)
class Portable:
    """`topologies`: what forward pass and training step must compile for, such as `v5e:4x4`; none for no such check.

    `batch` 0 is the example's; one that a topology's devices cannot share is rounded up. `dtype` `bf16` stands in the place of float32.
    """

    topologies: tuple[str, ...] = ()
    batch: int = 0
    dtype: Literal["", "bf16"] = ""


NOT_COMPILED = Portable()


def measure(results: Results) -> list[Cost]:
    """The costs, or refusals, of both programs for each topology. Raises `ExtraMissing`, `PortableError`."""
    wanted, index = results.portable, results.expected.examples[0]["index"]
    places = [topology(text) for text in wanted.topologies]
    ahead = Ahead(
        results.unit,
        results.examples[index],
        results.translated[index],
        results.inventory,
        results.candidate_root,
        results.sandbox,
        results.job_limits,
        results.original_root,
    )
    with ahead:
        share = math.lcm(*(device_count(place) for place in places))
        batch = wanted.batch or shapes.batch_of(ahead.leaves)
        return ahead.costs(Variant(-(-batch // share) * share, 0, wanted.dtype), [Target(place) for place in places])
