"""The cost of a compiled program on one device, and the lower bound on its time from the chip's published peaks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from migrate_agent.tools.portable import hlo
from migrate_agent.tools.portable.chips import Topology
from migrate_agent.tools.portable.refusal import Refusal

WORST = 3


@dataclass(frozen=True)
class Cost:
    """One program (`forward` or `train`) on one topology; all figures are for one device, bytes and FLOPs as the compiler counts them.

    `memory` has `argument`, `output`, `alias`, `temp` and `generated_code`. `padding` is the share of the program's arrays that is padding
    of tiles, `padded` the arrays with most of it. `refused` says why there are no figures.
    """

    topology: str
    program: str
    batch: int = 0
    length: int = 0
    dtype: str = ""
    mesh: Mapping[str, int] = field(default_factory=dict)
    devices: int = 0
    memory: Mapping[str, int] = field(default_factory=dict)
    hbm: int = 0
    flops: float = 0.0
    bytes: float = 0.0
    bound: float = 0.0
    bound_by: str = ""
    collectives: tuple[hlo.Collective, ...] = ()
    padding: float = 0.0
    padded: tuple[hlo.Array, ...] = ()
    refused: Refusal | None = None
    largest: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    """Seconds that the compilation took on this machine."""
    kernels: int = 0
    """How many Pallas kernels are in the compiled program."""

    @property
    def peak(self) -> int:
        """Bytes of HBM that the program holds at once: arguments, results that reuse none of them, temporaries and code."""
        sizes = self.memory
        # An aliased result is counted among arguments, outputs and aliases, but takes memory once.
        return sum(sizes.values()) - 2 * sizes["alias"] if sizes else 0

    @property
    def intensity(self) -> float:
        """FLOPs for each byte."""
        return self.flops / self.bytes if self.bytes else 0.0


def roofline(flops: float, moved: float, topology: Topology, devices: int) -> tuple[float, str]:
    """The seconds that a step cannot go below by the published peaks, and which peak says so. A bound, no estimate.

    Where a chip shows itself as several devices, each has its share of the peaks.
    """
    share = topology.chips / max(devices, 1)
    compute, memory = flops / (topology.chip.bf16 * share), moved / (topology.chip.bandwidth * share)
    return (compute, "compute") if compute >= memory else (memory, "memory")


def hbm_of(topology: Topology, devices: int) -> int:
    """Bytes of HBM of one device."""
    return int(topology.chip.hbm * topology.chips / max(devices, 1))


def read_figures(row: Mapping[str, Any], text: str, topology: Topology, root: str) -> dict[str, Any]:
    """The figures of `Cost` from the compile job's row and the compiled program's text. Lines lose the `root` of the rewrite."""
    arrays = [replace(array, line=array.line.removeprefix(f"{root}/")) for array in hlo.buffers(text)]
    size, padded = sum(array.bytes for array in arrays), sum(array.padded for array in arrays)
    bound, by = roofline(row["flops"], row["bytes"], topology, row["devices"])
    return {
        "devices": row["used"],
        "memory": dict(row["memory"]),
        "hbm": hbm_of(topology, row["devices"]),
        "flops": row["flops"],
        "bytes": row["bytes"],
        "bound": bound,
        "bound_by": by,
        "collectives": hlo.collectives(text),
        "padding": 1 - size / padded if padded else 0.0,
        "padded": tuple(_most_padded(arrays)),
        "seconds": row["seconds"],
        "kernels": text.count('custom_call_target="tpu_custom_call"'),
    }


def _most_padded(arrays: Sequence[hlo.Array]) -> list[hlo.Array]:
    return [array for array in sorted(arrays, key=lambda array: -array.waste)[:WORST] if array.waste > 0]


def notes(facts: Mapping[str, Any]) -> tuple[str, ...]:
    """Notes on operations that the figures leave out."""
    lines = []
    if facts.get("loops"):
        lines.append(f"FLOPs, bytes and collectives count the body of each of the {facts['loops']} loops once")
    if facts.get("kernels"):
        lines.append("FLOPs and bytes inside Pallas kernels are those that the kernels state themselves (pl.CostEstimate), else none")
    return tuple(lines)
