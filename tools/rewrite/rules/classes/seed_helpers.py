"""Constructors that seed torch's global stream of random numbers by a function of the repository."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.analysis.host_draws.seed_helpers import SeedHelper, seed_helpers
from migrate_agent.tools.rewrite.rules.rule import Rule


class SeedRngsByHelpers(Rule):
    """Draw what a constructor draws after `seed_everything(seed)` from streams of that seed, as `SeedRngs` does after `torch.manual_seed(seed)`.

    The function keeps what it says to Python's and NumPy's streams. Where other code than a constructor calls it, there is a hole: JAX has no global stream.
    """

    KEEP = ("import random\n\ndef seeded(seed):\n    random.seed(seed)\n",)
    CHANGE = (
        (
            "import random\nimport torch\nimport torch.backends.cudnn as cudnn\nfrom torch import nn\n\ndef seeded(n, seed=3):\n"
            "    random.seed(seed)\n    torch.manual_seed(seed)\n    torch.cuda.manual_seed_all(seed)\n"
            "    cudnn.deterministic = True\n\n"
            "class M(nn.Module):\n    def __init__(self, n, options):\n        super().__init__()\n        seeded(n, options.seed)\n"
            "        self.f = nn.Linear(n, 2, bias=False)\n        seeded(n)\n        self.g = nn.Linear(2, n, bias=False)\n\n"
            "    def forward(self, x: torch.Tensor):\n        return self.g(self.f(x))\n",
            "import random\n\ndef seeded(n, seed=3):\n    random.seed(seed)\n\n"
            "class M(nnx.Module):\n    def __init__(self, n, options, *, rngs: nnx.Rngs):\n        seeded(n, options.seed)\n"
            "        rngs = nnx.Rngs(options.seed)\n        self.f = Linear(n, 2, bias=False, rngs=rngs)\n        seeded(n)\n"
            "        rngs = nnx.Rngs(3)\n        self.g = Linear(2, n, bias=False, rngs=rngs)\n\n"
            "    def __call__(self, x: jax.Array):\n        return self.g(self.f(x))\n",
        ),
    )

    def leave_Expr(self, original: cst.Expr, updated: cst.Expr) -> cst.RemovalSentinel | None:
        context = self.context
        if self._drops(original):
            context.drop_holes(original)
            return cst.RemoveFromParent()
        if self._helper(original) is not None and self._seed(original, context.parent()) is None:
            context.hole(original, "it seeds torch's stream of random numbers: JAX has none that all draws come from")
        return None

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.RemovalSentinel | None:
        if not self._drops(original):
            return None
        self.context.drop_holes(original)
        return cst.RemoveFromParent()

    def leave_SimpleStatementLine(
        self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine
    ) -> cst.FlattenSentinel[cst.SimpleStatementLine] | None:
        seed = self._seed(original.body[0], original)
        if seed is None:
            return None
        value = self.context.build("nnx.Rngs({seed})", seed=seed.deep_clone())
        return cst.FlattenSentinel([updated, cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name("rngs"))], value)])])

    def _drops(self, statement: cst.CSTNode) -> bool:
        """Whether a statement of a helper goes."""
        context = self.context
        helper = seed_helpers(context.repo).get(context.function_key) if context.functions else None
        return helper is not None and context.span(statement)[:2] in helper.dropped

    def _seed(self, statement: cst.CSTNode, line: cst.CSTNode | None) -> cst.BaseExpression | None:
        """With what a call of a helper, alone on its line in a constructor itself, seeds torch's stream; only what can be said twice."""
        context = self.context
        helper = self._helper(statement)
        alone = isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1
        if helper is None or not alone or not context.constructing or len(context.functions) != 1:
            return None
        if context.host is not None or context.cls is None or not context.repo.is_module_class(context.cls):
            return None
        assert isinstance(statement, cst.Expr) and isinstance(statement.value, cst.Call)
        arguments = statement.value.args
        if any(argument.star for argument in arguments):
            return None
        named = {argument.keyword.value: argument.value for argument in arguments if argument.keyword is not None}
        positional = [argument.value for argument in arguments if argument.keyword is None]
        value = positional[helper.position] if helper.position < len(positional) else named.get(helper.parameter)
        if value is None:
            return None if helper.default is None else cst.parse_expression(str(helper.default))
        return value if isinstance(value, (cst.Name, cst.Attribute, cst.Integer)) else None

    def _helper(self, statement: cst.CSTNode) -> SeedHelper | None:
        context = self.context
        helpers = seed_helpers(context.repo)
        if not helpers or not isinstance(statement, cst.Expr) or not isinstance(statement.value, cst.Call):
            return None
        dotted = context.dotted(statement.value.func)
        definition = context.repo.resolve(dotted) if dotted else None
        return helpers.get((definition[0].file.path, definition[1])) if definition else None
