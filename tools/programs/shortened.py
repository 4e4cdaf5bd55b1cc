"""Shorter runs of a program that takes longer than its limit: fewer rounds of the loops that train."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from migrate_agent.tools.programs.bounds import Bound, head_of, whole_number
from migrate_agent.tools.programs.judge.options import Option, attribute_names, given_value, parser_options
from migrate_agent.tools.programs.program import Program

EPOCHS = 2
"""How many rounds are left of a loop around other loops: the second one starts where the first one ended."""
STEPS = 20
"""How many are left of a loop whose rounds are steps."""
Loop = ast.For | ast.While


def shortened(program: Program, text: str) -> Program | None:
    """The program with fewer rounds of the loops of its script that train: by options of its command line, by variables that are set to a number, or by
    numbers in the heads of the loops. `None` where nothing of this kind says how long they run.
    """
    tree = ast.parse(text)
    loops = _Loops(tree)
    options = {option.name: option for option in parser_options(tree)}
    aliases = attribute_names(tree)
    words: dict[str, str] = {}
    bounds: list[Bound] = []
    for loop in loops.outermost():
        start, ends = _ends(loop)
        rounds = start + (EPOCHS if loops.is_nested(loop) else STEPS)
        for part in (part for end in ends for part in _terms(end)):
            name = part.attr if isinstance(part, ast.Attribute) else aliases.get(part.id, "") if isinstance(part, ast.Name) else ""
            if name in options and _is_longer(options[name], program.command, rounds):
                words[options[name].flag] = str(rounds)
            elif (bound := _bound(text, loop, part, rounds)) is not None:
                bounds.append(bound)
    if not words and not bounds:
        return None
    return replace(
        program, command=(*program.command, *(word for pair in words.items() for word in pair)), bounds=tuple(dict.fromkeys(bounds))
    )


def difference(shorter: Program, whole: Program) -> str:
    """How a shorter run differs, as people read it: `--epochs 2`, `num_epochs = 2 in place of 5000`."""
    options = " ".join(shorter.command[len(whole.command) :])
    return ", ".join([*([options] if options else []), *map(_words, shorter.bounds)])


def _words(bound: Bound) -> str:
    if bound.name:
        return f"{bound.name} = {bound.smaller} in place of {bound.whole}"
    return f"`{bound.smaller_head}` in place of `{bound.head}`"


def _is_longer(option: Option, command: Sequence[str], rounds: int) -> bool:
    value = given_value(option, command)
    return option.kind == "int" and not (isinstance(value, int) and value <= rounds)


def _bound(text: str, loop: Loop, part: ast.AST, rounds: int) -> Bound | None:
    if not isinstance(part, ast.Name):
        return (
            Bound(_literal(text, part), str(rounds), head=head_of(loop)) if _is_more(part, rounds) and isinstance(loop, ast.For) else None
        )
    nodes = list(ast.walk(ast.parse(text)))
    values = [
        node.value for node in nodes if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == [part.id]
    ]
    bindings = [node for node in nodes if isinstance(node, ast.Name) and node.id == part.id and not isinstance(node.ctx, ast.Load)]
    if len(values) == len(bindings) == 1 and _is_more(values[0], rounds):
        return Bound(_literal(text, values[0]), str(rounds), name=part.id)
    return None


def _is_more(node: ast.AST, rounds: int) -> bool:
    number = whole_number(node)
    return number is not None and number > rounds


def _literal(text: str, node: ast.AST) -> str:
    return ast.get_source_segment(text, node) or ""


def _ends(loop: Loop) -> tuple[int, list[ast.expr]]:
    """The first number of a loop over a range, and what says where it ends; of a `while`, its condition, or the conditions that it is left on."""
    if isinstance(loop, ast.While):
        left = [node.test for node in loop.body if isinstance(node, ast.If) and any(isinstance(line, ast.Break) for line in node.body)]
        return 0, left if isinstance(loop.test, ast.Constant) else [loop.test]
    ranges = [
        node
        for node in ast.walk(loop.iter)
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in ("range", "trange")
    ]
    if not ranges or not ranges[0].args:
        return 0, []
    first = whole_number(ranges[0].args[0]) if len(ranges[0].args) > 1 else 0
    return first or 0, [ranges[0].args[min(len(ranges[0].args), 2) - 1]]


def _terms(end: ast.expr) -> Iterator[ast.expr]:
    """What makes a loop longer where it is larger: `n` and `1` of `n + 1`, `last` of `step < last`, and nothing of `len(data) // size`."""
    match end:
        case ast.Name() | ast.Attribute() | ast.Constant():
            yield end
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult(), right=right):
            yield from _terms(left)
            if not isinstance(end.op, ast.Sub):
                yield from _terms(right)
        case ast.Call(func=ast.Name(id="int"), args=[inner]):
            yield from _terms(inner)
        case ast.Compare(ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE() | ast.Eq() | ast.NotEq()], comparators=[last]):
            yield from _terms(last)
        case ast.BoolOp(values=values):
            for value in values:
                yield from _terms(value)


@dataclass
class _Loops:
    """The loops of a script that come to a backward pass, in their own lines or by calls of its functions."""

    tree: ast.Module

    def __post_init__(self) -> None:
        functions = [node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef)]
        self.training: set[str] = set()
        """Functions that come to a backward pass."""
        while more := {node.name for node in functions if self._trains(node)} - self.training:
            self.training |= more
        self.loops = [node for node in ast.walk(self.tree) if isinstance(node, Loop) and self._trains(node)]
        called = {name for loop in self.loops for name in _calls(loop)} & self.training
        while more := {name for node in functions if node.name in called for name in _calls(node)} & self.training - called:
            called |= more
        inside = [loop for node in functions if node.name in called for loop in ast.walk(node)]
        self._inner = {id(node) for loop in self.loops for node in ast.walk(loop) if node is not loop} | {id(node) for node in inside}

    def outermost(self) -> list[Loop]:
        """Those that no other of them runs."""
        return [loop for loop in self.loops if id(loop) not in self._inner]

    def is_nested(self, loop: Loop) -> bool:
        """Whether a round of a loop is more than a step: whether it runs others of them."""
        functions = [node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef) and node.name in set(_calls(loop))]
        inside = {id(node) for one in (loop, *functions) for node in ast.walk(one)} - {id(loop)}
        return any(id(other) in inside for other in self.loops)

    def _trains(self, node: ast.AST) -> bool:
        names = set(_calls(node))
        return "backward" in names or bool(names & self.training)


def _calls(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            yield ast.unparse(part.func).rpartition(".")[2] if isinstance(part.func, (ast.Name, ast.Attribute)) else ""
