"""Attributes that hold a module or an array only later: NNX decides at the first assignment whether an attribute is data."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import span_of
from migrate_agent.tools.rewrite.analysis.repo import ClassModel, FunctionNode
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.registry import functional_layers, layers
from migrate_agent.tools.scan.nodes import other_branches, walk

REGISTERING = frozenset({"register_buffer", "register_parameter", "add_module", "register_module"})


class MarkLateAttributes(Rule):
    """Mark attributes that hold modules or arrays only later: `self.down = None` → `self.down = nnx.data(None)`.

    `self.norm = deep`, then `self.norm = nn.LayerNorm(d)` → `self.norm = nnx.data(LayerNorm(d, rngs=rngs))`:
    NNX decides at the first assignment whether an attribute is data. It counts too what methods, subclasses and
    registrations assign, and what an empty dictionary is given: `self.kept = {}` → `self.kept = nnx.data({})`. A layer that has become a
    function is no data either: after `self.skip = nnx.identity`, a layer is `nnx.data(…)`; after a layer, the function is `nnx.static(…)`.
    Declines where nothing else is assigned.
    """

    KEEP = ("class Plain:\n    def __init__(self, x):\n        self.down = None\n        self.down = x\n",)
    CHANGE = (
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d, deep):\n        super().__init__()\n        self.down = None\n"
            "        self.size = None\n        if deep:\n            self.down = nn.Linear(d, d)\n            self.size = 3\n",
            "class M(nnx.Module):\n    def __init__(self, d, deep, *, rngs: nnx.Rngs):\n        self.down = nnx.data(None)\n"
            "        self.size = None\n        if deep:\n            self.down = Linear(d, d, rngs=rngs)\n            self.size = 3\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d, deep: bool):\n        super().__init__()\n"
            "        self.down = deep\n        if self.down:\n            self.down = nn.Linear(d, d)\n",
            "class M(nnx.Module):\n    def __init__(self, d, deep: bool, *, rngs: nnx.Rngs):\n        self.down = deep\n"
            "        if self.down:\n            self.down = nnx.data(Linear(d, d, rngs=rngs))\n",
        ),
        (
            "from typing import Optional\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
            "        self.a = self.b = None\n        self.c, self.d = None, d\n        self.e: Optional[nn.Module] = None\n"
            "        self.register_parameter('f', None)\n        self.fill()\n\n"
            "    def fill(self):\n        self.c = self.e = nn.ReLU()\n        self.f = nn.Parameter(self.d)\n\n\n"
            "class N(M):\n    def fill(self):\n        self.b = nn.ReLU()\n",
            "from typing import Optional\n\nclass M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n"
            "        self.b = nnx.data(None)\n        self.a = None\n        self.c, self.d = nnx.data(None), d\n"
            "        self.e: Optional[nnx.Module] = nnx.data(None)\n        self.f = nnx.data(None)\n        self.fill()\n\n"
            "    def fill(self):\n        self.c = self.e = jax.nn.relu\n        self.f = nnx.Param(self.d)\n\n\n"
            "class N(M):\n    def fill(self):\n        self.b = jax.nn.relu\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d, norm=None):\n        super().__init__()\n"
            "        self.norm = norm\n        if self.norm is None:\n            self.norm = nn.LayerNorm(d)\n",
            "class M(nnx.Module):\n    def __init__(self, d, norm=None, *, rngs: nnx.Rngs):\n        self.norm = norm\n"
            "        if self.norm is None:\n            self.norm = nnx.data(LayerNorm(d, rngs=rngs))\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
            "        self.norm, self.act = self.choose()\n        self.norm = nn.LayerNorm(d)\n\n"
            "    def choose(self):\n        return nn.LayerNorm, nn.GELU\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.norm, self.act = self.choose()\n"
            "        self.norm = nnx.data(LayerNorm(d, rngs=rngs))\n\n    def choose(self):\n        return LayerNorm, GELU\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
            "        self.kept, self.sizes = d, {}\n        self.kept = {}\n        self.kept['a'] = nn.Parameter(torch.ones(3))\n"
            "        self.sizes = {}\n        self.sizes['a'] = 3\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.kept, self.sizes = d, {}\n"
            "        self.kept = nnx.data({})\n        self.kept['a'] = nnx.Param(jnp.ones(3))\n"
            "        self.sizes = {}\n        self.sizes['a'] = 3\n",
        ),
    )
    PLAIN = (
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
            "        self.head = nn.LayerNorm(d)\n        self.act = nn.ReLU()\n\n\nclass N(M):\n    def __init__(self, d):\n"
            "        super().__init__(d)\n        self.head = nn.Identity()\n        self.act = nn.Tanh()\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.head = LayerNorm(d, rngs=rngs)\n"
            "        self.act = jax.nn.relu\n\n\nclass N(M):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n"
            "        super().__init__(d, rngs=rngs)\n        self.head = nnx.static(nnx.identity)\n        self.act = jnp.tanh\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, act=None):\n        super().__init__()\n"
            "        self.act = act\n        if act is None:\n            self.act = nn.Identity()\n",
            "class M(nnx.Module):\n    def __init__(self, act=None, *, rngs: nnx.Rngs):\n        self.act = act\n"
            "        if act is None:\n            self.act = nnx.identity\n",
        ),
        (
            # The sum is no intermediate: the class that derives adds to it.
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.cost = 0.0\n        self.depth = 3\n\n    def forward(self, x: torch.Tensor):\n        self.cost = x.mean()\n        return x\n\n\n"
            "class N(M):\n    def forward(self, x: torch.Tensor):\n        self.cost = 0\n        self.cost += x.mean()\n        return x\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.cost = nnx.data(0.0)\n"
            "        self.depth = 3\n\n    def __call__(self, x: jax.Array):\n        self.cost = jnp.mean(x)\n        return x\n\n\n"
            "class N(M):\n    def __call__(self, x: jax.Array):\n        self.cost = 0\n        self.cost += jnp.mean(x)\n        return x\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d, deep):\n        super().__init__()\n"
            "        self.skip = nn.Identity()\n        self.act = nn.ReLU()\n        if deep:\n"
            "            self.skip = nn.Sequential(nn.Linear(d, d), nn.ReLU())\n            self.act = nn.GELU()\n",
            "class M(nnx.Module):\n    def __init__(self, d, deep, *, rngs: nnx.Rngs):\n        self.skip = nnx.identity\n"
            "        self.act = jax.nn.relu\n        if deep:\n"
            "            self.skip = nnx.data(\n                nnx.Sequential(\n"
            "                    nnx.Linear(d, d, kernel_init=fan_in_kernel, bias_init=fan_in_bias(d), rngs=rngs),\n"
            "                    jax.nn.relu,\n                )\n            )\n"
            "            self.act = partial(jax.nn.gelu, approximate=False)\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d, deep):\n        super().__init__()\n"
            "        self.norm = nn.LayerNorm(d)\n        if not deep:\n            self.norm = nn.Identity()\n",
            "class M(nnx.Module):\n    def __init__(self, d, deep, *, rngs: nnx.Rngs):\n"
            "        self.norm = LayerNorm(d, rngs=rngs)\n"
            "        if not deep:\n            self.norm = nnx.static(nnx.identity)\n",
        ),
        (
            "from torch import nn\n\nclass Prior(nn.Module):\n    pass\n\nclass M(nn.Module):\n    def __init__(self, prior=None):\n"
            "        super().__init__()\n        self.prior = prior\n        for name in ('prior', 'other'):\n"
            "            if getattr(self, name, None) is None:\n                setattr(self, name, Prior())\n            setattr(self, name + '_', Prior())\n",
            "class Prior(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        pass\n\n\n"
            "class M(nnx.Module):\n    def __init__(self, prior=None, *, rngs: nnx.Rngs):\n"
            "        self.prior = prior\n        for name in ('prior', 'other'):\n            if getattr(self, name, None) is None:\n"
            "                setattr(self, name, nnx.data(Prior(rngs=rngs)))\n            setattr(self, name + '_', Prior(rngs=rngs))\n",
        ),
        (
            # One of the two runs, so that nothing is assigned twice.
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d, deep):\n        super().__init__()\n"
            "        if deep:\n            self.norm = nn.LayerNorm(d)\n        else:\n            self.norm = nn.Identity()\n",
            "class M(nnx.Module):\n    def __init__(self, d, deep, *, rngs: nnx.Rngs):\n        if deep:\n"
            "            self.norm = LayerNorm(d, rngs=rngs)\n        else:\n            self.norm = nnx.identity\n",
        ),
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        # Class id and attribute → line, and whether it is given a function, of the layers that it is given.
        self._layers: dict[tuple[str, str], list[tuple[int, bool]]] = {}

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.BaseSmallStatement | None:
        context = self.context
        target = original.targets[0].target
        if len(original.targets) > 1:
            return self._mark_each(original, updated)
        if isinstance(target, cst.Tuple):
            return self._mark_elements(original, target, updated)
        if isinstance(target, cst.Attribute) and (status := self._other_status(original, target, updated)):
            return updated.with_changes(value=context.build(status, value=updated.value))
        if isinstance(target, cst.Attribute) and self._held_plain_value(original, target, updated.value):
            return updated.with_changes(value=context.build("nnx.data({value})", value=updated.value))
        if (
            isinstance(target, cst.Attribute)
            and isinstance(updated.value, cst.Dict)
            and not updated.value.elements
            and self._is_filled(target)
        ):
            return updated.with_changes(value=context.build("nnx.data({value})", value=updated.value))
        if self._starts_number(target, original.value):
            return updated.with_changes(value=context.build("nnx.data({value})", value=updated.value))
        return updated.with_changes(value=self._marked()) if self._starts_none(target, original.value, updated.value) else None

    def leave_AnnAssign(self, original: cst.AnnAssign, updated: cst.AnnAssign) -> cst.AnnAssign | None:
        if original.value is None or updated.value is None or not self._starts_none(original.target, original.value, updated.value):
            return None
        return updated.with_changes(value=self._marked())

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.Call | None:
        """`setattr(self, name, Prior())`, where the method has asked for `getattr(self, name)`, which may have been static."""
        match original:
            case cst.Call(func=cst.Name("setattr"), args=[cst.Arg(value=owner), cst.Arg(value=name), cst.Arg(value=value)]):
                if not self.context.is_module(owner) or not self._is_asked_for(name) or not self._is_always_data(value):
                    return None
                marked = updated.args[2].with_changes(value=self.context.build("nnx.data({value})", value=updated.args[2].value))
                return updated.with_changes(args=[*updated.args[:2], marked])
        return None

    def _is_asked_for(self, name: cst.BaseExpression) -> bool:
        function, text = self.context.function, cst.Module([]).code_for_node(name)
        calls = [node for node in walk(function) if isinstance(node, ast.Call)] if function else []
        asking = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "getattr" and len(call.args) > 1]
        return any(ast.unparse(call.args[1]) == text for call in asking)

    def _is_always_data(self, value: cst.BaseExpression) -> bool:
        """Whether a value is an array or a module that is no layer, which may become a function."""
        fact = self.context.observed(value)
        repo = self.context.repo
        return fact is not None and all(
            kind in ("tensor", "parameter") or (kind.startswith("module:") and repo.class_of(kind.removeprefix("module:")))
            for kind in fact.kinds
        )

    def _mark_each(self, original: cst.Assign, updated: cst.Assign) -> cst.BaseSmallStatement | None:
        """`self.a = self.b = None`: one statement for each that holds data later, since the others stay static."""
        late = [self._starts_none(target.target, original.value, updated.value) for target in original.targets]
        if not any(late):
            return None
        targets = list(zip(updated.targets, late, strict=True))
        rest = [target for target, marked in targets if not marked]
        statements = [cst.Assign([target], self._marked()) for target, marked in targets if marked]
        return cst.FlattenSentinel(statements + ([cst.Assign(rest, updated.value)] if rest else []))  # type: ignore[return-value]

    def _mark_elements(self, original: cst.Assign, target: cst.Tuple, updated: cst.Assign) -> cst.Assign | None:
        """`self.a, self.b = None, None`."""
        values, new = original.value, updated.value
        if not (isinstance(values, cst.Tuple) and isinstance(new, cst.Tuple) and len(values.elements) == len(target.elements)):
            return None
        rows = list(zip(target.elements, values.elements, new.elements, strict=True))
        late = [self._starts_none(one.value, value.value, changed.value) for one, value, changed in rows]
        elements = [row[2].with_changes(value=self._marked()) if marked else row[2] for row, marked in zip(rows, late, strict=True)]
        return updated.with_changes(value=new.with_changes(elements=elements)) if any(late) else None

    def _marked(self) -> cst.BaseExpression:
        return self.context.build("nnx.data(None)")

    def _starts_none(self, target: cst.BaseExpression, value: cst.BaseExpression, new: cst.BaseExpression) -> bool:
        """Whether an assignment gives `None` to an attribute of the module that holds data later."""
        # Where the new value is no name any more, an earlier rule knows what the attribute holds.
        none = isinstance(value, cst.Name) and value.value == "None" and isinstance(new, cst.Name)
        return none and isinstance(target, cst.Attribute) and self.context.is_self(target.value) and holds_data(self, target)

    def _starts_number(self, target: cst.BaseExpression, value: cst.BaseExpression) -> bool:
        """Whether a constructor gives a number to an attribute that a call gives arrays, and which is no intermediate of one call."""
        context = self.context
        if not isinstance(target, cst.Attribute) or not context.is_self(target.value) or context.path[-1] != "__init__":
            return False
        if not isinstance(value, (cst.Integer, cst.Float)) or target.attr.value in context.class_facts.intermediates:
            return False
        return _is_given_arrays(self, target.attr.value)

    def _other_status(self, original: cst.Assign, target: cst.Attribute, updated: cst.Assign) -> str:
        """What wraps a layer where the attribute holds a layer already of which one is a function and the other data; "" where nothing need."""
        context, fact = self.context, self.context.observed(original.value)
        if context.cls is None or not context.is_self(target.value) or fact is None or not isinstance(original.value, cst.Call):
            return ""
        if not fact.kinds or not all(kind.startswith("module:") for kind in fact.kinds):
            return ""
        if updated.value.deep_equals(target):  # `self.net = torch.compile(self.net)`
            return ""
        line, function = context.span(original).line, _is_function(updated.value)
        rows = self._layers.setdefault((context.cls.id, target.attr.value), [])
        others = other_branches(context.function, line)
        differs = any(before is not function for number, before in rows if number not in others)
        differs |= context.path[-1] == "__init__" and any(before is not function for before in self._of_bases(target.attr.value))
        rows.append((line, function))
        return ("nnx.static({value})" if function else "nnx.data({value})") if differs else ""

    def _of_bases(self, name: str) -> Iterator[bool]:
        """Of each layer that the constructors of base classes were seen to give an attribute: whether it has become a function."""
        context = self.context
        for model in context.repo.ancestors(context.cls) if context.cls else ():
            fact = model.attributes.get(name) if model is not context.cls else None
            kinds = fact.kinds if fact is not None and all(kind.startswith("module:") for kind in fact.kinds) else ()
            yield from map(_becomes_function, (kind.removeprefix("module:") for kind in kinds))

    def _held_plain_value(self, assign: cst.Assign, target: cst.Attribute, new: cst.BaseExpression) -> bool:
        """Whether the constructor gives data to an attribute that it gave an argument, a number or a text before."""
        context, fact = self.context, self.context.observed(assign.value)
        method = context.cls.methods.get("__init__") if context.cls and context.repo.is_module_class(context.cls) else None
        if method is None or context.cls is None or not context.is_self(target.value) or fact is None or context.path[-1] != "__init__":
            return False
        if not fact.kinds or not all(map(_is_data, fact.kinds)):
            return False
        if isinstance(assign.value, cst.Call) and _is_function(new) and all(kind.startswith("module:") for kind in fact.kinds):
            return False  # a layer that has become a function
        name = target.attr.value
        line = context.span(assign).line
        before = [
            value
            for node in walk(method)
            if isinstance(node, ast.Assign) and node.lineno < line
            for targets in node.targets
            for target, value in _pairs(targets, node.value)
            if context.cls.own.get(id(target)) == name
            # A literal `None` is marked itself, and what is a local variable in the rewrite is no attribute.
            if not (isinstance(value, ast.Constant) and value.value is None)
            if span_of(target, context.file.lines) not in context.class_facts.interim_containers
        ]
        # Of what a call gives in a tuple (`self.norm, self.act = choose(name)`), nothing is known; data again is no harm.
        return any(value is None or self._may_be_plain(value, method) for value in before)

    def _is_filled(self, target: cst.Attribute) -> bool:
        """Whether the class gives arrays to entries of its attribute: `self.kept["a"] = nn.Parameter(…)`. Modules are `WrapUnregisteredModules`'s."""
        context, model = self.context, self.context.cls
        if model is None or not context.is_self(target.value) or not context.repo.is_module_class(model):
            return False
        values = [
            node.value
            for node in walk(model.node)
            if isinstance(node, ast.Assign)
            for one in node.targets
            if isinstance(one, ast.Subscript) and model.own.get(id(one.value)) == target.attr.value
        ]
        facts = [context.facts.observed.get(span_of(value, model.file.lines)) for value in values if not isinstance(value, ast.Constant)]
        of_modules = any(kind.startswith("module:") for fact in facts if fact is not None for kind in fact.kinds)
        # NNX takes an array of NumPy for data, too.
        return not of_modules and any(fact is None or any(_is_data(kind) or kind == "ndarray" for kind in fact.kinds) for fact in facts)

    def _may_be_plain(self, value: ast.expr, method: FunctionNode) -> bool:
        """Whether a value was seen to be no data, or is an argument that may be left out as `None`."""
        fact = self.context.facts.observed.get(span_of(value, self.context.file.lines))
        if fact is not None:
            return not all(map(_is_data, fact.kinds))
        defaults = dict(zip(reversed([*method.args.posonlyargs, *method.args.args]), reversed(method.args.defaults), strict=False))
        defaults |= {one: default for one, default in zip(method.args.kwonlyargs, method.args.kw_defaults, strict=True) if default}
        named = {argument.arg for argument, default in defaults.items() if isinstance(default, ast.Constant) and default.value is None}
        return isinstance(value, ast.Name) and value.id in named


def holds_data(rule: Rule, place: cst.CSTNode, name: str = "") -> bool:
    """Whether `self.<name>` of the module class at hand, or of one that derives from it, is given a module or an array somewhere.

    What the other branch of an `if` around `place` (an original node) gives does not count: only one of them runs.
    """
    context = rule.context
    if context.cls is None or not context.repo.is_module_class(context.cls):
        return False
    name = name or (place.attr.value if isinstance(place, cst.Attribute) else "")
    other = other_branches(context.function, context.span(place).line)
    family = [*context.repo.ancestors(context.cls), *context.repo.descendants.get(context.cls.id, ())]
    return any(_gives_data(rule, model, name, other if model is context.cls else frozenset()) for model in family)


def _is_given_arrays(rule: Rule, name: str) -> bool:
    """Whether a statement of the class at hand, or of one in its family, was seen to give an array to an attribute."""
    context = rule.context
    if context.cls is None or not context.repo.is_module_class(context.cls):
        return False
    family = [*context.repo.ancestors(context.cls), *context.repo.descendants.get(context.cls.id, ())]
    return any(_was_given_arrays(rule, model, name) for model in family)


def _was_given_arrays(rule: Rule, model: ClassModel, name: str) -> bool:
    if model.file is not rule.context.file:
        fact = model.attributes.get(name)
        return fact is not None and "tensor" in fact.kinds
    values = [value for node in walk(model.node) for value in _values(model, node, name)]
    facts = [rule.context.facts.observed.get(span_of(value, model.file.lines)) for value in values]
    return any(fact is not None and set(fact.kinds) == {"tensor"} for fact in facts)


def _gives_data(rule: Rule, model: ClassModel, name: str, without: frozenset[int]) -> bool:
    context = rule.context
    if model.file is not context.file:
        fact = model.attributes.get(name)
        return fact is not None and any(map(_is_data, fact.kinds))
    for node in walk(model.node):
        if getattr(node, "lineno", 0) in without:
            continue
        if isinstance(node, ast.Call) and _registers(model, node, name):
            return True
        for value in _values(model, node, name):
            fact = context.facts.observed.get(span_of(value, model.file.lines))
            if not isinstance(value, ast.Constant) and (fact is None or any(map(_is_data, fact.kinds))):
                return True
    return False


def _values(model: ClassModel, node: ast.AST, name: str) -> Iterator[ast.expr]:
    """What a statement gives to `self.<name>`."""
    match node:
        case ast.Assign(targets=targets, value=value) if any(model.own.get(id(target)) == name for target in targets):
            yield value
        case ast.AnnAssign(target=target, value=ast.expr() as value) if model.own.get(id(target)) == name:
            yield value


def _registers(model: ClassModel, call: ast.Call, name: str) -> bool:
    """Whether a call registers something under the attribute's name."""
    if not (isinstance(call.func, ast.Attribute) and call.func.attr in REGISTERING and id(call.func) in model.own and len(call.args) > 1):
        return False
    key, value = call.args[:2]
    return isinstance(key, ast.Constant) and key.value == name and not isinstance(value, ast.Constant)


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr | None]]:
    """What an assignment gives to which target; `None` for what it takes out of a value that is not written out."""
    if not isinstance(target, (ast.Tuple, ast.List)):
        return [(target, value)]
    if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
        return [pair for element, item in zip(target.elts, value.elts, strict=True) for pair in _pairs(element, item)]
    return [(element, None) for element in target.elts]


def _is_function(layer: cst.BaseExpression) -> bool:
    """Whether what stands for the construction of a layer is a function: `jax.nn.relu`, `partial(jax.nn.gelu, approximate=False)`."""
    return not isinstance(layer, cst.Call) or (isinstance(layer.func, cst.Name) and layer.func.value == "partial")


def _becomes_function(layer: str) -> bool:
    """Whether a function stands for a layer of torch, by its name, where nothing asks for a module."""
    row = layers().get(layer)
    return layer in functional_layers() or (row is not None and row.plain is not None and not row.plain_class)


def _is_data(kind: str) -> bool:
    return kind in ("tensor", "parameter") or kind.startswith("module:")
