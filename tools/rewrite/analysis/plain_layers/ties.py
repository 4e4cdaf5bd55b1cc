"""Heads that share the table of an embedding, and that `nnx.Embed.attend` can stand for."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from migrate_agent.tools.rewrite.analysis.plain_layers.names import ParsedFile, bound_values, dotted, last_name
from migrate_agent.tools.scan.nodes import walk

LINEAR, EMBEDDING = "torch.nn.Linear", "torch.nn.Embedding"


@dataclass(frozen=True)
class Tie:
    """`self.<head>.weight` and `self.<table>.weight` are one parameter, by a statement of a constructor.

    `owner`: the class. `made` and `said`: the statements that make the head, and that tie the two. `of_head`: whether the head's own initial values
    are those that both begin with. `branch`: `if config.tied:` around what is said, where there is one; its test names parameters of the constructor alone.
    """

    owner: ast.ClassDef
    head: str
    table: str
    made: ast.Assign
    said: ast.Assign
    of_head: bool
    branch: ast.If | None = None


def ties(files: Collection[ParsedFile], kinds: Mapping[str, frozenset[str]]) -> tuple[Tie, ...]:
    """The ties of a repository whose head is only called, by the methods of its own class."""
    candidates = []
    for file in files:
        for node in walk(file.tree):
            if isinstance(node, ast.ClassDef) and (tie := _tie_of(file, node, kinds)) is not None:
                candidates.append(tie)
    if len({tie.head for tie in candidates}) < len(candidates):
        return ()
    candidates = [tie for tie in candidates if _begins_alike(files, tie)]
    return tuple(tie for tie in candidates if all(_is_only_called(file, tie) and _has_plain_table(file, tie) for file in files))


def _tie_of(file: ParsedFile, owner: ast.ClassDef, kinds: Mapping[str, frozenset[str]]) -> Tie | None:
    constructor = next((part for part in owner.body if isinstance(part, ast.FunctionDef) and part.name == "__init__"), None)
    assignments = [part for part in constructor.body if isinstance(part, ast.Assign) and len(part.targets) == 1] if constructor else []
    layers = {_own(part.targets[0]): part for part in assignments}
    branches = {} if constructor is None else _branches(constructor)
    for said in (*assignments, *branches):
        target, value = _owner_of_weight(said.targets[0]), _owner_of_weight(said.value)
        for head, table in ((target, value), (value, target)):
            if not head or not table or head not in layers or kinds.get(table.rpartition(".")[2]) != frozenset({EMBEDDING}):
                continue
            if _is_plain_head(file, layers[head].value) and kinds.get(head) == frozenset({LINEAR}) and layers[head].lineno < said.lineno:
                return Tie(owner, head, table, layers[head], said, head == value, branches.get(said))
    return None


def _branches(constructor: ast.FunctionDef) -> dict[ast.Assign, ast.If]:
    """Assignments that are all that a branch has → the branch, where its test reads the constructor's parameters alone and has no other arm."""
    found = {}
    arguments = constructor.args
    given = {one.arg for one in (*arguments.posonlyargs, *arguments.args[1:], *arguments.kwonlyargs)}
    names = [node for node in walk(constructor) if isinstance(node, ast.Name)]
    fixed = given - {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    for part in constructor.body:
        if isinstance(part, ast.If) and not part.orelse and len(part.body) == 1 and isinstance(part.body[0], ast.Assign):
            read = [node for node in walk(part.test) if isinstance(node, ast.Name)]
            if all(node.id in fixed for node in read) and not any(isinstance(node, ast.Call) for node in walk(part.test)):
                found[part.body[0]] = part
    return found


def _own(node: ast.expr) -> str:
    """The dotted path of an attribute after `self`; "" for anything else."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    return ".".join(names) if isinstance(node, ast.Name) and node.id == "self" else ""


def _owner_of_weight(node: ast.expr) -> str:
    path, _, name = _own(node).rpartition(".")
    return path if name == "weight" else ""


def _is_plain_head(file: ParsedFile, value: ast.expr) -> bool:
    """Whether an expression makes a linear layer without a bias, and says nothing of its dtype."""
    if not isinstance(value, ast.Call) or dotted(file, value.func) != LINEAR or len(value.args) > 3:
        return False
    words = {word.arg: word.value for word in value.keywords}
    bias = value.args[2] if len(value.args) == 3 else words.get("bias")
    sized = words.keys() <= {"in_features", "out_features", "bias"}
    return sized and isinstance(bias, ast.Constant) and bias.value is False and not any(isinstance(one, ast.Starred) for one in value.args)


def _is_only_called(file: ParsedFile, tie: Tie) -> bool:
    """Whether a file names the head nowhere but in what makes and ties it, and in calls with one argument."""
    allowed = {id(node) for statement in (tie.made.targets[0], tie.said) for node in ast.walk(statement)}
    calls = (node for node in walk(tie.owner) if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords)
    allowed |= {id(call.func) for call in calls if _own(call.func) and not isinstance(call.args[0], ast.Starred)}
    for node in walk(file.tree):
        if isinstance(node, ast.Attribute) and node.attr == tie.head and id(node) not in allowed:
            return False
    return not any(re.search(rf"\b{tie.head}\b", text) for text in _words(file.tree))


def _words(tree: ast.Module) -> Iterator[str]:
    """The strings of a file that are no sentences for people."""
    sentences = {id(node.value) for node in walk(tree) if isinstance(node, ast.Expr)}
    for node in walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in sentences:
            yield node.value


def _has_plain_table(file: ParsedFile, tie: Tie) -> bool:
    """Whether a file makes the table with its two sizes alone."""
    values = [value for name, value in bound_values(file.tree) if name == tie.table.rpartition(".")[2]]
    sizes = {"num_embeddings", "embedding_dim"}
    return all(isinstance(one, ast.Call) and len(one.args) <= 2 and {word.arg for word in one.keywords} <= sizes for one in values)


def _begins_alike(files: Collection[ParsedFile], tie: Tie) -> bool:
    """Whether code that initialises layers by their class, and may reach this tie, does the same to heads and tables."""
    begun: dict[str, set[str]] = {LINEAR: set(), EMBEDDING: set()}
    for file in files:
        elsewhere = {
            id(part) for node in walk(file.tree) if isinstance(node, ast.ClassDef) and not _reaches(node, tie.owner) for part in walk(node)
        }
        for node in walk(file.tree):
            if isinstance(node, ast.If) and id(node) not in elsewhere:
                asked = {dotted(file, part) for part in walk(node.test)} if _asks_for_class(node.test) else set()
                texts = {ast.unparse(part) for statement in node.body for part in _statements(statement)}
                for kind in asked & begun.keys():
                    begun[kind] |= {text for text in texts if "weight" in text}
    return begun[LINEAR] == begun[EMBEDDING] and bool(begun[LINEAR] or not tie.of_head)


def _reaches(node: ast.ClassDef, owner: ast.ClassDef) -> bool:
    """Whether a class is, names or is a base of another one."""
    names = {one.id for one in walk(node) if isinstance(one, ast.Name)} | {one.attr for one in walk(node) if isinstance(one, ast.Attribute)}
    return node is owner or owner.name in names or node.name in {last_name(base) for base in owner.bases}


def _asks_for_class(test: ast.expr) -> bool:
    """Whether a test is `isinstance(…)`, or compares a `type(…)`."""
    return any(isinstance(part, ast.Call) and last_name(part.func) in ("isinstance", "type") for part in walk(test))


def _statements(node: ast.stmt) -> list[ast.stmt]:
    return [part for part in ast.walk(node) if isinstance(part, (ast.Expr, ast.Assign, ast.AugAssign))]
