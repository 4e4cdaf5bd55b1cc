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


def substituted(ahead: Ahead, variant: Variant, places: Sequence[Topology], write: bool) -> Substituted:
    """Try the kernels; write the adopted ones into the rewrite in the working tree. Raises `ExtraMissing`, `PortableError`, `UsageError`."""
    found = adopt(ahead, variant, places)
    return Substituted(found, _written(found, ahead.inventory.root) if write else ())


def _written(found: Adoption, root: Path) -> tuple[str, ...]:
    lacking = sorted(path for path in found.files if not (root / path).is_file())
    if lacking:
        raise UsageError(f"--write: {lacking[0]} is not in the working tree: merge the branch that `migrate-agent run` made first")
    for path, text in found.files.items():
        write_text(root / path, text)
    return tuple(sorted(found.files))


def lines(found: Substituted) -> Iterator[str]:
    """Each kernel on each topology, the check and what was written, for people."""
    if not found.adoption.tried:
        yield "no call in the rewrite has a kernel in the library"
    for row in found.adoption.tried:
        told = f"{row.kernel} ({', '.join(row.places)}) on {row.topology}: {'helps' if row.helps else 'not adopted'}: {row.why}"
        if row.live:
            kernels = f"{row.live} kernels live"
            bounds = f"bound {seconds(row.bound)} for {seconds(row.plain_bound)}, peak {size(row.peak)} for {size(row.plain_peak)}"
            told += f"; {kernels}, {bounds}"
        yield told
    if (seen := found.adoption.check) is not None:
        told = "is the plain one" if seen.equal else "DIFFERS from the plain one, so that no kernel is adopted"
        yield (
            f"a training step with the kernels interpreted {told}: {seen.compared} results compared in float32, worst {seen.worst}: "
            f"{seen.problem or f'{seen.measured:.1e}'}, limit {seen.limit:.1e}"
        )
    if found.adoption.kernels:
        yield f"adopted: {', '.join(found.adoption.kernels)}"
    yield from (f"kernels written to {path}: verify the unit again" for path in found.written)
