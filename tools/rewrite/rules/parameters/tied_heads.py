"""Heads that share the table of an embedding."""

from __future__ import annotations

import ast

import libcst as cst

from migrate_agent.tools.rewrite.analysis.plain_layers.ties import Tie
from migrate_agent.tools.rewrite.rules.rule import Rule


class AttendToTables(Rule):
    """In plain style, call a head that shares an embedding's table as what it is: `self.head(x)` → `self.table.attend(x)`.

    The head itself goes; `tied_names` of the class keeps its name for state dictionaries. Where a branch ties the two, the head is None there.
    Declines where a head is more than made, tied and called (`analysis/plain_layers/ties.py`).
    """

    KEEP = ("class Plain:\n    def __init__(self, a, b):\n        self.a.weight = self.b.weight\n",)
    PLAIN = (
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, n, d):\n        super().__init__()\n"
            "        self.table = nn.Embedding(n, d)\n        self.head = nn.Linear(d, n, bias=False)\n"
            "        self.head.weight = self.table.weight  # tied\n\n    def forward(self, x):\n        return self.head(self.table(x))\n",
            "class M(nnx.Module):\n    # tied\n    tied_names = {'head.weight': 'table.weight'}\n\n"
            "    def __init__(self, n, d, *, rngs: nnx.Rngs):\n"
            "        self.table = nnx.Embed(n, d, embedding_init=nnx.initializers.normal(1.0), rngs=rngs)\n\n"
            "    def __call__(self, x):\n        return self.table.attend(self.table(x))\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, config):\n        super().__init__()\n"
            "        self.table = nn.Embedding(config.n, config.d)\n        self.head = nn.Linear(config.d, config.n, bias=False)\n"
            "        if config.tied:\n            self.head.weight = self.table.weight\n\n    def forward(self, x):\n        return self.head(self.table(x))\n",
            "class M(nnx.Module):\n    tied_names = {'head.weight': 'table.weight'}\n\n"
            "    def __init__(self, config, *, rngs: nnx.Rngs):\n"
            "        self.table = nnx.Embed(config.n, config.d, embedding_init=nnx.initializers.normal(1.0), rngs=rngs)\n"
            "        self.head = None if config.tied else nnx.Linear(config.d, config.n, use_bias=False, kernel_init=fan_in_kernel, rngs=rngs)\n\n"
            "    def __call__(self, x):\n        return (self.table.attend if self.head is None else self.head)(self.table(x))\n",
        ),
    )

    def _tie(self) -> Tie | None:
        model = self.context.cls
        return next((tie for tie in self.context.plain.ties if model is not None and tie.owner is model.node), None)

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        tie = self._tie()
        match original.func:
            case cst.Attribute(value=owner, attr=cst.Name(value=name)) if tie and name == tie.head and self.context.is_self(owner):
                attend = f"{self.context.self_name()}.{tie.table}.attend"
                head = f"{self.context.self_name()}.{tie.head}"
                text = attend if tie.branch is None else f"({attend} if {head} is None else {head})"
                return updated.with_changes(func=cst.parse_expression(text))
        return None

    def leave_SimpleStatementLine(
        self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine | cst.RemovalSentinel
    ) -> cst.SimpleStatementLine | cst.RemovalSentinel | None:
        tie = self._tie()
        if tie is None or len(original.body) > 1 or self.context.span(original).line not in (tie.made.lineno, tie.said.lineno):
            return None
        match updated:
            case cst.SimpleStatementLine(body=[cst.Assign(value=made) as statement]) if tie.branch is not None and _is_at(
                self, original, tie.made
            ):
                test = cst.parse_expression(ast.unparse(tie.branch.test))
                return updated.with_changes(body=[statement.with_changes(value=cst.IfExp(test, cst.Name("None"), made))])
        self.context.drop_holes(original)
        return cst.RemoveFromParent()

    def leave_If(self, original: cst.If, updated: cst.If) -> cst.RemovalSentinel | None:
        tie = self._tie()
        return cst.RemoveFromParent() if tie is not None and tie.branch is not None and _is_at(self, original, tie.branch) else None

    def leave_ClassDef(self, original: cst.ClassDef, updated: cst.ClassDef) -> cst.ClassDef | None:
        tie = self._tie()
        if tie is None or not isinstance(updated.body, cst.IndentedBlock):
            return None
        comments = [cst.EmptyLine(comment=comment) for comment in self._comments(original, tie)]
        table = cst.parse_statement(f"tied_names = {{'{tie.head}.weight': '{tie.table}.weight'}}").with_changes(leading_lines=comments)
        at = 1 if original.get_docstring() is not None else 0
        body = list(updated.body.body)
        return updated.with_changes(body=updated.body.with_changes(body=[*body[:at], table, *body[at:]]))

    def _comments(self, owner: cst.ClassDef, tie: Tie) -> list[cst.Comment]:
        """What the source says beside the statements that go."""
        comments = _Comments({tie.made.lineno, tie.said.lineno}, self)
        owner.visit(comments)
        return comments.found


def _is_at(rule: Rule, node: cst.CSTNode, statement: ast.stmt) -> bool:
    return rule.context.span(node).line == statement.lineno


class _Comments(cst.CSTVisitor):
    def __init__(self, lines: set[int], rule: AttendToTables) -> None:
        self.lines, self.rule = lines, rule
        self.found: list[cst.Comment] = []

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> None:
        if self.rule.context.span(node).line in self.lines:
            lines: list[cst.EmptyLine | cst.TrailingWhitespace] = [*node.leading_lines, node.trailing_whitespace]
            self.found += [line.comment for line in lines if line.comment is not None]
