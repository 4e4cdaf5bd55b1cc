"""Generators of random numbers with seeds of their own: `torch.Generator`."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.rules.apply_tables import keyword, tidy
from migrate_agent.tools.rewrite.rules.rule import Rule

GENERATOR = "torch.Generator"
DRAWS = frozenset({"torch.randn", "torch.rand", "torch.randperm", "torch.randint"})
"""What the vendored generator draws as torch does; all arguments but `generator` and `device` by position."""

FLOATING = frozenset({"torch.randn", "torch.rand"})


class SeedGenerators(Rule):
    """Draw what a constructor draws with a seed of its own by the vendored `TorchGenerator`: `torch.randn(3, generator=g)` → `g.randn(3)`.

    The numbers are constants of the source, whatever the model's seed is, so they are torch's own. Declines (a hole) outside of
    constructors, and where the generator is used for anything else: each number depends on those that were drawn before.
    """

    KEEP = ("def f(g):\n    g.manual_seed(3)\n    return g\n",)
    CHANGE = (
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d, seed):\n        super().__init__()\n"
            "        g = torch.Generator(device='cpu').manual_seed(seed)\n        self.register_buffer('a', torch.randn(d, 2, generator=g))\n"
            "        h = torch.Generator()\n        h.manual_seed(1)\n        self.register_buffer('b', torch.rand((d,), generator=h))\n",
            "class M(nnx.Module):\n    def __init__(self, d, seed, *, rngs: nnx.Rngs):\n        g = TorchGenerator().manual_seed(seed)\n"
            "        self.a = nnx.Variable(g.randn(d, 2, dtype=float))\n        h = TorchGenerator()\n        h.manual_seed(1)\n"
            "        self.b = nnx.Variable(h.rand((d,), dtype=float))\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        context = self.context
        if not context.functions or not context.constructing:
            return None
        if context.dotted(original.func) == GENERATOR:
            name = self._bound_name()
            return context.build("vendored.TorchGenerator()") if name and self._only_draws(name) else None
        generator = self._generator(original)
        if generator is None or not self._only_draws(generator.value):
            return None
        draw = cst.Attribute(generator, cst.Name(context.dotted(original.func).rpartition(".")[2]))
        arguments = [argument for argument in updated.args if argument.keyword is None]
        arguments = [*arguments[:-1], arguments[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)]
        # The numbers of torch's default dtype: in double precision they are others.
        floating = context.dotted(original.func) in FLOATING
        return cst.Call(draw, tidy([*arguments, *([keyword("dtype", cst.Name("float"))] if floating else [])]))

    def _bound_name(self) -> str:
        """The name that the statement at hand gives its value."""
        assign = next((node for node in reversed(self.context.stack) if isinstance(node, cst.Assign)), None)
        target = assign.targets[0].target if assign is not None and len(assign.targets) == 1 else None
        return target.value if isinstance(target, cst.Name) else ""

    def _generator(self, call: cst.Call) -> cst.Name | None:
        """The generator of a draw that the vendored one knows."""
        if self.context.dotted(call.func) not in DRAWS or not any(argument.keyword is None for argument in call.args):
            return None
        keywords = {argument.keyword.value: argument.value for argument in call.args if argument.keyword}
        generator = keywords.pop("generator", None)
        plain = not any(argument.star for argument in call.args) and keywords.keys() <= {"device"}
        return generator if plain and isinstance(generator, cst.Name) else None

    def _only_draws(self, name: str) -> bool:
        """Whether the function makes the generator of that name, once, seeds it and draws what is known, in no other way."""
        uses = _Uses(self, name)
        self.context.functions[-1].body.visit(uses)
        return uses.made == 1 and uses.seeded > 0 and uses.names == uses.understood


class _Uses(cst.CSTVisitor):
    """How often a name stands in a function, and how often in a way that is understood."""

    def __init__(self, rule: SeedGenerators, name: str) -> None:
        self._rule, self._name = rule, name
        self.names = self.understood = self.made = self.seeded = 0

    def visit_Name(self, node: cst.Name) -> None:
        self.names += node.value == self._name

    def visit_Arg(self, node: cst.Arg) -> bool:
        node.value.visit(self)  # a keyword may have the same name
        return False

    def visit_Assign(self, node: cst.Assign) -> None:
        match node.targets, node.value:
            case [cst.AssignTarget(target=cst.Name(value=self._name))], cst.Call() as call:
                seeded = isinstance(call.func, cst.Attribute) and call.func.attr.value == "manual_seed"
                inner = call.func.value if isinstance(call.func, cst.Attribute) and seeded else call
                made = isinstance(inner, cst.Call) and self._rule.context.dotted(inner.func) == GENERATOR
                self.made += made
                self.seeded += made and seeded
                self.understood += made

    def visit_Call(self, node: cst.Call) -> None:
        match node.func:
            case cst.Attribute(value=cst.Name(value=self._name), attr=cst.Name(value="manual_seed")):
                self.seeded += 1
                self.understood += 1
        generator = self._rule._generator(node)
        self.understood += generator is not None and generator.value == self._name
