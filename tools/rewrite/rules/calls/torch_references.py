"""Torch names that stand as values: dtypes, types in annotations, layer classes and functions passed along."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version

import libcst as cst

from migrate_agent.tools.removed_names import ABCS, SIX
from migrate_agent.tools.rewrite.analysis.facts import DTYPES
from migrate_agent.tools.rewrite.analysis.repo import AUTOCAST
from migrate_agent.tools.rewrite.rules.apply_tables import apply_op, takes_options
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.helpers import rngs_of, symbols
from migrate_agent.tools.rewrite.tables.initialisers import AS_VALUES
from migrate_agent.tools.rewrite.tables.registry import Layer, Refuse, layers, of_fused_package, ops
from migrate_agent.tools.rewrite.tables.signatures import parse_signature

DTYPE_NAMES = {
    "float": "jnp.float32", "double": "float", "float64": "float", "half": "jnp.float16", "short": "jnp.int16", "int": "jnp.int32", "long": "int",
    "int64": "int", "bool": "bool", "cfloat": "jnp.complex64", "cdouble": "complex", "complex128": "complex",
}  # fmt: skip
"""Torch dtypes whose JAX name differs. 64-bit ones are Python's types: JAX takes these as its widest, 32 bits unless x64 is enabled, without a warning."""
BACKENDS = ("MATH", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION", "OVERRIDEABLE")
"""Ways to compute attention: code may hand their names about, but XLA chooses."""
NAMESPACES = frozenset({"torch.nn", "torch.nn.functional", "torch"})
"""Modules whose parts are looked up by strings: `getattr(nn, name)` (see `ReplaceLookups`)."""
FUNCTION_BASES = ("torch.autograd.Function", "torch.autograd.function.Function")
VERSION = "torch.__version__"
SCRIPTED = "torch.jit.ScriptModule"
CONSTANTS: Mapping[str, str] = {
    **{f"torch.{name}": DTYPE_NAMES.get(name, f"jnp.{name}") for name in DTYPES},
    **{f"torch.{name}": f"jnp.{name}" for name in ("pi", "inf", "nan", "e", "newaxis")},
    **{f"torch._six.{name}": text for name, text in SIX.items()},
    **{f"torch._six.container_abcs.{name}": f"collections.abc.{name}" for name in ABCS},
    "torch.Tensor": "jax.Array",
    "torch.nn.Module": "nnx.Module",
    **{f"torch.nn.attention.SDPBackend.{name}": repr(name.lower()) for name in BACKENDS},
    "torch.nn.modules.module.Module": "nnx.Module",
    "torch.nn.Parameter": "nnx.Param",
    "torch.nn.parameter.Parameter": "nnx.Param",
    VERSION: repr(version("torch").partition("+")[0]),
    **dict.fromkeys(FUNCTION_BASES, "vendored.AutogradFunction"),
    "torch.cuda._initialized": "False",
    "torch.nn.modules.conv._ConvNd": "vendored.ConvNd",
    "torch.nn.modules.conv._ConvTransposeNd": "vendored.ConvTransposeNd",
    **dict.fromkeys(("torch.nn.RNNBase", "torch.nn.modules.rnn.RNNBase"), "vendored.RNNBase"),
    **dict.fromkeys(("torch.nn.RNNCellBase", "torch.nn.modules.rnn.RNNCellBase"), "vendored.RNNCellBase"),
    "torch.nn.modules.batchnorm._BatchNorm": "vendored.BatchNormNd",
    "torch.nn.modules.instancenorm._InstanceNorm": "vendored.InstanceNormNd",
    "torch.nn.utils.rnn.PackedSequence": "vendored.PackedSequence",
    "torch.dtype": "jnp.dtype",
    "torch.device": "jax.Device",
    **{f"torch.distributed.ReduceOp.{name}": repr(name.lower()) for name in ("SUM", "AVG", "PRODUCT", "MIN", "MAX")},
    "torch.Size": "tuple",
    **{f"torch.{name}Tensor": "jax.Array" for name in ("", *"Float Double Half BFloat16 Long Int Short Char Byte Bool".split())},
    **dict.fromkeys(
        [f"torch.{name}" for name in "strided contiguous_format preserve_format channels_last channels_last_3d".split()], "None"
    ),
}
"""Dotted torch name → what stands for it in JAX, where it is not called. How a tensor lies in memory has no meaning there."""
SETTINGS: Mapping[str, str] = {
    "torch.backends.cudnn.enabled": "True",
    **{
        f"torch.backends.{name}": "False"
        for name in ("cudnn.benchmark", "cudnn.deterministic", "cuda.matmul.allow_tf32", "opt_einsum.enabled")
    },
}
"""Settings of torch as they are where nobody changes them; code may ask for them, but what sets them has no counterpart."""
SCALAR_TYPES: Mapping[str, str] = {
    f"torch.{place}{name}Tensor": {"Byte": "jnp.uint8", "Char": "jnp.int8"}.get(name)
    or DTYPE_NAMES.get(name.lower(), f"jnp.{name.lower()}")
    for place in ("", "cuda.")
    for name in "Float Double Half BFloat16 Long Int Short Char Byte Bool".split()
}
"""A tensor type that a local name stands for, or that `.type(…)` is handed. Both make an array of a list, and both say to what that converts."""


class ReplaceTorchReferences(Rule):
    """Replace torch names as values: `torch.float32` → `jnp.float32`, `torch.Tensor` → `jax.Array`, `nn.GELU` → the vendored class, `F.relu` → a function.

    Declines (a hole) for torch names without a counterpart.
    """

    KEEP = ("import math\n\ndef f():\n    return math.pi\n",)
    CHANGE = (
        (
            "from torch import nn\nfrom torch.nn.utils import spectral_norm, weight_norm\n\nclass M(nn.Module):\n"
            "    def __init__(self, d, spectral):\n        super().__init__()\n"
            "        norm = spectral_norm if spectral else weight_norm\n        self.fc = norm(nn.Linear(d, d))\n",
            "class M(nnx.Module):\n    def __init__(self, d, spectral, *, rngs: nnx.Rngs):\n"
            "        norm = partial(spectral_norm, rngs=rngs) if spectral else weight_norm\n"
            "        self.fc = norm(Linear(d, d, rngs=rngs))\n",
        ),
        ("import torch\n\ndef f(x: torch.Tensor):\n    return torch.float32\n", "def f(x: jax.Array):\n    return jnp.float32\n"),
        (
            "import torch\nfrom torch._six import inf, container_abcs\n\ndef f(x: torch.Tensor, norm):\n"
            "    return x.abs().max() if norm == inf else isinstance(norm, container_abcs.Iterable)\n",
            "def f(x: jax.Array, norm):\n"
            "    return jnp.max(absolute(x)) if norm == math.inf else isinstance(norm, collections.abc.Iterable)\n",
        ),
        (
            "import torch.nn.functional as F\n\ndef f(activation=F.relu):\n    return activation\n",
            "def f(activation=jax.nn.relu):\n    return activation\n",
        ),
        (
            "from typing import Callable\nfrom torch.optim import Optimizer\n\ndef f(make: Callable[..., Optimizer]):\n    return make\n",
            "from typing import Callable\n\ndef f(make: Callable[..., Any]):\n    return make\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    FloatTensor = torch.cuda.FloatTensor if x.is_cuda else torch.FloatTensor\n"
            "    return x * FloatTensor([2.0, 3.0])\n",
            "def f(x: jax.Array):\n    return x * jnp.array([2.0, 3.0], dtype=jnp.float32)\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor, cuda: bool):\n    make = torch.cuda.FloatTensor if cuda else torch.FloatTensor\n"
            "    zeros = type(x)\n    return x * make(x.size(0), 1).zero_() + zeros(x.size())\n",
            "def f(x: jax.Array, cuda: bool):\n    return x * jnp.zeros((x.shape[0], 1), dtype=jnp.float32) + jnp.empty(x.shape, dtype=jnp.float32)\n",
        ),
        (
            "import torch\n\ndef f(shape, make=torch.FloatTensor):\n    return make(*shape).uniform_()\n\n\n"
            "def g(x: torch.Tensor):\n    return x + f(x.shape, make=type(x.data))\n",
            "def f(shape, make=jax.Array, *, rngs: nnx.Rngs):\n    return jax.random.uniform(rngs(), shape, jnp.float32)\n\n\n"
            "def g(x: jax.Array, *, rngs: nnx.Rngs):\n    return x + f(x.shape, make=type(x), rngs=rngs)\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    return x.type(torch.ByteTensor) + x.type(torch.cuda.FloatTensor)\n",
            "def f(x: jax.Array):\n    return x.astype(jnp.uint8) + x.astype(jnp.float32)\n",
        ),
        (
            "from torch import nn\n\ndef f(*a: nn.Module, **b: nn.Module):\n    return a, b\n",
            "def f(*a: nnx.Module, **b: nnx.Module):\n    return a, b\n",
        ),
        (
            "from torch import nn\n\ndef f(x):\n    return isinstance(x, (nn.Dropout, nn.ModuleList, nn.Linear)), nn.Dropout\n",
            "def f(x):\n    return isinstance(x, (nnx.Dropout, nnx.List, nnx.Linear)), Dropout\n",
        ),
        ("import torch\n\ndef f(fused: torch.jit.Final[bool]):\n    return fused\n", "def f(fused: bool):\n    return fused\n"),
    )

    def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> cst.BaseExpression | None:
        return self._reference(original)

    def leave_Name(self, original: cst.Name, updated: cst.Name) -> cst.BaseExpression | None:
        return self._reference(original)

    def leave_Subscript(self, original: cst.Subscript, updated: cst.Subscript) -> cst.BaseExpression | None:
        """`torch.jit.Final[bool]` → `bool`, `Foreign[bool]` → `Any`: what stands for a type of torch takes no parameters."""
        annotated = any(isinstance(node, cst.Annotation) for node in self.context.stack)
        stands_for_all = isinstance(updated.value, cst.Name) and updated.value.value == "Any"
        if not annotated or not stands_for_all or not self.context.dotted(original.value).startswith("torch."):
            return None
        inner = updated.slice[0].slice
        final = self.context.dotted(original.value) == "torch.jit.Final"
        return inner.value if final and len(updated.slice) == 1 and isinstance(inner, cst.Index) else updated.value

    def _reference(self, node: cst.Name | cst.Attribute) -> cst.BaseExpression | None:
        context = self.context
        dotted = context.dotted(node)
        fused = dotted in ops() and of_fused_package(dotted)
        if dotted.partition(".")[0] not in ("torch", "torchaudio") and dotted not in layers() and not fused:
            return None
        parent = context.parent()
        if fused and isinstance(parent, (cst.Comparison, cst.ComparisonTarget, cst.ImportAlias)):
            return None
        # `torch.nn` inside of `torch.nn.Linear`: the whole name is looked up, further out.
        if isinstance(parent, cst.Attribute) and parent.value is node and context.dotted(parent) and dotted != VERSION:
            return None
        # `ReplaceTorchCalls` needs the name to find its row.
        if isinstance(parent, cst.Call) and parent.func is node:
            return None
        if isinstance(node, cst.Attribute) and context.is_target(node) and dotted in ops():
            context.hole(node, f"gives {dotted} another meaning, for all that calls it", "global-state")
            return None
        call = self.context.parent(2)
        if isinstance(parent, cst.Arg) and isinstance(call, cst.Call) and self._is_decided_later(call, dotted):
            return None
        if isinstance(parent, (cst.Arg, cst.Param)) and getattr(parent, "keyword", None) is node:
            return None
        try:
            if dotted in SETTINGS and not isinstance(parent, cst.AssignTarget):
                return cst.Name(SETTINGS[dotted])
            if dotted in SCALAR_TYPES and (isinstance(parent, (cst.IfExp, cst.Assign)) or _is_conversion(parent, call)):
                return context.use(cst.parse_expression(SCALAR_TYPES[dotted]))
            # As a base class alone: whether a module is a scripted one, nothing of JAX answers.
            if dotted == SCRIPTED and isinstance(parent, cst.Arg) and isinstance(context.parent(2), cst.ClassDef):
                return context.use(cst.parse_expression("nnx.Module"))
            return context.parenthesise(self.value(dotted))
        except Refuse as refusal:
            context.hole(node, refusal.reason, refusal.code)
            return None

    def _is_decided_later(self, call: cst.Call, dotted: str) -> bool:
        """Whether the question itself is answered while rewriting (see `DecideConstants`)."""
        name = call.func.value if isinstance(call.func, cst.Name) else ""
        looked_up = (name == "getattr" and dotted in NAMESPACES) or (name == "partial" and dotted in AUTOCAST)
        return name in ("hasattr", "dir") or looked_up or (name == "isinstance" and dotted.startswith("torch.cuda."))

    def value(self, dotted: str) -> cst.BaseExpression:
        """What stands for a torch name as a value. Raises `Refuse`."""
        context = self.context
        if dotted in CONSTANTS:
            return context.use(cst.parse_expression(CONSTANTS[dotted]))
        # Code that nothing leads to may ask for a layer that Flax has as a function alone.
        if dotted in context.plain.kinds and self._is_asked_for() and (flax := layers()[dotted].plain_class):
            return context.use(cst.parse_expression(flax))
        if dotted in layers():
            row = layers()[dotted]
            if row.tested_as and self._is_test_of_instance():
                return cst.parse_expression(row.tested_as)
            if self._is_tested() and (made := _class_made(row)):
                return cst.parse_expression(made)
            return context.helper(row.short if row.short and dotted in context.plain.kinds else row.vendored)
        if dotted in ops():
            return self._function_value(dotted)
        if dotted.startswith("torch.nn.init.") and (name := dotted.removeprefix("torch.nn.init.").removesuffix("_")) in AS_VALUES:
            return context.helper(f"init_{name}")
        # An annotation computes nothing, so a type without a counterpart need not hold its function up.
        if any(isinstance(node, cst.Annotation) for node in context.stack):
            return context.use(cst.Name("Any"))
        raise Refuse(f"{dotted} has no counterpart in JAX", "unknown-op")

    def _is_asked_for(self) -> bool:
        """Whether a class stands in an `isinstance` test, a comparison with a `type(…)` or an annotation, where an instance of Flax's own layer must hold too."""
        return self._is_tested() or any(isinstance(node, cst.Annotation) for node in self.context.stack)

    def _is_tested(self) -> bool:
        match self._test():
            case cst.Comparison(left=left, comparisons=comparisons):
                return any(_is_type_of(side) for side in (left, *(one.comparator for one in comparisons)))
        return self._is_test_of_instance()

    def _is_test_of_instance(self) -> bool:
        """Whether this stands in an `isinstance` test, which holds for derived classes too."""
        match self._test():
            case cst.Call(func=cst.Name("isinstance" | "issubclass")):
                return True
        return False

    def _test(self) -> cst.CSTNode | None:
        tests = [node for node in self.context.stack if isinstance(node, (cst.Call, cst.Comparison))]
        return tests[-1] if tests else None

    def _function_value(self, dotted: str) -> cst.BaseExpression:
        """A torch function as a value: the JAX function itself where the row only renames it, else a vendored one or a lambda."""
        op, fused = ops()[dotted], of_fused_package(dotted)
        signature = parse_signature(op.signature)
        required = [name for name in signature.names if name not in signature.defaults]
        parameters = list(signature.names) if fused else required or list(signature.names[:1])
        if not parameters or (fused and signature.keyword_only):
            raise Refuse(f"{dotted} as a value", "unknown-op")
        arguments = [cst.Arg(cst.Name(name)) for name in parameters]
        body = apply_op(self.context, op, arguments, arguments)
        if isinstance(body, cst.Call) and not body.args[len(parameters) :] and self._passes_parameters(body, parameters):
            return body.func
        name = dotted.rpartition(".")[2]
        if takes_options(dotted):
            return self.context.helper(name)
        if name in symbols() and (dotted.startswith("torch.nn.functional.") or str(op.to).startswith(f"vendored.{name}(")):
            return self._with_rngs(name) if op.draws else self.context.helper(name)
        defaults = {name: cst.parse_expression(text) for name, text in signature.defaults.items() if fused}
        return cst.Lambda(cst.Parameters([cst.Param(cst.Name(name), default=defaults.get(name)) for name in parameters]), body)

    def _with_rngs(self, name: str) -> cst.BaseExpression:
        """A helper that draws, with what it draws from: whoever calls it need not know which of several functions it is."""
        rngs = self.context.rngs() if rngs_of(name) == "required" and self.context.functions else None
        if rngs is None or not self.context.constructing:
            return self.context.helper(name)
        return self.context.build(f"partial(vendored.{name}, rngs={{rngs}})", rngs=rngs)

    def _passes_parameters(self, call: cst.Call, parameters: list[str]) -> bool:
        names = [a.value.value for a in call.args if isinstance(a.value, cst.Name) and not a.keyword and not a.star]
        return names == parameters


def _class_made(layer: Layer) -> str:
    """The class of Flax's own of which a layer is made (`nnx.Dropout`), and from which the helper of the layer's name derives; "" for others."""
    head, call, _ = layer.to.partition("(") if isinstance(layer.to, str) else ("", "", "")
    return head if call and head.startswith("nnx.") else ""


def _is_type_of(node: cst.BaseExpression) -> bool:
    """Whether an expression is `type(…)` or `….__class__`."""
    match node:
        case cst.Call(func=cst.Name("type"), args=[_]) | cst.Attribute(attr=cst.Name("__class__")):
            return True
    return False


def _is_conversion(parent: cst.CSTNode | None, call: cst.CSTNode | None) -> bool:
    """Whether a name is the argument of a method `type`: `x.type(torch.FloatTensor)`."""
    return (
        isinstance(parent, cst.Arg)
        and isinstance(call, cst.Call)
        and isinstance(call.func, cst.Attribute)
        and call.func.attr.value == "type"
    )
