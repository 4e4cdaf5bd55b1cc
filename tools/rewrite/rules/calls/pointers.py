"""Queues: a buffer says where the next rows are written, and the write begins there without Python's knowing the place."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import is_tensor
from migrate_agent.tools.rewrite.analysis.pointers import pointers
from migrate_agent.tools.rewrite.rules.calls.traced_integers import INTEGERS
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.rule import Rule


class WriteAtPointers(Rule):
    """Write where an integer tensor says: `p = int(self.ptr)`, `self.queue[:, p : p + n] = k` → an index array `p + jnp.arange(n)`; so with
    `torch.arange(p, p + n)`.

    Declines where the number does anything else than that, arithmetic, and being stored again; and in constructors, where values are there.
    """

    KEEP = ("def f(x, p: int, n: int, k):\n    x[p : p + n] = k\n",)
    CHANGE = (
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.register_buffer('queue', torch.zeros(3, 8))\n        self.register_buffer('ptr', torch.zeros(1, dtype=torch.long))\n\n"
            "    def forward(self, k: torch.Tensor):\n        p = self.ptr.item()\n        self.queue[:, p : p + 2] = k\n"
            "        p = (p + 2) % 8\n        self.ptr[0] = p\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.queue = nnx.Variable(jnp.zeros((3, 8)))\n"
            "        self.ptr = nnx.Variable(jnp.zeros(1, dtype=int))\n\n    def __call__(self, k: jax.Array):\n"
            "        p = self.ptr[...].reshape(())\n        self.queue[...] = self.queue[...].at[:, p + jnp.arange(2)].set(k)\n"
            "        p = (p + 2) % 8\n        self.ptr[...] = self.ptr[...].at[0].set(p)\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.register_buffer('bank', torch.zeros(8, 3))\n        self.register_buffer('ptr', torch.tensor(0))\n\n"
            "    def forward(self, x: torch.Tensor):\n        p = self.ptr.item()\n        places = torch.arange(p, p + 3) % 8\n"
            "        self.bank[places] = x\n        self.bank[(torch.arange(3) + p) % 8] = x\n        self.ptr.fill_((p + 3) % 8)\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.bank = nnx.Variable(jnp.zeros((8, 3)))\n"
            "        self.ptr = nnx.Variable(jnp.array(0))\n\n    def __call__(self, x: jax.Array):\n        p = self.ptr[...].reshape(())\n"
            "        places = (p + jnp.arange(3)) % 8\n        self.bank[...] = self.bank[...].at[places].set(x)\n"
            "        self.bank[...] = self.bank[...].at[(jnp.arange(3) + p) % 8].set(x)\n"
            "        self.ptr[...] = jnp.full_like(self.ptr[...], (p + 3) % 8)\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        if (places := self._places(original, updated)) is not None:
            return places
        if not reads_pointer(self.context, original):
            return None
        read = updated.args[0].value if updated.args else cst.ensure_type(updated.func, cst.Attribute).value
        if original.args and _item(original.args[0].value) is not None:
            return read  # `int(x.item())`: the inner call has read it out
        return self.context.build("{x}.reshape(())", x=read)

    def _places(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        """`torch.arange(p, p + n)` as `p + jnp.arange(n)`: its length does not depend on `p`."""
        match original.args:
            case [cst.Arg(value=cst.Name(value=name), keyword=None), cst.Arg(value=cst.BinaryOperation(), keyword=None), *rest]:
                known = all(argument.keyword is not None and argument.keyword.value in ("device", "dtype") for argument in rest)
            case _:
                return None
        if self.context.dotted(original.func) != "torch.arange" or not known or not self._is_pointer(name):
            return None
        stop = cst.ensure_type(original.args[1].value, cst.BinaryOperation)
        length = next(
            (new for old, new in _ends(stop, updated.args[1].value) if not (isinstance(old, cst.Name) and old.value == name)), None
        )
        if length is None or any(argument.keyword is not None and argument.keyword.value == "dtype" for argument in rest):
            return None
        return self.context.parenthesise(self.context.build("{p} + jnp.arange({n})", p=updated.args[0].value, n=length))

    def leave_Slice(self, original: cst.Slice, updated: cst.Slice) -> cst.BaseSlice | None:
        lower, upper = original.lower, updated.upper
        if not isinstance(lower, cst.Name) or not self._is_pointer(lower.value) or not isinstance(upper, cst.BinaryOperation):
            return None
        ends = upper.left, upper.right
        length = next((end for end in ends if not (isinstance(end, cst.Name) and end.value == lower.value)), None)
        if length is None or updated.lower is None:
            return None
        return cst.Index(self.context.build("{p} + jnp.arange({n})", p=updated.lower, n=length))

    def _is_pointer(self, name: str) -> bool:
        function = self.context.function
        return function is not None and name in pointers(function) and (self.context.function_key, name) in self.context.traced


def reads_pointer(context: Context, call: cst.Call) -> bool:
    """Whether an original call, the one that is being left, reads out an integer that only says where something is written."""
    read = _item(call)
    if read is None:
        match call:
            case cst.Call(func=cst.Name(value="int"), args=[cst.Arg(keyword=None, star="", value=value)]):
                read = _item(value) or value
            case _:
                return False
    match [node for node in reversed(context.stack[-3:]) if not isinstance(node, cst.Arg) and not _is_int(node)]:
        case [cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]), *_]:
            pass
        case _:
            return False
    fact, function = context.observed(read), context.function
    if context.constructing or function is None or name not in pointers(function):
        return False
    # Python takes nothing but an integer for a bound; `int` would round.
    bound = _item(call) is not None and isinstance(context.parent(), cst.Assign)
    if (
        fact is None
        or not is_tensor(fact)
        or not (fact.dtypes or bound)
        or not set(fact.dtypes) <= INTEGERS
        or any(set(s) - {1} for s in fact.shapes)
    ):
        return False
    context.traced.add((context.function_key, name))
    return True


def _ends(old: cst.BinaryOperation, new: cst.BaseExpression) -> list[tuple[cst.BaseExpression, cst.BaseExpression]]:
    return [(old.left, new.left), (old.right, new.right)] if isinstance(new, cst.BinaryOperation) else []


def _item(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """What `item()` is called on, or `None`."""
    match node:
        case cst.Call(func=cst.Attribute(value=read, attr=cst.Name(value="item")), args=[]):
            return read
    return None


def _is_int(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "int"
