"""Context managers and decorators of torch: gradients switched off, autocast, scripting, compilation, profiling."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.rules.rule import Rule

NO_GRADIENT = frozenset({"torch.no_grad", "torch.inference_mode"})
DROPPED = frozenset(
    """
    torch.enable_grad torch.set_grad_enabled torch.jit.script torch.jit.export torch.jit.ignore torch.jit.unused
    torch.compile torch.compiler.disable torch.nn.attention.sdpa_kernel torch.backends.cuda.sdp_kernel
    torch.autograd.function.once_differentiable torch.jit.script_method torch.jit.interface
    torch.jit.script_if_tracing torch.fx.wrap torch._dynamo.disable torch._dynamo.allow_in_graph torch.compiler.allow_in_graph
    torch.profiler.record_function
    torch.autograd.profiler.record_function torch.cuda.nvtx.range torch.amp.custom_fwd torch.amp.custom_bwd
    torch.cuda.amp.custom_fwd torch.cuda.amp.custom_bwd torch.autograd.set_detect_anomaly
    """.split()
)
AUTOCAST = frozenset({"torch.autocast", "torch.cuda.amp.autocast", "torch.amp.autocast", "torch.cpu.amp.autocast"})


class ReplaceGradientContexts(Rule):
    """Remove gradient contexts: `with torch.no_grad():` → its body, results under `lax.stop_gradient`; `@torch.no_grad()` → a vendored `no_grad`.

    Scripting decorators are removed. So is autocast where it is switched off or is of CUDA alone: JAX computes
    in the dtype of inputs and parameters, and whoever wants another casts these. As a value it is a
    `nullcontext()`. Otherwise it is a hole.
    """

    KEEP = ("def f(lock, x):\n    with lock as held:\n        return held.read(x)\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    with torch.no_grad():\n        y = x * 2\n    return x + y\n",
            "def f(x: jax.Array):\n    y = lax.stop_gradient(x * 2)\n    return x + y\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def rows(self):\n        with torch.no_grad():\n"
            "            rows = dict(self.named_parameters())\n        return rows\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        pass\n\n    def rows(self):\n"
            "        rows = dict(named_parameters(self))\n        return rows\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor, on: bool):\n    with torch.cuda.amp.autocast(enabled=on):\n        x = x * 2\n"
            "    place = torch.autocast('cuda') if on else None\n    with place:\n        return x\n",
            "def f(x: jax.Array, on: bool):\n    x = x * 2\n    place = nullcontext() if on else None\n    with place:\n        return x\n",
        ),
    )

    def leave_Decorator(self, original: cst.Decorator, updated: cst.Decorator) -> cst.Decorator | cst.RemovalSentinel | None:
        name = self._context_name(original.decorator)
        if name in NO_GRADIENT:
            return updated.with_changes(decorator=self.context.helper("no_grad"))
        if name in AUTOCAST and not idle(name, original.decorator):
            self.context.hole(original.decorator, "autocast: decide on a dtype policy", "autocast")
            return None
        return cst.RemoveFromParent() if name in DROPPED or name in AUTOCAST else None

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        """A context that is made in one place and entered in another."""
        # These are removed as a whole.
        if isinstance(self.context.parent(), (cst.WithItem, cst.Decorator)):
            return None
        if (name := self.context.dotted(original.func)) in AUTOCAST and idle(name, updated):
            return cst.Call(cst.Name("nullcontext"))
        partly = isinstance(original.func, cst.Name) and original.func.value == "partial" and original.args
        if partly and (name := self.context.dotted(original.args[0].value)) in AUTOCAST and idle(name, updated):
            return cst.Name("nullcontext")
        return None

    def leave_With(self, original: cst.With, updated: cst.With) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement] | None:
        names = [self._context_name(item.item) for item in original.items]
        items = [new for new, name in zip(updated.items, names, strict=True) if name not in NO_GRADIENT | DROPPED | AUTOCAST]
        if len(items) == len(names):
            return None
        for item, new, name in zip(original.items, updated.items, names, strict=True):
            if name in AUTOCAST and not idle(name, new.item):
                self.context.hole(item, "autocast: decide on a dtype policy", "autocast")
                return None
        self.context.drop_holes(
            *(item for item, name in zip(original.items, names, strict=True) if name in NO_GRADIENT | DROPPED | AUTOCAST)
        )
        if items:
            return updated.with_changes(items=[*items[:-1], items[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)])
        body: list[cst.BaseStatement] = (
            list(updated.body.body)
            if isinstance(updated.body, cst.IndentedBlock)
            else [cst.SimpleStatementLine([s for s in updated.body.body if isinstance(s, cst.BaseSmallStatement)])]
        )
        # A constructor is not differentiated.
        if any(name in NO_GRADIENT for name in names) and not self.context.constructing:
            body = [self._with_stopped_gradients(statement) for statement in body]
        first = body[0] if body else None
        if isinstance(first, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
            body[0] = first.with_changes(leading_lines=[*updated.leading_lines, *first.leading_lines])
        return cst.FlattenSentinel(body)

    def _context_name(self, node: cst.BaseExpression) -> str:
        return self.context.dotted(node.func if isinstance(node, cst.Call) else node)

    def _with_stopped_gradients(self, statement: cst.BaseStatement) -> cst.BaseStatement:
        result = statement.visit(_StopGradient())
        assert isinstance(result, cst.BaseStatement)
        return result


def idle(name: str, node: cst.BaseExpression) -> bool:
    """Whether autocasting changes nothing where there is no CUDA device: it is off, or of CUDA alone."""
    if name == "torch.cuda.amp.autocast":
        return True
    for argument in node.args if isinstance(node, cst.Call) else ():
        key = argument.keyword.value if argument.keyword else ""
        if key == "enabled" and isinstance(argument.value, cst.Name) and argument.value.value == "False":
            return True
        if (
            key in ("", "device_type")
            and isinstance(argument.value, cst.SimpleString)
            and argument.value.raw_value.partition(":")[0] == "cuda"
        ):
            return True
    return False


class _StopGradient(cst.CSTTransformer):
    """Wraps what is assigned or returned in `lax.stop_gradient`."""

    # An inner function may be called outside of the context.
    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return False

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        # A parameter that is written without a gradient is still one itself: `KeepParameterGradients` has seen to it.
        keeps_gradient = isinstance(updated_node.value, cst.Call) and _last_name(updated_node.value.func) == "keep_gradient"
        return updated_node if keeps_gradient else updated_node.with_changes(value=_stop_gradient(updated_node.value))

    def leave_Return(self, original_node: cst.Return, updated_node: cst.Return) -> cst.Return:
        return updated_node.with_changes(value=_stop_gradient(updated_node.value)) if updated_node.value else updated_node


def _last_name(node: cst.BaseExpression) -> str:
    """The last part of a dotted name."""
    name = node.attr if isinstance(node, cst.Attribute) else node
    return name.value if isinstance(name, cst.Name) else ""


def _collects_parameters(value: cst.BaseExpression) -> bool:
    """Whether an expression is the parameters of a module, perhaps as a list or dictionary: `dict(named_parameters(net))`."""
    if not isinstance(value, cst.Call):
        return False
    name = _last_name(value.func)
    if name in ("dict", "list", "tuple") and len(value.args) == 1:
        return _collects_parameters(value.args[0].value)
    return name in ("parameters", "named_parameters", "buffers", "named_buffers")


def _stop_gradient(value: cst.BaseExpression) -> cst.BaseExpression:
    # Parameters require their gradients wherever somebody collects them.
    if _collects_parameters(value):
        return value
    # `stop_gradient` would make an array of a constant.
    if (isinstance(value, cst.Name) and value.value in ("None", "True", "False")) or isinstance(
        value, (cst.Integer, cst.Float, cst.SimpleString)
    ):
        return value
    return cst.Call(cst.Attribute(cst.Name("lax"), cst.Name("stop_gradient")), [cst.Arg(value)])
