"""What a file names when it is imported, that has no counterpart in JAX, and that no example uses: an error once it is used, and no sooner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import libcst as cst

from migrate_agent.tools.rewrite.rules.rule import Rule

STORING = frozenset({"dict", "OrderedDict", "list", "tuple", "set", "frozenset", "partial"})
"""Callables that keep what they are given as it is."""
AROUND = (cst.Element, cst.DictElement, cst.List, cst.Tuple, cst.Set, cst.Dict, cst.Assign, cst.AnnAssign)
"""What only keeps the values inside it."""
PERHAPS_NONE = ("torch.version.", "torch.backends.", "torch._C.")
"""Names of torch that may stand for None."""
LAYERS = ("torch.nn.modules.", "torch.nn.Lazy")
"""Where names of layers begin that have no counterpart."""


Node = TypeVar("Node", bound=cst.CSTNode)


class StubUnmigratedReferences(Rule):
    """Put off errors at import: `TABLE = {"adam": torch.optim.Adam}` → `TABLE = {"adam": NotMigrated("torch.optim.Adam has no counterpart in JAX")}`.

    Only for what is evaluated while a file is imported: values in tables, defaults of parameters, whole
    assignments, classes and functions with such bases or decorators. Declines where nothing was observed, where an
    example used it, and where code asks by `is` what it is.
    """

    KEEP = ('import json\n\nTABLE = {"load": json.load}\n',)

    def leave_DictElement(self, original: cst.DictElement, updated: cst.DictElement) -> cst.DictElement | None:
        return self._stub_entry(original.value, updated)

    def leave_Element(self, original: cst.Element, updated: cst.Element) -> cst.Element | None:
        return self._stub_entry(original.value, updated)

    def leave_Arg(self, original: cst.Arg, updated: cst.Arg) -> cst.Arg | None:
        call = self.context.parent()
        keeps = isinstance(call, cst.Call) and isinstance(call.func, cst.Name) and (original.keyword or call.func.value == "partial")
        return self._stub_entry(original.value, updated) if keeps and not original.star else None

    def leave_Param(self, original: cst.Param, updated: cst.Param) -> cst.Param | None:
        function = self.context.functions[0] if len(self.context.functions) == 1 else None
        parent = self.context.parent(2)
        inside = any(isinstance(node, (cst.FunctionDef, cst.Lambda)) for node in self.context.stack[:-2])
        if original.default is None or function is None or parent is not function or inside or not self._is_present(original.default):
            return None
        stub = self._stub(original.default, original.default)
        return updated.with_changes(default=stub) if stub else None

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.Assign | None:
        targets = [target.target for target in original.targets]
        if any(isinstance(node, cst.ClassDef) for node in self.context.stack):
            return self._stub_entry(original.value, updated)
        stub = self._stub_whole([original.value], targets)
        if stub is None:
            return None
        names = [cst.AssignTarget(name) for target in targets for name in _names(target)]
        return updated.with_changes(targets=names, value=stub)

    def leave_AnnAssign(self, original: cst.AnnAssign, updated: cst.AnnAssign) -> cst.AnnAssign | None:
        stub = self._stub_whole([original.value], [original.target]) if original.value else None
        return updated.with_changes(value=stub) if stub else None

    def leave_ClassDef(self, original: cst.ClassDef, updated: cst.ClassDef) -> cst.SimpleStatementLine | None:
        return self._definition(original, updated.leading_lines)

    def leave_FunctionDef(self, original: cst.FunctionDef, updated: cst.FunctionDef) -> cst.SimpleStatementLine | None:
        return self._definition(original, updated.leading_lines)

    # -- where --------------------------------------------------------------------------------------------------------
    def _definition(self, original: cst.ClassDef | cst.FunctionDef, lines: Sequence[cst.EmptyLine]) -> cst.SimpleStatementLine | None:
        """A top-level definition that nothing ran of, and that cannot be made without what has no counterpart."""
        span = self.context.span(original)
        if any(span.line <= line <= span.end_line for line in self.context.observed_lines):
            return None
        stub = self._stub_whole([original], [original.name]) if isinstance(self.context.parent(), cst.Module) else None
        if stub is None:
            return None
        return cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(original.name)], stub)], leading_lines=lines)

    def _stub_whole(self, nodes: Sequence[cst.CSTNode], targets: Sequence[cst.BaseExpression]) -> cst.BaseExpression | None:
        """What stands for all of a top-level statement, where only names are bound, which no example reads and no code asks about."""
        context = self.context
        names = [name for target in targets for name in _names(target)]
        uses = context.exercised
        if uses is None or not names or any(isinstance(n, (cst.ClassDef, cst.FunctionDef, cst.Lambda)) for n in context.stack):
            return None
        keys = {(context.file.file.path, name.value) for name in names}
        # A stub answers `is None` and `is cls` otherwise than what it stands for.
        if keys & (uses.read | uses.compared) or any(not _names(target) for target in targets):
            return None
        stub = self._stub(nodes[0], nodes[0])
        if stub is not None:
            context.dead |= {name.value: self.reason for name in names}
        return stub

    def _stub_entry(self, value: cst.BaseExpression, updated: Node) -> Node | None:
        """A part of a table, or what `dict` and its like are given."""
        if self._is_inside_function() or not self._is_only_stored() or not self._is_present(value):
            return None
        stub = self._stub(value, value)
        return updated.with_changes(value=stub) if stub else None

    def _is_inside_function(self) -> bool:
        return any(isinstance(node, (cst.FunctionDef, cst.Lambda)) for node in self.context.stack)

    def _is_only_stored(self) -> bool:
        # What an import calls or computes with raises at once: only what it stores can wait.
        stack = self.context.stack
        for at in range(len(stack) - 1, -1, -1):
            node = stack[at]
            if isinstance(node, cst.SimpleStatementLine):
                return True
            if isinstance(node, cst.Arg):
                continue
            if isinstance(node, cst.Call):
                if not (isinstance(node.func, cst.Name) and node.func.value in STORING):
                    return False
            elif not isinstance(node, AROUND):
                return False
        return False

    # -- what ---------------------------------------------------------------------------------------------------------
    def _is_present(self, node: cst.BaseExpression) -> bool:
        """Whether an expression certainly stands for something that is not None, and that no example called."""
        uses = self.context.exercised
        if uses is None:
            return False
        if isinstance(node, cst.Lambda):
            span = self.context.span(node)
            return not any(span.line <= line <= span.end_line for line in self.context.observed_lines)
        named = node.func if isinstance(node, cst.Call) else node
        dotted = self.context.dotted(named) or self.context.unfollowed(named)
        last = dotted.rpartition(".")[2]
        if not dotted or last in uses.called or dotted.startswith(PERHAPS_NONE):
            return False
        return last[:1].isupper() or (named is node and dotted.startswith("torch."))

    def _stub(self, spanned: cst.CSTNode, node: cst.CSTNode) -> cst.BaseExpression | None:
        """What stands for an original node with holes in it, which go."""
        context, span = self.context, self.context.span(spanned)
        inside = [
            hole
            for hole in context.holes
            if (span.line, span.column) <= hole.span[:2] and hole.span[2:] <= (span.end_line, span.end_column)
        ]
        if not inside:
            return None
        self.reason = inside[0].reason
        context.holes[:] = [hole for hole in context.holes if hole not in inside]
        context.notes.append(f"{context.file.file.path}:{span.line}: not migrated, an error once it is used: {self.reason}")
        is_layer = isinstance(node, cst.Attribute | cst.Name) and context.dotted(node).startswith(LAYERS)
        return cst.Call(context.helper("NoLayer" if is_layer else "NotMigrated"), [cst.Arg(cst.SimpleString(repr(self.reason)))])


def _names(target: cst.BaseExpression) -> list[cst.Name]:
    """The names that a target binds; none where it binds anything else."""
    if isinstance(target, cst.Name):
        return [target]
    if isinstance(target, (cst.Tuple, cst.List)):
        parts = [_names(element.value) for element in target.elements]
        return [name for part in parts for name in part] if all(parts) else []
    return []
