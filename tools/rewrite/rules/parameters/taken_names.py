"""Attributes under names that NNX itself reads or sets are renamed in the mirror; state dictionaries keep torch's names."""

from __future__ import annotations

import ast

import libcst as cst

from migrate_agent.tools.rewrite.analysis.repo import ClassModel, Repo
from migrate_agent.tools.rewrite.analysis.taken_names import COMMON, LAYERS, stored_attributes, taken_names
from migrate_agent.tools.rewrite.rules.parameters.late_attributes import REGISTERING
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.scan.nodes import walk

GENERATED = COMMON | {"kernel", "embedding", "scale", "mean", "var", "epsilon"}
"""Names that the rewrite writes itself, so that they tell nothing once a class is rewritten."""


class RenameTakenAttributes(Rule):
    """Rename attributes that NNX itself uses: `self.mask` in a subclass of `nn.Conv2d` → `self.mask_`.

    `nnx.Conv` has a `mask`, and NNX's `.train()` sets `self.deterministic` on every module. The state
    dictionary keeps torch's name. Declines (a hole) where the name is looked up by a string.
    """

    KEEP = ("class Plain:\n    def __init__(self, x):\n        self.mask = x\n        self.deterministic = True\n",)
    CHANGE = (
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Linear):\n    def __init__(self, d):\n        super().__init__(d, d)\n"
            "        self.dtype = 'float'\n        self.register_buffer('precision', torch.ones(d))\n        self.precision[0] = 2\n\n"
            "    def forward(self, x):\n        return super().forward(x) * self.precision\n",
            "class M(Linear):\n    torch_names = {'precision_': 'precision'}\n\n    def __init__(self, d, *, rngs: nnx.Rngs):\n"
            "        super().__init__(d, d, rngs=rngs)\n        self.dtype_ = 'float'\n        self.precision_ = nnx.Variable(jnp.ones(d))\n"
            "        self.precision_[...] = self.precision_[...].at[0].set(2)\n\n"
            "    def __call__(self, x):\n        return super().__call__(x) * self.precision_[...]\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, deterministic):\n        super().__init__()\n"
            "        self.deterministic = deterministic\n\n    def forward(self, x):\n        return -x if self.deterministic and self.training else x\n",
            "class M(nnx.Module):\n    def __init__(self, deterministic, *, rngs: nnx.Rngs):\n        self.deterministic = False\n"
            "        self.deterministic_ = deterministic\n\n"
            "    def __call__(self, x):\n        return -x if self.deterministic_ and not self.deterministic else x\n",
        ),
    )

    def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> cst.BaseExpression | None:
        context = self.context
        name = original.attr.value
        if name not in ALL:
            return None
        if context.is_self(original.value):
            renames = name in context.class_facts.taken_names
        else:
            fact = context.observed(original.value)
            classes = [context.repo.class_of(kind.removeprefix("module:")) for kind in fact.kinds] if fact else []
            models = [model for model in classes if model]
            renames = bool(models) and all(name in taken_names(context.repo, model) for model in models)
        return updated.with_changes(attr=cst.Name(f"{name}_")) if renames else None

    def leave_ClassDef(self, original: cst.ClassDef, updated: cst.ClassDef) -> cst.ClassDef | None:
        model = self.context.cls
        names = self.context.class_facts.taken_names
        if model is None or not names:
            return None
        for call in (node for node in walk(model.node) if isinstance(node, ast.Call)):
            if name := next((a.value for a in call.args[:2] if isinstance(a, ast.Constant) and a.value in names), ""):
                function = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
                if function in ("getattr", "setattr", "hasattr") or (function in REGISTERING and name in GENERATED):
                    self.context.hole(original, f"{name}, which NNX has too, is named in a string in line {call.lineno}", "taken-name")
        # What rules wrote anew (`self.mask = …` for a registration) has no original for `leave_Attribute` to see. Names that rules also write for
        # NNX's own attributes (`self.kernel`) cannot be told apart there, and stay.
        renamed = updated.visit(_Renamed({name for name in names if name not in GENERATED}))
        assert isinstance(renamed, cst.ClassDef) and isinstance(renamed.body, cst.IndentedBlock)
        own = sorted(name for name in names if _is_state(self.context.repo, model, name))
        self.context.notes.append(
            f"{model.id}: renamed, since NNX has such names: {', '.join(f'{name} → {name}_' for name in sorted(names))}"
        )
        if not own:
            return renamed
        table = cst.parse_statement("torch_names = {" + ", ".join(f"'{name}_': '{name}'" for name in own) + "}")
        body = list(renamed.body.body)
        at = 1 if original.get_docstring() is not None else 0
        return renamed.with_changes(body=renamed.body.with_changes(body=[*body[:at], table, *body[at:]]))


def _is_state(repo: Repo, model: ClassModel, name: str) -> bool:
    """Whether the class itself keeps a buffer, a parameter or a module under this name."""
    if name not in (*stored_attributes(model), *model.buffers):
        return False
    fact = repo.attribute(model, name)
    kinds = fact.kinds if fact else ()
    return repo.buffer(model, name) is not None or any(kind == "parameter" or kind.startswith("module:") for kind in kinds)


class _Renamed(cst.CSTTransformer):
    """`self.x` → `self.x_` for what other rules wrote anew."""

    def __init__(self, names: set[str]) -> None:
        super().__init__()
        self.names = names

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        own = isinstance(updated_node.value, cst.Name) and updated_node.value.value == "self"
        name = updated_node.attr.value
        return updated_node.with_changes(attr=cst.Name(f"{name}_")) if own and name in self.names else updated_node


ALL = COMMON.union(*LAYERS.values())
