"""Parameters and buffers: how they are made, read and written."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Sequence

import libcst as cst
import numpy as np

from migrate_agent.tools.rewrite.analysis.argument_writes.parameter_writes import argument_names
from migrate_agent.tools.rewrite.analysis.repo import ClassModel, dotted_name
from migrate_agent.tools.rewrite.rules.apply_tables import tidy
from migrate_agent.tools.rewrite.rules.mutation.handed_back import handed_back
from migrate_agent.tools.rewrite.rules.parameters.own_layout import in_own_layout
from migrate_agent.tools.rewrite.rules.parameters.sequential_parts import in_mirror
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.helpers import properties
from migrate_agent.tools.rewrite.tables.registry import Refuse, layers
from migrate_agent.tools.scan.nodes import walk

PARAMETER_CONTAINERS = frozenset({"module:torch.nn.ParameterList", "module:torch.nn.ParameterDict"})

PARAMETERS = frozenset({"torch.nn.Parameter", "torch.nn.parameter.Parameter"})
TENSOR = re.compile(r"torch\.([A-Z]\w+)?Tensor")
"""What an array is asked to be; a parameter is one too."""
PLAIN_READS = frozenset({"shape", "ndim", "dtype", "size"})
"""Attributes of an `nnx.Variable` that are those of its array."""


def variable(rule: Rule, node: cst.CSTNode) -> bool:
    """Whether an original `self.name` is an `nnx.Variable` in the rewrite: a parameter or a registered buffer; or a name that a function binds to a new
    parameter."""
    context = rule.context
    if isinstance(node, cst.Call):
        return _is_looked_up(rule, node)
    if isinstance(node, cst.Name):
        return _holds_parameter(rule, node.value)
    if not (isinstance(node, cst.Attribute) and context.cls and context.is_self(node.value)):
        return False
    if context.repo.buffer(context.cls, node.attr.value) is not None or context.counts(node.attr.value):
        return True
    kinds = _assigned_kinds(rule, context.cls, node.attr.value)
    # A buffer that is registered under a computed name is assigned nowhere in the source.
    return "parameter" in kinds or (not kinds and _has_computed_name(rule, context.cls, node))


def _holds_parameter(rule: Rule, name: str) -> bool:
    """Whether all that the function at hand binds a name to is one new parameter."""
    function = rule.context.function
    if function is None:
        return False
    # Kept on the function: every name of it is asked for.
    if "_new_parameters" not in function.__dict__:
        function.__dict__["_new_parameters"] = _new_parameters(function, rule)
    return name in function.__dict__["_new_parameters"]


def _new_parameters(function: ast.AST, rule: Rule) -> frozenset[str]:
    """The names that a function binds once, to a new parameter."""
    stored, created = Counter[str](), Counter[str]()
    for node in ast.walk(function):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                stored[name] += 1
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=called)) if (
                dotted_name(called, rule.context.file) in PARAMETERS
            ):
                created[name] += 1
    return frozenset(name for name, count in created.items() if count == stored[name] == 1)


def _is_looked_up(rule: Rule, call: cst.Call) -> bool:
    """Whether this is `getattr(module, name)` that gives a parameter or buffer."""
    context = rule.context
    if not (isinstance(call.func, cst.Name) and call.func.value == "getattr" and len(call.args) == 2 and not context.dotted(call.func)):
        return False
    fact, owner = context.observed(call), call.args[0].value
    if fact is None or not set(fact.kinds) <= {"tensor", "parameter"}:
        return False
    computing = context.cls is not None and any(model.computes_names for model in context.repo.ancestors(context.cls))
    return "parameter" in fact.kinds or (context.is_self(owner) and computing)


def _has_computed_name(rule: Rule, model: ClassModel, node: cst.Attribute) -> bool:
    """Whether `self.<name>` is a tensor that only a `register_buffer` with a computed name can have put there."""
    repo, fact = rule.context.repo, rule.context.observed(node)
    ancestors = list(repo.ancestors(model))
    computing = any(one.computes_names for one in ancestors) and not any(node.attr.value in one.methods for one in ancestors)
    return computing and fact is not None and set(fact.kinds) == {"tensor"}


def storage(rule: Rule, node: cst.BaseExpression) -> cst.BaseAssignTargetExpression:
    """What to assign to, so that the tensor `node` (original) gets a new value in place.

    A variable is written as `x[...]`; the `weight` of a layer whose NNX layout differs through the layer's own property. Raises `Refuse`.
    """
    context = rule.context
    # `w.data` shares its memory with `w`.
    if isinstance(node, cst.Attribute) and node.attr.value in ("data",):
        return storage(rule, node.value)
    if variable(rule, node):
        return subscript(node)
    if isinstance(node, cst.Name):
        # What the function hands back is an array, in branches that saw parameters alone too.
        if node.value in handed_back(context, context.function_key):
            return node
        fact = context.observed(node)
        is_parameter = fact and set(fact.kinds) == {"parameter"}
        return subscript(node) if is_parameter or context.is_handle(node) else node
    if isinstance(node, cst.Attribute):
        if context.is_self(node.value):
            if context.constructing and context.cls and _assigned_kinds(rule, context.cls, node.attr.value) == ("tensor",):
                return node  # an array that the constructor fills, and no variable
            kinds = own_layer(rule)
        else:
            fact = context.observed(node.value)
            kinds = [k.removeprefix("module:") for k in fact.kinds] if fact and all(k.startswith("module:") for k in fact.kinds) else []
        answers = {_is_property(rule, kind, node.attr.value) for kind in kinds}
        # A layer whose layout differs has a property in torch's layout: `[...]` would write to a copy of what it returns.
        if len(answers) == 1 and None not in answers:
            spelled = cst.ensure_type(in_mirror(rule, node), cst.Attribute)
            return spelled if answers.pop() else subscript(spelled)
    raise Refuse(f"whether {cst.Module([]).code_for_node(node)} is a variable was neither observed nor inferred", "unknown-receiver")


def plain_read(rule: Rule, node: cst.BaseExpression, owner: cst.BaseExpression) -> cst.BaseExpression | None:
    """How an attribute of one of Flax's own layers is read, in torch's layout: `m.weight` → `m.kernel[...].T`. None for any other attribute."""
    reads = _plain_reads(rule, node, owner)
    return reads[0] if len(reads) == 1 else None


def _plain_reads(rule: Rule, node: cst.BaseExpression, owner: cst.BaseExpression) -> list[cst.BaseExpression]:
    """How an attribute is read in each of Flax's own layers that its owner may be; nothing where one of them has another spelling or none."""
    if not isinstance(node, cst.Attribute) or rule.context.is_self(node.value):
        return []
    fact, plain = rule.context.observed(node.value), rule.context.plain
    # In code that did not run, the name tells what the analysis has taken it for.
    name = node.value.attr.value if isinstance(node.value, cst.Attribute) else ""
    kinds = {kind.removeprefix("module:") for kind in fact.kinds} if fact else plain.by_name.get(name, frozenset())
    if not kinds & plain.kinds or not kinds <= layers().keys():
        return []
    # A helper that keeps the parameter as a variable may be filled beside Flax's own layers.
    templates = {_variable(kind, node.attr.value, kind in plain.kinds) for kind in kinds}
    return [] if "" in templates else [rule.context.build(template, self=owner) for template in sorted(templates)]


def _written_plainly(rule: Rule, node: cst.BaseExpression, value: cst.BaseExpression) -> cst.BaseSmallStatement | None:
    """`m.weight` → `m.kernel[...] = value.T`, for one of Flax's own layers."""
    while isinstance(node, cst.Attribute) and node.attr.value == "data":
        node = node.value
    reads = _plain_reads(rule, node, in_mirror(rule, node.value)) if isinstance(node, cst.Attribute) and _reads_the_same(node.value) else []
    if len(reads) > 1:
        return _written_alike(rule, node, value, reads)
    match reads[0] if reads else None:
        case cst.Attribute(value=cst.Subscript() as target, attr=cst.Name(value="T")):
            own = in_own_layout(rule, value, reads, target)
            return cst.Assign([cst.AssignTarget(target)], own or cst.Attribute(_whole(value), cst.Name("T")))
        case cst.Call(func=cst.Attribute(value=cst.Subscript() as target), args=[*axes]):
            order = [str(axis) for axis in np.argsort([int(cst.Module([]).code_for_node(axis.value)) for axis in axes])]
            back = cst.Call(cst.Attribute(_whole(value), cst.Name("transpose")), tidy([cst.Arg(cst.Integer(axis)) for axis in order]))
            return cst.Assign([cst.AssignTarget(target)], in_own_layout(rule, value, reads, target) or back)
        case cst.Subscript() as target:
            return cst.Assign([cst.AssignTarget(target)], value)
    return None


def _variable(kind: str, attribute: str, is_plain: bool) -> str:
    row = layers()[kind]
    if is_plain:
        return row.plain_reads.get(attribute, "")
    variable = row.params.get(attribute, "")
    return f"{variable}[...].T" if variable.endswith((".kernel", ".scale", ".embedding")) else ""


def _written_alike(
    rule: Rule, node: cst.BaseExpression, value: cst.BaseExpression, reads: Sequence[cst.BaseExpression]
) -> cst.BaseSmallStatement | None:
    """A value for the weight of several layers with names and layouts of their own, where it is alike in each; None for any other value."""
    targets = [target for read in reads if (target := _kernel(read)) is not None]
    if len(targets) < len(reads):
        return None
    target = targets[0]
    if not all(one.deep_equals(target) for one in targets):
        owner = in_mirror(rule, cst.ensure_type(node, cst.Attribute).value)
        target = cst.ensure_type(rule.context.build("vendored.weight_of({owner})[...]", owner=owner), cst.Subscript)
    own = in_own_layout(rule, value, [*reads, node], target)
    return cst.Assign([cst.AssignTarget(target)], own) if own else None


def _kernel(read: cst.BaseExpression) -> cst.Subscript | None:
    """The variable in how a weight is read: `m.kernel[...]` in `m.kernel[...].T` and `m.kernel[...].transpose(…)`, `m.scale[...]`."""
    match read:
        case cst.Call(func=cst.Attribute(value=cst.Subscript() as weight)):
            return weight
        case cst.Attribute(value=cst.Subscript() as weight):
            return weight
        case cst.Subscript():
            return read
    return None


def _whole(value: cst.BaseExpression) -> cst.BaseExpression:
    if isinstance(value, (cst.Call, cst.Name, cst.Attribute, cst.Subscript)) or value.lpar:
        return value
    return value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def written(rule: Rule, node: cst.BaseExpression, value: cst.BaseExpression) -> cst.BaseSmallStatement:
    """The statement that gives the tensor `node` (original) a new value in place, whatever holds it. Raises `Refuse`."""
    if (plain := _written_plainly(rule, node, value)) is not None:
        return plain
    try:
        return cst.Assign([cst.AssignTarget(storage(rule, node))], value)
    except Refuse:
        return overwritten(rule, node, value)


def overwritten(rule: Rule, node: cst.BaseExpression, value: cst.BaseExpression) -> cst.BaseSmallStatement:
    """`m.w` → `overwrite(m, "w", value)`: for what is a variable in one class and a property in another. Raises `Refuse`."""
    if (plain := _written_plainly(rule, node, value)) is not None:
        return plain
    while isinstance(node, cst.Attribute) and node.attr.value == "data":
        node = node.value
    match node:
        # The owner is taken from the source, so it must be one that reads the same after rewriting.
        case cst.Attribute(value=owner, attr=cst.Name(value=name)) if not rule.context.is_self(owner) and _reads_the_same(owner):
            key: cst.BaseExpression = cst.SimpleString(f'"{name}"')
        case cst.Subscript(value=owner, slice=[cst.SubscriptElement(slice=cst.Index(value=key))]) if _reads_the_same(
            owner
        ) and _reads_the_same(key):
            pass
        case _:
            text = cst.Module([]).code_for_node(node)
            raise Refuse(f"whether {text} is a variable was neither observed nor inferred", "unknown-receiver")
    return cst.Expr(rule.context.build("vendored.overwrite({owner}, {key}, {value})", owner=in_mirror(rule, owner), key=key, value=value))


def _reads_the_same(node: cst.BaseExpression) -> bool:
    """Whether an expression reads the same in the rewrite: names, their attributes, and literals."""
    if isinstance(node, cst.Attribute):
        return _reads_the_same(node.value)
    if isinstance(node, cst.Subscript) and len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index):
        return _reads_the_same(node.value) and _reads_the_same(node.slice[0].slice.value)
    if isinstance(node, cst.UnaryOperation):
        return isinstance(node.expression, cst.Integer)
    return isinstance(node, (cst.Name, cst.Integer, cst.SimpleString))


def own_layer(rule: Rule) -> list[str]:
    """The torch layers that the enclosing class derives from."""
    context = rule.context
    if context.cls is None:
        return []
    return [base for model in context.repo.ancestors(context.cls) for base in context.repo.bases(model) if base in layers()]


def _is_property(rule: Rule, dotted: str, name: str) -> bool | None:
    """Whether an attribute of a module class is a property that can be set (True) or a variable (False); None where unknown."""
    if dotted in layers():
        return name in properties(layers()[dotted].vendored)
    model = rule.context.repo.class_of(dotted)
    if model is None:
        return None
    if rule.context.repo.buffer(model, name) is not None or "parameter" in _assigned_kinds(rule, model, name):
        return False
    bases = [base for current in rule.context.repo.ancestors(model) for base in rule.context.repo.bases(current) if base in layers()]
    return _is_property(rule, bases[0], name) if bases else None


def _assigned_kinds(rule: Rule, model: ClassModel, name: str) -> tuple[str, ...]:
    fact = rule.context.repo.attribute(model, name)
    return fact.kinds if fact else ()


def _is_bias(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "bias"


def trained(rule: Rule, name: str) -> bool:
    """Whether `self.<name>` of the class at hand is a parameter, and no buffer."""
    context = rule.context
    if context.cls is None or context.repo.buffer(context.cls, name) is not None:
        return False
    return "parameter" in _assigned_kinds(rule, context.cls, name)


class MakeParameters(Rule):
    """Make parameters variables: `nn.Parameter(x)` → `nnx.Param(x)`, with `requires_grad=False` → `nnx.Variable(x)`.

    `.requires_grad_(False)` behind the call counts too. Declines (a hole) without the data.
    """

    KEEP = ("def f(Parameter, x):\n    return Parameter(x)\n",)
    CHANGE = (
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.w = nn.Parameter(torch.zeros(3))\n\n    def forward(self, x):\n        return x * self.w\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.w = nnx.Param(jnp.zeros(3))\n"
            "\n    def __call__(self, x):\n        return x * self.w[...]\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, trained):\n        super().__init__()\n"
            "        self.a = nn.Parameter(torch.zeros(3)).requires_grad_(False)\n        self.b = nn.Parameter(torch.zeros(3)).requires_grad_(trained)\n",
            "class M(nnx.Module):\n    def __init__(self, trained, *, rngs: nnx.Rngs):\n        self.a = nnx.Variable(jnp.zeros(3))\n"
            "        self.b = (nnx.Param if trained else nnx.Variable)(jnp.zeros(3))\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        match original.func, updated.func:
            case cst.Attribute(value=cst.Call() as made, attr=cst.Name(value="requires_grad_")), cst.Attribute(value=cst.Call() as new):
                if self.context.dotted(made.func) in PARAMETERS and len(new.args) == 1:
                    return self._construct(new.args[0].value, updated.args[0].value if updated.args else None)
        if self.context.dotted(original.func) not in PARAMETERS:
            return None
        named = {a.keyword.value: a.value for a in updated.args if a.keyword}
        positional = [a.value for a in updated.args if not a.keyword and not a.star]
        data = positional[0] if positional else named.get("data")
        grad = positional[1] if len(positional) > 1 else named.get("requires_grad")
        if data is None or any(a.star for a in updated.args):
            self.context.hole(original, "nn.Parameter without its data", "unsupported")
            return None
        return self._construct(data, grad)

    def _construct(self, data: cst.BaseExpression, grad: cst.BaseExpression | None) -> cst.BaseExpression:
        if grad is not None and not (isinstance(grad, cst.Name) and grad.value in ("True", "False")):
            return self.context.build("(nnx.Param if {trained} else nnx.Variable)({data})", trained=grad, data=data)
        # What is no `nnx.Param` has no gradient and no optimiser state, as torch's frozen parameters.
        kind = "nnx.Variable" if isinstance(grad, cst.Name) and grad.value == "False" else "nnx.Param"
        return self.context.build(f"{kind}({{data}})", data=data)


class ReadVariables(Rule):
    """Read variables as arrays: `self.w` → `self.w[...]`; outside the constructor, `self.w = x` → `self.w[...] = x`.

    Declines where the variable itself is meant (`self.w is None`, `self.w.shape`, `isinstance`). See
    `SetBuffers` for buffers that are set to something of another shape, or in the constructor.
    """

    KEEP = ("class Plain:\n    def f(self):\n        return self.w\n",)
    CHANGE = (
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.register_buffer('n', torch.zeros(3))\n\n    def forward(self, x):\n        self.n = self.n + 1\n        return x[:, : self.n.shape[0]]\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.n = nnx.Variable(jnp.zeros(3))\n\n"
            "    def __call__(self, x):\n        self.n[...] = self.n[...] + 1\n        return x[:, : self.n.shape[0]]\n",
        ),
        (
            "import torch\nfrom torch import nn\nfrom einops import rearrange\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.w = nn.Parameter(torch.zeros(3, 2))\n\n    def forward(self, x):\n        w, n = self.w, x.shape[0]\n"
            "        return rearrange(w, 'i j -> j i')\n",
            "from einops import rearrange\n\nclass M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.w = nnx.Param(jnp.zeros((3, 2)))\n\n"
            "    def __call__(self, x):\n        w, n = self.w[...], x.shape[0]\n        return rearrange(w, 'i j -> j i')\n",
        ),
        (
            "import torch\nfrom torch import nn\nfrom einops import rearrange\n\nclass M(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
            "        self.ws = nn.ParameterList([nn.Parameter(torch.zeros(3, 2)) for _ in range(n)])\n\n    def forward(self, x):\n"
            "        return x + rearrange(self.ws[0], 'i j -> j i')\n",
            "from einops import rearrange\n\nclass M(nnx.Module):\n    def __init__(self, n, *, rngs: nnx.Rngs):\n"
            "        self.ws = ParameterList([nnx.Param(jnp.zeros((3, 2))) for _ in range(n)])\n\n    def __call__(self, x):\n"
            "        return x + rearrange(self.ws[0][...], 'i j -> j i')\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.register_buffer('n', torch.zeros(3))\n\n    def forward(self, x):\n        return isinstance(self.n, torch.Tensor)\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.n = nnx.Variable(jnp.zeros(3))\n\n"
            "    def __call__(self, x):\n        return isinstance(self.n[...], jax.Array)\n",
        ),
        (
            "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d, bias):\n"
            "        super().__init__()\n        if bias:\n            self.bias = nn.Parameter(torch.zeros(d))\n        else:\n"
            "            self.register_parameter('bias', None)\n\n    def forward(self, x, w):\n        return F.linear(x, w, self.bias)\n",
            "class M(nnx.Module):\n    def __init__(self, d, bias, *, rngs: nnx.Rngs):\n        if bias:\n"
            "            self.bias = nnx.Param(jnp.zeros(d))\n        else:\n            self.bias = None\n\n"
            "    def __call__(self, x, w):\n        return linear(x, w, bias=value_of(self.bias))\n",
        ),
        (
            "import torch\nfrom torch import nn\n\ndef add(x, bias=False):\n    return x + bias if isinstance(bias, nn.Parameter) else x\n\n"
            "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.b = nn.Parameter(torch.zeros(3))\n\n"
            "    def forward(self, x):\n        return add(x, self.b)\n",
            "def add(x, bias=False):\n    return x + bias if isinstance(bias, nnx.Param) else x\n\n"
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.b = nnx.Param(jnp.zeros(3))\n\n"
            "    def __call__(self, x):\n        return add(x, self.b)\n",
        ),
    )

    def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> cst.BaseExpression | None:
        if is_buffer_of_other(self, original) and not isinstance(self.context.parent(), (cst.Attribute, cst.AssignTarget, cst.Del)):
            return None if self._means_variable(original) else subscript(updated)
        if not variable(self, original) or self._means_variable(original):
            return None
        # The container would hold the array of this moment, and a later write to the variable would not show there.
        if self._is_put_in_container():
            reason = "is kept in a container too, where it would stay what it is now: read the attribute where it is needed"
            self.context.hole(original, f"{cst.Module([]).code_for_node(original)} {reason}", "tied-weight")
            return None
        # A number or `None` has no `[...]`.
        if self._may_be_number(original) or (isinstance(self.context.parent(), cst.Arg) and self._may_be_none(original)):
            return self.context.build("vendored.value_of({x})", x=updated)
        return subscript(updated)

    def _is_put_in_container(self) -> bool:
        """Whether a constructor keeps the attribute at hand in a plain list, tuple or dictionary: `self.table = {"a": self.a}`."""
        around = iter(reversed(self.context.stack))
        inner = (cst.Element, cst.DictElement, cst.List, cst.Tuple, cst.Dict)
        node = next((node for node in around if not isinstance(node, inner)), None)
        if not isinstance(self.context.parent(), inner) or not isinstance(node, cst.Assign) or not self.context.constructing:
            return False
        return any(isinstance(t.target, cst.Attribute) and self.context.is_self(t.target.value) for t in node.targets)

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        return subscript(updated) if variable(self, original) and not self._means_variable(original) else None

    def leave_Name(self, original: cst.Name, updated: cst.Name) -> cst.BaseExpression | None:
        """A parameter that a loop hands out, given to a function that knows no `nnx.Variable`."""
        fact, is_keyword = self.context.observed(original), getattr(self.context.parent(), "keyword", None) is original
        kinds = set(fact.kinds) if fact is not None else set()
        if "parameter" not in kinds or not kinds <= {"parameter", "tensor"} or is_keyword:
            return None
        if not self._is_given_out() or self._holds_array(original.value):
            return None
        return subscript(updated)

    def leave_Subscript(self, original: cst.Subscript, updated: cst.Subscript) -> cst.BaseExpression | None:
        """A parameter of a list or a dictionary of them, given to such a function: `rearrange(self.scales[0], …)`."""
        holder = self.context.observed(original.value)
        of_parameters = holder is not None and bool(holder.kinds) and set(holder.kinds) <= PARAMETER_CONTAINERS
        is_slice = any(isinstance(one.slice, cst.Slice) for one in original.slice)
        return subscript(updated) if of_parameters and not is_slice and self._is_given_out() else None

    def _is_given_out(self) -> bool:
        """Whether the expression at hand is an argument of a function of einops or of torch, or in a list that is one: these take arrays."""
        around = [node for node in self.context.stack[::-1] if not isinstance(node, (cst.Element, cst.List, cst.Tuple))][:2]
        if len(around) < 2 or not isinstance(around[0], cst.Arg) or not isinstance(around[1], cst.Call):
            return False
        dotted = self.context.dotted(around[1].func)
        return dotted.startswith(("einops.", "torch.")) and (
            not dotted.startswith("torch.nn.") or dotted.startswith("torch.nn.functional.")
        )

    def _holds_array(self, name: str) -> bool:
        """Whether all that binds this local name is `name = self.w`, which gives the array, or computes."""
        context = self.context
        function = context.function
        if function is None or context.cls is None or name in argument_names(function):
            return False
        own = context.cls.own
        values = [value for node in walk(function) if isinstance(node, ast.Assign) for value in values_given_to(node, name)]
        stores = sum(isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store) for node in walk(function))
        return 0 < stores == len(values) and all(id(value) in own or isinstance(value, ast.Call | ast.BinOp) for value in values)

    def _may_be_number(self, node: cst.Attribute) -> bool:
        """Whether the attribute may hold a number (`self.scale = 1` unless it is learned)."""
        context = self.context
        if context.counts(node.attr.value):
            return False
        fact = context.cls and context.repo.attribute(context.cls, node.attr.value)
        return bool(fact) and bool(set(fact.kinds) & {"int", "float", "bool", "complex"})  # type: ignore[union-attr]

    def _may_be_none(self, node: cst.Attribute) -> bool:
        """Whether the constructor may leave the attribute `None`; the bias of a layer may be that."""
        model = self.context.cls
        if model is None:
            return False
        statements = walk(model.methods["__init__"]) if "__init__" in model.methods else ()
        from_layers = [node for node in statements if isinstance(node, ast.Assign) and _is_bias(node.value)]
        attributes = {target.attr for assign in from_layers for target in assign.targets if isinstance(target, ast.Attribute)}
        if may_be_unset(self, node.attr.value):
            return True
        return node.attr.value in attributes or "none" in _assigned_kinds(self, model, node.attr.value)

    def _means_variable(self, node: cst.Attribute | cst.Call) -> bool:
        parent, grand = self.context.parent(), self.context.parent(2)
        if isinstance(parent, cst.AssignTarget):
            return self.context.constructing or self._replaces_variable(node, grand)
        if isinstance(node, cst.Call) and isinstance(parent, cst.Assign) and self.context.is_parameter_handle(parent.targets[0].target):
            return True
        if isinstance(parent, (cst.AnnAssign, cst.Del)):
            return True
        if isinstance(parent, cst.Element) and self.context.unpacked_into(node):
            return self.context.constructing
        if isinstance(parent, cst.Attribute):
            # `size` is a method in torch and a number in JAX: it must be asked of the array, whose call the tables rewrite.
            return parent.attr.value in PLAIN_READS - {"size"}
        if isinstance(parent, cst.Subscript) and parent.value is node:
            # A variable is indexed as its array is; only a write needs the array itself, to make a new one of it.
            return not self._is_written(grand)
        if isinstance(parent, (cst.ComparisonTarget, cst.Comparison)):
            return self._is_none_test(parent)
        if isinstance(parent, cst.Arg) and isinstance(grand, cst.Call):
            # A parameter is a `torch.Tensor`, but an `nnx.Variable` is no `jax.Array`.
            if _callee(grand) == "isinstance" and len(grand.args) == 2 and TENSOR.fullmatch(self.context.dotted(grand.args[1].value)):
                return False
            takes_it = self.context.dotted(grand.func).startswith("torch.nn.init.") or _callee(grand) in (
                "isinstance",
                "exists",
                "callable",
            )
            return takes_it or self._is_tested(grand, parent)
        if isinstance(parent, (cst.Assign,)) and len(parent.targets) == 1 and isinstance(parent.targets[0].target, cst.Attribute):
            return self.context.constructing and self.context.is_self(parent.targets[0].target.value) is False
        return False

    def _is_tested(self, call: cst.Call, argument: cst.Arg) -> bool:
        """Whether a function of the repository asks of the argument whether it is a parameter: an array is none."""
        definition = self.context.repo.resolve(self.context.dotted(call.func))
        function = definition[0].functions.get(definition[1]) if definition else None
        if function is None or definition is None or "." in definition[1]:
            return False
        names = argument_names(function)
        at = next((at for at, one in enumerate(call.args) if one is argument), len(names))
        name = argument.keyword.value if argument.keyword else names[at] if at < len(names) else ""
        return any(
            ast.unparse(node.args[0]) == name and dotted_name(node.args[1], definition[0]) in PARAMETERS
            for node in walk(function)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance" and len(node.args) == 2
        )

    def _is_written(self, grand: cst.CSTNode | None) -> bool:
        return isinstance(grand, (cst.AssignTarget, cst.AugAssign))

    def _replaces_variable(self, node: cst.Attribute | cst.Call, assign: cst.CSTNode | None) -> bool:
        """Assigning a Parameter (or None) replaces the variable itself, and so does all that is assigned to a buffer that may be None."""
        value = assign.value if isinstance(assign, cst.Assign) else None
        if value is None:
            return False
        if isinstance(node, cst.Attribute) and may_be_unset(self, node.attr.value):
            return True
        if _is_none(value) or (isinstance(value, cst.Call) and self.context.dotted(value.func) in PARAMETERS):
            return True
        fact = self.context.observed(value)
        return bool(fact and set(fact.kinds) <= {"parameter", "none"})

    def _is_none_test(self, node: cst.CSTNode) -> bool:
        text = cst.Module([]).code_for_node(node)
        return " None" in text


def is_buffer_of_other(rule: Rule, node: cst.CSTNode) -> bool:
    """Whether this is a buffer of another module, whose class the repository defines."""
    if not isinstance(node, cst.Attribute) or rule.context.is_self(node.value):
        return False
    fact, repo = rule.context.observed(node.value), rule.context.repo
    if fact is None or not all(kind.startswith("module:") for kind in fact.kinds):
        return False
    models = [repo.class_of(kind.removeprefix("module:")) for kind in fact.kinds]
    return all(model is not None and repo.buffer(model, node.attr.value) is not None for model in models)


def may_be_unset(rule: Rule, name: str) -> bool:
    """Whether the class, or one that it derives from, registers this parameter or buffer as None: there is no variable to write into."""
    context = rule.context
    return context.cls is not None and any(registers_none(one, name) for one in context.repo.ancestors(context.cls))


def _is_none(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name) and node.value == "None"


def registers_none(model: ClassModel, name: str) -> bool:
    """Whether the class says `self.register_parameter("<name>", None)`, or so of a buffer."""
    calls = [node for node in walk(model.node) if isinstance(node, ast.Call) and id(node.func) in model.own]
    return any(
        isinstance(call.func, ast.Attribute)
        and call.func.attr.startswith("register_")
        and [getattr(argument, "value", "") for argument in _name_and_value(call)] == [name, None]
        for call in calls
    )


def _name_and_value(call: ast.Call) -> list[ast.expr]:
    """What `register_buffer` or `register_parameter` is given first, whether its keywords are written or not."""
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    arguments = [*call.args[:2], *(named[key] for key in ("name", "tensor", "param") if key in named)]
    return arguments if len(arguments) == 2 else []


def values_given_to(node: ast.Assign, name: str) -> list[ast.expr]:
    """What an assignment gives a name, alone or in a tuple beside others."""
    target = node.targets[0]
    if isinstance(target, ast.Name):
        return [node.value] if target.id == name else []
    if not isinstance(target, ast.Tuple) or not isinstance(node.value, ast.Tuple) or len(target.elts) != len(node.value.elts):
        return []
    return [value for one, value in zip(target.elts, node.value.elts, strict=True) if isinstance(one, ast.Name) and one.id == name]


def subscript(node: cst.BaseExpression) -> cst.Subscript:
    """`node[...]`."""
    return cst.Subscript(node, [cst.SubscriptElement(cst.Index(cst.Ellipsis()))])


def _callee(call: cst.Call) -> str:
    return call.func.value if isinstance(call.func, cst.Name) else ""
