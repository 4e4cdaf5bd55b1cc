"""Which tensor of a checkpoint belongs to which entry of a port, over the wrappers that training scripts put around a state dictionary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from migrate_agent.tools.checkpoint.files import Tensor

Found = Literal["matches", "tied", "missing", "shape", "extra"]
COMPILED = "_orig_mod."
"""What `torch.compile` puts into names, anywhere."""


@dataclass(frozen=True)
class Entry:
    """One entry of a port's state dictionary: torch's name and shape, the path of the variable behind it, and the axis order from its array
    to torch's (`None`: as it is). Several entries of one path are tied."""

    name: str
    path: str
    shape: tuple[int, ...]
    axes: tuple[int, ...] | None
    dtype: str

    @property
    def stored(self) -> tuple[int, ...]:
        """The shape as the port holds it."""
        if self.axes is None:
            return self.shape
        return tuple(self.shape[self.axes.index(axis)] for axis in range(len(self.axes)))


@dataclass(frozen=True)
class Group:
    """A dictionary of tensors, and where in the checkpoint it lies (`("state_dict",)`)."""

    path: tuple[str, ...]
    tensors: Mapping[str, Tensor]


@dataclass(frozen=True)
class Row:
    """One line of the comparison: an entry with its tensor, an entry without one, or a tensor without an entry."""

    found: Found
    entry: Entry | None = None
    tensor: Tensor | None = None
    name: str = ""
    """The tensor's name in the checkpoint."""


@dataclass(frozen=True)
class Match:
    """`rows` in the order of the port, tensors without an entry last; `wrappers` says what was taken off, for people."""

    rows: tuple[Row, ...]
    wrappers: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether every entry has its tensor, and every tensor its entry."""
        return all(row.found in ("matches", "tied") for row in self.rows)

    def count(self, *found: Found) -> int:
        return sum(row.found in found for row in self.rows)


def match(entries: Sequence[Entry], groups: Sequence[Group]) -> Match:
    """The group, and the prefix to take off or put on, that give most entries a tensor; then the fewest tensors left over."""
    return max(
        (_match(entries, group, names, said) for group in groups for names, said in _spellings(entries, group)),
        key=lambda found: (found.count("matches", "tied", "shape"), found.count("matches"), -found.count("extra"), -len(found.wrappers)),
    )


def _spellings(entries: Sequence[Entry], group: Group) -> Iterator[tuple[dict[str, str], tuple[str, ...]]]:
    """(name as a port may spell it → name in the group, what was done)."""
    plain = {name: name for name in group.tensors}
    yield plain, ()
    compiled = any(COMPILED in name for name in plain)
    names = {name.replace(COMPILED, ""): name for name in plain}
    said = (f"`{COMPILED}` taken out of names",) if compiled else ()
    if compiled:
        yield names, said
    wanted = _few([entry.name for entry in entries])
    for prefix in dict.fromkeys(name[: -len(entry)] for entry in wanted for name in names if name.endswith(f".{entry}")):
        taken = {name.removeprefix(prefix): old for name, old in names.items() if name.startswith(prefix)}
        rest = {name: old for name, old in names.items() if not name.startswith(prefix) and name not in taken}
        yield {**taken, **rest}, (*said, f"prefix `{prefix}` taken off names")
    for prefix in dict.fromkeys(
        entry.name[: -len(name)] for name in _few(list(names)) for entry in entries if entry.name.endswith(f".{name}")
    ):
        grown = {prefix + name: old for name, old in names.items()}
        yield {**names, **grown}, (*said, f"prefix `{prefix}` put before names")


def _few(names: Sequence[str]) -> list[str]:
    """Enough names to see a prefix by: one of them may be missing."""
    return [*names[:4], *names[-2:]]


def _match(entries: Sequence[Entry], group: Group, names: Mapping[str, str], said: tuple[str, ...]) -> Match:
    rows: list[Row] = []
    used: set[str] = set()
    held = {entry.path for entry in entries if entry.name in names}
    for entry in entries:
        old = names.get(entry.name)
        tensor = group.tensors[old] if old is not None else None
        if old is None or tensor is None:
            rows.append(Row("tied" if entry.path in held else "missing", entry))
            continue
        used.add(old)
        rows.append(Row("matches" if tensor.shape == entry.shape else "shape", entry, tensor, old))
    extra = [Row("extra", None, tensor, name) for name, tensor in group.tensors.items() if name not in used]
    inside = (f"taken from `{'.'.join(group.path)}`",) if group.path else ()
    return Match((*rows, *extra), (*inside, *said))


def match_port(entries: Sequence[Entry], tensors: Mapping[str, Tensor]) -> Match:
    """The way back: tensors under the paths of a port's variables, in its axis order."""
    rows = []
    for entry in entries:
        tensor = tensors.get(entry.path)
        found: Found = "missing" if tensor is None else "matches" if tensor.shape == entry.stored else "shape"
        rows.append(Row(found, entry, tensor, entry.path if tensor else ""))
    paths = {entry.path for entry in entries}
    return Match((*rows, *(Row("extra", None, tensor, name) for name, tensor in tensors.items() if name not in paths)))
