"""Module classes that are named by what is wanted, and that no example runs: in the mirror they are an error once one is constructed.

What nobody judged is not handed over as if somebody had. The stub is a class, so that it can stand in tables, in annotations and behind
`isinstance`; as soon as an example reaches the class, its rewrite takes the stub's place.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from migrate_agent.tools.rewrite.analysis.exercised import Exercised
from migrate_agent.tools.rewrite.analysis.repo import ClassModel, Repo
from migrate_agent.tools.types import Observations

UNREACHED = "no example runs it"


def stub_reasons(
    repo: Repo, observations: Observations, uses: Exercised | None, units: Collection[str], refused: Collection[str] = ()
) -> dict[str, str]:
    """Class id (`file:name`) → why it is put off, of the module classes at the top of files.

    These are the `refused` ones, and those of which no instance was seen and no line ran; but none that is `units`, or that a class which is
    kept derives from. Nothing is put off where nothing was observed, since then nobody knows what ran.
    """
    if uses is None:
        return {}
    named = {top_class_id(identifier) for identifier in units}
    migrated: set[str] = set()
    for model in _top_classes(repo):
        if model.id in named or (model.id not in refused and _was_exercised(model, observations, uses)):
            migrated |= {top_class_id(above.id) for above in repo.ancestors(model)}
    modules = (model for model in _top_classes(repo) if repo.is_module_class(model))
    return {model.id: "it is not verified" if model.id in refused else UNREACHED for model in modules if model.id not in migrated}


def stub(text: str, reason: str) -> str:
    """A class statement with an error in its constructor, and nothing else but the constants of its body; "" where it is no class."""
    node = next((statement for statement in ast.parse(text).body if isinstance(statement, ast.ClassDef)), None)
    if node is None:
        return ""
    decorators = [f"@{ast.unparse(decorator)}\n" for decorator in node.decorator_list if isinstance(decorator, ast.Call)]
    constants = [f"    {ast.unparse(statement)}\n" for statement in node.body if _is_constant(statement)]
    message = f"{node.name} is not migrated: {reason}"
    body = f"    def __init__(self, *args, **kwargs):\n        raise NotImplementedError({message!r})\n"
    return "\n\n" + "".join([*decorators, f"class {node.name}(nnx.Module):\n", *constants, "\n" if constants else "", body])


def _top_classes(repo: Repo) -> Iterator[ClassModel]:
    for file in repo.files.values():
        top = {statement.name for statement in file.tree.body if isinstance(statement, ast.ClassDef)}
        yield from (file.classes[name] for name in sorted(top & file.classes.keys()))


def top_class_id(identifier: str) -> str:
    """The class at the top of its file that a class stands in, by their ids."""
    path, _, name = identifier.rpartition(":")
    return f"{path}:{name.partition('.')[0]}"


def _was_exercised(model: ClassModel, observations: Observations, uses: Exercised) -> bool:
    """Whether an example may have run any of it: a method, its construction, or an instance that was seen anywhere."""
    lines = {span.line for span in observations.get(model.file.file.path, ())}
    inner = [one for name, one in model.file.classes.items() if name == model.qualname or name.startswith(f"{model.qualname}.")]
    if any(one.dotted in uses.instances or one.qualname.rpartition(".")[2] in uses.called for one in inner):
        return True
    methods = [method for one in inner for method in one.methods.values()]
    return any(method.body[0].lineno <= line <= (method.end_lineno or 0) for method in methods for line in lines)


def _is_constant(node: ast.stmt) -> bool:
    value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
    try:
        ast.literal_eval(value if value is not None else "x")
    except ValueError:
        return False
    return True
