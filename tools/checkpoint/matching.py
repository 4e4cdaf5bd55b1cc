"""Assigns the tensors of a checkpoint to the entries of a port, through the wrappers that training scripts add to a state dictionary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from migrate_agent.tools.checkpoint.files import Tensor

RowKind = Literal["matches", "tied", "missing", "shape", "extra"]
COMPILED = "_orig_mod."
"""`torch.compile` adds this part to names, at any position."""


@dataclass(frozen=True)
class Entry:
    """One entry of a port's state dictionary: torch's name and shape, the path of the variable behind it, and the axis order from its array
    to torch's (`None`: as it is). `index`: its place in a variable that holds the arrays of several layers. Several entries of one place are tied."""

    name: str
    path: str
    shape: tuple[int, ...]
    axes: tuple[int, ...] | None
    dtype: str
    index: tuple[int, ...] = ()

    @property
    def place(self) -> tuple[str, tuple[int, ...]]:
        """The variable, and the part of it."""
        return self.path, self.index

    @property
    def stored(self) -> tuple[int, ...]:
        """The shape as the port holds it, without the axes of stacked layers."""
        if self.axes is None:
            return self.shape
        return tuple(self.shape[self.axes.index(axis)] for axis in range(len(self.axes)))


@dataclass(frozen=True)
class Group:
    """A dictionary of tensors, and its path in the checkpoint (`("state_dict",)`)."""

    path: tuple[str, ...]
    tensors: Mapping[str, Tensor]


@dataclass(frozen=True)
class Row:
    """One line of the comparison: an entry with its tensor, an entry without one, or a tensor without an entry."""

    kind: RowKind
    entry: Entry | None = None
    tensor: Tensor | None = None
    name: str = ""
    """The tensor's name in the checkpoint."""


@dataclass(frozen=True)
class Match:
    """`rows` in the order of the port, tensors without an entry last; `wrappers` are the changes of names, as text for people."""

    rows: tuple[Row, ...]
    wrappers: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether every entry has its tensor, and every tensor its entry."""
        return all(row.kind in ("matches", "tied") for row in self.rows)

    def count(self, *kinds: RowKind) -> int:
        return sum(row.kind in kinds for row in self.rows)


def match(entries: Sequence[Entry], groups: Sequence[Group]) -> Match:
    """The best match over groups and prefixes: most entries with a tensor, then most equal shapes, then fewest extra tensors."""
    return max(
        (_match(entries, group, names, steps) for group in groups for names, steps in _spellings(entries, group)),
        key=lambda candidate: (
            candidate.count("matches", "tied", "shape"),
            candidate.count("matches"),
            -candidate.count("extra"),
            -len(candidate.wrappers),
        ),
    )


def _spellings(entries: Sequence[Entry], group: Group) -> Iterator[tuple[dict[str, str], tuple[str, ...]]]:
    """(name as a port may spell it → name in the group, changes as text)."""
    plain = {name: name for name in group.tensors}
    yield plain, ()
    compiled = any(COMPILED in name for name in plain)
    names = {name.replace(COMPILED, ""): name for name in plain}
    steps = (f"`{COMPILED}` taken out of names",) if compiled else ()
    if compiled:
        yield names, steps
    samples = _sample_names([entry.name for entry in entries])
    for prefix in dict.fromkeys(name[: -len(entry)] for entry in samples for name in names if name.endswith(f".{entry}")):
        stripped = {name.removeprefix(prefix): old for name, old in names.items() if name.startswith(prefix)}
        # Names without the prefix stay: a checkpoint may hold the wrapped model beside other
        # tensors.
        rest = {name: old for name, old in names.items() if not name.startswith(prefix) and name not in stripped}
        yield {**stripped, **rest}, (*steps, f"prefix `{prefix}` taken off names")
    for prefix in dict.fromkeys(
        entry.name[: -len(name)] for name in _sample_names(list(names)) for entry in entries if entry.name.endswith(f".{name}")
    ):
        grown = {prefix + name: old for name, old in names.items()}
        yield {**names, **grown}, (*steps, f"prefix `{prefix}` put before names")


def _sample_names(names: Sequence[str]) -> list[str]:
    """Names to derive prefixes from. Several, because one of them may be missing; few, because all pairs are compared."""
    return [*names[:4], *names[-2:]]


def _match(entries: Sequence[Entry], group: Group, names: Mapping[str, str], steps: tuple[str, ...]) -> Match:
    rows: list[Row] = []
    used: set[str] = set()
    matched = {entry.place for entry in entries if entry.name in names}
    for entry in entries:
        old = names.get(entry.name)
        tensor = group.tensors[old] if old is not None else None
        if old is None or tensor is None:
            rows.append(Row("tied" if entry.place in matched else "missing", entry))
            continue
        used.add(old)
        rows.append(Row("matches" if tensor.shape == entry.shape else "shape", entry, tensor, old))
    extra = [Row("extra", None, tensor, name) for name, tensor in group.tensors.items() if name not in used]
    inside = (f"taken from `{'.'.join(group.path)}`",) if group.path else ()
    return Match((*rows, *extra), (*inside, *steps))


def match_port(entries: Sequence[Entry], tensors: Mapping[str, Tensor]) -> Match:
    """Match tensors that are stored under the paths of a port's variables, in its axis order, with its entries."""
    rows = []
    for entry in entries:
        tensor = tensors.get(entry.path)
        kind: RowKind = "missing" if tensor is None else "matches" if _fits(tensor.shape, entry) else "shape"
        rows.append(Row(kind, entry, tensor, entry.path if tensor else ""))
    paths = {entry.path for entry in entries}
    return Match((*rows, *(Row("extra", None, tensor, name) for name, tensor in tensors.items() if name not in paths)))


def _fits(shape: tuple[int, ...], entry: Entry) -> bool:
    """Whether a variable of this shape has the entry's part."""
    depth = len(entry.index)
    inside = len(shape) >= depth and all(number < size for number, size in zip(entry.index, shape, strict=False))
    return inside and shape[depth:] == entry.stored
