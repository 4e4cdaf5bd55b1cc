"""`torch.*` functions, tensor methods, layers and module classes at their calls: the tables applied."""

from __future__ import annotations

import ast
import re

import libcst as cst

from migrate_agent.tools.rewrite.analysis.autograd_functions.draws import passes_of_call
from migrate_agent.tools.rewrite.analysis.facts import PLAIN_METHODS, is_tensor, proves_tensor, span_of, tensor_only
from migrate_agent.tools.rewrite.analysis.randomness import (
    class_parameter,
    constructs_module,
    inherited,
    methods_of_parts,
    observed_functions,
    overrides,
)
from migrate_agent.tools.rewrite.analysis.repo import AUTOCAST, MODULE_BASES
from migrate_agent.tools.rewrite.rules.apply_tables import (
    apply_layer,
    apply_op,
    bare,
    changes_dtype,
    is_bound_to,
    keyword,
    narrowed,
    stays_narrow,
    tidy,
    with_rngs,
)
from migrate_agent.tools.rewrite.rules.calls.host_draws import is_traced
from migrate_agent.tools.rewrite.rules.calls.kept_parts import is_kept_whole, lists_parts
from migrate_agent.tools.rewrite.rules.calls.own_dtypes import has_own_dtype
from migrate_agent.tools.rewrite.rules.calls.torch_references import VERSION
from migrate_agent.tools.rewrite.rules.environment.gradient_contexts import DROPPED, NO_GRADIENT
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.helpers import rngs_of
from migrate_agent.tools.rewrite.tables.layers.lazy import LAZY
from migrate_agent.tools.rewrite.tables.ops.calls import INTEGERS
from migrate_agent.tools.rewrite.tables.ops.dtype import LEGACY_TYPES
from migrate_agent.tools.rewrite.tables.registry import Refuse, layers, methods, ops
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.types import Observed

CONTEXTS = NO_GRADIENT | DROPPED | AUTOCAST
TORCH = ("torch", "torchaudio")
BITWISE = (cst.BitAnd, cst.BitOr, cst.BitXor)
AT_ONCE = {
    f"torch.nn.{layer}": f"torch.nn.functional.{function}" for layer, function in (("Softmax", "softmax"), ("LogSoftmax", "log_softmax"))
}
"""Layers that are made and called in one expression → the function of the same arguments."""
HOOKS = frozenset(f"register_{kind}_hook" for kind in ("forward", "forward_pre", "backward", "full_backward", "full_backward_pre"))
"""What only modules of torch have, whatever the receiver is."""

CONVERSIONS = frozenset("to float double half bfloat16 type cuda cpu contiguous".split())
"""Methods that give the tensor itself where there is nothing to convert."""
NOT_CALLED = frozenset("str int float bool complex none list tuple dict set size slice ellipsis tensor ndarray".split())
"""Kinds of what no call takes: on both sides it raises the same error."""
SAME_METHODS = frozenset({"item", "tolist"})
"""Methods of tensors that arrays have too, with the same results on the host."""


def keyword_of(argument: cst.Arg) -> str:
    """The name that an argument is given by; "" by position."""
    return argument.keyword.value if argument.keyword is not None else ""


class ReplaceTorchCalls(Rule):
    """Replace calls by the rows of the tables: `torch.f(x)`, `F.f(x)`, `x.f()` and `nn.Layer(…)` → the row's template.

    Module constructions and functions that draw gain `rngs`. Declines (a hole) where no row knows the
    function, the receiver's kind is unknown and its name says nothing, or the row refuses.
    """

    KEEP = (
        "def f(names: list):\n    return names.index(3)\n",
        "import numpy as np\n\ndef f(x):\n    return np.sum(np.abs(x))\n",
    )
    PLAIN = (
        (
            "import torch\n\ndef f(x: torch.Tensor, n: int):\n    y = x.unsqueeze(1).unsqueeze(1).unsqueeze(0), x.unsqueeze(-1).unsqueeze(-1)\n"
            "    return y, x.unsqueeze(0).unsqueeze(-1), x.unsqueeze(n).unsqueeze(0), x.unsqueeze(-2).unsqueeze(-2)\n",
            "def f(x: jax.Array, n: int):\n    y = jnp.expand_dims(x, (0, 2, 3)), jnp.expand_dims(x, (-2, -1))\n"
            "    return y, jnp.expand_dims(jnp.expand_dims(x, 0), -1), jnp.expand_dims(jnp.expand_dims(x, n), 0), jnp.expand_dims(jnp.expand_dims(x, -2), -2)\n",
        ),
    )
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    a, b = x.hsplit(2)\n    return x.hsplit(2), (x > 0) ^ 1\n",
            "def f(x: jax.Array):\n    a, b = jnp.hsplit(x, 2)\n    return tuple(jnp.hsplit(x, 2)), (x > 0).astype(int) ^ 1\n",
        ),
        (
            "import torch\n\n\nclass A:\n    def exp(self, w):\n        return torch.sin(w)\n\n\nclass B(A):\n"
            "    def exp(self, w):\n        return super().exp(w)\n",
            "class A:\n    def exp(self, w):\n        return jnp.sin(w)\n\n\nclass B(A):\n    def exp(self, w):\n        return super().exp(w)\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor, y: torch.Tensor):\n    return torch.cat([x, x -\n                      y], dim=-1)\n",
            "def f(x: jax.Array, y: jax.Array):\n    return jnp.concatenate([x, x -\n                      y], axis=-1)\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor, y: torch.Tensor):\n    return torch.cat([x, y], dim=-1)\n",
            "def f(x: jax.Array, y: jax.Array):\n    return jnp.concatenate([x, y], axis=-1)\n",
        ),
        (
            "import torch\n\ndef f(n: int):\n    return torch.arange(0, n, out=torch.cuda.LongTensor(n))\n",
            "def f(n: int):\n    return jnp.arange(0, n, dtype=int)\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass Shake(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x, y):\n"
            "        a = torch.rand(2)\n        return a * x + y\n\n    @staticmethod\n    def backward(ctx, g):\n        return torch.rand(2) * g, g\n\n\n"
            "class M(nn.Module):\n    def forward(self, x):\n        return Shake.apply(x, x)\n",
            "class Shake(AutogradFunction):\n    @staticmethod\n    def forward(ctx, x, y):\n"
            "        a = jax.random.uniform(ctx.rngs(), 2)\n        return a * x + y\n\n    @staticmethod\n    def backward(ctx, g):\n"
            "        return jax.random.uniform(ctx.rngs(), 2) * g, g\n\n\n"
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.rngs = rngs\n\n"
            "    def __call__(self, x):\n        return Shake.apply(x, x, rngs=self.rngs)\n",
        ),
        ("import torch\n\ndef f(shape):\n    return torch.Size(shape)\n", "def f(shape):\n    return tuple(shape)\n"),
        ("import torch\n\ndef f(x: torch.Tensor):\n    return x.shape.numel()\n", "def f(x: jax.Array):\n    return math.prod(x.shape)\n"),
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    return x.unsqueeze(1)\n",
            "def f(x: jax.Array):\n    return jnp.expand_dims(x, 1)\n",
        ),
        (
            "import torch\nfrom functools import partial\nfrom torch import nn\n\n\nclass Star(nn.Module):\n    def __init__(self):\n"
            "        super().__init__()\n        self.scale = nn.Parameter(torch.ones(1))\n\n    def forward(self, x):\n"
            "        return self.scale * x\n\n\nclass Gate(nn.Module):\n    def __init__(self, act):\n        super().__init__()\n"
            "        self.act = act\n\n\nGLU = partial(Gate, Star())\n",
            "from functools import partial\n\n\nclass Star(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n"
            "        self.scale = nnx.Param(jnp.ones(1))\n\n    def __call__(self, x):\n"
            "        return self.scale[...] * x\n\n\nclass Gate(nnx.Module):\n    def __init__(self, act, *, rngs: nnx.Rngs):\n"
            "        self.act = act\n\n\nGLU = partial(Gate, Star(rngs=nnx.Rngs(0)))\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n        self.mid = nn.Module()\n"
            "        self.mid.fc = nn.Linear(d, d)\n        self.mid.add_module('act', nn.ReLU())\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.mid = nnx.Module()\n"
            "        self.mid.fc = Linear(d, d, rngs=rngs)\n        self.mid.act = jax.nn.relu\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n        self.fc = nn.Linear(d, d)\n\n"
            "    @classmethod\n    def make(cls, d):\n        return cls(d)\n\n    @classmethod\n    def tiny(cls):\n        return cls.make(2)\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.fc = Linear(d, d, rngs=rngs)\n\n"
            "    @classmethod\n    def make(cls, d, *, rngs: nnx.Rngs):\n        return cls(d, rngs=rngs)\n\n"
            "    @classmethod\n    def tiny(cls, *, rngs: nnx.Rngs):\n        return cls.make(2, rngs=rngs)\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor, shape, axes, ends):\n"
            "    return torch.eye(*shape), torch.movedim(x, *axes), x.transpose(*axes), torch.linspace(*ends, 5)\n",
            "def f(x: jax.Array, shape, axes, ends):\n"
            "    return jnp.eye(*shape), jnp.moveaxis(x, *axes), x.swapaxes(axes[0], axes[1]), jnp.linspace(ends[0], ends[1], 5)\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor, axis: int):\n    return torch.nn.Softmax(dim=axis)(x)\n",
            "def f(x: jax.Array, axis: int):\n    return jax.nn.softmax(x, axis=axis)\n",
        ),
        (
            "import torch.nn.functional as F\n\ndef f(q, k, v):\n    return F.scaled_dot_product_attention(q, k, v)\n\n\n"
            "def g(q, p):\n    return F.scaled_dot_product_attention(q, q, q, dropout_p=p), F.dropout(q, 0.5, training=False)\n",
            "def f(q, k, v):\n    return scaled_dot_product_attention(q, k, v)\n\n\n"
            "def g(q, p, *, rngs: nnx.Rngs):\n    return scaled_dot_product_attention(q, q, q, dropout_p=p, rngs=rngs), q\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor, both: bool = False):\n    return (x, x + 1) if both else x\n\n\n"
            "def g(x: torch.Tensor):\n    y = f(x)\n    return y.unsqueeze(1).sum(-1).view(-1, 2)\n",
            "def f(x: jax.Array, both: bool = False):\n    return (x, x + 1) if both else x\n\n\n"
            "def g(x: jax.Array):\n    y = f(x)\n    return jnp.sum(jnp.expand_dims(y, 1), axis=-1).reshape(-1, 2)\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        try:
            result = self._replace(original, updated)
        except Refuse as refusal:
            self.context.hole(original, refusal.reason, refusal.code)
            return None
        if result is not None and lists_parts(result) and is_kept_whole(self.context, original):
            result = self.context.build("tuple({parts})", parts=result)
        return None if result is None else self.context.parenthesise(result)

    def leave_BinaryOperation(self, original: cst.BinaryOperation, updated: cst.BinaryOperation) -> cst.BaseExpression | None:
        """Of operators what their operands' dtypes become (a scalar tensor does not widen one with axes), and powers of integers."""
        # Torch gives 0 for a negative exponent, except of 1 and -1; `jnp` leaves that undefined.
        if isinstance(original.operator, cst.Power) and self._is_integral(original.left) and self._is_integral(original.right, tensor=True):
            parts = {"x": bare(updated.left), "y": bare(updated.right)}
            return self.context.parenthesise(self.context.build("vendored.integer_power({x}, {y})", **parts))
        for side, other in (("left", "right"), ("right", "left")):
            if (
                isinstance(original.operator, BITWISE)
                and self._is_truth(getattr(original, side))
                and self._is_int(getattr(original, other))
            ):
                # An integer of Python gives way to any array of integers that the result meets, where torch's result is of the default integers.
                return updated.with_changes(**{side: self.context.build("{x}.astype(int)", x=bare(getattr(updated, side)))})
            if stays_narrow(self.context, getattr(original, side), getattr(original, other)):
                parts = {"x": bare(getattr(updated, side)), "y": bare(getattr(updated, other))}
                return updated.with_changes(**{side: self.context.build(narrowed(self.context, getattr(original, side)), **parts)})
            number = self._numpy_number(getattr(original, side))
            if number and is_tensor(self.context.observed(getattr(original, other))):
                return updated.with_changes(**{side: self.context.build(f"{number}({{x}})", x=bare(getattr(updated, side)))})
        return None

    def leave_AugAssign(self, original: cst.AugAssign, updated: cst.AugAssign) -> cst.AugAssign | None:
        """`x /= np.sqrt(2)`; `x += padding`, which is of another dtype."""
        if not is_tensor(self.context.observed(original.target)):
            return None
        if isinstance(original.target, cst.Name) and has_own_dtype(self.context, original.value):
            parts = {"x": bare(updated.value), "y": cst.ensure_type(updated.target, cst.Name)}
            return updated.with_changes(value=self.context.build("{x}.astype({y}.dtype)", **parts))
        number = self._numpy_number(original.value)
        return updated.with_changes(value=self.context.build(f"{number}({{x}})", x=bare(updated.value))) if number else None

    def _numpy_number(self, node: cst.BaseExpression) -> str:
        """`float` or `int` for a number of NumPy, which torch takes for Python's; JAX gives it a dtype of its own, which may widen the result."""
        fact = self.context.observed(node)
        kinds = {re.sub(r"\d+$", "", kind) for kind in fact.kinds} if fact and not is_traced(self.context, node) else set()
        return {"object:numpy.float": "float", "object:numpy.int": "int"}.get(kinds.pop(), "") if len(kinds) == 1 else ""

    def _is_int(self, node: cst.BaseExpression) -> bool:
        fact = self.context.observed(node)
        return isinstance(node, cst.Integer) or (fact is not None and fact.kinds == ("int",))

    def _is_truth(self, node: cst.BaseExpression) -> bool:
        """Whether it was seen to be a tensor of booleans with axes."""
        fact = self.context.observed(node)
        return fact is not None and is_tensor(fact) and fact.dtypes == ("bool",) and all(fact.shapes)

    def _is_integral(self, node: cst.BaseExpression, tensor: bool = False) -> bool:
        """Whether it was seen to be a tensor of integers, or (not with `tensor`) is an integer."""
        fact = self.context.observed(node)
        if is_tensor(fact):
            return fact is not None and bool(fact.dtypes) and set(fact.dtypes) <= INTEGERS
        return not tensor and fact is not None and fact.kinds == ("int",)

    def _replace(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        context = self.context
        dotted = context.dotted(original.func)
        # The rule for contexts removes them as a whole.
        if isinstance(context.parent(), (cst.Decorator, cst.WithItem)) and dotted in CONTEXTS:
            return None
        if dotted in layers():
            return apply_layer(context, layers()[dotted], updated.args, original.args)
        if dotted in MODULE_BASES and not original.args:
            return context.build("nnx.Module()")  # only a place for attributes: it takes no `rngs`
        if dotted in LAZY:
            return self._lazy_layer(original, updated, dotted)
        if isinstance(original.func, cst.Call) and (function := AT_ONCE.get(context.dotted(original.func.func))):
            layer_arguments = updated.func.args if isinstance(updated.func, cst.Call) else ()
            return apply_op(context, ops()[function], [*updated.args, *layer_arguments], [*original.args, *original.func.args])
        if dotted in ops():
            if dtype := self._dtype_of_new_out(original, dotted):
                kept = [i for i, argument in enumerate(original.args) if keyword_of(argument) != "out"]
                word = keyword("dtype", context.build(dtype))
                return apply_op(context, ops()[dotted], [*(updated.args[i] for i in kept), word], [*(original.args[i] for i in kept), word])
            indices = self._indices_without_out(original)
            return apply_op(context, ops()[dotted], [updated.args[i] for i in indices], [original.args[i] for i in indices])
        # `**kwargs` already brings the caller's `rngs`: a second one would be an error.
        if (context.file.file.path, context.span(original.func)) in context.randomness.passing:
            return None
        if dotted.partition(".")[0] in TORCH and not dotted.startswith("torch."):
            raise Refuse(f"no rule for {dotted}", "unknown-op")
        if self._is_own_class(original.func):
            return self._construct(original, updated, "the class itself")
        if constructs_module(context.repo, dotted, context.observed(original.func)):
            return self._construct(original, updated, dotted)
        if dotted.startswith(f"{VERSION}."):
            return None
        if dotted == "torch.Size":
            return updated.with_changes(func=cst.Name("tuple"))
        if dotted.partition(".")[0] in TORCH:
            raise Refuse(f"no rule for {dotted}", "unknown-op")
        functions = observed_functions(context.repo, context.observed(original.func))
        if dotted and not (functions and context.repo.reads_object(dotted)):
            return self._repository_call(updated, dotted)
        # Which method runs is decided by the class of `self`: `_own_method_call` asks the overrides too.
        if functions and functions <= context.randomness.parameter and not self._is_own_method(original.func):
            return with_rngs(context, updated, "a function that draws")
        if self._is_abs(original):
            return context.build("vendored.absolute({x})", x=updated.args[0].value)
        if isinstance(original.func, cst.Attribute) and isinstance(updated.func, cst.Attribute):
            return self._method_call(original, original.func, updated, updated.func)
        return None

    def _is_abs(self, call: cst.Call) -> bool:
        """Python's own `abs` of a tensor of floats, whose gradient at 0 JAX takes to be 1."""
        return (
            isinstance(call.func, cst.Name)
            and call.func.value == "abs"
            and not self.context.facts.dotted.get(self.context.span(call.func))
            and len(call.args) == 1
            and is_tensor(self.context.observed(call.args[0].value))
        )

    def _dtype_of_new_out(self, call: cst.Call, dotted: str) -> str:
        """The dtype of a tensor that is made for `out=` alone, where the function takes one by name: `torch.arange(n, out=torch.LongTensor(n))`.

        What is written there is cast to it, and nobody else has that tensor.
        """
        value = next((argument.value for argument in call.args if keyword_of(argument) == "out"), None)
        words = {keyword_of(argument) for argument in call.args}
        if not isinstance(value, cst.Call) or "dtype" in words or "dtype=" not in ops()[dotted].signature:
            return ""
        return LEGACY_TYPES.get(self.context.dotted(value.func).replace("torch.cuda.", "torch."), "")

    def _indices_without_out(self, call: cst.Call) -> list[int]:
        """The places of the arguments but `out=`, which the rule for updates writes to where the call is a statement, or `v = f(…, out=v)`."""
        index_of = {argument.keyword.value: i for i, argument in enumerate(call.args) if argument.keyword}
        at = index_of.get("out")
        if at is not None and not isinstance(self.context.parent(), cst.Expr):
            value = call.args[at].value
            if is_bound_to(self.context.parent(), value):
                return [i for i in range(len(call.args)) if i != at]
            if not (isinstance(value, cst.Name) and value.value == "None"):
                raise Refuse("the result is written to `out` and used as well", "alias-write")
        return [i for i in range(len(call.args)) if i != at]

    def _is_own_method(self, func: cst.BaseExpression) -> bool:
        """Whether this names a method of the class itself, which is looked up in the class."""
        context = self.context
        if not (isinstance(func, cst.Attribute) and context.is_self(func.value) and context.cls):
            return False
        return any(func.attr.value in model.methods for model in context.repo.ancestors(context.cls))

    def _construct(self, original: cst.Call, updated: cst.Call, dotted: str) -> cst.BaseExpression | None:
        if any(a.keyword and a.keyword.value == "rngs" for a in updated.args):
            return None
        if isinstance(original.func, cst.Name) and self._chosen_without_rngs(original.func.value):
            return None
        fact = self.context.observed(original.func)
        callees = [kind for kind in (fact.kinds if fact else ()) if kind not in NOT_CALLED]
        strange = [kind for kind in callees if not kind.removeprefix("partial:").startswith("class:") and not self._takes_rngs(kind)]
        if strange and not dotted:
            raise Refuse(f"sometimes constructs a module and sometimes calls {strange[0]}", "mixed-callee")
        if not self.context.functions and self._draws_nothing(dotted):
            # Made when the file is imported; what it is handed it never asks.
            return updated.with_changes(args=tidy([*updated.args, keyword("rngs", self.context.build("nnx.Rngs(0)"))]))
        return with_rngs(self.context, updated, dotted or "a module")

    def _chosen_without_rngs(self, name: str) -> bool:
        """Whether a local name stands for an entry of a table of torch's layers that all draw nothing: `{"relu": nn.ReLU, "tanh": nn.Tanh}[act]`."""
        function = self.context.function
        pairs = [
            (target.id, node.value)
            for node in (walk(function) if function is not None else ())
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        ]
        stored = [node.id for node in walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)] if function else []
        chosen = [value for target, value in pairs if target == name]
        if not chosen or len(chosen) != stored.count(name):
            return False
        for value in chosen:
            table = value.value.id if isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name) else ""
            literals = [other for target, other in pairs if target == table]
            if len(literals) != 1 or stored.count(table) != 1 or not isinstance(literals[0], ast.Dict):
                return False
            if not literals[0].values or not all(map(self._is_idle_layer, literals[0].values)):
                return False
        return True

    def _is_idle_layer(self, node: ast.expr) -> bool:
        """Whether an expression names a layer of torch whose counterpart can be made without random numbers."""
        row = layers().get(self.context.facts.dotted.get(span_of(node, self.context.file.lines), ""))
        return row is not None and rngs_of(row.vendored) != "required"

    def _draws_nothing(self, dotted: str) -> bool:
        """Whether this is a class of the repository whose construction and calls draw no random numbers: nor do those of its bases."""
        repo, randomness = self.context.repo, self.context.randomness
        model = repo.class_of(dotted)
        if model is None:
            return False
        models = list(repo.ancestors(model))
        if any(base in layers() and rngs_of(layers()[base].vendored) == "required" for ancestor in models for base in repo.bases(ancestor)):
            return False
        keys = {(ancestor.file.file.path, f"{ancestor.qualname}.{name}") for ancestor in models for name in ancestor.methods}
        return not keys & randomness.drawing

    def _takes_rngs(self, kind: str) -> bool:
        functions = observed_functions(self.context.repo, Observed((kind,)))
        return bool(functions) and functions <= self.context.randomness.parameter

    def _lazy_layer(self, original: cst.Call, updated: cst.Call, dotted: str) -> cst.BaseExpression:
        """`nn.LazyLinear(5)` → `Linear(3, 5, rngs=rngs)`, with the size that its first call gave it while the examples ran."""
        fact = self.context.observed(original)
        sizes = sorted({shape[0] for shape in fact.shapes}) if fact else []
        if len(sizes) != 1:
            evidence = f"examples gave it {', '.join(map(str, sizes))}" if sizes else "no example calls it"
            raise Refuse(f"{dotted} takes the size of its input from its first call, and {evidence}: write the size", "lazy-shape")
        size = cst.Arg(cst.Integer(str(sizes[0])))
        return apply_layer(self.context, layers()[LAZY[dotted]], [size, *updated.args], [size, *original.args])

    def _repository_call(self, updated: cst.Call, dotted: str) -> cst.BaseExpression | None:
        target = self.context.repo.resolve(dotted)
        if passes_of_call(self.context.repo, dotted) & self.context.randomness.contexts.keys():
            return with_rngs(self.context, updated, dotted)
        if target and (target[0].file.path, target[1]) in self.context.randomness.parameter:
            return with_rngs(self.context, updated, dotted)
        return None

    def _method_call(self, original: cst.Call, func: cst.Attribute, updated: cst.Call, new: cst.Attribute) -> cst.BaseExpression | None:
        context = self.context
        name = func.attr.value
        if context.is_self(func.value) or self._is_own_class(func.value):
            return self._own_method_call(updated, name)
        keys = methods_of_parts(context.repo, context.observed(func.value), name)
        if keys and keys <= context.randomness.parameter & context.randomness.constructing:
            return with_rngs(context, updated, name)
        # `ConvertMethods` hands `rngs` to constructors of bases.
        if self._is_super(func.value) and context.cls is not None and name != "__init__":
            if inherited(context.repo, context.cls, name) in context.randomness.parameter:
                return with_rngs(context, updated, name)
        if name in HOOKS and context.observed(func.value) is None and context.file.names_torch:
            raise Refuse(f"{name} has no counterpart in NNX", "module-method")
        if self._gives_itself(original, new):
            return new.value
        row = methods().get(name) or (methods().get(name[:-1]) if name.endswith("_") and not name.endswith("__") else None)
        fact = context.observed(func.value)
        if name == "numel" and fact is not None and fact.kinds == ("size",):
            return context.build("math.prod({x})", x=new.value)
        only = tensor_only(name) and name not in context.repo.method_names
        spelled = only or self._is_spelled_as_torch(original, name)
        if is_tensor(fact) or proves_tensor(fact, name) or (fact is None and spelled and context.file.names_torch):
            if row is None:
                raise Refuse(f"no rule for the tensor method {name}", "unknown-op")
            if name not in methods() and not row.inplace:
                raise Refuse(f"{name} has no in-place form", "unknown-op")
            result = apply_op(context, row, updated.args, original.args, (new.value, func.value))
            if name in methods() or not changes_dtype(context, row, fact, original.args):
                return result
            return context.build("{result}.astype({x}.dtype)", result=result, x=new.value)
        # Anything may have a method of this name: without a fact, neither rewriting it nor leaving it is safe.
        if fact is None and name in SAME_METHODS and context.at_host:
            return None
        if row and fact is None and name not in PLAIN_METHODS and not context.dotted(func.value) and not self._is_super(func.value):
            raise Refuse(f"what {name} is called on was neither observed nor inferred", "unknown-receiver")
        return None

    def _gives_itself(self, original: cst.Call, new: cst.Attribute) -> bool:
        """Whether a new parameter is converted to what it is: `nn.Parameter(x).to(dtype)`, which then is the parameter, and no other tensor."""
        constructed = isinstance(new.value, cst.Call) and cst.Module([]).code_for_node(new.value.func) == "nnx.Param"
        fact = self.context.observed(original)
        return constructed and new.attr.value in CONVERSIONS and fact is not None and set(fact.kinds) == {"parameter"}

    def _is_own_class(self, node: cst.BaseExpression) -> bool:
        """Whether this is the module class inside one of its class methods."""
        context = self.context
        if context.cls is None or not context.functions or not context.repo.is_module_class(context.cls):
            return False
        method = context.cls.methods.get(context.functions[0].name.value)
        return method is not None and isinstance(node, cst.Name) and node.value == class_parameter(method)

    def _is_spelled_as_torch(self, call: cst.Call, name: str) -> bool:
        """Whether the arguments are spelled in torch's way: `dim=`, or `size` called at all."""
        keywords = {a.keyword.value for a in call.args if a.keyword}
        return name in methods() and (bool(keywords & {"dim", "keepdim", "dims"}) or name in ("size", "dim"))

    def _is_super(self, node: cst.BaseExpression) -> bool:
        """Whether this is `super()`."""
        return isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "super"

    def _own_method_call(self, updated: cst.Call, name: str) -> cst.BaseExpression | None:
        context = self.context
        if context.cls is None:
            return None
        for model in overrides(context.repo, context.cls, name):
            if (model.file.file.path, f"{model.qualname}.{name}") in context.randomness.parameter:
                return with_rngs(context, updated, name)
            return None
        return None
