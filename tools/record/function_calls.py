"""Records calls of the functions that are units, as source text and tensors. A call that cannot be recorded becomes a reason.

Arguments that a call cannot carry over to the other side (modules, functions, classes, settings objects) stand in `init`, by name.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any

from migrate_agent.tools.record.capture import MAX_CALLS, MAX_INITS, Capture, Sample, call_key, replaced_sample, tensor_bytes
from migrate_agent.tools.record.encode import Encoder, NotEncodable
from migrate_agent.tools.record.kinds import base_kind

OBSERVE_FUNCTION = "__migrate_agent_observe_function__"
_CARRIED = frozenset({"tensor", "parameter", "ndarray", "size", "dtype", "device"})
"""Kinds of values that a call carries over to the other side, besides plain Python values."""
_PLAIN = (bool, int, float, complex, str, type(None), slice, type(Ellipsis))


def is_held(value: Any, depth: int = 6) -> bool:
    """Whether an argument stands in `init`: it is, or contains, something else than arrays and plain values."""
    if base_kind(type(value)) in _CARRIED or isinstance(value, _PLAIN):
        return False
    if depth and isinstance(value, (list, tuple)):
        return any(is_held(item, depth - 1) for item in value)
    if depth and isinstance(value, dict):
        return any(is_held(item, depth - 1) for item in value.values())
    return True


class FunctionCapture:
    """Keeps calls of function units beside those of modules, in the same number."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._own = ""

    @contextmanager
    def example_of(self, unit: str) -> Iterator[None]:
        """Record no calls of this unit meanwhile: they repeat an example that exists already."""
        before, self._own = self._own, unit
        try:
            yield
        finally:
            self._own = before

    def observe(self, source: str, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """A decorator for a function that is a unit."""
        unit = f"{source}:{name}"

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            @wraps(function)
            def watched(*args: Any, **kwargs: Any) -> Any:
                recorded = self._capture.active and unit != self._own
                sample = self._before(unit, function, args, kwargs) if recorded else None
                result = function(*args, **kwargs)
                if sample is not None:
                    self._capture.after(sample)
                return result

            return watched

        return decorate

    def _before(self, unit: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Sample | None:
        """Encode a call before the function can change its arguments; `None` where it adds nothing new."""
        try:
            return self._sample(unit, function, args, kwargs)
        except NotEncodable as error:
            self._capture.refuse(unit, f"its call holds {error}")
        except Exception as error:
            self._capture.refuse(unit, f"its call could not be recorded ({type(error).__name__}: {error})")
        return None

    def _sample(self, unit: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Sample | None:
        key, structure = (tuple(call_key(part, shapes) for part in (args, dict(kwargs))) for shapes in (True, False))
        known = self._capture.calls_of(unit)
        if any(sample.key == key for calls in known.values() for sample in calls):
            return None
        if tensor_bytes((args, kwargs)) > self._capture.room(unit):
            self._capture.refuse(unit, "its calls hold too many tensors")
            return None
        encoder = Encoder(vars(sys.modules[function.__module__]), "call", self._capture.construction, None, self._capture.own)
        init, call = _texts(encoder, function, args, kwargs)
        calls = known.get(init, [])
        full = len(calls) >= MAX_CALLS and not replaced_sample(calls, structure, tensor_bytes((args, kwargs)))
        if full or (init not in known and len(known) >= MAX_INITS):
            return None
        return Sample(unit, init, call, "\n".join(encoder.setup), encoder.tensors, key, structure)


def _texts(encoder: Encoder, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[str, str]:
    """The held arguments, by name, and the others as in the call."""
    bound = inspect.signature(function).bind(*args, **kwargs)
    kinds = {name: item.kind for name, item in bound.signature.parameters.items()}
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    held = {name: value for name, value in bound.arguments.items() if kinds[name] not in variadic and is_held(value)}
    init = ", ".join(f"{name}={encoder.value(value)}" for name, value in held.items())
    if not held:
        return init, encoder.arguments(function, args, kwargs)
    parts = [
        f"{name}={encoder.value(value)}" for name, value in bound.arguments.items() if name not in held and kinds[name] not in variadic
    ]
    if any(kinds[name] is inspect.Parameter.VAR_POSITIONAL and value for name, value in bound.arguments.items()):
        raise NotEncodable("a variadic argument beside a module or a function")
    more: Mapping[str, Any] = next((value for name, value in bound.arguments.items() if kinds[name] is inspect.Parameter.VAR_KEYWORD), {})
    return init, ", ".join([*parts, *(f"{name}={encoder.value(value)}" for name, value in more.items())])


def decorate_functions(tree: ast.Module, names: frozenset[str], source: str) -> None:
    """Decorate the top-level functions of these names, innermost, so that their own decorators stay around."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in names:
            call = ast.Call(ast.Name(OBSERVE_FUNCTION, ast.Load()), [ast.Constant(source), ast.Constant(node.name)], [])
            for new in ast.walk(call):
                if isinstance(new, ast.expr):
                    ast.copy_location(new, node)
            node.decorator_list.append(call)
