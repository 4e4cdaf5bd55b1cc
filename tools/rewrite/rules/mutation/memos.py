"""What a call keeps for the next one only to save work is worked out in each call."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from migrate_agent.tools.rewrite.rules.rule import Rule


class RecomputeMemos(Rule):
    """Compute a memo in every call: `if self.mask is None or …: self.mask = …` → `mask = …`.

    A jitted call cannot keep an array on the module, and the compiler folds what depends on sizes alone.
    A note says so. Declines where the value depends on anything but sizes.
    """

    KEEP = (
        "class Plain:\n    def __init__(self):\n        self.mask = None\n\n    def f(self, n):\n        if self.mask is None:\n"
        "            self.mask = n\n        return self.mask\n",
    )
    CHANGE = (
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.mask = None\n"
            "        self.scale = 2\n\n    def forward(self, x: torch.Tensor):\n        if self.mask is None or self.mask.size(0) != len(x):\n"
            "            self.mask = torch.ones(len(x)) * self.scale\n        return x * self.mask\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.scale = 2\n\n    def __call__(self, x: jax.Array):\n"
            "        mask = jnp.ones(len(x)) * self.scale\n        return x * mask\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.mask = None\n\n"
            "    def forward(self, x: torch.Tensor, causal: bool):\n        if causal:\n"
            "            if self.mask is None or self.mask.size(0) != len(x):\n                self.mask = torch.ones(len(x))\n"
            "        else:\n            self.mask = None\n        return x if self.mask is None else x * self.mask\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        pass\n\n    def __call__(self, x: jax.Array, causal: bool):\n"
            "        if causal:\n            mask = jnp.ones(len(x))\n        else:\n            mask = None\n"
            "        return x if mask is None else x * mask\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.size = 0\n\n"
            "    def make(self, n: int):\n        self.size = n\n        self.grid = torch.arange(self.size)\n\n"
            "    def forward(self, x: torch.Tensor):\n        n = x.shape[0]\n        if n != self.size:\n            self.make(n)\n"
            "        return x + self.grid\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        pass\n\n"
            "    def make(self, n: int):\n        self.size = nnx.Intermediate(n)\n        self.grid = nnx.Intermediate(jnp.arange(self.size.get_value()))\n\n"
            "    def __call__(self, x: jax.Array):\n        n = x.shape[0]\n        self.make(n)\n        return x + self.grid[...]\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.size, self.square = 4, 3\n\n"
            "    def forward(self, x: torch.Tensor, n: int):\n        if n != self.size:\n            self.square = n * n\n        return x + self.square\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.size, self.square = 4, 3\n\n"
            "    def __call__(self, x: jax.Array, n: int):\n        if n != self.size:\n            self.square = n * n\n        return x + self.square\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.table = None\n"
            "        self.size = 0\n\n    def forward(self, x: torch.Tensor):\n        if self.table is None or self.size != len(x):\n"
            "            self.size = len(x)\n            self.table = torch.ones(len(x))\n            self.table = self.table.repeat(2)\n"
            "            self.table += 1\n        return x * self.table.sum()\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        pass\n\n    def __call__(self, x: jax.Array):\n"
            "        table = jnp.ones(len(x))\n        table = jnp.tile(table, 2)\n        table += 1\n        return x * jnp.sum(table)\n",
        ),
    )

    def leave_If(self, original: cst.If, updated: cst.If) -> cst.FlattenSentinel[cst.BaseStatement] | cst.RemovalSentinel | None:
        facts, span = self.context.class_facts, self.context.span(original)
        guard = next((guard for guard in facts.size_guards if guard.test == span), None)
        if guard is not None:
            self.context.notes.append(
                f"{self.context.file.file.path}:{span.line}: what a call computes where self.{guard.key} is another one was kept between calls; "
                "the rewrite works it out in each call"
            )
            return self._each_time(original, updated)
        memo = next((memo for memo in facts.memos.values() if memo.test == span), None)
        if memo is None:
            return None
        self.context.notes.append(
            f"{self.context.file.file.path}:{memo.store.line}: self.{memo.attribute} was kept between calls to save work; the rewrite "
            "works it out in each call"
        )
        if memo.early:
            return cst.RemoveFromParent()
        return self._each_time(original, updated)

    def _each_time(self, original: cst.If, updated: cst.If) -> cst.FlattenSentinel[cst.BaseStatement]:
        """The body of a branch, without its test, and whatever could not be rewritten in that."""
        self.context.drop_holes(original.test)
        assert isinstance(updated.body, cst.IndentedBlock)
        body = list(updated.body.body)
        if body and isinstance(body[0], (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
            body[0] = body[0].with_changes(leading_lines=[*updated.leading_lines, *body[0].leading_lines])
        return cst.FlattenSentinel(body)

    def leave_SimpleStatementLine(
        self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.RemovalSentinel | None:
        if len(original.body) != 1:
            return None
        span = self.context.span(original.body[0])
        memos = self.context.class_facts.memos.values()
        if any(span in memo.keys for memo in memos):
            return cst.RemoveFromParent()
        memo = next((memo for memo in memos if span in (memo.start, memo.store, *memo.clears, *memo.changes)), None)
        if memo is None or isinstance(original.body[0], cst.AugAssign):
            return None
        if span in memo.clears:
            return updated.with_changes(body=[cst.Assign([cst.AssignTarget(cst.Name(memo.local))], cst.Name("None"))])
        if span == memo.start or memo.plain:
            return cst.RemoveFromParent()
        value = _stored_value(updated.body[0]) if updated.body else None
        return None if value is None else updated.with_changes(body=[cst.Assign([cst.AssignTarget(cst.Name(memo.local))], value)])

    def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> cst.BaseExpression | None:
        context = self.context
        if not context.is_self(original.value) or isinstance(context.parent(), cst.AssignTarget):
            return None
        memo = context.class_facts.memos.get(original.attr.value)
        return cst.Name(memo.local) if memo and context.path[-1] == memo.method else None


def _stored_value(statement: cst.BaseSmallStatement) -> cst.BaseExpression | None:
    """What a statement keeps: the assigned value, without the variable that a buffer would be."""
    if not isinstance(statement, cst.Assign):
        return None
    value = statement.value
    wrapped = isinstance(value, cst.Call) and cst.Module([]).code_for_node(value.func) in ("nnx.Cache", "nnx.Variable")
    return value.args[0].value if wrapped and isinstance(value, cst.Call) else value


CACHES = frozenset({"functools.lru_cache", "functools.cache"})


class UncacheArrays(Rule):
    """Remove caches of arrays: `@lru_cache` → nothing, `@cached_property` → `@property`.

    An array that is made while a call is traced must not outlive it. Declines where numbers are drawn, where
    code clears the cache, and for functions that make no arrays.
    """

    KEEP = ("from functools import lru_cache\n\n@lru_cache\ndef f(n):\n    return [n] * n\n",)
    CHANGE = (
        (
            "import functools\nimport torch\n\n@functools.lru_cache(maxsize=1)\ndef f(n: int):\n    return torch.ones(n)\n",
            "import functools\n\ndef f(n: int):\n    return jnp.ones(n)\n",
        ),
        (
            "from functools import cached_property\nimport torch\n\nclass Table:\n    def __init__(self, n):\n        self.n = n\n\n"
            "    @cached_property\n    def ones(self):\n        return torch.ones(self.n)\n",
            "from functools import cached_property\n\nclass Table:\n    def __init__(self, n):\n        self.n = n\n\n"
            "    @property\n    def ones(self):\n        return jnp.ones(self.n)\n",
        ),
    )

    def leave_Decorator(self, original: cst.Decorator, updated: cst.Decorator) -> cst.Decorator | cst.RemovalSentinel | None:
        context, function = self.context, self.context.parent()
        call = original.decorator
        name = context.dotted(call.func if isinstance(call, cst.Call) else call)
        if name not in CACHES | {"functools.cached_property"} or not isinstance(function, cst.FunctionDef):
            return None
        path = ".".join(context.path)
        # Without the cache each call would draw other numbers.
        drawn = (context.file.file.path, path) in context.randomness.parameter
        if drawn or f"{function.name.value}.cache_" in context.file.text or not self._makes_arrays(function):
            return None
        context.notes.append(
            f"{context.file.file.path}:{context.span(original).line}: {path} kept its results between calls to save work; the rewrite "
            "works them out in each call"
        )
        return cst.RemoveFromParent() if name in CACHES else updated.with_changes(decorator=cst.Name("property"))

    def _makes_arrays(self, function: cst.FunctionDef) -> bool:
        """Whether it names functions of torch, and no layers."""
        named = {self.context.dotted(node) for node in m.findall(function.body, m.Name() | m.Attribute())}
        called = {self.context.dotted(node.func) for node in m.findall(function.body, m.Call()) if isinstance(node, cst.Call)}
        # Callers that share a cached layer share its parameters: that cache must stay.
        return any(name.startswith("torch.") for name in named) and not any(self.context.repo.is_module(name) for name in called)
