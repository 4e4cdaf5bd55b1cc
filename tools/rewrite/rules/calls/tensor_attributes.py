"""Attributes of tensors and of their dtypes."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst
from libcst import matchers as m

from migrate_agent.tools.rewrite.analysis.facts import is_tensor
from migrate_agent.tools.rewrite.rules.mutation.writes import is_inplace
from migrate_agent.tools.rewrite.rules.parameters.freezing import variable_behind
from migrate_agent.tools.rewrite.rules.parameters.variables import overwritten, own_layer, plain_read, subscript, variable, written
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.registry import Refuse, layers

TEMPLATES: Mapping[str, str] = {
    "H": "{x}.conj().T",
    "mH": "{x}.conj().mT",
    "is_cuda": "False",
    "requires_grad": "True",
    "is_sparse": "False",
    "is_quantized": "False",
    "is_mps": "False",
    "is_xpu": "False",
    "is_ipu": "False",
    "is_hpu": "False",
    "is_mtia": "False",
    "is_vulkan": "False",
    "is_mkldnn": "False",
    "itemsize": "{x}.dtype.itemsize",
}
DTYPES: Mapping[str, str] = {
    "is_floating_point": "jnp.issubdtype({x}, jnp.floating)",
    "is_complex": "jnp.issubdtype({x}, jnp.complexfloating)",
    "is_signed": "not jnp.issubdtype({x}, jnp.unsignedinteger)",
}
"""Attributes of a dtype; on a tensor these are methods, which are called."""
REFUSED: Mapping[str, str] = {
    "grad": "a gradient that is kept on a tensor: in JAX it is what `jax.grad` returns",
    "grad_fn": "the autograd graph is not there in JAX",
    "is_leaf": "the autograd graph is not there in JAX",
    "layout": "arrays have no layout",
}


DIFFERENTIABLE = ("float", "bfloat", "complex")
"""How the names of dtypes begin whose arrays can have a gradient."""


FORM = frozenset("shape dtype ndim size dim ndimension numel nelement device is_cuda".split())
"""What tells nothing of a tensor's numbers, and so has no gradient."""


class ReplaceTensorAttributes(Rule):
    """Replace attributes of tensors: `x.data` → `lax.stop_gradient(x)`, `x.is_cuda` → `False`, `x.H` → `x.conj().T`.

    `x.data` is `x` where it is written to or initialised. Every array of floats can have a gradient, so
    `.requires_grad` is `True`, and of whole numbers `False`; of a parameter, it says whether it is trained: `isinstance(m.kernel, nnx.Param)`.
    An assertion on it alone is left out, unless it speaks of a parameter.
    Declines (a hole) for what belongs to autograd, such as `.grad`.
    """

    KEEP = ("def f(row: dict):\n    return row.data\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    return x.data.shape[0], x.data.size(1), x.data\n",
            "def f(x: jax.Array):\n    return x.shape[0], x.shape[1], lax.stop_gradient(x)\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Conv2d):\n    def __init__(self, std):\n        super().__init__(3, 3, 1)\n"
            "        self.weight.data = torch.eye(3).view(3, 3, 1, 1)\n        self.bias.data = torch.zeros(3)\n",
            "class M(Conv2d):\n    def __init__(self, std, *, rngs: nnx.Rngs):\n        super().__init__(3, 3, 1, rngs=rngs)\n"
            "        self.weight = jnp.eye(3).reshape(3, 3, 1, 1)\n        self.bias[...] = jnp.zeros(3)\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    return x * x.data\n",
            "def f(x: jax.Array):\n    return x * lax.stop_gradient(x)\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.drop = nn.Dropout(0.1)\n\n"
            "    def forward(self, x):\n        return x * self.drop.p\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.drop = nnx.Dropout(0.1, rngs=rngs)\n\n"
            "    def __call__(self, x):\n        return x * self.drop.rate\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    return x if x.dtype.is_floating_point else x.float()\n",
            "def f(x: jax.Array):\n    return x if jnp.issubdtype(x.dtype, jnp.floating) else x.astype(jnp.float32)\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n        self.a = nn.Linear(d, d)\n"
            "        if self.a.weight.requires_grad:\n            self.a.weight.data.fill_(0.5)\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.a = Linear(d, d, rngs=rngs)\n"
            "        if isinstance(self.a.kernel, nnx.Param):\n            self.a.weight = jnp.full_like(self.a.weight, 0.5)\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor, y: torch.Tensor):\n    assert (y.requires_grad is False)\n    assert not y.requires_grad\n    return x - y\n",
            "def f(x: jax.Array, y: jax.Array):\n    return x - y\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def size(self):\n"
            "        return f'{sum(p.numel() for p in self.parameters() if p.requires_grad)}'\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        pass\n\n    def size(self):\n"
            "        return f'{sum(p.size for p in jax.tree.leaves(nnx.state(self, nnx.Param)))}'\n",
        ),
    )

    def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> cst.BaseExpression | None:
        context = self.context
        name = original.attr.value
        if not isinstance(context.parent(), cst.AssignTarget) and not self._is_sharing(original):
            if (read := plain_read(self, original, updated.value)) is not None:
                # `w = m.weight` names the variable, which is read wherever the name stands.
                named = isinstance(context.parent(), cst.Assign) and isinstance(read, cst.Subscript)
                return read.value if named and isinstance(read, cst.Subscript) else read
        if (template := self._layer_template(original, name)) and not isinstance(context.parent(), cst.AssignTarget):
            return context.parenthesise(context.build(template, self=updated.value))
        if name in DTYPES and self._is_dtype_attribute(original):
            return context.parenthesise(context.build(DTYPES[name], x=updated.value))
        parent, fact = context.parent(), context.observed(original.value)
        if name == "requires_grad" and fact is None and context.file.names_torch and not isinstance(parent, cst.AssignTarget):
            context.hole(original, "whether this is trained was neither observed nor inferred", "unknown-receiver")
        if not (name == "data" or name in TEMPLATES or name in REFUSED) or not is_tensor(fact):
            return None
        if name == "data":
            written = isinstance(parent, cst.Attribute) and is_inplace(parent.attr.value)
            if written or isinstance(parent, cst.AssignTarget):
                return updated.value
            value = self._array_of(original.value, updated.value)
            # A constructor is not differentiated, and a type has no gradient.
            holder = context.parent(2)
            of_type = holder is not None and m.matches(holder, m.Call(func=m.Name("type"), args=[m.Arg(value=m.Attribute())]))
            of_form = isinstance(parent, cst.Attribute) and parent.attr.value in FORM
            return value if self.context.before_calls or of_type or of_form else context.build("lax.stop_gradient({x})", x=value)
        if name in REFUSED:
            if not isinstance(parent, cst.AssignTarget):
                context.hole(original, REFUSED[name], "autograd")
            return None
        if isinstance(parent, cst.AssignTarget):
            return None
        if name == "requires_grad" and (holder := variable_behind(self, original.value)) is not None:
            return context.parenthesise(context.build("isinstance({x}, nnx.Param)", x=holder.deep_clone()))
        if name == "requires_grad" and fact and fact.dtypes and not any(dtype.startswith(DIFFERENTIABLE) for dtype in fact.dtypes):
            return cst.Name("False")
        return context.parenthesise(context.build(TEMPLATES[name], x=updated.value))

    def leave_Assert(self, original: cst.Assert, updated: cst.Assert) -> cst.RemovalSentinel | None:
        """`assert not target.requires_grad` asks how torch's graph was built, of which arrays know nothing."""
        asked = m.Attribute(attr=m.Name("requires_grad"))
        flag = m.ComparisonTarget(operator=m.Is() | m.IsNot() | m.Equal() | m.NotEqual(), comparator=m.Name("True") | m.Name("False"))
        alone = m.UnaryOperation(operator=m.Not(), expression=asked) | m.Comparison(left=asked, comparisons=[flag]) | asked
        if not m.matches(original.test, alone):
            return None
        (attribute,) = m.findall(original.test, asked)
        array = cst.ensure_type(attribute, cst.Attribute).value
        if not is_tensor(self.context.observed(array)) or variable_behind(self, array) is not None:
            return None
        at = f"{self.context.file.file.path}:{self.context.span(original).line}"
        self.context.notes.append(f"{at}: an assertion on requires_grad was dropped")
        return cst.RemoveFromParent()

    def leave_GeneratorExp(self, original: cst.GeneratorExp, updated: cst.GeneratorExp) -> cst.BaseExpression | None:
        """`p.numel() for p in model.parameters() if p.requires_grad` in a text, where nothing is observed: the sizes of all that is trained."""
        loop = original.for_in
        name = loop.target.value if isinstance(loop.target, cst.Name) else ""
        listing = m.Call(func=m.Attribute(value=m.Name() | m.Attribute(), attr=m.Name("parameters")), args=[])
        trained = m.CompIf(test=m.Attribute(value=m.Name(name), attr=m.Name("requires_grad")))
        sized = m.Call(func=m.Attribute(value=m.Name(name), attr=m.Name("numel")), args=[])
        if not name or not m.matches(original, m.GeneratorExp(elt=sized, for_in=m.CompFor(iter=listing, ifs=[trained], inner_for_in=None))):
            return None
        test = cst.ensure_type(loop.ifs[0].test, cst.Attribute)
        if self.context.observed(test.value) is not None:
            return None
        self.context.drop_holes(test)
        owner = cst.ensure_type(cst.ensure_type(loop.iter, cst.Call).func, cst.Attribute).value
        text = f"({name}.size for {name} in jax.tree.leaves(nnx.state({{m}}, nnx.Param)))"
        return self.context.build(text, m=owner.deep_clone()).with_changes(lpar=updated.lpar, rpar=updated.rpar)

    def _is_sharing(self, node: cst.Attribute) -> bool:
        """Whether another layer is given the variable at hand: `a.weight = b.weight`."""
        parent, owner = self.context.parent(), self.context.observed(node.value)
        rows = [layers()[name] for kind in (owner.kinds if owner else ()) if (name := kind.removeprefix("module:")) in layers()]
        is_parameter = any(node.attr.value in row.params for row in rows)
        return is_parameter and isinstance(parent, cst.Assign) and isinstance(parent.targets[0].target, cst.Attribute)

    def _is_dtype_attribute(self, node: cst.Attribute) -> bool:
        fact, parent = self.context.observed(node.value), self.context.parent()
        called = isinstance(parent, cst.Call) and parent.func is node
        unknown = fact is None and self.context.file.names_torch
        return not called and not isinstance(parent, cst.AssignTarget) and (unknown or (fact is not None and "dtype" in fact.kinds))

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.BaseSmallStatement | None:
        """`m.weight.data = x`: the parameter stays, with new values and perhaps a new shape."""
        target = original.targets[0].target
        if len(original.targets) > 1 or not isinstance(target, cst.Attribute) or target.attr.value != "data":
            return None
        fact = self.context.observed(target.value)
        # `self.w.data` has become `self.w[...]`, and `p.data` of a loop, or of what a function writes to, `p[...]`: they are targets already.
        if fact is None or set(fact.kinds) != {"parameter"} or variable(self, target.value) or self.context.is_handle(target.value):
            return None
        try:
            # The weights of the layer that the class derives from are where that keeps them.
            if isinstance(target.value, cst.Attribute) and self.context.is_self(target.value.value) and own_layer(self):
                return written(self, target, updated.value)
            return overwritten(self, target, updated.value)
        except Refuse as refusal:
            self.context.hole(original, refusal.reason, refusal.code)
            return None

    def _array_of(self, original: cst.BaseExpression, updated: cst.BaseExpression) -> cst.BaseExpression:
        """What a parameter of another module holds: its attribute may be an `nnx.Variable`, or an array in torch's layout."""
        fact = self.context.observed(original)
        unchanged = isinstance(original, cst.Attribute) and isinstance(updated, cst.Attribute) and original.attr.value == updated.attr.value
        if unchanged and fact and "parameter" in fact.kinds:
            return subscript(updated)
        return updated

    def _layer_template(self, node: cst.Attribute, name: str) -> str:
        """How NNX spells this attribute of a layer, where it differs (`drop.p` → `drop.rate`)."""
        fact = self.context.observed(node.value)
        rows = [layers().get(kind.removeprefix("module:")) for kind in fact.kinds] if fact else []
        templates = {row.reads.get(name, "") if row else "" for row in rows}
        return templates.pop() if len(templates) == 1 else ""
