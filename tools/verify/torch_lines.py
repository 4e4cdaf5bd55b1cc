"""Which lines of a unit's class its examples run: of the others a verdict says nothing. Used inside the sandbox, on the original's side."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

Function = ast.FunctionDef | ast.AsyncFunctionDef
UNTOLD = ("extra_repr",)
"""Methods that compute nothing, beside those with two underscores."""
COMPILERS = ("is_scripting", "is_tracing", "is_compiling", "is_dynamo_compiling", "is_exporting", "TYPE_CHECKING")
"""What is asked for here is torch's own, and is in no port."""


class Lines:
    """A context in which the lines that run of a class's methods are noted. It may be entered several times."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.ran: set[int] = set()
        self._outer: list[Any] = []

    def __enter__(self) -> Lines:
        self._outer.append(sys.gettrace())
        sys.settrace(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._outer.pop())

    def _called(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        if not frame.f_code.co_qualname.startswith(self.name + "."):
            return None
        return self._line(frame, event, argument)

    def _line(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        self.ran.add(frame.f_lineno)
        return self._line

    def missed(self, cls: type) -> str:
        """What of the class never ran, in words; "" where all did, or where its file does not show it."""
        try:
            found = _class(ast.parse(Path(inspect.getfile(cls)).read_text(encoding="utf-8")), self.name.split("."))
        except (OSError, TypeError, SyntaxError, ValueError):
            return ""
        methods = [node for node in (found.body if found else ()) if isinstance(node, Function) and _computes(node)]
        called = [node for node in methods if self._runs(node.body)]
        names = [node.name for node in methods if node not in called and not node.name.startswith("__") and node.name not in UNTOLD]
        lines = [line for node in called for line in self._left(node.body)]
        parts = [f"the lines {_ranges(lines)}"] if lines else []
        parts += [f"the methods {', '.join(sorted(set(names)))}"] if names else []
        return f"no example runs {' and '.join(parts)}: nothing is said of them" if parts else ""

    def _runs(self, body: Sequence[ast.stmt]) -> bool:
        return any(line in self.ran for node in body for line in range(node.lineno, (node.end_lineno or node.lineno) + 1))

    def _left(self, body: Sequence[ast.stmt]) -> Iterator[int]:
        """Lines of the statements that did not run, but for those that raise, and what only compilers of torch run."""
        for node in body:
            if isinstance(node, (ast.Raise, ast.Pass, ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom, Function, ast.ClassDef)):
                continue
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                continue
            if not self._runs([node]):
                yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)
            elif not (isinstance(node, ast.If) and _asks_compilers(node.test)):
                for inner in _blocks(node):
                    if not all(isinstance(each, ast.Raise) for each in inner):
                        yield from self._left(inner)


def _class(tree: ast.Module, names: Sequence[str]) -> ast.ClassDef | None:
    found: ast.Module | ast.ClassDef = tree
    for name in names:
        inner = [node for node in ast.walk(found) if isinstance(node, ast.ClassDef) and node.name == name]
        if not inner:
            return None
        found = inner[-1]
    return found if isinstance(found, ast.ClassDef) else None


def _computes(node: Function) -> bool:
    """Whether a function does more than raise, as one does that has to be overridden."""
    return not all(isinstance(each, (ast.Raise, ast.Pass)) or isinstance(getattr(each, "value", None), ast.Constant) for each in node.body)


def _asks_compilers(test: ast.expr) -> bool:
    return any(getattr(node, "attr", getattr(node, "id", "")) in COMPILERS for node in ast.walk(test))


def _blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    for field in ("body", "orelse", "finalbody"):
        yield getattr(node, field, [])
    for handler in getattr(node, "handlers", ()):
        yield [] if all(isinstance(each, (ast.Raise, ast.Pass)) for each in handler.body) else handler.body
    for case in getattr(node, "cases", ()):
        yield case.body


def _ranges(lines: Sequence[int]) -> str:
    """`4, 8-9, 12`."""
    found: list[list[int]] = []
    for line in sorted(set(lines)):
        if found and line == found[-1][1] + 1:
            found[-1][1] = line
        else:
            found.append([line, line])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in found)
