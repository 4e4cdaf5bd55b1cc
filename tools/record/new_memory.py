"""Numbers for memory that a user's code makes and does not set, such as the input `torch.FloatTensor(2, 3, 112, 96)` of a script.

What such memory holds differs from run to run: often zeros, sometimes NaN. An example of it would judge nothing, so it holds drawn numbers.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

FILLED = "__migrate_agent_filled__"
"""The name of `filled` in code that is changed so."""
FUNCTIONS = frozenset({"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"})
"""Functions and methods that set nothing."""
CONSTRUCTORS = frozenset({"Tensor", "FloatTensor", "DoubleTensor", "HalfTensor", "BFloat16Tensor", "new"})
"""Names of what makes a tensor from sizes, whose numbers it does not set, or from data."""
_SEED = 2024


def may_leave_unset(call: ast.Call) -> bool:
    """Whether the call, read by name, may give memory that nothing has set."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id if isinstance(call.func, ast.Name) else ""
    return name in FUNCTIONS or (name in CONSTRUCTORS and bool(call.args))


class Filling(ast.NodeTransformer):
    """Puts `FILLED` around what is called, wherever a call may leave memory unset."""

    def visit_Call(self, node: ast.Call) -> ast.Call:
        """The call, with those inside it changed too."""
        fills = may_leave_unset(node)
        self.generic_visit(node)
        if fills:
            node.func = ast.copy_location(ast.Call(ast.Name(FILLED, ast.Load()), [node.func], []), node.func)
        return node


def filled(callee: Any) -> Any:
    """The callee, with drawn numbers in the memory that it gives unset; as it is if it does nothing of the kind. Never raises."""
    torch = sys.modules.get("torch")
    if torch is None:
        return callee
    if any(callee is one for one in _unsetting()) or _is_method(callee, FUNCTIONS):
        return _filling(callee, lambda args: True)
    if any(callee is one for one in _constructors()) or _is_method(callee, CONSTRUCTORS):
        return _filling(callee, _are_sizes)
    return callee


def _filling(callee: Any, leaves_unset: Callable[[tuple[Any, ...]], bool]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        result = callee(*args, **kwargs)
        if leaves_unset(args):
            _fill(result)
        return result

    return call


def _fill(result: Any) -> None:
    import torch

    from migrate_agent.tools.harness.torch_side.filled_memory import FilledMemory

    if isinstance(torch.utils._python_dispatch._get_current_dispatch_mode(), FilledMemory):
        return  # what an example's constructor does not set is the same in each run already
    if isinstance(result, torch.Tensor) and not result.is_meta and result.layout is torch.strided:
        with torch.no_grad():
            if result.is_floating_point() or result.is_complex():
                result.normal_(generator=_generator())
            else:
                result.zero_()


def _are_sizes(args: tuple[Any, ...]) -> bool:
    import torch

    return isinstance(args[0], torch.Size) if len(args) == 1 and not isinstance(args[0], int) else all(isinstance(arg, int) for arg in args)


def _is_method(callee: Any, names: frozenset[str]) -> bool:
    import torch

    return isinstance(getattr(callee, "__self__", None), torch.Tensor) and getattr(callee, "__name__", "") in names


@cache
def _unsetting() -> tuple[Any, ...]:
    import torch

    return torch.empty, torch.empty_like, torch.empty_strided


@cache
def _constructors() -> tuple[Any, ...]:
    import torch

    return tuple(getattr(torch, name) for name in sorted(CONSTRUCTORS - {"new"}))


@cache
def _generator() -> Any:
    """A generator of its own: the user's code draws the numbers that it would draw without it."""
    import torch

    return torch.Generator().manual_seed(_SEED)
