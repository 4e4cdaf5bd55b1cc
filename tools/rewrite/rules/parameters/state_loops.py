"""Loops over the names of a module's state, each of whose tensors gets new values by its name."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from migrate_agent.tools.rewrite.rules.rule import Rule

MENDED = frozenset({"module-method", "unknown-receiver", "alias-write"})
"""Classes of holes that the loop as a whole closes."""
INITIALISERS = "torch.nn.init."
NAMES = ("value", "entry", "state_value")


class WalkState(Rule):
    """`for key in self.state_dict(): … self.state_dict()[key][...] = 1` → a loop over the names and variables, which are written to.

    Declines where the body does anything else with the state than to write one tensor of it or to hand it to an initialiser.
    """

    KEEP = ("def f(rows):\n    for key in rows.state_dict():\n        print(key)\n",)
    CHANGE = (
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
            "        self.norm = nn.LayerNorm(d)\n        for key in self.state_dict():\n            if 'bias' in key:\n"
            "                self.state_dict()[key][...] = 0\n            else:\n                nn.init.normal_(self.state_dict()[key], std=0.02)\n\n"
            "    def forward(self, x):\n        return self.norm(x)\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n"
            "        self.norm = LayerNorm(d, rngs=rngs)\n"
            "        for key, value in (*named_parameters(self), *named_buffers(self)):\n            if 'bias' in key:\n"
            "                value[...] = jnp.full_like(value[...], 0)\n            else:\n"
            "                value[...] = init_normal(rngs.params(), value, std=0.02)\n\n"
            "    def __call__(self, x):\n        return self.norm(x)\n",
        ),
    )

    def leave_For(self, original: cst.For, updated: cst.For) -> cst.For | None:
        match original.target, original.iter:
            case cst.Name(value=key), cst.Call(func=cst.Attribute(value=owner, attr=cst.Name("state_dict")), args=[]):
                pass
            case (
                cst.Name(value=key),
                cst.Call(
                    func=cst.Attribute(
                        value=cst.Call(func=cst.Attribute(value=owner, attr=cst.Name("state_dict")), args=[]), attr=cst.Name("keys")
                    ),
                    args=[],
                ),
            ):
                pass
            case _:
                return None
        if not self.context.is_module(owner) or not isinstance(updated, cst.For):
            return None
        state = f"{_code(owner)}.state_dict()"
        statements = _Statements(state, f"{state}[{key}]", lambda function: (self.context.dotted(function) or "").startswith(INITIALISERS))
        original.body.visit(statements)
        name = next((name for name in NAMES if name not in self.context.taken), "")
        if statements.others or not statements.writes or not name or not isinstance(owner, (cst.Name, cst.Attribute)):
            return None
        body = updated.body.visit(_Written(f"{state}[{key}]", name, self))
        assert isinstance(body, cst.BaseSuite)
        if state in _code(body):
            return None
        self._close_holes([original.iter, *statements.writes])
        pair = cst.Tuple([cst.Element(cst.Name(key)), cst.Element(cst.Name(name))], lpar=[], rpar=[])
        walked = self.context.build("(*vendored.named_parameters({module}), *vendored.named_buffers({module}))", module=owner)
        return updated.with_changes(target=pair, iter=walked, body=body)

    def _close_holes(self, nodes: list[cst.CSTNode]) -> None:
        spans = [self.context.span(node) for node in nodes]
        self.context.holes[:] = [
            hole
            for hole in self.context.holes
            if hole.code not in MENDED
            or not any((span.line, span.column) <= hole.span[:2] <= (span.end_line, span.end_column) for span in spans)
        ]


class _Statements(cst.CSTVisitor):
    """The statements that write one tensor of the state, and whether the state is used otherwise."""

    def __init__(self, state: str, tensor: str, is_initialiser: Callable[[cst.BaseExpression], bool]) -> None:
        super().__init__()
        self.state, self.tensor, self.is_initialiser = state, tensor, is_initialiser
        self.writes: list[cst.CSTNode] = []
        self.others = False

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> bool:
        for small in node.body:
            if self.state not in _code(small):
                continue
            if _code(small).count(self.state) == 1 and self._is_write(small):
                self.writes.append(small)
            else:
                self.others = True
        return False

    def visit_Call(self, node: cst.Call) -> None:
        self.others |= _code(node) == self.state

    def _is_write(self, small: cst.BaseSmallStatement) -> bool:
        match small:
            case cst.Expr(value=cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=method)))) if _code(owner) == self.tensor:
                return method.endswith("_")
            case cst.Expr(value=cst.Call(func=function, args=[cst.Arg(value=first), *_])):
                return _code(first) == self.tensor and self.is_initialiser(function)
            case cst.Assign(targets=[cst.AssignTarget(target=target)], value=cst.Integer() | cst.Float() | cst.UnaryOperation()):
                return isinstance(target, cst.Subscript) and _code(target) in (f"{self.tensor}[...]", f"{self.tensor}[:]")
        return False


class _Written(cst.CSTTransformer):
    """The rewritten statements as writes to the variable."""

    def __init__(self, tensor: str, name: str, rule: Rule) -> None:
        super().__init__()
        self.tensor, self.rule = tensor, rule
        self.variable = cst.parse_expression(f"{name}[...]")
        self.name = cst.Name(name)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        # What counts fans must see the variable, which knows the layout of its value.
        return updated_node.with_changes(value=self.name.deep_clone()) if _code(original_node.value) == self.tensor else updated_node

    def leave_Expr(self, original_node: cst.Expr, updated_node: cst.Expr) -> cst.BaseSmallStatement:
        if self.tensor not in _code(original_node):
            return updated_node
        return cst.Assign([cst.AssignTarget(self._target())], updated_node.value)

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.BaseSmallStatement:
        if self.tensor not in _code(original_node):
            return updated_node
        value = self.rule.context.build("jnp.full_like({x}, {value})", x=self.variable, value=updated_node.value)
        return cst.Assign([cst.AssignTarget(self._target())], value)

    def leave_Subscript(self, original_node: cst.Subscript, updated_node: cst.Subscript) -> cst.BaseExpression:
        return self.variable.deep_clone() if _code(original_node) == self.tensor else updated_node

    def _target(self) -> cst.Subscript:
        return cst.ensure_type(self.variable.deep_clone(), cst.Subscript)


def _code(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)
