"""Stubs for module classes that the requested units name and that no example runs. Constructing a
stub raises an error.

A function that is not verified is one where its rewrite has a hole: calls that do not come there need it by name alone.

Code that no check has seen must not look like verified code. A stub is a class, so that it can
stand in tables, in annotations and in `isinstance`. As soon as an example reaches the class, its
rewrite takes the stub's place.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from migrate_agent.tools.rewrite.analysis.exercised import Exercised
from migrate_agent.tools.rewrite.analysis.repo import ClassModel, Repo
from migrate_agent.tools.types import Observations

UNREACHED, UNVERIFIED = "no example runs it", "it is not verified"


def stub_reasons(
    repo: Repo, observations: Observations, uses: Exercised | None, units: Collection[str], refused: Collection[str] = ()
) -> dict[str, str]:
    """Id (`file:name`) of each top-level module class that becomes a stub → the reason.

    These are the `refused` classes, and those of which no instance was observed and no line ran.
    Excepted are the requested `units` and the bases of every class that is migrated. Without
    observations there are no stubs, since nobody knows what ran.
    """
    if uses is None:
        return {}
    named = {top_class_id(identifier) for identifier in units}
    migrated: set[str] = set()
    for model in _top_classes(repo):
        if model.id in named or (model.id not in refused and _was_exercised(model, observations, uses)):
            # A base cannot be a stub: its subclass would inherit the constructor that raises.
            migrated |= {top_class_id(above.id) for above in repo.ancestors(model)}
    modules = (model for model in _top_classes(repo) if repo.is_module_class(model))
    return {model.id: UNVERIFIED if model.id in refused else UNREACHED for model in modules if model.id not in migrated}


def stub(text: str, reason: str) -> str:
    """The text of a class whose constructor raises, with the constants of the original body, or of a function that raises; ""
    where `text` holds neither.
    """
    node = next((statement for statement in ast.parse(text).body if isinstance(statement, (ast.ClassDef, ast.FunctionDef))), None)
    if node is None:
        return ""
    if isinstance(node, ast.FunctionDef):
        message = f"{node.name} is not migrated: {reason}"
        return f"\n\ndef {node.name}(*args, **kwargs):\n    raise NotImplementedError({message!r})\n"
    # A call such as `@REGISTRY.register("x")` enters the class in a table, which must find it
    # there.
    decorators = [f"@{ast.unparse(decorator)}\n" for decorator in node.decorator_list if isinstance(decorator, ast.Call)]
    lines = [f"    {line}\n" for line in constants(node)]
    message = f"{node.name} is not migrated: {reason}"
    body = f"    def __init__(self, *args, **kwargs):\n        raise NotImplementedError({message!r})\n"
    return "\n\n" + "".join([*decorators, f"class {node.name}(nnx.Module):\n", *lines, "\n" if lines else "", body])


def _top_classes(repo: Repo) -> Iterator[ClassModel]:
    for file in repo.files.values():
        top = {statement.name for statement in file.tree.body if isinstance(statement, ast.ClassDef)}
        yield from (file.classes[name] for name in sorted(top & file.classes.keys()))


def top_class_id(identifier: str) -> str:
    """The id of the top-level class around a class, from its id."""
    path, _, name = identifier.rpartition(":")
    return f"{path}:{name.partition('.')[0]}"


def _was_exercised(model: ClassModel, observations: Observations, uses: Exercised) -> bool:
    """Whether an example may have run part of the class: a method, the constructor, or any use of
    an instance.
    """
    lines = {span.line for span in observations.get(model.file.file.path, ())}
    # An inner class counts as part of the outer one: they are selected together.
    inner = [one for name, one in model.file.classes.items() if name == model.qualname or name.startswith(f"{model.qualname}.")]
    if any(one.dotted in uses.instances or one.qualname.rpartition(".")[2] in uses.called for one in inner):
        return True
    methods = [method for one in inner for method in one.methods.values()]
    # From the first line of the body on: the `def` line runs whenever the file is imported.
    return any(method.body[0].lineno <= line <= (method.end_lineno or 0) for method in methods for line in lines)


def constants(node: ast.ClassDef) -> list[str]:
    """The statements of a class's body that give a name a plain value, one line each."""
    return [ast.unparse(statement) for statement in node.body if _is_constant(statement)]


def _is_constant(node: ast.stmt) -> bool:
    value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
    try:
        # "x" is no literal, so that a statement without a value is refused like a computed one.
        ast.literal_eval(value if value is not None else "x")
    except ValueError:
        return False
    return True
