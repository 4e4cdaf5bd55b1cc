"""Generators of random numbers with seeds of their own: `torch.Generator`."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.rules.rule import Rule

GENERATOR = "torch.Generator"
KINDS = frozenset({"generator", "object:torch.Generator"})
"""What a generator is seen to be; of Python's kind none has a seed."""


class SeedGenerators(Rule):
    """Draw from streams with the source's seed: `g = torch.Generator().manual_seed(3)` → `g = nnx.Rngs(3)`, and `generator=g` draws from it.

    The numbers are others than torch's for that seed, and the same ones each time, as in torch; converted weights bring torch's. Without a seed it
    is 0. Declines for what is not seen to be a generator.
    """

    KEEP = ("def f(g):\n    g.manual_seed(3)\n    return g\n",)
    CHANGE = (
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d, seed):\n        super().__init__()\n"
            "        g = torch.Generator(device='cpu').manual_seed(seed)\n        self.register_buffer('a', torch.randn(d, generator=g))\n"
            "        h = torch.Generator()\n        h.manual_seed(1)\n        self.register_buffer('b', torch.rand((d,), generator=h))\n",
            "class M(nnx.Module):\n    def __init__(self, d, seed, *, rngs: nnx.Rngs):\n        g = nnx.Rngs(seed)\n"
            "        self.a = nnx.Variable(jax.random.normal(g(), d))\n        h = nnx.Rngs(0)\n        h = nnx.Rngs(1)\n"
            "        self.b = nnx.Variable(jax.random.uniform(h(), (d,)))\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        if self.context.dotted(original.func) == GENERATOR:
            return self.context.build("nnx.Rngs(0)")
        if not isinstance(original.func, cst.Attribute) or original.func.attr.value != "manual_seed" or len(updated.args) != 1:
            return None
        if not is_generator(self, original.func.value):
            return None
        return self.context.build("nnx.Rngs({seed})", seed=updated.args[0].value)

    def leave_Expr(self, original: cst.Expr, updated: cst.Expr) -> cst.Assign | None:
        match original.value:
            case cst.Call(func=cst.Attribute(value=cst.Name() | cst.Attribute() as owner, attr=cst.Name(value="manual_seed"))):
                if is_generator(self, owner):
                    return cst.Assign([cst.AssignTarget(owner)], updated.value, semicolon=updated.semicolon)
        return None


def is_generator(rule: Rule, node: cst.BaseExpression) -> bool:
    """Whether an original expression is a generator of torch's: it makes one, was seen to be one, or is a name that the function gives nothing else."""
    context = rule.context
    if isinstance(node, cst.Call):
        inner = node.func
        return context.dotted(inner) == GENERATOR or (isinstance(inner, cst.Attribute) and is_generator(rule, inner.value))
    fact = context.observed(node)
    if fact is not None and fact.kinds:
        return set(fact.kinds) <= KINDS
    return isinstance(node, cst.Name) and _is_made_here(rule, node.value)


def _is_made_here(rule: Rule, name: str) -> bool:
    """Whether all that the function at hand assigns to a name are generators that it makes."""
    function = rule.context.functions[-1] if rule.context.functions else None
    if function is None:
        return False
    values = _Values(name)
    function.body.visit(values)
    return bool(values.found) and all(value is not None and is_generator(rule, value) for value in values.found)


class _Values(cst.CSTVisitor):
    """The values that a name is assigned by itself; `None` for one that it gets otherwise."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.found: list[cst.Call | None] = []

    def visit_Assign(self, node: cst.Assign) -> None:
        if any(isinstance(one.target, cst.Name) and one.target.value == self._name for one in node.targets):
            self.found.append(node.value if isinstance(node.value, cst.Call) else None)
