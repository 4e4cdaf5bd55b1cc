"""Which program is being traced, and what that program is right for: what its next calls must share for it to be compiled once."""

from __future__ import annotations

import importlib
import inspect
import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass
from functools import partial
from itertools import groupby
from types import CodeType, FunctionType, MethodType, SimpleNamespace
from typing import Any

import numpy as np


def outermost_trace() -> Any:
    """What traces the program that is compiled as a whole, from within any of its loops, branches and gradients."""
    core: Any = importlib.import_module("jax._src.core")
    trace, outer = core.trace_ctx.trace, None
    while trace is not None and not isinstance(trace, core.EvalTrace):
        trace, outer = getattr(trace, "parent_trace", None), trace
    return outer


def kind_of(name: str, args: Any) -> str:
    """What the program that is being traced is right for, where it takes the gradient of the function `name` at `args`: the shapes of these, and the
    structure of these and of the program's own arguments. A gradient of another kind asks for a program of its own."""
    import jax

    shapes = [compiled_for(leaf) for leaf in jax.tree.leaves(args)]
    return f"{name}{shapes} {structure((args, program_arguments()))}"


def compiled_for(leaf: Any) -> str:
    """What a program of its own is right for: another shape or dtype, and another switch or word. A plain number that changes with the steps is an
    argument that should not be static."""
    if hasattr(leaf, "dtype"):
        return f"{leaf.dtype}{leaf.shape}"
    return repr(leaf) if isinstance(leaf, (bool, str)) else type(leaf).__name__


def program_arguments() -> dict[str, Any]:
    """The arguments of the function that is compiled as a whole, and the names of functions around it that it reads, by their names."""
    about = getattr(getattr(outermost_trace(), "frame", None), "debug_info", None)
    place = tuple(getattr(about, name, None) for name in ("func_name", "func_filename", "func_lineno"))
    frame, outermost = sys._getframe(), None
    while frame is not None:
        code = frame.f_code
        if (code.co_name, code.co_filename, code.co_firstlineno) == place:
            outermost = frame
        frame = frame.f_back  # type: ignore[assignment]
    if outermost is None:
        return {}
    code, values = outermost.f_code, outermost.f_locals
    arguments = {name: values[name] for name in _argument_names(code) if name in values}
    return arguments | {name: values[name] for name in code.co_freevars if name in values and not _changes(values[name])}


def _argument_names(code: CodeType) -> tuple[str, ...]:
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return code.co_varnames[:count]


def structure(value: Any, seen: dict[int, int] | None = None) -> str:
    """What a value is apart from its arrays and its numbers: classes, functions with what they close over, names, switches and words.

    Numbers are those of a step, its count for one, and lists of them may grow: of neighbours with one structure there is one. An optimizer, whose rate
    is such a number, is told from those of other modules by the number of its own one, `_trained`.
    """
    import jax
    from flax import nnx

    seen = {} if seen is None else seen
    if isinstance(value, (jax.Array, np.ndarray, np.generic, nnx.Variable)):
        return "array"
    if value is None or isinstance(value, (bool, str, int, float, complex)):
        return "None" if value is None else compiled_for(value)
    if id(value) in seen:
        return f"#{seen[id(value)]}"
    seen[id(value)] = len(seen)
    if isinstance(value, Mapping):
        return _joined("{}", (f"{structure(key, seen)}: {structure(one, seen)}" for key, one in value.items()))
    if isinstance(value, (list, tuple, set, frozenset)):
        return type(value).__name__ + _joined("()", (structure(one, seen) for one in value))
    name = getattr(value, "__qualname__", "") or type(value).__qualname__
    return name + _joined("()", (f"{key}={structure(one, seen)}" for key, one in _parts(value)))


def _joined(brackets: str, parts: Iterable[str]) -> str:
    return brackets[0] + ", ".join(part for part, _ in groupby(parts)) + brackets[1]


def _parts(value: Any) -> list[tuple[str, Any]]:
    """What a function, a module, or another object of plain attributes consists of."""
    from flax import nnx

    if isinstance(value, FunctionType):
        cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        return [(name, content) for name, cell in cells if not _changes(content := _content(cell))]
    if isinstance(value, MethodType):
        return [("self", value.__self__)]
    if isinstance(value, partial):
        return [("func", value.func), ("args", value.args), ("keywords", value.keywords)]
    if isinstance(value, nnx.Optimizer):
        return [(f"of module {getattr(value, '_trained', 0)}", value.tx)]
    if isinstance(value, (nnx.Pytree, Namespace, SimpleNamespace)) or (is_dataclass(value) and not isinstance(value, type)):
        return sorted((key, one) for key, one in getattr(value, "__dict__", {}).items() if not key.startswith("_pytree__"))
    return []


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _changes(value: Any) -> bool:
    """Whether what a function closes over may hold other things at each call, such as the words of a log."""
    return isinstance(value, (list, dict, set))
