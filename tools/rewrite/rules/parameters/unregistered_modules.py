"""Plain lists and dictionaries of modules that are registered under other names."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

import libcst as cst

from migrate_agent.tools.rewrite.analysis.containers.gathered_layers import is_registered
from migrate_agent.tools.rewrite.analysis.facts import span_of
from migrate_agent.tools.rewrite.rules.parameters.late_attributes import REGISTERING
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.helpers import rngs_of
from migrate_agent.tools.rewrite.tables.registry import layers
from migrate_agent.tools.scan.nodes import walk

CONTAINERS = frozenset("Sequential ModuleList ModuleDict ParameterList ParameterDict TransformerEncoder TransformerDecoder".split())
ADDING = frozenset({"append", "insert", "setdefault"})


class WrapUnregisteredModules(Rule):
    """Hold modules that a plain container also keeps: `self.cells = [a, b]` → `self.cells = UnregisteredList([a, b])`.

    `register_module`, `setattr` or `nn.ModuleList(cells)` of an argument registers them too: NNX sees them, and the state dictionary has their
    registered names alone. Likewise `{}`, what is put in later, layers without parameters (losses, activations),
    and attributes that are modules, whatever the class registers. `nn.Sequential(*self.cells)` registers too, where the attribute is needed
    (else `BuildContainersInLocals` makes a local variable of it). Declines where the class registers nothing
    by a call, and modules with parameters are nowhere else: torch trains and stores none of these.
    """

    KEEP = ("class Plain:\n    def __init__(self, x):\n        self.parts = [x]\n        setattr(self, 'x', x)\n",)
    CHANGE = (
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
            "        self.cells = [nn.Linear(d, d), nn.Linear(d, d)]\n        self.sizes = [d, d]\n"
            "        for i, cell in enumerate(self.cells):\n            self.register_module(f'cell_{i}', cell)\n\n"
            "    def forward(self, x):\n        return self.cells[0](x)\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n"
            "        self.cells = UnregisteredList([Linear(d, d, rngs=rngs), Linear(d, d, rngs=rngs)])\n        self.sizes = [d, d]\n"
            "        for i, cell in enumerate(self.cells):\n            setattr(self, f'cell_{i}', cell)\n\n"
            "    def __call__(self, x):\n        return self.cells[0](x)\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n        self.cells = []\n"
            "        self.fill(d)\n        self.net = nn.ModuleList(self.cells)\n\n"
            "    def fill(self, d):\n        self.cells.append(nn.Linear(d, d))\n\n    def forward(self, x):\n        return self.net[0](x)\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.cells = UnregisteredList()\n"
            "        self.fill(d, rngs=rngs)\n        self.net = nnx.List(self.cells)\n\n    def fill(self, d, *, rngs: nnx.Rngs):\n"
            "        self.cells.append(Linear(d, d, rngs=rngs))\n\n    def __call__(self, x):\n        return self.net[0](x)\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n        self.fc = nn.Linear(d, d)\n"
            "        self.losses = {'l2': nn.MSELoss(), 'l1': nn.L1Loss()}\n        self.acts = [nn.ReLU(), nn.Sigmoid()]\n        self.pair = (nn.Softplus(), 1)\n"
            "        self.lost = [nn.Linear(d, d)]\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.fc = Linear(d, d, rngs=rngs)\n"
            "        self.losses = UnregisteredDict({'l2': MSELoss(), 'l1': L1Loss()})\n        self.acts = [jax.nn.relu, jax.nn.sigmoid]\n"
            "        self.pair = UnregisteredList((Softplus(), 1))\n        self.lost = [Linear(d, d, rngs=rngs)]\n",
        ),
    )

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.Assign | None:
        context = self.context
        target = original.targets[0].target
        if len(original.targets) != 1 or not isinstance(target, cst.Attribute) or not context.is_self(target.value):
            return None
        if context.path[-1:] != ["__init__"] or context.cls is None or not context.repo.is_module_class(context.cls):
            return None
        # What is a local variable in the rewrite may be a plain list.
        if not isinstance(updated.targets[0].target, cst.Attribute):
            return None
        if self._is_registered_argument(original.value, target.attr.value):
            return updated.with_changes(value=cst.Call(context.helper("UnregisteredList"), [cst.Arg(updated.value)]))
        kind = self._local_display(original.value.value) if isinstance(original.value, cst.Name) else type(original.value).__name__
        is_list = kind in ("List", "ListComp", "Tuple")
        if not (is_list or kind in ("Dict", "DictComp")):
            return None
        # Functions (`jax.nn.relu`) have no state: NNX takes a plain list of them.
        if not (self._needs_no_registration(original.value) and not _are_functions(updated.value)) and not (
            (self._registers_by_call() or is_registered(context.cls, context.facts, target.attr.value))
            and kind != "Tuple"
            and (self._holds_modules(original.value) or self._is_filled_with_modules(target.attr.value) or self._is_filled_before(original))
        ):
            return None
        name = "UnregisteredList" if is_list else "UnregisteredDict"
        empty = isinstance(updated.value, (cst.List, cst.Dict)) and not updated.value.elements
        return updated.with_changes(value=cst.Call(context.helper(name), [] if empty else [cst.Arg(updated.value)]))

    def _method_nodes(self) -> list[ast.AST]:
        assert self.context.cls is not None
        return [node for method in self.context.cls.methods.values() for node in walk(method)]

    def _registers_by_call(self) -> bool:
        """Whether the class registers something by a call."""
        for node in self._method_nodes():
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if name == "setattr" or name in REGISTERING - {"register_buffer", "register_parameter"}:
                    return True
        return False

    def _is_registered_argument(self, value: cst.BaseExpression, attribute: str) -> bool:
        """Whether the constructor keeps an argument and makes a registered container of it: `nn.ModuleList(cells)`, `nn.Sequential(*self.cells)`."""
        assert self.context.cls is not None
        constructor = self.context.cls.methods.get("__init__")
        if constructor is None or not isinstance(value, cst.Name):
            return False
        arguments = constructor.args
        if value.value not in {argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}:
            return False
        stores = [node for node in walk(constructor) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
        if any(node.id == value.value for node in stores):
            return False
        calls = [node for node in walk(constructor) if isinstance(node, ast.Call) and len(node.args) == 1]
        return any(
            _is_same(argument.value if isinstance(argument, ast.Starred) else argument, value.value, attribute)
            and isinstance(argument, ast.Starred) == (kind == "Sequential")
            for call in calls
            for argument in call.args
            if (kind := self.context.facts.dotted.get(span_of(call.func, self.context.file.lines), "").removeprefix("torch.nn."))
            in ("ModuleList", "Sequential")
        )

    def _needs_no_registration(self, display: cst.BaseExpression) -> bool:
        """Whether some of what stands in a display are layers without parameters or attributes that are modules, and none are other modules."""
        values = [(value, self.context.dotted(value.func) if isinstance(value, cst.Call) else "") for value in _values(display)]
        own = [
            value
            for value, _ in values
            if isinstance(value, cst.Attribute) and self.context.is_self(value.value) and self._is_module(value)
        ]
        bare = [value for value, dotted in values if dotted in layers() and _has_no_parameters(dotted)]
        others = [v for v, dotted in values if (dotted and self.context.repo.is_module(dotted)) or self._is_module(v)]
        return bool(own or bare) and all(value in own or value in bare for value in others)

    def _is_module(self, node: cst.BaseExpression) -> bool:
        fact = self.context.observed(node)
        return fact is not None and any(kind.startswith("module:") for kind in fact.kinds)

    def _holds_modules(self, display: cst.BaseExpression) -> bool:
        facts = [self.context.observed(value) for value in _values(display)]
        return bool(facts) and all(fact is not None and all(kind.startswith("module:") for kind in fact.kinds) for fact in facts)

    def _local_display(self, name: str) -> str:
        """What display the constructor binds a local name to, as its only value, or ""."""
        stores = [
            node for node in self._method_nodes() if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
        ]
        bound = [
            node.value
            for node in self._method_nodes()
            if isinstance(node, ast.Assign)
            and len(node.targets) == 1
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id == name
        ]
        return type(bound[0]).__name__ if len(stores) == len(bound) == 1 else ""

    def _is_filled_with_modules(self, name: str) -> bool:
        """Whether modules are put into `self.<name>`, and nothing else."""
        return self._are_modules(
            [value for container, value in self._additions() if isinstance(container, ast.Attribute) and container.attr == name]
        )

    def _is_filled_before(self, statement: cst.Assign) -> bool:
        """Whether modules are put into the local container that a statement keeps, and nothing else, and none after it."""
        if not isinstance(statement.value, cst.Name):
            return False
        name, line = statement.value.value, self.context.span(statement).line
        additions = [
            (container.lineno, value) for container, value in self._additions() if isinstance(container, ast.Name) and container.id == name
        ]
        # `UnregisteredList(parts)` copies: what is added to the local list afterwards would be missing.
        return all(at < line for at, _ in additions) and self._are_modules([value for _, value in additions])

    def _additions(self) -> Iterator[tuple[ast.expr, ast.expr]]:
        """Each value that is put into a container, with the container."""
        for node in self._method_nodes():
            match node:
                case ast.Assign(targets=[ast.Subscript(value=place)], value=value):
                    yield place, value
                case ast.Call(func=ast.Attribute(value=place, attr=method), args=[*_, value]) if method in ADDING:
                    yield place, value

    def _are_modules(self, values: Sequence[ast.expr]) -> bool:
        facts = [self.context.facts.observed.get(span_of(value, self.context.file.lines)) for value in values]
        return bool(facts) and all(fact is not None and all(kind.startswith("module:") for kind in fact.kinds) for fact in facts)


def _is_same(node: ast.expr, name: str, attribute: str) -> bool:
    """Whether this is the argument of that name, or `self.<attribute>` that keeps it."""
    if isinstance(node, ast.Attribute):
        return isinstance(node.value, ast.Name) and node.value.id == "self" and node.attr == attribute
    return isinstance(node, ast.Name) and node.id == name


def _has_no_parameters(dotted: str) -> bool:
    """Whether a layer has neither parameters nor parts."""
    layer = layers()[dotted]
    # A layer that needs `rngs` has parameters to initialise, except dropout, which only draws.
    draws = layer.vendored and rngs_of(layer.vendored) == "required" and "Dropout" not in dotted
    return not layer.params and not draws and dotted.rpartition(".")[2] not in CONTAINERS


def _values(display: cst.BaseExpression) -> list[cst.BaseExpression]:
    """What stands in a list, tuple or dictionary that is written out, or is computed for one."""
    match display:
        case cst.ListComp(elt=value) | cst.DictComp(value=value):
            return [value]
        case cst.List(elements=elements) | cst.Tuple(elements=elements) | cst.Dict(elements=elements):
            return [element.value for element in elements]
    return []


def _are_functions(display: cst.BaseExpression) -> bool:
    """Whether all that stands in a rewritten display became functions of JAX."""
    return all(cst.Module([]).code_for_node(value).startswith(("jax.", "jnp.")) for value in _values(display))
