"""Plain lists and dictionaries of modules that are registered under other names."""

from __future__ import annotations

import ast

import libcst as cst

from migrate_agent.tools.rewrite.engine import Rule
from migrate_agent.tools.rewrite.facts import span_of
from migrate_agent.tools.rewrite.rules.registration import REGISTERING

ADDING = frozenset({"append", "insert", "setdefault"})


class HoldRegisteredModules(Rule):
    """`self.cells = [a, b]` of modules that `register_module` or `setattr` also registers → `self.cells = UnregisteredList([a, b])`.

    NNX sees them, and they stand in the state dictionary under their registered names alone. Likewise for `{}`, and for what is put in later.
    Declines where the class registers nothing by a call.
    """

    ORDER = 45
    KEEP = ("class Plain:\n    def __init__(self, x):\n        self.parts = [x]\n        setattr(self, 'x', x)\n",)
    CHANGE = (
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
            "        self.cells = [nn.Linear(d, d), nn.Linear(d, d)]\n        self.sizes = [d, d]\n"
            "        for i, cell in enumerate(self.cells):\n            self.register_module(f'cell_{i}', cell)\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n"
            "        self.cells = UnregisteredList([Linear(d, d, rngs=rngs), Linear(d, d, rngs=rngs)])\n        self.sizes = [d, d]\n"
            "        for i, cell in enumerate(self.cells):\n            setattr(self, f'cell_{i}', cell)\n",
        ),
    )

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.Assign | None:
        context = self.context
        target = original.targets[0].target
        if len(original.targets) != 1 or not isinstance(target, cst.Attribute) or not context.is_self(target.value):
            return None
        if context.path[-1:] != ["__init__"] or context.cls is None or not context.repo.is_module_class(context.cls):
            return None
        is_list = isinstance(original.value, (cst.List, cst.ListComp))
        if not (is_list or isinstance(original.value, (cst.Dict, cst.DictComp))) or not self._registers():
            return None
        if not (self._of_modules(original.value) or self._filled(target.attr.value)):
            return None
        name = "UnregisteredList" if is_list else "UnregisteredDict"
        empty = isinstance(updated.value, (cst.List, cst.Dict)) and not updated.value.elements
        return updated.with_changes(value=cst.Call(context.helper(name), [] if empty else [cst.Arg(updated.value)]))

    def _nodes(self) -> list[ast.AST]:
        assert self.context.cls is not None
        return [node for method in self.context.cls.methods.values() for node in ast.walk(method)]

    def _registers(self) -> bool:
        """Whether the class registers something by a call."""
        for node in self._nodes():
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if name == "setattr" or name in REGISTERING - {"register_buffer", "register_parameter"}:
                    return True
        return False

    def _of_modules(self, display: cst.BaseExpression) -> bool:
        match display:
            case cst.ListComp(elt=value) | cst.DictComp(value=value):
                values = [value]
            case cst.List(elements=elements) | cst.Dict(elements=elements):
                values = [element.value for element in elements]
            case _:
                values = []
        facts = [self.context.observed(value) for value in values]
        return bool(facts) and all(fact is not None and all(kind.startswith("module:") for kind in fact.kinds) for fact in facts)

    def _filled(self, name: str) -> bool:
        """Whether modules are put into `self.<name>`, and nothing else."""
        given: list[ast.expr] = []
        for node in self._nodes():
            match node:
                case ast.Assign(targets=[ast.Subscript(value=ast.Attribute(attr=attr))], value=value) if attr == name:
                    given.append(value)
                case ast.Call(func=ast.Attribute(value=ast.Attribute(attr=attr), attr=method), args=[*_, value]) if (
                    attr == name and method in ADDING
                ):
                    given.append(value)
        facts = [self.context.facts.observed.get(span_of(value, self.context.file.lines)) for value in given]
        return bool(facts) and all(fact is not None and all(kind.startswith("module:") for kind in fact.kinds) for fact in facts)
