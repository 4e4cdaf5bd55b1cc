"""Constructors that go through all modules to initialise those of some classes."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.registry import layers


class GoThroughModules(Rule):
    """In plain style, `for m in self.modules():` in a constructor → `for _, m in nnx.iter_modules(self):`.

    NNX comes to the modules inside first, torch to the outer ones. So it declines unless the loop only asks `isinstance`, and that of layers alone or of
    the repository's classes alone: then no parameter is set twice.
    """

    KEEP = ("def f(rows):\n    for m in rows:\n        if isinstance(m, int):\n            print(m)\n",)
    PLAIN = (
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
            "        self.out = nn.Linear(d, 3)\n        for m in self.modules():\n            if isinstance(m, nn.Linear):\n"
            "                nn.init.ones_(m.bias)\n        for m in self.modules():\n            m.kept = 1\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n"
            "        self.out = nnx.Linear(d, 3, kernel_init=fan_in_kernel, bias_init=fan_in_bias(d), rngs=rngs)\n"
            "        for _, m in nnx.iter_modules(self):\n            if isinstance(m, nnx.Linear):\n"
            "                m.bias[...] = jnp.ones_like(m.bias)\n        for m in modules(self):\n            m.kept = 1\n",
        ),
    )

    def leave_For(self, original: cst.For, updated: cst.For) -> cst.For | None:
        match original.target, original.iter, updated.iter:
            case cst.Name() as name, cst.Call(func=cst.Attribute(value=owner, attr=cst.Name("modules")), args=[]), cst.Call(args=[walked]):
                constructs = self.context.repo.is_plain and self.context.constructing and self.context.is_module(owner)
                if constructs and original.orelse is None and self._is_free_of_order(original.body, name.value):
                    pair = cst.Tuple([cst.Element(cst.Name("_")), cst.Element(name)], lpar=[], rpar=[])
                    return updated.with_changes(target=pair, iter=self.context.build("nnx.iter_modules({m})", m=walked.value))
        return None

    def _is_free_of_order(self, body: cst.BaseSuite, name: str) -> bool:
        of_layers: set[bool] = set()
        for statement in body.body:
            branch: cst.CSTNode | None = statement
            while isinstance(branch, cst.If):
                classes = self._tested(branch.test, name)
                of_layers |= {self.context.dotted(one) in layers() for one in classes}
                if not classes or _Leaves().in_block(branch.body):
                    return False
                branch = branch.orelse
            if branch is not None and branch is statement:
                return False
            if isinstance(branch, cst.Else):
                return False
        return len(of_layers) == 1

    def _tested(self, test: cst.BaseExpression, name: str) -> list[cst.BaseExpression]:
        """The classes of `isinstance(name, …)`; none for any other test."""
        match test:
            case cst.Call(func=cst.Name("isinstance"), args=[cst.Arg(value=cst.Name(value=tested)), cst.Arg(value=classes)]) if (
                tested == name
            ):
                return [one.value for one in classes.elements] if isinstance(classes, cst.Tuple) else [classes]
        return []


class _Leaves(cst.CSTVisitor):
    """Whether a block binds a name, or leaves the loop."""

    def __init__(self) -> None:
        self.leaves = False

    def in_block(self, block: cst.BaseSuite) -> bool:
        block.visit(self)
        return self.leaves

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        self.leaves |= not isinstance(node.target, (cst.Attribute, cst.Subscript))

    def visit_Break(self, node: cst.Break) -> None:
        self.leaves = True

    visit_Continue = visit_Return = visit_AugAssign = visit_NamedExpr = visit_Break  # type: ignore[assignment]
