"""Sizes beyond numbers of the original's code, which decide nothing for those of the example: a window, a largest length, buckets of distances.
Used inside the sandbox, on the original's side."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from migrate_agent.tools.verify import limits, sampling, thresholds
from migrate_agent.tools.verify.configurations import LONG
from migrate_agent.tools.verify.sampling import Array
from migrate_agent.tools.verify.torch_modes import OperatorMode

if TYPE_CHECKING:
    from migrate_agent.tools.verify.torch_author import Author

COMPARISONS = frozenset({"gt", "ge", "lt", "le", "eq", "ne"})
BOUNDS = frozenset({"minimum", "maximum", "clamp", "clamp_", "clamp_min", "clamp_max", "tril", "triu", "tril_", "triu_", "remainder"})
"""Operators that give back their first argument unless a number, or another tensor, decides otherwise."""


class Decisions(OperatorMode):
    """Notes what comparisons, bounds and slices of whole numbers decide, by the line of the repository that they stand in."""

    def __init__(self, root: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: set[tuple[str, int, str, bool]] = set()
        self._root = root

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """Run `func`."""
        name = func.overloadpacket.__name__
        bounds = name in BOUNDS and isinstance(args[0], torch.Tensor)
        before = args[0].clone() if bounds and name.endswith("_") else args[0] if args else None
        result = func(*args, **(kwargs or {}))
        if name in COMPARISONS and isinstance(result, torch.Tensor):
            self._note(name, {bool(value) for value in (result.any(), result.all())} if result.numel() else ())
        elif bounds:
            self._note(name, [before.shape == result.shape and not torch.equal(before, result)])  # type: ignore[union-attr,arg-type]
        elif name == "slice" and isinstance(before, torch.Tensor):
            self._note(name, [before.shape != result.shape])
        return result

    def _note(self, name: str, decided: Any) -> None:
        frame = sys._getframe(2)
        while frame is not None and not frame.f_code.co_filename.startswith(self._root):
            frame = frame.f_back  # type: ignore[assignment]
        if frame is not None:
            self.found |= {(frame.f_code.co_filename, frame.f_lineno, name, value) for value in decided}


def longer(author: Author) -> None:
    """Inputs of sizes just beyond whole numbers of the code, or just such, where that decides something new or runs other lines."""
    unit, lines = author.original, author.lines
    seen = _decisions(author, author.values(0))
    if seen is None:
        return
    always, tries, accepted = thresholds.counts(unit.native), 0, 0
    for label, values in _proposals(author):
        if tries == limits.LONG_TRIES or accepted == limits.LONG_SIZES:
            return
        tries += 1
        new = set[Any]()
        try:
            other = lines.more(lambda values=values, new=new: new.update(_decisions(author, values) or ()))  # type: ignore[misc]
        except Exception:
            continue
        if new and (always or other or not new <= seen) and author.add(f"{LONG}-{label}", LONG, "eval", 0, values, runs=1):
            accepted += 1
            seen |= new
            always = False


def _decisions(author: Author, values: Sequence[Array]) -> set[Any] | None:
    """What is decided on these inputs, None where the original does not take them."""
    watch = Decisions(author.lines.root)
    try:
        author.original.run(author.states[0], values, "eval", watch=watch)
    except Exception:
        return None
    return watch.found


def _proposals(author: Author) -> Iterator[tuple[str, list[Array]]]:
    """Labels and inputs, the longest first."""
    leaves = author.original.leaves
    leading = next((leaf.value.shape for leaf in leaves if leaf.value.ndim), ())
    places: list[tuple[int, int | None]] = [(size, None) for size in dict.fromkeys(leading[1:])]
    places += [(size, axis) for axis, size in enumerate(leading) if axis and leading[1:].count(size) > 1]
    numbers = {int(value) for value in thresholds.own_numbers(author.original.native) if value == int(value)}
    for number in sorted(numbers, reverse=True):
        for size, axis in places:
            for other in (number + 2, number):
                values = sampling.resized(leaves, {size: other}, axis, (author.base,)) if size < other <= limits.LONG + 2 else None
                if values is not None and sum(value.size for value in values) <= limits.LONG_ELEMENTS:
                    yield f"size{size}-{other}" if axis is None else f"axis{axis}-{other}", values
