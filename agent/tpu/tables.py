"""What the TPU compiler said, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table

from migrate_agent.tools.portable.cost import Cost
from migrate_agent.tools.portable.fit import Fit, Remedy
from migrate_agent.tools.portable.full import smallest_fitting

UNITS = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
POWERS = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
COLUMNS = (
    "topology",
    "program",
    "batch",
    "dtype",
    "HBM peak",
    "of",
    "FLOPs",
    "bytes",
    "FLOPs/byte",
    "roofline bound",
    "collectives",
    "padding",
)


def size(count: float) -> str:
    """Bytes for people."""
    unit, name = next(((unit, name) for unit, name in UNITS if count >= unit), (1, "B"))
    return f"{count / unit:.3g} {name}"


def power(count: float) -> str:
    """A large number for people."""
    unit, name = next(((unit, name) for unit, name in POWERS if count >= unit), (1.0, ""))
    return f"{count / unit:.3g}{name}"


def bound(cost: Cost) -> str:
    """The bound with what says so."""
    return f"≥ {seconds(cost.bound)} ({cost.bound_by})"


def seconds(value: float) -> str:
    """A time for people."""
    return f"{value * 1e3:.3g} ms" if value >= 1e-3 else f"{value * 1e6:.3g} µs"


def collectives(cost: Cost) -> str:
    """Each kind with how many and how much."""
    return ", ".join(f"{collective.count} {collective.kind} {size(collective.bytes)}" for collective in cost.collectives) or "none"


def cells(cost: Cost) -> list[str]:
    """The cells of a row, as text."""
    head = [cost.topology + _mesh(cost), cost.program, str(cost.batch or ""), cost.dtype or "own"]
    if cost.refused is not None:
        return [*head, f"refused: {cost.refused.kind}", *[""] * (len(COLUMNS) - len(head) - 1)]
    figures = [size(cost.peak), size(cost.hbm), power(cost.flops), size(cost.bytes), f"{cost.intensity:.3g}", bound(cost)]
    return [*head, *figures, collectives(cost), f"{cost.padding:.0%}"]


def _mesh(cost: Cost) -> str:
    return f" ({','.join(f'{axis}={count}' for axis, count in cost.mesh.items())})" if cost.mesh else ""


def costs(rows: Sequence[Cost]) -> RenderableType:
    """One row a program and topology; figures are for one device."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in COLUMNS:
        table.add_column(column, overflow="fold")
    for cost in rows:
        table.add_row(*map(escape, cells(cost)))
    return table


def cost_lines(rows: Sequence[Cost]) -> Iterator[str]:
    """Refusals with their lines and what to do, the worst padding, and what the figures leave out."""
    yield "figures are for one device; a bound is what published peaks allow at best, no estimate of a time"
    for cost in rows:
        subject = f"{cost.topology} {cost.program}"
        if cost.refused is not None:
            line = f" at {cost.refused.line}" if cost.refused.line else ""
            yield f"{subject}: refused ({cost.refused.kind}){line}: {cost.refused.text}; {cost.refused.advice}"
            if cost.refused.kind == "hbm":
                yield from (
                    f"{subject}: holds {row['value']} ({size(row['bytes'])}) of {row['line'] or 'a library'}" for row in cost.largest[:3]
                )
        for array in cost.padded[:1] if cost.padding > 0.2 else ():
            yield f"{subject}: most padding in {array.text}: {size(array.bytes)} take {size(array.padded)}{f' ({array.line})' if array.line else ''}"
    for note in dict.fromkeys(note for cost in rows for note in cost.notes):
        yield f"note: {note}"


def fit_lines(sizes: Sequence[Fit], remedies: Sequence[tuple[str, Sequence[Remedy]]]) -> Iterator[str]:
    """What fits, and what helped."""
    for chips, rows in remedies:
        for remedy in rows:
            outcome = (
                f"fits: {size(remedy.cost.peak)} of {size(remedy.cost.hbm)}"
                if remedy.cost.refused is None
                else f"no: {remedy.cost.refused.text}"
            )
            yield f"{chips} train with {remedy.name}: {outcome}"
    for row in sizes:
        beyond = f", {row.refused} does not" if row.refused else ""
        cause = f" ({row.stopped})" if row.stopped else ""
        outcome = f"{row.largest} fits{beyond}" if row.largest else f"none fits{beyond}"
        yield f"{row.topology} train, largest {row.axis}: {outcome}; {len(row.tried)} sizes compiled{cause}"


def full_lines(rows: Sequence[Cost]) -> Iterator[str]:
    """The first topology that each program in the real configuration fits on."""
    yield "in the real configuration, parameters and the optimiser's state split over all devices:"
    for program, topology in smallest_fitting(rows).items():
        yield f"{program}: {f'the first that it fits on is {topology}' if topology else 'it fits on none of them'}"
