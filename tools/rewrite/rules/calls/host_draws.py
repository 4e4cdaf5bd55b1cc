"""Random numbers of Python and NumPy in code that runs while a module is called: `jit` would fix them, so they are drawn by `jax.random`."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import is_tensor
from migrate_agent.tools.rewrite.rules.apply_tables import apply_op
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.host_draws import HOST_DRAWS
from migrate_agent.tools.rewrite.tables.ops.calls import INTEGERS
from migrate_agent.tools.rewrite.tables.registry import Refuse

SHARED = "a function draws on the host that constructors call too: what they build must stay NumPy's, so write one function for each"
SIZED = "a random number says how large a part of a tensor is: shapes are fixed while JAX traces, so mask instead"
LISTED = "a random number is the index of what is no array: stack the values, or branch on the number with `jax.lax.switch`"
COUNTED = "a random number says how often a loop runs: bound the loop, and mask what lies beyond the number"
GIVEN = "a random integer is given to a function that needs its value while JAX traces"
ELEMENTWISE = frozenset(
    """sqrt exp log log2 log1p expm1 sin cos tan tanh sinh cosh floor ceil abs maximum minimum where clip sign square power mod sum mean prod
    max min stack concatenate cumsum sort argsort expand_dims squeeze reshape transpose repeat tile zeros_like ones_like asarray array float32
    float64 int64 int32 add subtract multiply divide logical_and logical_or logical_not outer dot roll flip""".split()
)
"""Functions of NumPy, some of them of `math` too, that `jnp` has with the same meaning."""
ROUNDING = frozenset({"math.floor", "math.ceil", "math.trunc"})
"""Functions of `math` that give an integer, where those of NumPy and `jnp` give a float."""
BOUNDED = frozenset(
    {
        "roll",
        "narrow",
        "where",
        "clamp",
        "full_like",
        "masked_fill",
        "index_select",
        "add",
        "sub",
        "mul",
        "div",
        "lerp",
        "pow",
        "tensor",
        "as_tensor",
    }
)
"""Functions and methods of torch that take an integer as a value, so that it may be traced."""
RESIZING = frozenset({"torch.nn.functional.interpolate", "torch.nn.functional.upsample"})


class DrawOnDevice(Rule):
    """Draw by `jax.random` while a module is called: `random.random() < p` → `jax.random.uniform(self.rngs()) < p`, and likewise NumPy's numbers.

    What `item()` reads out of a draw of torch, `use = torch.rand(1).item() < p`, is an array too. What is computed from
    them is computed by `jnp`; `x[:, i : i + 8]` → `lax.dynamic_slice_in_dim`. Constructors stay as they are.
    Declines (a hole) where the number would be a size, the index of a list or the count of a loop, and for
    distributions whose numbers cannot be paired.
    """

    KEEP = (
        "import random\n\ndef augment(x):\n    return x if random.random() < 0.5 else x[::-1]\n",
        "import numpy as np\n\ndef offsets(n):\n    return np.random.permutation(n)\n",
    )
    CHANGE = (
        (
            "import random\nfrom torch import nn\n\nclass M(nn.Module):\n    def forward(self, x, y):\n"
            "        if not self.training or random.random() < 0.5:\n            return x + y\n        else:\n            return x\n",
            "import random\n\nclass M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.deterministic = False\n"
            "        self.rngs = rngs\n\n    def __call__(self, x, y):\n        if self.deterministic:\n            return x + y\n"
            "        return lax.cond(jax.random.uniform(self.rngs()) < 0.5, lambda: x + y, lambda: x)\n",
        ),
        (
            "import numpy as np\nimport torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
            "        self.order = np.random.permutation(d)\n\n    def forward(self, x: torch.Tensor):\n"
            "        keep = np.random.binomial(n=1, p=0.9, size=(4, 1))\n        return x[np.random.permutation(4)] * torch.from_numpy(keep).float()\n",
            "import numpy as np\n\nclass M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n"
            "        self.rngs = rngs\n        self.order = np.random.permutation(d)\n\n    def __call__(self, x: jax.Array):\n"
            "        keep = jax.random.bernoulli(self.rngs(), 0.9, (4, 1)).astype(int)\n"
            "        return x[jax.random.permutation(self.rngs(), 4)] * keep.astype(jnp.float32)\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.scale = torch.rand(1).item()\n\n    def forward(self, x: torch.Tensor, y: torch.Tensor):\n"
            "        gate = torch.rand(())\n        use = gate.item() < 0.5\n        return x if use else y\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.rngs = rngs\n"
            "        self.scale = jax.random.uniform(rngs.params(), 1).item()\n\n    def __call__(self, x: jax.Array, y: jax.Array):\n"
            "        gate = jax.random.uniform(self.rngs(), ())\n        use = gate < 0.5\n        return lax.cond(use, lambda: x, lambda: y)\n",
        ),
        (
            "import random\nimport torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def forward(self, x: torch.Tensor):\n"
            "        i = random.randint(0, x.shape[1] - 8)\n        j = int(random.random() * 3)\n"
            "        return x[:, i : i + 8] * max(random.uniform(0.8, 1.2), 1.0) + x[:, j]\n",
            "import random\n\nclass M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.rngs = rngs\n\n"
            "    def __call__(self, x: jax.Array):\n        i = jax.random.randint(self.rngs(), (), 0, x.shape[1] - 7)\n"
            "        j = (jax.random.uniform(self.rngs()) * 3).astype(int)\n"
            "        return lax.dynamic_slice_in_dim(x, i, 8, axis=1) * jnp.maximum(\n"
            "            jax.random.uniform(self.rngs(), minval=0.8, maxval=1.2), 1.0\n        ) + x[:, j]\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        context = self.context
        span = context.span(original.func)
        if span in context.facts.shared_draws:
            context.hole(original, SHARED, "randomness")
            return None
        try:
            if span in context.facts.draws and isinstance(updated.func, cst.Attribute) and not updated.args and _is_item(original.func):
                return self._number(original.func, updated.func)
            if span in context.facts.draws:
                result = apply_op(context, HOST_DRAWS[context.dotted(original.func)], updated.args, original.args)
                return context.parenthesise(result)
            computed = self._computed(original, updated)
        except Refuse as refusal:
            context.hole(original, refusal.reason, refusal.code)
            return None
        return None if computed is None else context.parenthesise(computed)

    def _number(self, original: cst.BaseExpression, updated: cst.Attribute) -> cst.BaseExpression:
        """`torch.rand(1).item()` → `jax.random.uniform(key, (1,))[0]`: the number as an array without axes."""
        fact = self.context.observed(cst.ensure_type(original, cst.Attribute).value)
        shapes = set(fact.shapes) if fact is not None else set()
        text = "{x}" if shapes <= {()} else "{x}[0]" if shapes == {(1,)} else "{x}.reshape(())"
        return self.context.build(text, x=updated.value)

    def _computed(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        """What is computed from random numbers, as arrays. Raises `Refuse`."""
        context = self.context
        func = original.func
        if isinstance(func, cst.Attribute) and func.attr.value == "tolist" and is_traced(context, func.value):
            return cst.ensure_type(updated.func, cst.Attribute).value
        traced = [argument for argument in original.args if is_traced(context, argument.value)]
        if not traced:
            return None
        dotted = context.dotted(original.func)
        if is_conversion(context, original):
            integer = cst.ensure_type(original.func, cst.Name).value == "int" and not _is_integer(context, original.args[0].value)
            return context.build("{x}.astype(int)" if integer else "{x}", x=updated.args[0].value)
        if isinstance(original.func, cst.Name) and not dotted:
            return self._builtin(original.func.value, original, updated)
        if dotted == "torch.from_numpy":
            return updated.args[0].value  # an array of JAX by now
        module, _, name = dotted.rpartition(".")
        if module in ("math", "numpy"):
            if name not in ELEMENTWISE and dotted not in ROUNDING:
                raise Refuse(f"no rule for {dotted} of a random number", "randomness")
            function = "floor" if dotted == "math.floor" else "trunc" if dotted == "math.trunc" else name
            call = updated.with_changes(func=context.build(f"jnp.{function}"))
            return context.build("{x}.astype(int)", x=call) if dotted in ROUNDING else call
        self._check_arguments(original, dotted, traced)
        return None

    def _builtin(self, name: str, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        plain = not any(argument.star or argument.keyword for argument in original.args)
        if name == "range":
            raise Refuse(COUNTED, "dynamic-shape")
        if name in ("min", "max") and plain and len(original.args) == 2:
            values = {"a": updated.args[0].value, "b": updated.args[1].value}
            return self.context.build(f"jnp.{name}imum({{a}}, {{b}})", **values)
        if name == "abs" and plain:
            return self.context.build("jnp.abs({x})", x=updated.args[0].value)
        if name == "round" and plain and len(original.args) == 1:
            return self.context.build("jnp.round({x}).astype(int)", x=updated.args[0].value)
        if name in ("sorted", "list", "tuple") and plain and len(original.args) == 1:
            return self.context.build("jnp.sort({x})" if name == "sorted" else "{x}", x=updated.args[0].value)
        if name in ("min", "max", "round", "divmod", "pow", "sum", "sorted"):
            raise Refuse(f"no rule for {name} of a random number in this form", "randomness")
        return None

    def _check_arguments(self, original: cst.Call, dotted: str, traced: Sequence[cst.Arg]) -> None:
        """Raises `Refuse` where torch would take a random integer, or a scale, for a size."""
        func = original.func
        method = func.attr.value if isinstance(func, cst.Attribute) and is_tensor(self.context.observed(func.value)) else ""
        name = method or (dotted.rpartition(".")[2] if dotted.startswith("torch.") else "")
        integers = any(_is_integer(self.context, argument.value) for argument in traced)
        if dotted in RESIZING or (name and integers and name.rstrip("_") not in BOUNDED):
            raise Refuse(f"{GIVEN}: {dotted or name}", "dynamic-shape")

    def leave_Subscript(self, original: cst.Subscript, updated: cst.Subscript) -> cst.BaseExpression | None:
        context = self.context
        if not any(_bounds(context, element.slice) or _is_index(context, element.slice) for element in original.slice):
            return None
        fact = context.observed(original.value)
        if not is_tensor(fact):
            # An array of NumPy that is drawn too is one of JAX by now.
            if not is_traced(context, original.value):
                context.hole(original, LISTED, "randomness")
            return None
        if not any(_bounds(context, element.slice) for element in original.slice):
            return None
        result = self._dynamic_slice(original, updated)
        if result is None:
            context.hole(original, SIZED, "dynamic-shape")
            return None
        return context.parenthesise(result)

    def _dynamic_slice(self, original: cst.Subscript, updated: cst.Subscript) -> cst.BaseExpression | None:
        """`x[:, i : i + n]` → `lax.dynamic_slice_in_dim(x, i, n, axis=1)`, nested for several axes; `None` where `n` or the axis is not plain."""
        result, count = updated.value, len(original.slice)
        dots = [place for place, element in enumerate(original.slice) if _is_ellipsis(element.slice)]
        if len(dots) > 1:
            return None
        for place, (old, new) in enumerate(zip(original.slice, updated.slice, strict=True)):
            if not _bounds(self.context, old.slice):
                if not (_is_whole(old.slice) or place in dots):
                    return None
                continue
            length = _length(self.context, old.slice, new.slice)
            if length is None:
                return None
            axis = place - count if dots and place > dots[0] else place
            start = cst.ensure_type(new.slice, cst.Slice).lower or cst.Integer("0")
            result = self.context.build(
                f"lax.dynamic_slice_in_dim({{x}}, {{start}}, {{length}}, axis={axis})", x=result, start=start, length=length
            )
        return result

    def leave_BooleanOperation(self, original: cst.BooleanOperation, updated: cst.BooleanOperation) -> cst.BaseExpression | None:
        """Python's `and` asks for the truth of its first operand."""
        if not is_traced(self.context, original.left):
            return None
        name = "logical_and" if isinstance(original.operator, cst.And) else "logical_or"
        return self.context.build(f"jnp.{name}({{a}}, {{b}})", a=updated.left, b=updated.right)

    def leave_UnaryOperation(self, original: cst.UnaryOperation, updated: cst.UnaryOperation) -> cst.BaseExpression | None:
        if not isinstance(original.operator, cst.Not) or not is_traced(self.context, original.expression):
            return None
        return self.context.build("jnp.logical_not({x})", x=updated.expression)

    def leave_Comparison(self, original: cst.Comparison, updated: cst.Comparison) -> cst.BaseExpression | None:
        """`a < r < b` asks for the truth of its first part."""
        if len(original.comparisons) == 1 or not is_traced(self.context, original):
            return None
        first, second = updated.comparisons[0], updated.comparisons[1]
        if len(original.comparisons) > 2 or not isinstance(first.comparator, cst.Name):
            self.context.hole(original, "a chain of comparisons with a random number: write `&` between them", "tensor-branch")
            return None
        sides = updated.with_changes(comparisons=[first]), cst.Comparison(first.comparator, [second])
        return self.context.build("jnp.logical_and({a}, {b})", a=sides[0], b=sides[1])


def _is_item(func: cst.BaseExpression) -> bool:
    return isinstance(func, cst.Attribute) and func.attr.value == "item"


def is_traced(context: Context, node: cst.CSTNode) -> bool:
    """Whether an original expression follows from a random number that is drawn by `jax.random` now."""
    return context.span(node) in context.facts.traced


def is_conversion(context: Context, call: cst.Call) -> bool:
    """Whether this is `int(r)` or `float(r)` of such a number, which stays an array."""
    named = isinstance(call.func, cst.Name) and call.func.value in ("int", "float") and not context.dotted(call.func)
    return named and len(call.args) == 1 and not call.args[0].keyword and is_traced(context, call.args[0].value)


def _is_integer(context: Context, node: cst.BaseExpression) -> bool:
    fact = context.observed(node)
    return fact is not None and bool(fact.dtypes) and set(fact.dtypes) <= INTEGERS


def _is_index(context: Context, part: cst.BaseSlice) -> bool:
    return isinstance(part, cst.Index) and is_traced(context, part.value)


def _bounds(context: Context, part: cst.BaseSlice) -> bool:
    """Whether a random number is a bound of a slice."""
    return isinstance(part, cst.Slice) and any(
        is_traced(context, bound) for bound in (part.lower, part.upper, part.step) if bound is not None
    )


def _is_whole(part: cst.BaseSlice) -> bool:
    return isinstance(part, cst.Slice) and part.lower is None and part.upper is None and part.step is None


def _is_ellipsis(part: cst.BaseSlice) -> bool:
    return isinstance(part, cst.Index) and isinstance(part.value, cst.Ellipsis)


def _length(context: Context, old: cst.BaseSlice, new: cst.BaseSlice) -> cst.BaseExpression | None:
    """`n` of `i : i + n`, where it does not follow from a random number itself."""
    if not (isinstance(old, cst.Slice) and isinstance(new, cst.Slice)) or old.lower is None or old.step is not None:
        return None
    upper, rewritten = old.upper, new.upper
    if not (isinstance(upper, cst.BinaryOperation) and isinstance(rewritten, cst.BinaryOperation) and isinstance(upper.operator, cst.Add)):
        return None
    if upper.left.deep_equals(old.lower) and not is_traced(context, upper.right):
        return rewritten.right
    if upper.right.deep_equals(old.lower) and not is_traced(context, upper.left):
        return rewritten.left
    return None
