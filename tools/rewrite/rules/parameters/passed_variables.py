"""Parameters handed to code that writes to them: the variable itself is passed, not the array in it."""

from __future__ import annotations

import ast

import libcst as cst

from migrate_agent.tools.rewrite.analysis.argument_writes.parameter_writes import (
    INIT,
    inner_functions,
    list_assignment,
    parameter_at,
    walks_parameters,
)
from migrate_agent.tools.rewrite.analysis.randomness import FunctionKey, observed_functions, overrides
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.parameters.variables import PLAIN_READS, own_layer, storage, subscript
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.helpers import properties
from migrate_agent.tools.rewrite.tables.registry import Refuse, layers
from migrate_agent.tools.scan.nodes import walk

REGISTERING = frozenset({"setattr", "register_parameter", "register_buffer"})
READABLE = frozenset({"shape", "ndim", "dtype", "dim", "numel", "nelement", "requires_grad", "requires_grad_"})
"""What a variable answers as its array does, by the name that it has in torch too."""


def callees(context: Context, call: cst.Call) -> list[FunctionKey]:
    """The functions of the repository that a call may reach, by name or as methods of `self` or of plain objects."""
    func = call.func
    if (dotted := context.dotted(func)) and (target := context.repo.resolve(dotted)) and target[1]:
        return [(target[0].file.path, target[1])]
    if isinstance(func, cst.Attribute) and context.is_self(func.value) and context.cls:
        name = func.attr.value
        return [(m.file.file.path, f"{m.qualname}.{name}") for m in overrides(context.repo, context.cls, name)]
    fact = context.observed(func)
    return sorted(observed_functions(context.repo, fact) | inner_functions(context.repo, fact))


class PassVariables(Rule):
    """Pass the variable to functions that write to it: `init(m.weight)` → `init(reference(m, "weight"))`; `init(self.w)` stays.

    Inside, the parameter is written and read as `w[...]`; loops over lists of parameters likewise. Declines
    where the function only reads its parameter.
    """

    KEEP = ("def f(x, g):\n    g(x)\n    return x\n",)
    CHANGE = (
        (
            "import torch\nfrom torch import nn\n\ndef init(weight):\n    nn.init.normal_(weight, std=0.02)\n\nclass M(nn.Module):\n    def __init__(self, d):\n"
            "        super().__init__()\n        self.fc = nn.Linear(d, d)\n        self.w = nn.Parameter(torch.zeros(d))\n        init(self.fc.weight)\n"
            "        init(self.w)\n",
            "def init(weight, *, rngs: nnx.Rngs):\n    weight[...] = init_normal(rngs(), weight, std=0.02)\n\n\nclass M(nnx.Module):\n"
            "    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.fc = Linear(d, d, rngs=rngs)\n        self.w = nnx.Param(jnp.zeros(d))\n"
            '        init(reference(self.fc, "weight"), rngs=rngs)\n        init(self.w, rngs=rngs)\n',
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
            "        self.a = nn.Parameter(torch.zeros(2, d))\n        self.b = nn.Parameter(torch.zeros(d))\n        both = [self.a, self.b]\n"
            "        for p in both:\n            nn.init.zeros_(p[0])\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.a = nnx.Param(jnp.zeros((2, d)))\n"
            "        self.b = nnx.Param(jnp.zeros(d))\n        both = [self.a, self.b]\n        for p in both:\n"
            "            overwrite(p, 0, jnp.zeros_like(p[0]))\n",
        ),
    )

    def leave_Arg(self, original: cst.Arg, updated: cst.Arg) -> cst.Arg | None:
        call = self.context.parent()
        if not isinstance(call, cst.Call) or original.star or not self._is_written_by(call, original):
            return None
        value = self._reference(original.value, updated.value)
        return None if value is None else updated.with_changes(value=value)

    def _is_written_by(self, call: cst.Call, argument: cst.Arg) -> bool:
        """Whether the called function writes to this argument."""
        position = next(i for i, a in enumerate(call.args) if a is argument)
        randomness = self.context.randomness
        for key in callees(self.context, call):
            name = argument.keyword.value if argument.keyword else parameter_at(self.context.repo, key, position)
            if name in randomness.written.get(key, ()) or name in randomness.buffers.get(key, ()):
                return True
        return False

    def leave_For(self, original: cst.For, updated: cst.For) -> cst.For | None:
        if not self.context.walks_variables(original) or not isinstance(updated.iter, (cst.List, cst.Tuple)):
            return None
        return updated.with_changes(iter=self._references(original.iter, updated.iter))

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.Assign | None:
        """`params = [self.a, self.b]`, which a loop goes through and changes."""
        context, line = self.context, self.context.span(original).line
        function = context.function
        loops = [node for node in walk(function) if isinstance(node, ast.For)] if function else []
        mine = [loop for loop in loops if function and (store := list_assignment(function, loop.iter)) and store.lineno == line]
        if not mine or not isinstance(updated.value, (cst.List, cst.Tuple)) or function is None:
            return None
        written = context.randomness.written
        if not any(walks_parameters(context.repo, context.file, context.facts, written, function, loop) for loop in mine):
            return None
        return updated.with_changes(value=self._references(original.value, updated.value))

    def _references(self, original: cst.BaseExpression, updated: cst.List | cst.Tuple) -> cst.List | cst.Tuple:
        assert isinstance(original, (cst.List, cst.Tuple))
        elements = [
            new.with_changes(value=self._reference(old.value, new.value) or new.value)
            for old, new in zip(original.elements, updated.elements, strict=True)
        ]
        return updated.with_changes(elements=elements)

    def leave_Name(self, original: cst.Name, updated: cst.Name) -> cst.BaseExpression | None:
        """A read of such a parameter."""
        if self.context.is_buffer_name(original):
            return None if self._means_buffer(original) else self._buffer_read(original, updated)
        return subscript(updated) if self.context.is_handle(original) and not self._means_variable(original) else None

    def _means_variable(self, node: cst.Name) -> bool:
        context, parent, grand = self.context, self.context.parent(), self.context.parent(2)
        if isinstance(parent, (cst.Param, cst.AssignTarget, cst.For, cst.Comparison, cst.ComparisonTarget, cst.AugAssign)):
            return True
        if isinstance(parent, (cst.CompFor, cst.Element)) and (isinstance(parent, cst.CompFor) or self._is_target()):
            return True
        if isinstance(parent, cst.Attribute):
            return parent.value is not node or parent.attr.value in READABLE
        if isinstance(parent, cst.Subscript):
            return parent.value is node
        if isinstance(parent, cst.Assign) and isinstance(parent.targets[0].target, cst.Attribute) and context.is_parameter_handle(node):
            return parent.targets[0].target.attr.value != "data"
        if isinstance(parent, cst.Arg) and isinstance(grand, cst.Call):
            if _registers(grand):
                return True
            return parent.keyword is node or context.dotted(grand.func).startswith(INIT) or self._is_written_by(grand, parent)
        return False

    def _means_buffer(self, node: cst.Name) -> bool:
        """Whether a name stands for the variable itself: where it is bound, asked whether it is None, and handed on to what changes it."""
        context, parent, grand = self.context, self.context.parent(), self.context.parent(2)
        if isinstance(parent, (cst.Param, cst.AssignTarget)) or (isinstance(parent, cst.AugAssign) and parent.target is node):
            return True
        if isinstance(parent, (cst.Comparison, cst.ComparisonTarget)):
            comparison = parent if isinstance(parent, cst.Comparison) else grand
            return isinstance(comparison, cst.Comparison) and all(
                isinstance(one.operator, (cst.Is, cst.IsNot)) for one in comparison.comparisons
            )
        if isinstance(parent, cst.Attribute):
            return parent.value is not node or parent.attr.value in PLAIN_READS - {"size"}
        if isinstance(parent, cst.Subscript):
            return parent.value is node
        if isinstance(parent, cst.Assign) and len(parent.targets) == 1:
            return context.is_buffer_name(parent.targets[0].target)
        if isinstance(parent, cst.Arg) and isinstance(grand, cst.Call):
            return parent.keyword is node or self._is_written_by(grand, parent)
        return False

    def _buffer_read(self, original: cst.Name, updated: cst.Name) -> cst.BaseExpression:
        """The array in the variable; of one that may be None, `value_of(x)`."""
        fact = self.context.observed(original)
        passes = isinstance(self.context.parent(), (cst.Arg, cst.Return, cst.Assign, cst.BaseElement, cst.IfExp))
        if passes and (fact is None or "none" in fact.kinds or self._defaults_to_none(original.value)):
            return self.context.build("vendored.value_of({x})", x=updated)
        return subscript(updated)

    def _defaults_to_none(self, name: str) -> bool:
        function = self.context.functions[-1].params if self.context.functions else None
        parameters = [*function.params, *function.kwonly_params, *function.posonly_params] if function else []
        return any(one.name.value == name and getattr(one.default, "value", "") == "None" for one in parameters)

    def _is_target(self) -> bool:
        """Whether the tuples around the name at hand are what a loop or an assignment binds."""
        around = list(reversed(self.context.stack))
        depth = next((i for i, n in enumerate(around) if not isinstance(n, (cst.Element, cst.Tuple, cst.List))), len(around))
        if depth == len(around):
            return False
        return getattr(around[depth], "target", None) is around[depth - 1]

    def _reference(self, old: cst.BaseExpression, new: cst.BaseExpression) -> cst.BaseExpression | None:
        """What stands for the parameter itself; `None` where the rewritten text does already."""
        if isinstance(old, cst.Attribute) and self.context.is_self(old.value):
            name = old.attr.value
            # In a subclass of a layer with another layout `self.weight` is a property: it gives an array, and only its name reaches the variable.
            if any(name in properties(layers()[base].vendored) for base in own_layer(self)):
                return self._by_name(old.value, name)
        if isinstance(new, cst.Call) and not isinstance(old, cst.Call) and len(new.args) == 1:
            read = self.context.build("vendored.value_of({x})", x=new.args[0].value)
            return new.args[0].value if new.deep_equals(read) else None
        # `ReadVariables` has made `self.w[...]` of the read; here the variable is wanted.
        if isinstance(new, cst.Subscript) and not isinstance(old, cst.Subscript) and isinstance(new.slice[0].slice, cst.Index):
            return new.value if isinstance(new.slice[0].slice.value, cst.Ellipsis) else None
        if not isinstance(old, cst.Attribute) or not isinstance(new, cst.Attribute):
            return None
        fact = self.context.observed(old)
        if fact is not None and not set(fact.kinds) & {"parameter"}:
            return None
        try:
            # What is written as `x[...] = …` is a variable by itself: it is passed as it stands.
            if isinstance(storage(self, old), cst.Subscript):
                return None
        except Refuse:
            pass
        return self._by_name(new.value, old.attr.value)

    def _by_name(self, owner: cst.BaseExpression, name: str) -> cst.BaseExpression:
        return self.context.build("vendored.reference({owner}, {name})", owner=owner, name=cst.SimpleString(f'"{name}"'))


def _registers(call: cst.Call) -> bool:
    """Whether a call puts a parameter into a module."""
    match call.func:
        case cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name)):
            return name in REGISTERING
    return False
