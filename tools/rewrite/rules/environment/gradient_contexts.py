"""Context managers and decorators of torch: gradients switched off, autocast, scripting, compilation, profiling."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.analysis.repo import AUTOCAST
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
_PLAIN = frozenset({"int", "float", "bool", "str", "none", "size", "dtype", "device"})
"""Kinds of values that have no gradient."""


class ReplaceGradientContexts(Rule):
    """Remove gradient contexts: `with torch.no_grad():` → its body, results under `lax.stop_gradient`; `@torch.no_grad()` → a vendored `no_grad`.

    In plain style the results of the function are under `lax.stop_gradient` instead, but for integers. Scripting decorators
    are removed. So is autocast where it is switched off or is of CUDA alone: JAX computes in the dtype of inputs and
    parameters, and whoever wants another casts these. As a value it is a `nullcontext()`. Otherwise it is a hole.
    """

    KEEP = ("def f(lock, x):\n    with lock as held:\n        return held.read(x)\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    with torch.no_grad():\n        y = x * 2\n    return x + y\n",
            "def f(x: jax.Array):\n    y = lax.stop_gradient(x * 2)\n    return x + y\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor, y: torch.Tensor, keep: bool):\n    with torch.no_grad():\n        if keep:\n            return x\n"
            "        y.mul_(2)\n        return y\n",
            "def f(x: jax.Array, y: jax.Array, keep: bool):\n    if keep:\n        return x\n    y = lax.stop_gradient(y * 2)\n    return lax.stop_gradient(y)\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor, y: torch.Tensor):\n    with torch.no_grad():\n        x, y = y * 2, x * 3\n    return x + y\n",
            "def f(x: jax.Array, y: jax.Array):\n    x, y = lax.stop_gradient((y * 2, x * 3))\n    return x + y\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor, ks=(1,)):\n    with torch.no_grad():\n        n = max(ks)\n        found = []\n"
            "        for k in ks:\n            y = x * k\n            found.append(y / n)\n        return found\n",
            "def f(x: jax.Array, ks=(1,)):\n    n = max(ks)\n    found = []\n    for k in ks:\n        y = x * k\n"
            "        found.append(y / n)\n    return lax.stop_gradient(found)\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    with torch.no_grad():\n        n, d = x.size()\n        kept = {}\n"
            "        kept['y'], z = x * d, torch.arange(n)\n    return kept, z\n",
            "def f(x: jax.Array):\n    n, d = x.shape\n    kept = {}\n    kept['y'], z = lax.stop_gradient((x * d, jnp.arange(n)))\n"
            "    return kept, z\n",
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
        (
            "import torch\n\ntry:\n    autocast = torch.cuda.amp.autocast\nexcept:\n    class autocast:\n        def __init__(self, enabled):\n            pass\n\n"
            "def f(x: torch.Tensor, on: bool):\n    with autocast(enabled=on):\n        return x * 2\n",
            "def f(x: jax.Array, on: bool):\n    return x * 2\n",
        ),
    )

    PLAIN = (
        (
            "import torch\n\n@torch.no_grad()\ndef f(x: torch.Tensor):\n    y = x * 2\n    return y\n",
            "def f(x: jax.Array):\n    y = x * 2\n    return lax.stop_gradient(y)\n",
        ),
    )

    def leave_Decorator(self, original: cst.Decorator, updated: cst.Decorator) -> cst.Decorator | cst.RemovalSentinel | None:
        name = self._context_name(original.decorator)
        if name in NO_GRADIENT:
            function = self.context.parent()
            if isinstance(function, cst.FunctionDef) and self._stops_at_returns(function):
                return cst.RemoveFromParent()
            return updated.with_changes(decorator=self.context.helper("no_grad"))
        if name in AUTOCAST and not idle(name, original.decorator):
            self.context.hole(original.decorator, "autocast: decide on a dtype policy", "autocast")
            return None
        return cst.RemoveFromParent() if name in DROPPED or name in AUTOCAST else None

    def leave_Return(self, original: cst.Return, updated: cst.Return) -> cst.Return | None:
        function = self.context.functions[-1] if self.context.functions else None
        if function is None or original.value is None or updated.value is None or not self._stops_at_returns(function):
            return None
        if self._is_without_gradient(original.value) or _is_handed_through(original.value, _bound_names(function.body)):
            return None
        return updated.with_changes(value=_stop_gradient(updated.value))

    def _stops_at_returns(self, function: cst.FunctionDef) -> bool:
        """Whether a mirror in plain style says `@torch.no_grad()` of a function at its `return`s: its results are arrays or constants that it
        returns by themselves, and no module keeps what a call computes."""
        repo = self.context.repo
        if (
            not repo.is_plain
            or repo.writes_buffers
            or not any(self._context_name(one.decorator) in NO_GRADIENT for one in function.decorators)
        ):
            return False
        returns = _Returns()
        function.body.visit(returns)
        facts = [self.context.observed(value) for value in returns.values]
        return not returns.yields and all(fact is not None and {"tensor", *_PLAIN} >= set(fact.kinds) for fact in facts)

    def _is_without_gradient(self, value: cst.BaseExpression) -> bool:
        """Whether a value is seen to be an array of whole numbers, or none. Of one that inference found the dtype may not be known."""
        fact = self.context.observed(value)
        if fact is None or "parameter" in fact.kinds:
            return False
        whole = all(dtype.startswith(("int", "uint", "bool")) for dtype in fact.dtypes)
        return whole and (bool(fact.dtypes) or "tensor" not in fact.kinds)

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

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.RemovalSentinel | None:
        """Another name for it: where that is entered, nothing is left."""
        match original:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name())], value=cst.Attribute() as value):
                if self.context.dotted(value) in AUTOCAST and not self.context.functions and not self.context.classes:
                    self.context.drop_holes(value)
                    return cst.RemoveFromParent()
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
            stopping = _StopGradient(self._is_all_of_a_function(original), self._plain_targets(original), _bound_names(original.body))
            body = [self._with_stopped_gradients(statement, stopping) for statement in body]
        first = body[0] if body else None
        if isinstance(first, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
            body[0] = first.with_changes(leading_lines=[*updated.leading_lines, *first.leading_lines])
        return cst.FlattenSentinel(body)

    def _context_name(self, node: cst.BaseExpression) -> str:
        return self.context.dotted(node.func if isinstance(node, cst.Call) else node)

    def _is_all_of_a_function(self, block: cst.With) -> bool:
        """Whether nothing but its `return`s leaves the block: it is the whole body of a function, and changes nothing from outside."""
        function = self.context.functions[-1] if self.context.functions and not any(self.context.classes) else None
        if function is None or not isinstance(function.body, cst.IndentedBlock) or function.body.body[-1] is not block:
            return False
        leaving = _Leaving()
        block.body.visit(leaving)
        return all(map(_is_docstring, function.body.body[:-1])) and not leaving.found

    def _plain_targets(self, block: cst.With) -> frozenset[str]:
        """The names that the block assigns nothing but integers, which have no gradient, or plain Python values, of which `stop_gradient` would make
        arrays."""
        assigned = _Assigned()
        block.body.visit(assigned)
        return frozenset(name for name, values in assigned.values.items() if all(map(self._is_plain, values)))

    def _is_plain(self, value: cst.BaseExpression) -> bool:
        if isinstance(value, (cst.List, cst.Dict)):
            return not value.elements
        if isinstance(value, cst.Call) and self.context.dotted(value.func) == "torch.jit.annotate" and len(value.args) == 2:
            return self._is_plain(value.args[1].value)
        seen = self.context.observed(value)
        if seen is not None and "tensor" in seen.kinds:
            return bool(seen.dtypes) and set(seen.kinds) == {"tensor"} and self._is_without_gradient(value)
        return seen is not None and bool(seen.kinds) and set(seen.kinds) <= _PLAIN

    def _with_stopped_gradients(self, statement: cst.BaseStatement, stopping: _StopGradient) -> cst.BaseStatement:
        result = statement.visit(stopping)
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


class _Returns(cst.CSTVisitor):
    """What a function returns, and whether it is a generator; functions inside it are others."""

    def __init__(self) -> None:
        self.values: list[cst.BaseExpression] = []
        self.yields = False

    def visit_Return(self, node: cst.Return) -> None:
        self.values += [] if node.value is None else [node.value]

    def visit_Yield(self, node: cst.Yield) -> None:
        self.yields = True

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return False


def _is_docstring(statement: cst.BaseStatement | cst.BaseSmallStatement) -> bool:
    parts = statement.body if isinstance(statement, cst.SimpleStatementLine) else ()
    return all(isinstance(part, cst.Expr) and isinstance(part.value, cst.BaseString) for part in parts) and bool(parts)


class _Assigned(cst.CSTVisitor):
    """The values that a block assigns to each name; of one that it unpacks into, the name itself, which was observed as well."""

    def __init__(self) -> None:
        self.values: dict[str, list[cst.BaseExpression]] = {}

    def visit_Assign(self, node: cst.Assign) -> None:
        for target in node.targets:
            if isinstance(target.target, cst.Name):
                self.values.setdefault(target.target.value, []).append(node.value)
                continue
            for part in _targets(target.target):
                if isinstance(part, cst.Name):
                    self.values.setdefault(part.value, []).append(part)


class _Leaving(cst.CSTVisitor):
    """Whether a block hands a value on by another way than `return`: it assigns to an attribute, an item or an outer name, or calls
    something for its effect on what it did not make itself."""

    def __init__(self) -> None:
        self.found = False
        self._own: set[str] = set()

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        names = [part.value for part in _targets(node.target) if isinstance(part, cst.Name)]
        self._own |= set(names)
        self.found |= len(names) < len(_targets(node.target))

    def visit_Expr(self, node: cst.Expr) -> None:
        owner = node.value.func.value if isinstance(node.value, cst.Call) and isinstance(node.value.func, cst.Attribute) else None
        self.found |= not (isinstance(node.value, cst.BaseString) or (isinstance(owner, cst.Name) and owner.value in self._own))

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self.found = True

    visit_Lambda = visit_Global = visit_Nonlocal = visit_Yield = visit_ClassDef = visit_AugAssign = visit_FunctionDef  # type: ignore[assignment]


def _targets(target: cst.BaseExpression) -> list[cst.BaseExpression]:
    if isinstance(target, (cst.Tuple, cst.List)):
        return [part for element in target.elements for part in _targets(element.value)]
    return [target]


class _Bound(cst.CSTVisitor):
    """The names that a block binds or changes in any form."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def _bind(self, target: cst.BaseExpression) -> None:
        self.names |= {part.value for part in _targets(target) if isinstance(part, cst.Name)}

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        self._bind(node.target)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        self._bind(node.target)

    visit_AugAssign = visit_For = visit_CompFor = visit_NamedExpr = visit_AnnAssign  # type: ignore[assignment]

    def visit_AsName(self, node: cst.AsName) -> None:
        self._bind(node.name)

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        self.names.add(node.name.value)
        return True

    def visit_Call(self, node: cst.Call) -> None:
        """`x.mul_(2)` may have become, or become, a new value of `x`."""
        if isinstance(node.func, cst.Attribute) and node.func.attr.value.endswith("_"):
            self._bind(node.func.value)


def _bound_names(block: cst.BaseSuite) -> frozenset[str]:
    bound = _Bound()
    block.visit(bound)
    return frozenset(bound.names)


def _is_handed_through(value: cst.BaseExpression, bound: frozenset[str]) -> bool:
    """Whether a value is a name that a block without gradients does not bind: no operation made it there, and it keeps the gradient that it has."""
    return isinstance(value, cst.Name) and value.value not in bound


class _StopGradient(cst.CSTTransformer):
    """Wraps what is assigned or returned in `lax.stop_gradient`; with `only_returns` what is returned. `plain` names hold no arrays, or integers;
    others than the `bound` ones come from outside."""

    def __init__(self, only_returns: bool, plain: frozenset[str], bound: frozenset[str]) -> None:
        super().__init__()
        self._only_returns, self._plain, self._bound = only_returns, plain, bound

    # An inner function may be called outside of the context.
    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return False

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        # A parameter that is written without a gradient is still one itself: `KeepParameterGradients` has seen to it.
        keeps_gradient = isinstance(updated_node.value, cst.Call) and _last_name(updated_node.value.func) == "keep_gradient"
        targets = [part for target in updated_node.targets for part in _targets(target.target)]
        keeps_gradient |= self._only_returns or all(isinstance(part, cst.Name) and part.value in self._plain for part in targets)
        keeps_gradient |= _is_handed_through(original_node.value, self._bound)
        return updated_node if keeps_gradient else updated_node.with_changes(value=_stop_gradient(updated_node.value))

    def leave_Return(self, original_node: cst.Return, updated_node: cst.Return) -> cst.Return:
        if updated_node.value is None or _is_handed_through(updated_node.value, self._bound):
            return updated_node
        return updated_node.with_changes(value=_stop_gradient(updated_node.value))


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


def _is_numpys(value: cst.BaseExpression) -> bool:
    """Whether this is an array of NumPy's, which has no gradient: `x.numpy()`, `np.asarray(x)`, or a method of such."""
    while isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute):
        match value.func:
            case cst.Attribute(attr=cst.Name("numpy")) | cst.Attribute(value=cst.Name("np" | "numpy"), attr=cst.Name("asarray")):
                return True
        value = value.func.value
    return False


def _stop_gradient(value: cst.BaseExpression) -> cst.BaseExpression:
    # Parameters require their gradients wherever somebody collects them.
    if _collects_parameters(value):
        return value
    # `stop_gradient` would make an array of a constant.
    if (isinstance(value, cst.Name) and value.value in ("None", "True", "False")) or isinstance(
        value, (cst.Integer, cst.Float, cst.SimpleString)
    ):
        return value
    if _is_numpys(value):
        return value
    if isinstance(value, cst.Tuple) and not value.lpar:  # else its elements would be arguments
        value = value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return cst.Call(cst.Attribute(cst.Name("lax"), cst.Name("stop_gradient")), [cst.Arg(value)])
