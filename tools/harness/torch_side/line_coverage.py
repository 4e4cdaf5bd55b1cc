"""Records which lines of a unit's class, and of functions that it uses, its examples run. No verdict covers the others. Runs inside the sandbox."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import Any

Function = ast.FunctionDef | ast.AsyncFunctionDef
UNTOLD = ("extra_repr",)
"""Methods that compute nothing, besides special methods."""
COMPILERS = ("is_scripting", "is_tracing", "is_compiling", "is_dynamo_compiling", "is_exporting", "TYPE_CHECKING")
"""Names of queries of torch's compilers: code that they guard has no counterpart in a port."""


MOST_NAMES = 8
"""Largest number of used functions that a note names."""


class Lines:
    """A context that records the lines that run of a class's methods, and of other functions in files below `root`.

    It may be entered several times.
    """

    def __init__(self, name: str, root: Path) -> None:
        self.name = name
        self.ran: dict[str, set[int]] = {}
        self._used: dict[tuple[str, int], str] = {}
        """Functions of files below the root by file and first line: their qualified names."""
        self.root = f"{root}/"
        self._outer: list[Any] = []

    def __enter__(self) -> Lines:
        self._outer.append(sys.gettrace())
        sys.settrace(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._outer.pop())

    def _called(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        code = frame.f_code
        if not code.co_qualname.startswith(self.name + "."):
            # Frames without a trace function cost nothing further; torch's own would slow a run
            # many times.
            if "<" in code.co_qualname or not code.co_filename.startswith(self.root):
                return None
            self._used[code.co_filename, code.co_firstlineno] = code.co_qualname
        return self._line(frame, event, argument)

    def _line(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        self.ran.setdefault(frame.f_code.co_filename, set()).add(frame.f_lineno)
        return self._line

    def more(self, action: Callable[[], object]) -> bool:
        """Whether an action runs lines that did not run before, without recording them. Raises the errors of the action."""
        probe = Lines(self.name, Path(self.root))
        with probe:
            action()
        return any(not ran <= self.ran.get(file, set()) for file, ran in probe.ran.items())

    def told(self, cls: type) -> dict[str, Any]:
        """The recorded lines of files below the root, and the file of the class, as JSON."""
        try:
            file = inspect.getfile(cls)
        except (OSError, TypeError):
            file = ""
        below = len(self.root)
        ran = {path[below:]: sorted(numbers) for path, numbers in self.ran.items() if path.startswith(self.root)}
        used = [[path[below:], line, name] for (path, line), name in self._used.items()]
        return {"file": file[below:] if file.startswith(self.root) else "", "ran": ran, "used": used}

    def add(self, notes: Mapping[str, Any]) -> None:
        """Note what was `notes` of files below another root."""
        for path, numbers in notes.get("ran", {}).items():
            self.ran.setdefault(self.root + path, set()).update(numbers)
        self._used |= {(self.root + path, line): name for path, line, name in notes.get("used", ())}

    def missed(self, file: str) -> str:
        """A sentence on the lines of the class (in this file below the root) and of used functions that never ran.

        Returns "" where all ran, and where the files cannot be read.
        """
        if not file:
            return ""
        file = self.root + file
        sentences = [text for text in (self._own(file), self._elsewhere(file)) if text]
        return f"{'; '.join(sentences)}: nothing is said of them" if sentences else ""

    def _own(self, file: str) -> str:
        definition = _class(_parsed(file), self.name.split("."))
        ran = self.ran.get(file, set())
        methods = [node for node in (definition.body if definition else ()) if isinstance(node, Function) and _computes(node)]
        called = [node for node in methods if _runs(node.body, ran)]
        names = [node.name for node in methods if node not in called and not node.name.startswith("__") and node.name not in UNTOLD]
        lines = [line for node in called for line in _left(node.body, ran)]
        parts = [f"the lines {_ranges(lines)}"] if lines else []
        parts += [f"the methods {', '.join(sorted(set(names)))}"] if names else []
        return f"no example runs {' and '.join(parts)}" if parts else ""

    def _elsewhere(self, own: str) -> str:
        """A sentence on functions that ran in part, in the order of files and lines."""
        sentences = []
        for file in sorted({file for file, _ in self._used}):
            file_suffix = "" if file == own else f" ({file.removeprefix(self.root)})"
            for node in ast.walk(_parsed(file)):
                name = self._used.get((file, _first_line(node))) if isinstance(node, Function) else None
                if name is not None and isinstance(node, Function) and (lines := list(_left(node.body, self.ran[file]))):
                    sentences.append(f"the lines {_ranges(lines)} of {name}{file_suffix}")
        more = [f"parts of {len(sentences) - MOST_NAMES} more functions"] if len(sentences) > MOST_NAMES else []
        return f"of what it uses, no example runs {', '.join([*sentences[:MOST_NAMES], *more])}" if sentences else ""


def _parsed(file: str) -> ast.Module:
    try:
        return _tree(Path(file).read_text(encoding="utf-8-sig"))
    except (OSError, SyntaxError, ValueError):
        return ast.Module([], [])


@lru_cache(maxsize=64)
def _tree(text: str) -> ast.Module:
    return ast.parse(text)


def _first_line(node: Function) -> int:
    """The first line as a code object has it: that of the first decorator."""
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _runs(body: Sequence[ast.stmt], ran: Container[int]) -> bool:
    return any(line in ran for node in body for line in range(node.lineno, (node.end_lineno or node.lineno) + 1))


def _left(body: Sequence[ast.stmt], ran: Container[int]) -> Iterator[int]:
    """Lines of the statements that did not run, without those that raise and those that only torch's compilers run."""
    for node in body:
        if isinstance(node, (ast.Raise, ast.Pass, ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom, Function, ast.ClassDef)):
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if not _runs([node], ran):
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)
        elif not (isinstance(node, ast.If) and _asks_compilers(node.test)):
            for inner in _blocks(node):
                if not all(isinstance(statement, ast.Raise) for statement in inner):
                    yield from _left(inner, ran)


def _class(tree: ast.AST, names: Sequence[str]) -> ast.ClassDef | None:
    scope = tree
    for name in names:
        inner = [node for node in ast.walk(scope) if isinstance(node, ast.ClassDef) and node.name == name]
        if not inner:
            return None
        scope = inner[-1]
    return scope if isinstance(scope, ast.ClassDef) else None


def _computes(node: Function) -> bool:
    """Whether a function does more than raise, as one does that has to be overridden."""
    return not all(
        isinstance(statement, (ast.Raise, ast.Pass)) or isinstance(getattr(statement, "value", None), ast.Constant)
        for statement in node.body
    )


def _asks_compilers(test: ast.expr) -> bool:
    return any(getattr(node, "attr", getattr(node, "id", "")) in COMPILERS for node in ast.walk(test))


def _blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    for field in ("body", "orelse", "finalbody"):
        yield getattr(node, field, [])
    for handler in getattr(node, "handlers", ()):
        yield [] if all(isinstance(statement, (ast.Raise, ast.Pass)) for statement in handler.body) else handler.body
    for case in getattr(node, "cases", ()):
        yield case.body


def _ranges(lines: Sequence[int]) -> str:
    """`4, 8-9, 12`."""
    ranges: list[list[int]] = []
    for line in sorted(set(lines)):
        if ranges and line == ranges[-1][1] + 1:
            ranges[-1][1] = line
        else:
            ranges.append([line, line])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)
