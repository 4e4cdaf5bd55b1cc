"""What a call leaves on the module, to look at or for a later step of the same call, is an `nnx.Intermediate`."""

from __future__ import annotations

import ast

import libcst as cst

from migrate_agent.tools.rewrite.rules.parameters.variables import subscript
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.scan.nodes import walk


class StoreIntermediates(Rule):
    """Store what a call leaves to look at: `self.attention = weights` in `forward` → `self.attention = nnx.Intermediate(weights)`.

    It is then no part of the module's state: `nnx.pop(module, nnx.Intermediate)` takes it off again. Reads in
    the same call, by other methods and modules too, become `self.attention[...]`, or `.get_value()` for sizes
    and lists. Declines where a call may read what an earlier call has left.
    """

    KEEP = ("class Plain:\n    def f(self, x):\n        self.seen = x\n        return x\n",)
    CHANGE = (
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.seen = None\n\n"
            "    def forward(self, x: torch.Tensor):\n        self.seen = x * 2\n        return x\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        pass\n\n"
            "    def __call__(self, x: jax.Array):\n        self.seen = nnx.Intermediate(x * 2)\n        return x\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.seen: torch.Tensor = torch.zeros(1)\n\n"
            "    def forward(self, x: torch.Tensor):\n        self.seen = x * 2\n        return x\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        pass\n\n"
            "    def __call__(self, x: jax.Array):\n        self.seen = nnx.Intermediate(x * 2)\n        return x\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def _measure(self, x: torch.Tensor):\n"
            "        self.mean = x.mean()\n        self.low, self.n = x.amin(), x.shape[0]\n\n"
            "    def forward(self, x: torch.Tensor):\n        self._measure(x)\n        return x - self.mean\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        pass\n\n"
            "    def _measure(self, x: jax.Array):\n        self.mean = nnx.Intermediate(jnp.mean(x))\n"
            "        self.low, self.n = nnx.Intermediate(jnp.min(x)), nnx.Intermediate(x.shape[0])\n\n"
            "    def __call__(self, x: jax.Array):\n        self._measure(x)\n        return x - self.mean[...]\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.d, self.parts = 3, []\n\n    def forward(self, x: torch.Tensor):\n        self.parts = []\n"
            "        b, self.h = x.shape\n        self.parts.append(x)\n        return self._join()\n\n"
            "    def _join(self):\n        return len(self.parts) * self.h\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.d = 3\n\n"
            "    def __call__(self, x: jax.Array):\n        self.parts = nnx.Intermediate([])\n"
            "        b, h = x.shape\n        self.h = nnx.Intermediate(h)\n        self.parts.set_value([*self.parts.get_value(), x])\n"
            "        return self._join()\n\n"
            "    def _join(self):\n        return len(self.parts.get_value()) * self.h.get_value()\n",
        ),
    )

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.BaseSmallStatement | None:
        if self.context.path[-1:] == ["__init__"] or not any(map(self._names_intermediate, _parts(original))):
            return None
        target = original.targets[0].target
        if len(original.targets) > 1:
            return self._store_each(updated)
        if not isinstance(target, cst.Tuple):
            return updated.with_changes(value=self._made(updated.value))
        if isinstance(updated.value, cst.Tuple):
            pairs = zip(target.elements, updated.value.elements, strict=True)
            elements = [new.with_changes(value=self._made(new.value)) if self._names_intermediate(old.value) else new for old, new in pairs]
            return updated.with_changes(value=updated.value.with_changes(elements=elements))
        return self._unpack(updated)

    def leave_AnnAssign(self, original: cst.AnnAssign, updated: cst.AnnAssign) -> cst.AnnAssign | None:
        if self.context.path[-1:] == ["__init__"] or updated.value is None or not self._names_intermediate(original.target):
            return None
        return updated.with_changes(value=self._made(updated.value))

    def leave_Expr(self, original: cst.Expr, updated: cst.Expr) -> cst.Expr | None:
        """`self.parts.append(x)`: what a variable gives is a copy of its list."""
        match original.value, updated.value:
            case cst.Call(func=cst.Attribute(value=cst.Attribute() as parts, attr=cst.Name(value="append"))), cst.Call(args=[new]):
                if self._kind(parts) is False:
                    value = self.context.build("{parts}.set_value([*{parts}.get_value(), {new}])", parts=parts, new=new.value)
                    return updated.with_changes(value=value)
        return None

    def _store_each(self, assign: cst.Assign) -> cst.BaseSmallStatement:
        """`self.seen = y = value` → `y = value; self.seen = nnx.Intermediate(y)`."""
        kept = [target for target in assign.targets if self._names_intermediate(target.target)]
        others = [target for target in assign.targets if target not in kept]
        names = [target.target for target in others if isinstance(target.target, cst.Name)]
        name = names[0] if names else self._local_name(kept[0].target)
        first = assign.with_changes(targets=others if names else [cst.AssignTarget(name), *others])
        return _lines(first, *(cst.Assign([target], self._made(name)) for target in kept))

    def _unpack(self, assign: cst.Assign) -> cst.BaseSmallStatement:
        """`b, self.h = x.shape` → `b, h = x.shape; self.h = nnx.Intermediate(h)`."""
        target = assign.targets[0].target
        assert isinstance(target, cst.Tuple)
        locals_ = {id(e): self._local_name(e.value) for e in target.elements if self._names_intermediate(e.value)}
        elements = [e.with_changes(value=locals_[id(e)]) if id(e) in locals_ else e for e in target.elements]
        stores = [cst.Assign([_target(e.value)], self._made(locals_[id(e)])) for e in target.elements if id(e) in locals_]
        return _lines(assign.with_changes(targets=[_target(target.with_changes(elements=elements))]), *stores)

    def _local_name(self, node: cst.BaseExpression) -> cst.Name:
        """A local name for the value of an attribute."""
        assert isinstance(node, cst.Attribute)
        function, name = self.context.function, node.attr.value.strip("_")
        taken = {n.id for n in walk(function) if isinstance(n, ast.Name)} if function else set()
        return cst.Name(f"new_{name}" if name in taken or name in self.context.taken else name)

    def _made(self, value: cst.BaseExpression) -> cst.BaseExpression:
        return self.context.build("nnx.Intermediate({value})", value=value)

    def leave_SimpleStatementLine(
        self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.RemovalSentinel | None:
        """The attribute is not there before the first call, as after `nnx.pop`."""
        statement = original.body[0] if len(original.body) == 1 else None
        if self.context.path[-1:] != ["__init__"] or not isinstance(statement, (cst.Assign, cst.AnnAssign)):
            return None
        parts = _parts(statement)
        left = [part for part in parts if not self._names_intermediate(part)]
        if len(left) == len(parts):
            return None
        if not left:
            return cst.RemoveFromParent()
        new = updated.body[0]
        return updated.with_changes(body=[self._without(statement, new)]) if isinstance(new, cst.Assign) else None

    def _without(self, original: cst.Assign | cst.AnnAssign, new: cst.Assign) -> cst.Assign:
        """A constructor's assignment to several attributes, without those of a call."""
        target = new.targets[0].target
        if len(new.targets) > 1:
            return new.with_changes(targets=[t for t in new.targets if not self._names_intermediate(t.target)])
        assert isinstance(target, cst.Tuple) and isinstance(new.value, cst.Tuple)
        rows = [row for row in zip(target.elements, new.value.elements, strict=True) if not self._names_intermediate(row[0].value)]
        if len(rows) == 1:
            return cst.Assign([_target(rows[0][0].value)], rows[0][1].value)
        targets, values = ([cst.Element(element.value) for element in column] for column in zip(*rows, strict=True))
        return cst.Assign([_target(target.with_changes(elements=targets))], new.value.with_changes(elements=values))

    def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> cst.BaseExpression | None:
        parent = self.context.parent()
        if isinstance(parent, (cst.AssignTarget, cst.AnnAssign)) and getattr(parent, "target", None) is original:
            return None
        kind = self._kind(original)
        if kind is None or self.context.unpacked_into(original):
            return None
        return subscript(updated) if kind else cst.Call(cst.Attribute(updated, cst.Name("get_value")))

    def _names_intermediate(self, node: cst.CSTNode) -> bool:
        return isinstance(node, cst.Attribute) and self.context.is_self(node.value) and self._kind(node) is not None

    def _kind(self, node: cst.Attribute) -> bool | None:
        """Whether an attribute of a module holds an intermediate array (True) or another value (False); `None` for all others."""
        context, name = self.context, node.attr.value
        if context.is_self(node.value):
            return context.class_facts.intermediates.get(name)
        fact = context.observed(node.value)
        models = [context.repo.class_of(kind.removeprefix("module:")) for kind in fact.kinds] if fact else []
        kinds = {context.randomness.intermediates.get(model.id, {}).get(name) if model else None for model in models}
        return kinds.pop() if len(kinds) == 1 else None


def _parts(statement: cst.Assign | cst.AnnAssign) -> list[cst.BaseExpression]:
    """All that a statement assigns to."""
    targets = [t.target for t in statement.targets] if isinstance(statement, cst.Assign) else [statement.target]
    return [part for target in targets for part in ([e.value for e in target.elements] if isinstance(target, cst.Tuple) else [target])]


def _target(node: cst.BaseExpression) -> cst.AssignTarget:
    assert isinstance(node, cst.BaseAssignTargetExpression)
    return cst.AssignTarget(node)


def _lines(*statements: cst.BaseSmallStatement) -> cst.BaseSmallStatement:
    return cst.FlattenSentinel(statements)  # type: ignore[return-value]
