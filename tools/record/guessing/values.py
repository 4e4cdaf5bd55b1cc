"""Values of a guess as data, so that a repair can change one size of one tensor; `text` turns them into source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

Kind = Literal["normal", "positive", "integer", "bool", "false", "complex", "array", "whole array"]
"""`bool` are masks of ones, `false` of zeros. `array` is one of NumPy, `whole array` one of its integers."""


@dataclass(frozen=True)
class Tensor:
    """A tensor of drawn values; integers lie in [0, `high`)."""

    shape: tuple[int, ...]
    kind: Kind = "normal"
    high: int = 8


@dataclass(frozen=True)
class Sequence:
    """A list or a tuple."""

    items: tuple[Value, ...]
    brackets: Literal["[]", "()"] = "[]"


@dataclass(frozen=True)
class Fields:
    """Named values: a dictionary, or an object with these attributes."""

    items: tuple[tuple[str, Value], ...]
    form: Literal["dict", "namespace", "arguments", "object"] = "dict"
    """`arguments`: an object that `in` can be asked of, as `argparse` gives. `object`: an instance of `cls`."""
    cls: str = ""


Value = str | Tensor | Sequence | Fields
"""A string is source text."""


def text(value: Value) -> str:
    """The source text of a value."""
    match value:
        case Tensor(shape, kind, high):
            return _tensor_text(", ".join(map(str, shape)), kind, high, len(shape))
        case Sequence(items, brackets):
            inner = ", ".join(map(text, items)) + ("," if brackets == "()" and len(items) == 1 else "")
            return f"{brackets[0]}{inner}{brackets[1]}"
        case Fields(items, "dict"):
            return "{" + ", ".join(f"{name!r}: {text(item)}" for name, item in items) + "}"
        case Fields(items, form):
            made = value.cls or ("argparse.Namespace" if form == "arguments" else "types.SimpleNamespace")
            return f"{made}({', '.join(f'{name}={text(item)}' for name, item in items)})"
        case _:
            return value


def _tensor_text(sizes: str, kind: Kind, high: int, rank: int) -> str:
    shape = f"({sizes}{',' if rank == 1 else ''})"
    match kind:
        case "normal":
            return f"torch.randn({sizes or '()'})"
        case "array":
            return f"torch.randn({sizes or '()'}).numpy()"
        case "whole array":
            return f"torch.randint(0, {high}, {shape if rank else '()'}).numpy()"
        case "positive":
            return f"torch.rand({sizes or '()'})"
        case "bool":
            return f"torch.ones({shape if rank else '()'}, dtype=torch.bool)"
        case "false":
            return f"torch.zeros({shape if rank else '()'}, dtype=torch.bool)"
        case "complex":
            return f"torch.randn({sizes + ', ' if sizes else '(), '}dtype=torch.complex64)"
        case "integer":
            return f"torch.randint(0, {high}, {shape if rank else '()'})"


def tensors(value: Value) -> Iterator[Tensor]:
    """The tensors in a value."""
    match value:
        case Tensor():
            yield value
        case Sequence(items):
            for item in items:
                yield from tensors(item)
        case Fields(items):
            for _, item in items:
                yield from tensors(item)


def as_array(tensor: Tensor) -> Tensor:
    """The tensor as an array of NumPy, of whole numbers where it has these."""
    return replace(tensor, kind="whole array" if tensor.kind in ("integer", "whole array") else "array")


def change_tensors(value: Value, change: Callable[[Tensor], Value]) -> Value:
    """The value with every tensor in it changed."""
    match value:
        case Tensor():
            return change(value)
        case Sequence(items):
            return replace(value, items=tuple(change_tensors(item, change) for item in items))
        case Fields(items):
            return replace(value, items=tuple((name, change_tensors(item, change)) for name, item in items))
        case _:
            return value
