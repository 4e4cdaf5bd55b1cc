"""Reading classes and functions out of source text: their own text, their names, and a `[[example]]` to copy for one that nothing exercises."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

from migrate_agent.agent.runs.state import NearestGuess
from migrate_agent.tools.harness.common.methods import PROTOCOLS, SETTER
from migrate_agent.tools.types import Unit


def example_table(file: Path, unit: Unit, guess: NearestGuess | None = None) -> str:
    """`[[example]]` as lines of TOML: as the guess that came furthest has it, else the required arguments spelt out as `name=...`."""
    method = guess.method if guess is not None else ""
    init, call = (", ".join(required_arguments(file, unit.name, name)) for name in ("__init__", method or "forward"))
    if guess is not None and guess.is_tried:
        # Where the guess did not come as far as the call, its arguments are what nobody could know.
        init, call = guess.init, guess.call or call
    setup = [f"setup = {json.dumps(guess.setup)}"] if guess is not None and guess.setup else []
    rows = [f"init = {json.dumps(init)}"] if init or unit.kind == "module" else []
    of_method = [f"method = {json.dumps(method)}"] if method else []
    return "\n".join(["[[example]]", f"module = {json.dumps(unit.id)}", *setup, *rows, f"call = {json.dumps(call)}", *of_method])


PLAIN_BASES = frozenset({"Module", "ABC", "object"})
"""Last names of bases that have no `forward` of their own."""


def is_called(file: Path, name: str) -> bool:
    """Whether a class may have a `forward`: it defines one that does something, or derives from anything but `nn.Module`. A function is called
    itself."""
    definition = class_node(ast.parse(file.read_text(encoding="utf-8-sig")), name)
    if not isinstance(definition, ast.ClassDef) or any(
        isinstance(node, ast.FunctionDef) and node.name in ("forward", "__call__") and not _is_left_open(node) for node in definition.body
    ):
        return True
    return any(ast.unparse(base).rpartition(".")[2] not in PLAIN_BASES for base in definition.bases)


def _is_left_open(method: ast.FunctionDef) -> bool:
    """Whether a method is for classes that derive from its own to define: it passes, or says that it is not implemented."""
    statements = [node for node in method.body if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))]
    match statements:
        case [] | [ast.Pass()]:
            return True
        case [ast.Raise(exc=ast.Name(id=raised) | ast.Call(func=ast.Name(id=raised)))]:
            return raised == "NotImplementedError"
    return False


def is_interface(file: Path, name: str) -> bool:
    """Whether all that a class says is what its subclasses define: it constructs nothing, and each method of it and of its bases in the file is left open."""
    return _only_declares(ast.parse(file.read_text(encoding="utf-8-sig")), name, ())


def _only_declares(tree: ast.AST, name: str, below: tuple[str, ...]) -> bool:
    """As `is_interface`, of a base of the classes `below`: branches of a file may define them in a circle."""
    definition = class_node(tree, name)
    if not isinstance(definition, ast.ClassDef) or name in below:
        return False
    methods = [node for node in definition.body if isinstance(node, ast.FunctionDef)]
    declared = [node for node in methods if not node.name.startswith("__")]
    constructors = [statement for node in methods if node.name == "__init__" for statement in node.body]
    bases = [ast.unparse(base) for base in definition.bases]
    return (
        bool(declared)
        and all(map(_is_left_open, declared))
        and all(map(_calls_base, constructors))
        and all(base.rpartition(".")[2] in PLAIN_BASES or _only_declares(tree, base, (*below, name)) for base in bases)
    )


def _calls_base(statement: ast.stmt) -> bool:
    """Whether a statement of a constructor does no more than to call the one of its base."""
    match statement:
        case ast.Pass() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="__init__"))):
            return True
    return False


def public_methods(file: Path, name: str) -> set[str]:
    """The methods that a class defines for its users, its call aside; none of a function."""
    definition = class_node(ast.parse(file.read_text(encoding="utf-8-sig")), name)
    body = definition.body if isinstance(definition, ast.ClassDef) else []
    names = {node.name for node in body if isinstance(node, ast.FunctionDef)}
    return {name for name in names if not name.startswith("_")} - {"forward", "extra_repr"}


def syntax_methods(file: Path, name: str) -> set[str]:
    """The setters of properties that a class defines (`buffer=`), and what Python's own syntax calls (`__len__`); none of a function."""
    definition = class_node(ast.parse(file.read_text(encoding="utf-8-sig")), name)
    functions = [node for node in (definition.body if isinstance(definition, ast.ClassDef) else ()) if isinstance(node, ast.FunctionDef)]
    setters = {
        f"{node.name}{SETTER}" for node in functions if any(ast.unparse(one) == f"{node.name}.setter" for one in node.decorator_list)
    }
    return setters | {node.name for node in functions if node.name in PROTOCOLS}


def required_arguments(file: Path, name: str, method: str) -> list[str]:
    """`argument=...` for each argument without a default of a method of a class; empty where the class does not define it.

    The `forward` of a function is the function.
    """
    definition = class_node(ast.parse(file.read_text(encoding="utf-8-sig")), name)
    own = isinstance(definition, ast.FunctionDef)
    methods = [node for node in (definition.body if definition else ()) if isinstance(node, ast.FunctionDef) and node.name == method]
    function = (definition if method == "forward" else None) if isinstance(definition, ast.FunctionDef) else next(iter(methods), None)
    if function is None:
        return []
    plain = [*function.args.posonlyargs, *function.args.args]
    needed = plain[0 if own else 1 : len(plain) - len(function.args.defaults)]
    keyword = [arg for arg, default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True) if default is None]
    return [f"{arg.arg}=..." for arg in (*needed, *keyword)]


def class_node(tree: ast.AST, name: str) -> ast.ClassDef | ast.FunctionDef | None:
    """The class with this qualified name, wherever its statement stands (in an `if`, too); else the top-level function of this name."""
    functions = [node for node in getattr(tree, "body", ()) if isinstance(node, ast.FunctionDef) and node.name == name]
    return _class_node(tree, name) or (functions[-1] if functions else None)


def _class_node(tree: ast.AST, name: str) -> ast.ClassDef | None:
    node: ast.AST | None = tree
    for part in name.split("."):
        node = (
            next((child for child in ast.walk(node) if isinstance(child, ast.ClassDef) and child.name == part and child is not node), None)
            if node
            else None
        )
    return node if isinstance(node, ast.ClassDef) else None


def function_names(text: str) -> set[str]:
    """Names of the functions at the top of a file; none where it does not parse."""
    try:
        return {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    except SyntaxError:
        return set()


def class_names(text: str) -> set[str]:
    """Qualified names of all classes that a file defines, those inside other classes included; none where it does not parse."""

    def walk(node: ast.AST, prefix: str) -> Iterator[str]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                yield f"{prefix}{child.name}"
                yield from walk(child, f"{prefix}{child.name}.")
            else:
                yield from walk(child, prefix)

    try:
        return set(walk(ast.parse(text), ""))
    except SyntaxError:
        return set()


def class_text(file_text: str, name: str) -> str:
    """Source of a class or function with its decorators, the whole file where it is not found."""
    node = class_node(ast.parse(file_text), name)
    if node is None:
        return file_text
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return "\n".join(file_text.splitlines()[first - 1 : node.end_lineno])
