"""Kernels in the place of plain JAX: what was tried for a unit, and the rewrite with those that are adopted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from migrate_agent.agent.config.errors import UsageError
from migrate_agent.agent.config.json_files import write_text
from migrate_agent.agent.tpu.tables import seconds, size
from migrate_agent.tools.portable.adopt import Adoption, adopt
from migrate_agent.tools.portable.ahead import Ahead, Variant
from migrate_agent.tools.portable.chips import Topology


@dataclass(frozen=True)
class Substituted:
    """What became of the kernels. `written` are the files that take them now."""

    adoption: Adoption
    written: tuple[str, ...] = ()


def try_kernels(ahead: Ahead, variant: Variant, topologies: Sequence[Topology], write: bool) -> Substituted:
    """Try the kernels; write the adopted ones into the rewrite in the working tree. Raises `ExtraMissing`, `PortableError`, `UsageError`."""
    adoption = adopt(ahead, variant, topologies)
    return Substituted(adoption, _write_kernels(adoption, ahead.inventory.root) if write else ())


def _write_kernels(adoption: Adoption, root: Path) -> tuple[str, ...]:
    # Before anything is written: the kernels were checked together, and half of them is another program.
    lacking = sorted(path for path in adoption.files if not (root / path).is_file())
    if lacking:
        raise UsageError(f"--write: {lacking[0]} is not in the working tree: merge the branch that `migrate-agent run` made first")
    for path, text in adoption.files.items():
        write_text(root / path, text)
    return tuple(sorted(adoption.files))


def kernel_lines(result: Substituted) -> Iterator[str]:
    """Each kernel on each topology, the check and what was written, for people."""
    if not result.adoption.tried:
        yield "no call in the rewrite has a kernel in the library"
    for row in result.adoption.tried:
        line = f"{row.kernel} ({', '.join(row.places)}) on {row.topology}: {'helps' if row.helps else 'not adopted'}: {row.why}"
        if row.live:
            kernels = f"{row.live} kernels live"
            bounds = f"bound {seconds(row.bound)} for {seconds(row.plain_bound)}, peak {size(row.peak)} for {size(row.plain_peak)}"
            line += f"; {kernels}, {bounds}"
        yield line
    # Where no kernel helps, there was nothing to check.
    if (check := result.adoption.check) is not None:
        line = "is the plain one" if check.equal else "DIFFERS from the plain one, so that no kernel is adopted"
        yield (
            f"a training step with the kernels interpreted {line}: {check.compared} results compared in float32, worst {check.worst}: "
            f"{check.problem or f'{check.measured:.1e}'}, limit {check.limit:.1e}"
        )
    if result.adoption.kernels:
        yield f"adopted: {', '.join(result.adoption.kernels)}"
    yield from (f"kernels written to {path}: verify the unit again" for path in result.written)
