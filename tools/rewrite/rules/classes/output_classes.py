"""Dataclasses of tensors that functions return."""

from __future__ import annotations

import ast

import libcst as cst

from migrate_agent.tools.rewrite.analysis.repo import ClassModel, FileModel, dotted_name
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.scan.nodes import walk

PLAIN_BASES = frozenset({"dict", "collections.OrderedDict", "typing.Generic", "abc.ABC"})


class RegisterOutputClasses(Rule):
    """Register dataclasses of tensors as pytrees: `@dataclass class Output` → also `@jax.tree_util.register_dataclass`.

    So compiled functions may return one. Declines where a field may hold anything but tensors, where the class
    has a constructor of its own, and where it is made elsewhere than in a `return`: an attribute that holds it
    would have to be marked as data.
    """

    KEEP = (
        "from dataclasses import dataclass\n\n@dataclass\nclass Sizes:\n    width: int\n\ndef f(x):\n    return Sizes(x)\n",
        "from dataclasses import dataclass\n\n@dataclass\nclass Outputs:\n    values: dict\n\ndef f(x):\n    return Outputs(x)\n",
    )
    CHANGE = (
        (
            "from dataclasses import dataclass\nfrom typing import Optional\nimport torch\n\n@dataclass\nclass Output:\n    hidden: torch.Tensor\n"
            "    mean: Optional[torch.Tensor] = None\n\ndef f(x: torch.Tensor):\n    return Output(x, x.mean())\n",
            "from dataclasses import dataclass\nfrom typing import Optional\n\n@jax.tree_util.register_dataclass\n@dataclass\nclass Output:\n"
            "    hidden: jax.Array\n    mean: Optional[jax.Array] = None\n\n\ndef f(x: jax.Array):\n    return Output(x, jnp.mean(x))\n",
        ),
        (
            "from dataclasses import dataclass\nimport torch\n\n@dataclass\nclass State:\n    hidden: torch.Tensor\n\n"
            "def f(x: torch.Tensor):\n    state = State(x)\n    return state\n",
            "from dataclasses import dataclass\n\n@dataclass\nclass State:\n    hidden: jax.Array\n\n\n"
            "def f(x: jax.Array):\n    state = State(x)\n    return state\n",
        ),
    )

    def leave_ClassDef(self, original: cst.ClassDef, updated: cst.ClassDef) -> cst.ClassDef | None:
        context, model = self.context, self.context.cls
        if model is None or not original.decorators or model.node.name != original.name.value:
            return None
        if not any(_is_dataclass(node, model.file) for node in model.node.decorator_list) or model.id not in context.repo.only_returned:
            return None
        family = list(context.repo.ancestors(model))
        bases = {name for one in family for name in context.repo.bases(one) if context.repo.class_of(name) is None}
        fields = [field for one in family for field in _fields_of_tensors(one)]
        # JAX makes the object anew from its fields: whatever else a base or a constructor put there would be lost.
        if not bases <= PLAIN_BASES or not fields or not all(fields) or any("__init__" in one.methods for one in family):
            return None
        register = cst.Decorator(context.build("jax.tree_util.register_dataclass"))
        return updated.with_changes(decorators=[register, *updated.decorators])


def _is_dataclass(node: ast.expr, file: FileModel) -> bool:
    """Whether a decorator is `dataclass`, with a constructor."""
    if isinstance(node, ast.Call):
        return _is_dataclass(node.func, file) and not any(k.arg == "init" for k in node.keywords)
    return dotted_name(node, file) == "dataclasses.dataclass"


def _fields_of_tensors(model: ClassModel) -> list[bool]:
    """Of each field, whether its annotation names tensors."""
    annotations = [node.annotation for node in model.node.body if isinstance(node, ast.AnnAssign)]
    return [_names_tensors(node, model.file) for node in annotations if "ClassVar" not in ast.unparse(node)]


def _names_tensors(annotation: ast.expr, file: FileModel) -> bool:
    for node in walk(annotation):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "Tensor" in node.value:
            return True
        dotted = dotted_name(node, file) if isinstance(node, ast.Name | ast.Attribute) else ""
        if dotted.startswith("torch.") and dotted.endswith("Tensor"):
            return True
    return False
