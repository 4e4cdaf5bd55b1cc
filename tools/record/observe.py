"""The table of observed expression types, filled by instrumented code (see `instrument`)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal

from migrate_agent.tools.record.causality import Probe
from migrate_agent.tools.record.kinds import EXACT, Kinds, base_kind, is_lazy
from migrate_agent.tools.types import Observed, Span

MAX_SHAPES = 4
MAX_KINDS = 6
PATIENCE = 64
"""Number of evaluations of an expression that may show nothing new before it is no longer looked at."""
CHANGES: Sequence[Literal["", "alone", "returned", "inside"]] = ("", "alone", "returned", "inside")
"""What `Observed.changed` may be; the later ones say more."""
_NOTHING: Any = object()


class Entry:
    """The kinds, shapes and dtypes that one expression had so far."""

    __slots__ = ("argument", "changed", "dtypes", "kinds", "lazy", "patience", "shapes", "span", "types", "watched", "whole")

    def __init__(self, span: Span) -> None:
        self.span = span
        self.watched = False  # whether it is an argument of a call, of which a change in place is noted
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self.types: set[type] = set()  # types that say all there is to know: the fast way out
        self.kinds: list[str] = []
        self.shapes: list[tuple[int, ...]] = []
        self.dtypes: list[str] = []
        self.lazy: list[Any] = []  # modules without shapes as yet
        self.patience = PATIENCE
        self.whole = True
        self.argument: tuple[Any, int] | None = None  # the tensor that was passed last, and its version
        self.changed: Literal["", "alone", "returned", "inside"] = ""


def add(items: list[Any], item: Any, limit: int) -> bool:
    if item in items or len(items) >= limit:
        return False
    items.append(item)
    return True


class Recorder:
    """Keeps an `Entry` for each instrumented expression. `changed` is called after each new fact (periodic saving hangs on it)."""

    def __init__(self, kinds: Kinds | None = None, changed: Callable[[], None] | None = None) -> None:
        self.kinds = kinds or Kinds()
        self.entries: list[Entry] = []
        self.files: list[tuple[str, int]] = []
        self.probes: dict[int, tuple[str, Span, Probe]] = {}
        """Calls of which it is asked whether they are causal: number → file, place, and the question."""
        self.active = True
        self.quiet: Callable[[], AbstractContextManager[object]] = nullcontext
        """A context in which nothing is recorded."""
        self._changed = changed

    def forget(self) -> None:
        """Forget what was observed, but whether calls are causal: the expressions stay."""
        for entry in self.entries:
            entry.forget()

    def forget_lines(self, path: str, first: int, last: int) -> None:
        """Forget what expressions of a file were observed to be that begin on these lines."""
        for (file, start), (_, end) in pairwise([*self.files, ("", len(self.entries))]):
            for entry in self.entries[start:end] if file == path else ():
                if first <= entry.span.line <= last:
                    entry.forget()

    def begin(self, path: str) -> None:
        """Entries added from here on belong to this file."""
        self.files.append((path, len(self.entries)))

    def entry(self, span: Span) -> int:
        """A new expression; gives the number that the instrumented code passes to `observe`."""
        self.entries.append(Entry(span))
        return len(self.entries) - 1

    def probe(self, span: Span, probe: Probe) -> int:
        """A call in a growing loop; gives the number that the instrumented code passes to `observe_callee`."""
        self.probes[len(self.probes)] = (self.files[-1][0], span, probe)
        return len(self.probes) - 1

    def observe_callee(self, number: int, callee: Any) -> Any:
        """What is called in place of `callee`: the same, and then it is asked whether it is causal."""
        return self.probes[number][2].watch(callee, self.quiet) if self.active else callee

    def observe(self, index: int, value: Any) -> Any:
        """Record kind, shape and dtype of `value`, and return it. Never raises."""
        if not self.active:
            return value
        entry = self.entries[index]
        cls = type(value)
        # Most evaluations end here: a training loop evaluates the same expression millions of
        # times.
        if cls not in entry.types:
            try:
                self._note(entry, cls, value)
                entry.argument = (value, version(value)) if entry.watched and base_kind(cls) == "tensor" else None
            except Exception:  # an exotic proxy must not change what the user's code does
                entry.types.add(cls)
        return value

    def watch(self, arguments: Sequence[int]) -> None:
        """Record whether calls change the tensors of these expressions (their entries' indices) in place."""
        for index in arguments:
            self.entries[index].watched = True

    def observe_call(self, index: int, value: Any, *arguments: int) -> Any:
        """Record the result of a call, and which of its arguments (their entries' indices) it changed in place."""
        for argument in arguments:
            entry = self.entries[argument]
            before, entry.argument = entry.argument, None
            if before is not None and version(before[0]) != before[1] and entry.changed != "inside":
                entry.changed = max(entry.changed, self._change(before[0], value, sys._getframe(1)), key=CHANGES.index)
                if self._changed is not None:
                    self._changed()
        return self.observe(index, value)

    def _change(self, argument: Any, value: Any, frame: Any) -> Literal["alone", "returned", "inside"]:
        """How a call that ran in this frame changed the tensor that it was handed."""
        if argument is not value:
            return "inside"
        # A comprehension or a lambda does not see what the function around it holds.
        if frame.f_code.co_name.startswith("<"):
            return "returned"
        held = [place for place in frame.f_locals.values() if holds_memory(place, argument)]
        return "alone" if len(held) == 1 and held[0] is argument else "returned"

    def observe_attribute(self, index: int, owner: Any, name: str) -> Any:
        """Record the value of `owner.name` without running a property or `__getattr__`, and return `owner` (for `self.x += y`)."""
        state = getattr(owner, "__dict__", None) or {}
        for table in (state, state.get("_parameters") or {}, state.get("_buffers") or {}):
            value = table.get(name, _NOTHING) if type(table) is dict else _NOTHING
            if value is not _NOTHING:
                self.observe(index, value)
                break
        return owner

    def _note(self, entry: Entry, cls: type, value: Any) -> None:
        kind = base_kind(cls)
        if kind in ("tensor", "parameter", "ndarray"):
            new = self._note_array(entry, cls, kind, value)
        else:
            if cls in EXACT or kind in ("size", "dtype", "device", "dict"):
                entry.types.add(cls)
            new = add(entry.kinds, self.kinds.of(value), MAX_KINDS)
            if kind == "module" and is_lazy(cls):
                entry.lazy.append(value)
            if len(entry.kinds) >= MAX_KINDS:
                entry.types.add(cls)
        if new and self._changed is not None:
            self._changed()
        entry.patience -= not new
        if entry.patience <= 0:
            entry.types.add(cls)

    def _note_array(self, entry: Entry, cls: type, kind: str, value: Any) -> bool:
        new = add(entry.kinds, kind, MAX_KINDS)
        if kind != "ndarray":
            shape = tuple(int(size) for size in value.shape)
            new |= add(entry.shapes, shape, MAX_SHAPES)
            new |= add(entry.dtypes, str(value.dtype).removeprefix("torch."), MAX_SHAPES)
            entry.whole = entry.whole and is_whole(value)
            if len(entry.shapes) >= MAX_SHAPES:
                entry.types.add(cls)
        return new

    def table(self) -> dict[str, dict[Span, Observed]]:
        """File → span → what was observed; expressions that never ran are left out."""
        result: dict[str, dict[Span, Observed]] = {}
        starts = [*self.files, ("", len(self.entries))]
        for (path, start), (_, end) in pairwise(starts):
            rows = result.setdefault(path, {})
            for entry in self.entries[start:end]:
                if entry.kinds:
                    observed = Observed(
                        tuple(entry.kinds),
                        tuple(entry.shapes) or sizes(entry.lazy),
                        tuple(entry.dtypes),
                        bool(entry.shapes) and entry.whole,
                        entry.changed,
                    )
                    rows[entry.span] = merge(rows.get(entry.span), observed)
        for path, span, probe in self.probes.values():
            if span in result.get(path, {}):
                result[path][span] = replace(result[path][span], causal=probe.causal)
        return result


def holds_memory(value: Any, tensor: Any, depth: int = 4) -> bool:
    """Whether a tensor, or what a container or a plain object holds, shares the memory of `tensor`; true where that cannot be told."""
    kind = base_kind(type(value))
    if kind in ("tensor", "parameter"):
        try:
            return bool(value.untyped_storage().data_ptr() == tensor.untyped_storage().data_ptr())
        except Exception:  # an exotic tensor must not change what the user's code does
            return True
    if isinstance(value, list | tuple | set | frozenset):
        parts: Iterable[Any] = value
    elif isinstance(value, dict):
        parts = list(value.values())
    # The modules inside a module are reached through its attributes; their parameters are not what calls change.
    elif kind == "module" or (hasattr(value, "__dict__") and not callable(value)):
        parts = [part for name, part in vars(value).items() if name not in ("_parameters", "_modules")]
    else:
        return False
    return any(depth == 0 or holds_memory(part, tensor, depth - 1) for part in parts)


def version(tensor: Any) -> int:
    """The number of in-place changes of a tensor; 0 where torch does not count them (inference mode). Never raises."""
    try:
        return int(tensor._version)
    except Exception:  # an exotic tensor must not change what the user's code does
        return 0


def sizes(modules: Sequence[Any]) -> tuple[tuple[int, ...], ...]:
    """The input sizes that lazy layers took from their first calls, each as a shape of rank 1; layers never called are left out."""
    values = [getattr(module, name, 0) for module in modules for name in ("in_features", "in_channels", "num_features")]
    return tuple(dict.fromkeys((size,) for size in values if isinstance(size, int) and size > 0))[:MAX_SHAPES]


def is_whole(tensor: Any) -> bool:
    """Whether a tensor is contiguous and fills its storage; false where it has none (sparse, meta and wrapped ones)."""
    try:
        contiguous = tensor.is_contiguous() and tensor.storage_offset() == 0
        return bool(contiguous and tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size())
    except (RuntimeError, NotImplementedError):
        return False


def merge(first: Observed | None, second: Observed) -> Observed:
    """The union of two observations, cut at `MAX_KINDS` and `MAX_SHAPES`."""
    if first is None:
        return second
    return Observed(
        tuple(dict.fromkeys(first.kinds + second.kinds))[:MAX_KINDS],
        tuple(dict.fromkeys(first.shapes + second.shapes))[:MAX_SHAPES],
        tuple(dict.fromkeys(first.dtypes + second.dtypes))[:MAX_SHAPES],
        first.whole and second.whole,
        max(first.changed, second.changed, key=CHANGES.index),
        second.causal if first.causal is None else first.causal if second.causal is None else first.causal and second.causal,
    )
