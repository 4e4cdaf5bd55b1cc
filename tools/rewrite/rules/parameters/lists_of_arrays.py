"""Plain lists of arrays that a module keeps."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import is_tensor
from migrate_agent.tools.rewrite.rules.rule import Rule


class WrapListsOfArrays(Rule):
    """Make lists of arrays data: `self.heads = [torch.rand(1)] * n` → `self.heads = nnx.List([jax.random.uniform(rngs.params(), 1)] * n)`.

    NNX takes a plain list for a static attribute, which must not hold arrays. Declines where something else
    may be among the elements.
    """

    KEEP = ("class Plain:\n    def __init__(self, x):\n        self.x = [x]\n",)
    CHANGE = (
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
            "        self.steps: list[torch.Tensor] = [torch.ones(3)] * n\n        self.sizes = [1, 2] * n\n\n"
            "    def forward(self, x):\n        return x * self.steps[0]\n",
            "class M(nnx.Module):\n    def __init__(self, n, *, rngs: nnx.Rngs):\n        self.steps = nnx.List([jnp.ones(3)] * n)\n"
            "        self.sizes = [1, 2] * n\n\n    def __call__(self, x):\n        return x * self.steps[0]\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
            "        self.steps = [torch.ones(i) for i in range(n)]\n",
            "class M(nnx.Module):\n    def __init__(self, n, *, rngs: nnx.Rngs):\n        self.steps = nnx.List([jnp.ones(i) for i in range(n)])\n",
        ),
    )

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.Assign | None:
        if len(original.targets) > 1 or not self._holds_arrays(original.targets[0].target, original.value):
            return None
        return updated.with_changes(value=self.context.build("nnx.List({x})", x=updated.value))

    def leave_AnnAssign(self, original: cst.AnnAssign, updated: cst.AnnAssign) -> cst.Assign | None:
        if original.value is None or updated.value is None or not self._holds_arrays(original.target, original.value):
            return None
        # The annotation says `list`, which an `nnx.List` is not.
        return cst.Assign([cst.AssignTarget(updated.target)], self.context.build("nnx.List({x})", x=updated.value))

    def _holds_arrays(self, target: cst.BaseExpression, value: cst.BaseExpression) -> bool:
        context = self.context
        if not isinstance(target, cst.Attribute) or not context.is_self(target.value):
            return False
        if context.cls is None or not context.repo.is_module_class(context.cls):
            return False
        match value:
            case cst.BinaryOperation(operator=cst.Multiply(), left=cst.List(elements=elements)):
                parts = [element.value for element in elements]
            case cst.List(elements=elements):
                parts = [element.value for element in elements]
            case cst.ListComp(elt=part):
                parts = [part]
            case _:
                parts = []
        facts = [context.observed(part) for part in parts]
        return bool(facts) and all(is_tensor(fact) and fact is not None and "parameter" not in fact.kinds for fact in facts)
