"""Plain lists, tuples and dictionaries of arrays that a module keeps."""

from __future__ import annotations

import ast

import libcst as cst

from migrate_agent.tools.rewrite.analysis.containers.contents import COPYING, Contents
from migrate_agent.tools.rewrite.analysis.facts import is_tensor, span_of
from migrate_agent.tools.rewrite.analysis.repo import ClassModel, FunctionNode
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.registry import methods, ops
from migrate_agent.tools.scan.nodes import walk

CONTAINERS = frozenset({"list", "tuple", "dict"})
DISPLAYS = (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.DictComp)
ARRAYS = frozenset({"tensor", "ndarray"})


class WrapContainersOfArrays(Rule):
    """Make containers of arrays data: `self.heads = [torch.rand(1)] * n` → `self.heads = nnx.List([jax.random.uniform(rngs.params(), 1)] * n)`.

    NNX takes a plain list, tuple or dictionary for a static attribute, which must not hold arrays. What is more than a list that is written
    out stays the container that it is: `self.masks = []`, to which methods add arrays → `self.masks = nnx.data([])`; likewise
    `(a, b)`, `{"a": a}` and what a method of the class gives. Declines where modules are among the elements, or parameters that no call registers.
    """

    KEEP = (
        "class Plain:\n    def __init__(self, x):\n        self.x = [x]\n",
        "class Plain:\n    def __init__(self, n):\n        self.xs = []\n        self.xs.append(n)\n",
    )
    CHANGE = (
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
            "        self.steps: list[torch.Tensor] = [torch.ones(3)] * n\n        self.sizes = [1, 2] * n\n\n"
            "    def forward(self, x):\n        return x * self.steps[0]\n",
            "class M(nnx.Module):\n    def __init__(self, n, *, rngs: nnx.Rngs):\n        self.steps = nnx.List([jnp.ones(3)] * n)\n"
            "        self.sizes = [1, 2] * n\n\n    def __call__(self, x):\n        return x * self.steps[0]\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
            "        self.steps = [torch.ones(i) for i in range(n)]\n",
            "class M(nnx.Module):\n    def __init__(self, n, *, rngs: nnx.Rngs):\n        self.steps = nnx.List([jnp.ones(i) for i in range(n)])\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.a = []\n"
            "        self.b = list()\n        self.c = {}\n        self.sizes = []\n        self.lost = []\n        for i in range(n):\n"
            "            self.a += [torch.ones(i)]\n            self.b = self.b + [(torch.ones(i), i)]\n            self.c.setdefault(i, []).append(torch.ones(i))\n"
            "            self.c[i] = torch.ones(i)\n            self.sizes.append(i)\n            self.lost.append(nn.Linear(i, i))\n",
            "class M(nnx.Module):\n    def __init__(self, n, *, rngs: nnx.Rngs):\n        self.a = nnx.data([])\n        self.b = nnx.data(list())\n"
            "        self.c = nnx.data({})\n        self.sizes = []\n        self.lost = []\n        for i in range(n):\n            self.a += [jnp.ones(i)]\n"
            "            self.b = self.b + [(jnp.ones(i), i)]\n            self.c.setdefault(i, []).append(jnp.ones(i))\n            self.c[i] = jnp.ones(i)\n"
            "            self.sizes.append(i)\n            self.lost.append(Linear(i, i, rngs=rngs))\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        parts = []\n"
            "        for i in range(n):\n            parts.append(torch.ones(i))\n        self.parts = parts\n        self.pair = (torch.ones(n), torch.zeros(n))\n"
            "        self.named: dict = {'a': torch.ones(n), 'n': n}\n        self.state = self.start(n)\n        self.sizes = (n, n)\n\n"
            "    def start(self, n):\n        return torch.zeros(n), torch.zeros(n)\n\n    def forward(self, x):\n        y = self.state[0] + x\n"
            "        self.state = y, self.state[1] + y\n        return y\n",
            "class M(nnx.Module):\n    def __init__(self, n, *, rngs: nnx.Rngs):\n        parts = []\n        for i in range(n):\n"
            "            parts.append(jnp.ones(i))\n        self.parts = nnx.data(parts)\n        self.pair = nnx.data((jnp.ones(n), jnp.zeros(n)))\n"
            "        self.named: dict = nnx.data({'a': jnp.ones(n), 'n': n})\n        self.state = nnx.data(self.start(n))\n        self.sizes = (n, n)\n\n"
            "    def start(self, n):\n        return jnp.zeros(n), jnp.zeros(n)\n\n    def __call__(self, x):\n        y = self.state[0] + x\n"
            "        self.state = y, self.state[1] + y\n        return y\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.ws = []\n"
            "        self.lost = []\n        for i in range(n):\n            w = nn.Parameter(torch.ones(3))\n            self.register_parameter(f'w{i}', w)\n"
            "            self.ws.append(w)\n            self.lost.append(nn.Parameter(torch.ones(3)))\n",
            "class M(nnx.Module):\n    def __init__(self, n, *, rngs: nnx.Rngs):\n        self.ws = nnx.data([])\n        self.lost = []\n"
            "        for i in range(n):\n            w = nnx.Param(jnp.ones(3))\n            setattr(self, f'w{i}', w)\n"
            "            self.ws.append(w)\n            self.lost.append(nnx.Param(jnp.ones(3)))\n",
        ),
    )

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.Assign | None:
        target = original.targets[0].target
        if len(original.targets) > 1:
            return None
        if self._holds_arrays(target, original.value):
            return updated.with_changes(value=self.context.build("nnx.List({x})", x=updated.value))
        if isinstance(updated.targets[0].target, cst.Attribute) and self._comes_to_hold_arrays(target, original.value, updated.value):
            return updated.with_changes(value=self.context.build("nnx.data({x})", x=updated.value))
        return None

    def leave_AnnAssign(self, original: cst.AnnAssign, updated: cst.AnnAssign) -> cst.Assign | cst.AnnAssign | None:
        if original.value is None or updated.value is None:
            return None
        if isinstance(updated.target, cst.Attribute) and self._comes_to_hold_arrays(original.target, original.value, updated.value):
            return updated.with_changes(value=self.context.build("nnx.data({x})", x=updated.value))
        if not self._holds_arrays(original.target, original.value):
            return None
        # The annotation says `list`, which an `nnx.List` is not.
        return cst.Assign([cst.AssignTarget(updated.target)], self.context.build("nnx.List({x})", x=updated.value))

    def _holds_arrays(self, target: cst.BaseExpression, value: cst.BaseExpression) -> bool:
        context = self.context
        if not isinstance(target, cst.Attribute) or not context.is_self(target.value):
            return False
        if context.cls is None or not context.repo.is_module_class(context.cls):
            return False
        match value:
            case cst.BinaryOperation(operator=cst.Multiply(), left=cst.List(elements=elements)):
                parts = [element.value for element in elements]
            case cst.List(elements=elements):
                parts = [element.value for element in elements]
            case cst.ListComp(elt=part):
                parts = [part]
            case _:
                parts = []
        facts = [context.observed(part) for part in parts]
        return bool(facts) and all(is_tensor(fact) and fact is not None and "parameter" not in fact.kinds for fact in facts)

    def _comes_to_hold_arrays(self, target: cst.BaseExpression, original: cst.BaseExpression, new: cst.BaseExpression) -> bool:
        """Whether an attribute is given a container in which arrays stand, or to which some method of the class adds some."""
        context, model = self.context, self.context.cls
        if not isinstance(target, cst.Attribute) or not context.is_self(target.value) or self._holds_arrays(target, original):
            return False
        if model is None or context.function is None or not context.repo.is_module_class(model) or _is_settled(new):
            return False
        name, facts = target.attr.value, context.class_facts
        if name in facts.intermediates or name in facts.memos or (context.path[-1] != "__init__" and self._starts_as_container(name)):
            return False
        value = self._value_given(target)
        if value is None or not self._is_container(value, original) or any(model.own.get(id(node)) == name for node in ast.walk(value)):
            return False
        contents = Contents(self._family(model), context.facts)
        kinds = contents.kinds(value, context.function) | contents.kinds_added(name)
        if (isinstance(original, cst.Call) and self._gives_arrays(original)) or (
            isinstance(value, ast.Name) and self._items_are_arrays(name)
        ):
            kinds |= ARRAYS
        if any(kind.startswith("module:") for kind in kinds) or not self._are_registered(contents.parameters):
            return False
        return bool(kinds & (ARRAYS | {"parameter"}))

    def _items_are_arrays(self, name: str) -> bool:
        """Whether an item that a method reads of an attribute was seen to be an array: of what a constructor was handed nothing else tells."""
        model, observed, lines = self.context.cls, self.context.facts.observed, self.context.file.lines
        assert model is not None
        reads = [node for method in model.methods.values() for node in walk(method) if isinstance(node, ast.Subscript)]
        facts = [observed.get(span_of(node, lines)) for node in reads if model.own.get(id(node.value)) == name]
        return any(is_tensor(fact) and fact is not None and "parameter" not in fact.kinds for fact in facts)

    def _are_registered(self, parameters: list[ast.expr]) -> bool:
        """Whether all these are local names that the class registers by a call: torch would not train others, which NNX would."""
        assert self.context.cls is not None
        calls = [
            node
            for method in self.context.cls.methods.values()
            for node in walk(method)
            if isinstance(node, ast.Call) and len(node.args) > 1
        ]
        registered = {
            call.args[-1].id
            for call in calls
            if isinstance(call.args[-1], ast.Name)
            and (call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", ""))
            in ("setattr", "register_parameter")
        }
        return all(isinstance(one, ast.Name) and one.id in registered for one in parameters)

    def _value_given(self, target: cst.Attribute) -> ast.expr | None:
        span, lines = self.context.span(target), self.context.file.lines
        for node in walk(self.context.function) if self.context.function else ():
            match node:
                case ast.Assign(targets=[assigned], value=value) | ast.AnnAssign(target=assigned, value=ast.expr() as value):
                    if span_of(assigned, lines) == span:
                        return value
        return None

    def _family(self, model: ClassModel) -> list[ClassModel]:
        repo = self.context.repo
        family = [*repo.ancestors(model), *repo.descendants.get(model.id, ())]
        return [model, *(one for one in family if one is not model and one.file is model.file)]

    def _starts_as_container(self, name: str) -> bool:
        """Whether a constructor gives the attribute a container already, so that its status in NNX is settled."""
        assert self.context.cls is not None
        family = self._family(self.context.cls)
        constructors: list[tuple[ClassModel, FunctionNode]] = [
            (one, one.methods["__init__"]) for one in family if "__init__" in one.methods
        ]
        return any(
            isinstance(node.value, DISPLAYS)
            for model, constructor in constructors
            for node in walk(constructor)
            if isinstance(node, ast.Assign) and model.own.get(id(node.targets[0])) == name
        )

    def _is_container(self, value: ast.expr, original: cst.BaseExpression) -> bool:
        fact = self.context.observed(original)
        if fact is not None and fact.kinds:
            return all(kind in CONTAINERS or kind.startswith("object:collections.") for kind in fact.kinds)
        called = value.func if isinstance(value, ast.Call) else None
        return isinstance(value, DISPLAYS) or (isinstance(called, ast.Name) and called.id in COPYING)

    def _gives_arrays(self, call: cst.Call) -> bool:
        """Whether this is a call of torch that gives a tuple of tensors: `x.chunk(2)`."""
        row = ops().get(self.context.dotted(call.func))
        if row is None and isinstance(call.func, cst.Attribute) and is_tensor(self.context.observed(call.func.value)):
            row = methods().get(call.func.attr.value)
        return row is not None and row.returns == "tuple"


def _is_settled(value: cst.BaseExpression) -> bool:
    """Whether a rule above has made something else than a plain container of the value."""
    text = cst.Module([]).code_for_node(value)
    return text.startswith(("nnx.", "Static(", "Unregistered"))
