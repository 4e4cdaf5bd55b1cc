"""Parts of a script that no run came to: errors take their region, since nothing says whether their rewrite is right.

if args.resume:                     if args.resume:
    state = read_checkpoint(p)  →       raise NotImplementedError("not migrated, since no run came here: args.resume")
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from migrate_agent.tools.programs.judge.reach import SILENT

SPEAKERS = frozenset("print warn debug info warning error critical log".split())
"""Functions and methods that tell people something, and change nothing."""
MOVES = frozenset("cuda cpu to pin_memory".split())
MESSAGE = "not migrated, since no run came here"
KEPT = "# no run reaches this: it was not verified"
"""The comment above what is kept though no run came to it."""


@dataclass(frozen=True)
class Region:
    """Neighbouring statements of one block that did not run, and what leads to them: a condition, or a name."""

    statements: tuple[ast.stmt, ...]
    condition: str

    @property
    def lines(self) -> tuple[int, int]:
        """Its first and last line."""
        last = self.statements[-1]
        return self.statements[0].lineno, last.end_lineno or last.lineno

    @property
    def reason(self) -> str:
        """What leads to it, after a colon; nothing at the top of the file."""
        return f": {self.condition}" if self.condition else ""

    @property
    def idle(self) -> bool:
        """Whether it has no counterpart in JAX: it moves values to a device, or sets one up."""
        return all(isinstance(one, (ast.Expr, ast.Assign)) and _is_idle(one.value) for one in self.statements)

    @property
    def harmless(self) -> bool:
        """Whether its rewrite is its text: it names values anew, leaves a loop or a function, or prints."""
        return all(map(_is_harmless, self.statements))

    def replaceable(self, lines: Sequence[str]) -> bool:
        """Whether an error can stand for it: nothing else stands on its lines, and it makes no generator of its function."""
        (first, last), node = self.lines, self.statements[0]
        alone = not lines[first - 1].encode()[: node.col_offset].strip() and (last > first or not _is_elif(lines[first - 1]))
        rest = lines[last - 1].encode()[self.statements[-1].end_col_offset or 0 :].decode(errors="replace").partition("#")[0].strip()
        yields = any(isinstance(part, (ast.Yield, ast.YieldFrom)) for one in self.statements for part in ast.walk(one))
        return alone and not rest and not yields


def regions(text: str, missed: Collection[int]) -> list[Region]:
    """The regions of a file whose statements begin in the lines `missed`; none within another one."""
    return list(_regions(ast.parse(text).body, frozenset(missed), ""))


def as_reached(original: str, rewrite: str, missed: tuple[Collection[int], Collection[int]], keep: bool) -> tuple[str, list[Region]] | None:
    """The rewrite with errors in the regions that no run reached, and these; with `keep` they stay, below a comment.

    `missed` are the lines of both texts that no run reached. `None` where the original has more such regions than the rewrite, so that something may be
    missing there, or where one cannot be replaced.
    """
    tree = ast.parse(rewrite)
    # A class that cannot be constructed is an error for all of its methods.
    stubs = set(_stub_classes(tree))
    covered = _lines_of(ast.parse(original), stubs)
    theirs = [region for region in regions(original, missed[0]) if not region.idle and region.lines[0] not in covered]
    ours = regions(rewrite, missed[1])
    # One error may stand for all that a condition leads to.
    reasons, refused = list(_reasons(tree)), {region.condition for region in theirs if region.condition}
    refused &= {*reasons, *_stubs(tree)}
    errors = sum(reason not in refused for reason in reasons)
    theirs = list(
        _without_errors([region for region in theirs if region.condition not in refused], Counter(_failing(_without(tree, stubs))))
    )
    chosen = [region for region in ours if not region.harmless]
    lines = rewrite.splitlines()
    if len(theirs) > len(ours) + errors or not all(region.replaceable(lines) for region in chosen):
        return None
    return with_errors(rewrite, chosen, keep), chosen


def _reasons(tree: ast.Module) -> Iterator[str]:
    """What leads to each error that stands in a rewrite already."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and str(node.value).startswith(MESSAGE):
            yield str(node.value).removeprefix(MESSAGE).removeprefix(": ")


def _failing(tree: ast.Module) -> Iterator[str]:
    """What leads to the functions and methods whose body is an error alone, for another reason than a run's: their calls."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef):
            continue
        body = node.body[ast.get_docstring(node, clean=False) is not None :]
        error = body[0].exc if len(body) == 1 and isinstance(body[0], ast.Raise) else None
        if isinstance(error, ast.Call) and ast.unparse(error.func) == "NotImplementedError" and MESSAGE not in ast.unparse(error):
            yield f"{node.name} is called"


def _stub_classes(tree: ast.Module) -> Iterator[str]:
    """The classes of a rewrite that hold nothing but a constructor which is an error."""
    for node in tree.body:
        inner = node.body[ast.get_docstring(node, clean=False) is not None :] if isinstance(node, ast.ClassDef) else []
        if isinstance(node, ast.ClassDef) and len(inner) == 1 and list(_failing(ast.Module([inner[0]], []))) == ["__init__ is called"]:
            yield node.name


def _without(tree: ast.Module, classes: Collection[str]) -> ast.Module:
    return ast.Module([node for node in tree.body if not isinstance(node, ast.ClassDef) or node.name not in classes], [])


def _lines_of(tree: ast.Module, classes: Collection[str]) -> set[int]:
    """The lines of these classes, each of which a file has once."""
    nodes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    chosen = [node for node in nodes if node.name in classes and sum(other.name == node.name for other in nodes) == 1]
    return {line for node in chosen for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}


def _without_errors(theirs: Sequence[Region], failing: Counter[str]) -> Iterator[Region]:
    """The regions of the original for which no such function stands: each stands for one."""
    for region in theirs:
        if failing[region.condition]:
            failing[region.condition] -= 1
        else:
            yield region


def _stubs(tree: ast.Module) -> Iterator[str]:
    """What leads to the functions that are errors as a whole: their calls."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "NotMigrated":
            yield from (f"{ast.unparse(target)} is called" for target in node.targets)


def with_errors(text: str, chosen: Sequence[Region], keep: bool = False) -> str:
    """The text with an error in each of these regions, on as many lines as before; with `keep` they stay, below a comment."""
    lines = text.splitlines(keepends=True)
    for region in sorted(chosen, key=lambda one: one.lines, reverse=True):
        first, last = region.lines
        indent = lines[first - 1][: region.statements[0].col_offset]
        if keep:
            lines[first - 1 : first - 1] = [f"{indent}{KEPT}\n"]
        else:
            # An `elif` is a statement of the `else` that its keyword stands for.
            above = [f"{indent}else:\n"] if _is_elif(lines[first - 1]) else []
            error = f"{indent}{'    ' * len(above)}raise NotImplementedError({MESSAGE + region.reason!r})\n"
            lines[first - 1 : last] = [*above, error, *["\n"] * (last - first - len(above))]
    return "".join(lines)


def block_around(text: str, line: int) -> Region | None:
    """The innermost block that a statement stands in, by its line; `None` at the top of the file."""
    innermost, todo = None, [(statement, "") for statement in ast.parse(text).body]
    for statement, _ in todo:
        if not statement.lineno <= line <= (statement.end_lineno or statement.lineno):
            continue
        for block, condition in _blocks(statement):
            region = Region(tuple(block), condition) if block else None
            if region is not None and region.lines[0] <= line <= region.lines[1]:
                innermost = region
                todo += [(one, condition) for one in block]
    return innermost


def _regions(block: Sequence[ast.stmt], missed: frozenset[int], condition: str) -> Iterator[Region]:
    ran = [one for one in block if one.lineno not in missed and not isinstance(one, SILENT)]
    if condition and not ran and any(one.lineno in missed for one in block):
        yield Region(tuple(block), condition)
        return
    group: list[ast.stmt] = []
    for statement in block:
        if statement.lineno in missed and not isinstance(statement, SILENT):
            group.append(statement)
            continue
        if group:
            yield Region(tuple(group), condition)
        group = []
        for inner, reason in _blocks(statement):
            yield from _regions(inner, missed, reason)
    if group:
        yield Region(tuple(group), condition)


def _blocks(statement: ast.stmt) -> Iterator[tuple[Sequence[ast.stmt], str]]:
    """The blocks of a statement, and what leads to each."""
    match statement:
        case ast.If(test=test) | ast.While(test=test):
            yield statement.body, ast.unparse(test)
            yield statement.orelse, f"not ({ast.unparse(test)})"
        case ast.FunctionDef(body=body, name=name) | ast.AsyncFunctionDef(body=body, name=name):
            yield body, f"{name} is called"
        case ast.ClassDef(body=body):
            yield body, ""
        case ast.For(target=target, iter=iterable):
            yield statement.body, f"for {ast.unparse(target)} in {ast.unparse(iterable)}"
            yield statement.orelse, "a loop that is not left"
        case ast.With(body=body):
            yield body, ast.unparse(statement.items[0])
        case ast.Try():
            yield statement.body, "try"
            for handler in statement.handlers:
                yield handler.body, f"except {ast.unparse(handler.type)}" if handler.type else "except"
            yield statement.orelse, "no exception"
            yield statement.finalbody, "finally"


def _is_elif(line: str) -> bool:
    return line.lstrip().startswith("elif")


def _is_harmless(statement: ast.stmt) -> bool:
    match statement:
        case ast.If(test=test, body=body, orelse=orelse):
            return _is_plain(test) and all(map(_is_harmless, [*body, *orelse]))
        case ast.Assign(targets=targets, value=value):
            return all(isinstance(target, ast.Name) for target in targets) and _is_plain(value)
        case ast.AugAssign(target=ast.Name(), value=ast.Constant()) | ast.Return(value=None | ast.Constant()):
            return True
        case ast.Expr(value=ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name))):
            return name in SPEAKERS
        case ast.Pass() | ast.Break() | ast.Continue() | ast.Raise() | ast.Global():
            return True
    return False


def _is_idle(value: ast.expr) -> bool:
    if isinstance(value, ast.Tuple):
        return bool(value.elts) and all(map(_is_idle, value.elts))
    text = ast.unparse(value.func) if isinstance(value, ast.Call) else ""
    return text.startswith(("torch.cuda.", "torch.backends.", "torch.accelerator.", "torch.device")) or text.rpartition(".")[2] in MOVES


def _is_plain(value: ast.expr) -> bool:
    """Whether an expression is a constant, or names and comparisons alone."""
    return not any(isinstance(part, (ast.Call, ast.Subscript, ast.BinOp)) for part in ast.walk(value))
