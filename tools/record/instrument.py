"""Puts recorder calls around the expressions of the user's files as they are imported; what the code does stays the same.

`f(x.size(1))` runs as `o(0, o(1, f)(o(2, o(3, x).size)(1))…)`, where `o(number, value)` notes the value and gives it back. Everything a
recorder call could disturb is left alone: annotations, decorators, f-strings, match patterns, `super`, stores and deletes. Source
positions, file name and `linecache` stay valid, so `inspect.getsource` and tracebacks are as before.
"""

from __future__ import annotations

import ast
import builtins
import importlib.machinery
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.abc import MetaPathFinder
from importlib.util import decode_source
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from migrate_agent.tools.harness.common.partial_import import reduced
from migrate_agent.tools.record.causality import Probe
from migrate_agent.tools.record.function_calls import OBSERVE_FUNCTION, FunctionCapture, decorate_functions
from migrate_agent.tools.record.kernel_calls import OBSERVE_KERNEL, KernelCapture, Skipped, decorate_launchers
from migrate_agent.tools.record.new_memory import FILLED, filled, may_leave_unset
from migrate_agent.tools.record.observe import Recorder
from migrate_agent.tools.scan.growing_loops import growing_loops
from migrate_agent.tools.types import Span

OBSERVE = "__migrate_agent_observe__"
OBSERVE_CALL = "__migrate_agent_observe_call__"
OBSERVE_ATTRIBUTE = "__migrate_agent_observe_attribute__"
OBSERVE_CALLEE = "__migrate_agent_observe_callee__"
OBSERVED = (
    ast.Name,
    ast.Attribute,
    ast.Call,
    ast.Subscript,
    ast.BinOp,
    ast.BoolOp,
    ast.UnaryOp,
    ast.Compare,
    ast.IfExp,
    ast.NamedExpr,
    ast.Await,
    ast.Yield,
)
UNTOUCHED_NAMES = frozenset(
    {"super", "__class__", OBSERVE, OBSERVE_CALL, OBSERVE_ATTRIBUTE, OBSERVE_CALLEE, FILLED, OBSERVE_KERNEL, OBSERVE_FUNCTION}
)
_LINE = re.compile(r"\r\n|\r|\n")


class Columns:
    """Turns ast's byte offsets into character columns."""

    def __init__(self, source: str) -> None:
        self._lines = [None if line.isascii() else line.encode() for line in _LINE.split(source)]

    def span(self, node: ast.expr) -> Span:
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
        return Span(node.lineno, self._column(node.lineno, node.col_offset), end_line, self._column(end_line, end_column))

    def _column(self, line: int, offset: int) -> int:
        text = self._lines[line - 1] if line <= len(self._lines) else None
        return offset if text is None else len(text[:offset].decode(errors="replace"))


class Instrument(ast.NodeTransformer):
    """Wraps the expressions of one file: all of them inside functions; calls and what they call outside of functions."""

    def __init__(self, source: str, recorder: Recorder, script: bool = False) -> None:
        self._columns = Columns(source)
        self._recorder = recorder
        self._depth = int(script)
        self._callee = False
        self._probes: dict[int, Probe] = {}  # identity of a call in a growing loop → what is asked of it
        self._named: dict[int, tuple[ast.expr, int]] = {}  # identity of a recorder call around a name → that call, the name's entry

    def visit(self, node: ast.AST) -> Any:
        callee, self._callee = self._callee, False
        visited = super().visit(node)
        if isinstance(node, OBSERVED) and self._wanted(node, callee):
            return self._wrap(node, visited)
        return visited

    def _wanted(self, node: ast.AST, callee: bool) -> bool:
        if not isinstance(getattr(node, "ctx", None), ast.Load | None):
            return False
        if isinstance(node, ast.Name):
            return node.id not in UNTOUCHED_NAMES and (self._depth > 0 or callee)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super":
            return False
        return self._depth > 0 or callee or isinstance(node, ast.Call)

    def _wrap(self, node: ast.expr, visited: ast.expr) -> ast.expr:
        arguments = [self._named[id(value)][1] for value in _arguments(visited) if id(value) in self._named]
        if arguments:
            self._recorder.watch(arguments)
            indices = [ast.copy_location(ast.Constant(index), node) for index in arguments]
            return self._recorder_call(OBSERVE_CALL, node, node, [visited, *indices])
        call = self._recorder_call(OBSERVE, node, node, [visited])
        if isinstance(node, ast.Name):
            self._named[id(call)] = call, len(self._recorder.entries) - 1
        return call

    def _recorder_call(self, name: str, spanned: ast.expr, location: ast.expr, rest: list[ast.expr]) -> ast.expr:
        index = self._recorder.entry(self._columns.span(spanned))
        call = ast.Call(ast.Name(name, ast.Load()), [ast.Constant(index), *rest], [])
        for new in (call, call.func, call.args[0]):
            ast.copy_location(new, location)
        return call

    def _statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        result: list[ast.stmt] = []
        for statement in body:
            visited = self.visit(statement)
            result.extend(visited if isinstance(visited, list) else [visited])
        return result

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self._callee = True
        node.func = self._callee_of(node)
        node.args = [self.visit(argument) for argument in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        return node

    def _callee_of(self, node: ast.Call) -> ast.expr:
        probe = self._probes.get(id(node))
        fills = may_leave_unset(node)
        callee: ast.expr = self.visit(node.func)
        if fills:
            callee = self._wrapped(FILLED, [], callee)
        if probe is not None:
            callee = self._wrapped(OBSERVE_CALLEE, [ast.Constant(self._recorder.probe(self._columns.span(node), probe))], callee)
        return callee

    @staticmethod
    def _wrapped(name: str, numbers: list[ast.Constant], callee: ast.expr) -> ast.Call:
        call = ast.Call(ast.Name(name, ast.Load()), [*numbers, callee], [])
        for new in (call, call.func, *numbers):
            ast.copy_location(new, callee)
        return call

    def _function(self, node: Any) -> Any:
        self._probes |= {
            id(reading.call): Probe(reading.argument, growing.axis, reading.part, reading.axis)
            for growing in growing_loops(node)
            for reading in growing.readings
        }
        node.args = self.visit(node.args)
        self._depth += 1
        node.body = self._statements(node.body) if isinstance(node.body, list) else self.visit(node.body)
        self._depth -= 1
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _function

    def visit_arguments(self, node: ast.arguments) -> ast.arguments:
        node.defaults = [self.visit(default) for default in node.defaults]
        node.kw_defaults = [default and self.visit(default) for default in node.kw_defaults]
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        depth, self._depth = self._depth, 0
        node.body = self._statements(node.body)
        self._depth = depth
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        node.target = self.visit(node.target)
        node.value = node.value and self.visit(node.value)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AugAssign | list[ast.stmt]:
        target = node.target
        node.value = self.visit(node.value)
        if self._depth == 0:
            return node
        if isinstance(target, ast.Name):
            return [node, ast.copy_location(ast.Expr(self._after(target)), node)]
        if isinstance(target, ast.Attribute):
            target.value = self._recorder_call(
                OBSERVE_ATTRIBUTE, target, target.value, [self.visit(target.value), self._constant(target.attr, target)]
            )
        else:
            node.target = self.visit(target)
        return node

    def _after(self, target: ast.Name) -> ast.expr:
        return self._wrap(target, ast.copy_location(ast.Name(target.id, ast.Load()), target))

    def _constant(self, value: str, location: ast.expr) -> ast.expr:
        return ast.copy_location(ast.Constant(value), location)

    def visit_match_case(self, node: ast.match_case) -> ast.match_case:
        node.guard = node.guard and self.visit(node.guard)
        node.body = self._statements(node.body)
        return node

    def _leave(self, node: ast.AST) -> ast.AST:
        return node

    visit_JoinedStr = visit_TemplateStr = visit_TypeAlias = visit_Global = visit_Nonlocal = visit_Import = visit_ImportFrom = _leave


def _arguments(node: ast.expr) -> list[ast.expr]:
    return [*node.args, *(keyword.value for keyword in node.keywords)] if isinstance(node, ast.Call) else []


@dataclass(frozen=True)
class Watched:
    """Functions whose calls are kept, by the name of their file in the tables: those that are `launching` a kernel, and `functions` that are units."""

    launching: Mapping[str, Skipped] = field(default_factory=dict)
    kernels: KernelCapture | None = None
    functions: Mapping[str, frozenset[str]] = field(default_factory=dict)
    units: FunctionCapture | None = None

    def decorate(self, tree: ast.Module, path: str) -> None:
        """Decorate the functions of this file."""
        decorate_launchers(tree, self.launching.get(path, {}), path)
        decorate_functions(tree, self.functions.get(path, frozenset()) if self.units else frozenset(), path)

    def publish(self) -> None:
        """Make the decorators known to instrumented code."""
        setattr(builtins, OBSERVE_KERNEL, (self.kernels or KernelCapture()).observe)
        if self.units is not None:
            setattr(builtins, OBSERVE_FUNCTION, self.units.observe)


NOTHING = Watched()


def compile_instrumented(
    source: str, filename: str, path: str, recorder: Recorder, watched: Watched = NOTHING, script: bool = False
) -> CodeType:
    """Code of the file with recorder calls. Raises `SyntaxError` as `compile` does.

    `filename` is where the code says it is from, `path` is its name in the table of observations. Calls of the functions that are `watched` are
    kept whole. In a `script` all expressions outside of functions are watched too.
    """
    tree = reduced(ast.parse(source, filename), filename)
    watched.decorate(tree, path)
    recorder.begin(path)
    try:
        return compile(Instrument(source, recorder, script).visit(tree), filename, "exec", dont_inherit=True)
    except RecursionError:  # very deep expressions: run them as they are
        return compile(reduced(ast.parse(source, filename), filename), filename, "exec", dont_inherit=True)


class InstrumentedLoader(importlib.machinery.SourceFileLoader):
    """Loads a user's file with recorder calls, past the bytecode cache."""

    def __init__(self, fullname: str, path: str, name: str, recorder: Recorder, watched: Watched) -> None:
        super().__init__(fullname, path)
        self._name = name
        self._recorder = recorder
        self._watched = watched

    def get_code(self, fullname: str) -> CodeType:
        source = decode_source(self.get_data(self.path))
        return compile_instrumented(source, self.path, self._name, self._recorder, self._watched)


class AfterImport(importlib.machinery.SourceFileLoader):
    """Loads a module as always, then calls back."""

    def __init__(self, fullname: str, path: str, callback: Callable[[], None]) -> None:
        super().__init__(fullname, path)
        self._callback = callback

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        self._callback()


class Finder(MetaPathFinder):
    """Finds the user's files (real path → name in the tables) and has them instrumented; calls back once torch was imported."""

    def __init__(
        self,
        files: Mapping[str, str],
        recorder: Recorder,
        torch_imported: Callable[[], None] | None = None,
        watched: Watched = NOTHING,
    ) -> None:
        self._files = files
        self._recorder = recorder
        self._torch_imported = torch_imported
        self._watched = watched

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of a user's module or of torch; `None` for all others."""
        if fullname.partition(".")[0] in sys.stdlib_module_names or (fullname.startswith("torch.") and path is not None):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None or type(spec.loader) is not importlib.machinery.SourceFileLoader:
            return None
        name = self._files.get(str(Path(spec.origin).resolve()))
        if name is not None:
            spec.loader = InstrumentedLoader(fullname, spec.origin, name, self._recorder, self._watched)
        elif fullname == "torch" and self._torch_imported is not None:
            spec.loader = AfterImport(fullname, spec.origin, self._torch_imported)
        else:
            return None
        return spec


def install(
    files: Mapping[str, str],
    recorder: Recorder,
    torch_imported: Callable[[], None] | None = None,
    watched: Watched = NOTHING,
) -> Finder:
    """Instrument these files (real path → name in the tables) from now on in this process. Calls of the functions that are `watched` are kept."""
    watched.publish()
    setattr(builtins, OBSERVE, recorder.observe)
    setattr(builtins, OBSERVE_CALL, recorder.observe_call)
    setattr(builtins, OBSERVE_ATTRIBUTE, recorder.observe_attribute)
    setattr(builtins, OBSERVE_CALLEE, recorder.observe_callee)
    setattr(builtins, FILLED, filled)
    finder = Finder(files, recorder, torch_imported, watched)
    sys.meta_path.insert(0, finder)
    return finder
