"""Code that no example ran and that needs another package: plots, graphs and files of other formats are no maths of a port; and names whose
import fails here, which no example can run.
"""

from __future__ import annotations

import sys

import libcst as cst

from migrate_agent.tools.rewrite.rules.rule import Rule

USUAL = frozenset({"torch", "jax", "jaxlib", "flax", "optax", "numpy", "einops"})
"""Packages that ports import, and torch, which other rules see to."""
REASON = "it imports {package} for itself, and nothing that ran needs that"


class RefuseForeignImports(Rule):
    """Refuse an import of another package inside a function of which no example ran anything → a hole, which `StubUnexercised` makes an error.

    Its lines could be compared with nothing. Declines for files of the repository, the standard library, and where nothing of the file was observed.
    """

    KEEP = ("def draw(x):\n    import networkx as nx\n\n    return nx.Graph(x)\n",)

    def leave_Import(self, original: cst.Import, updated: cst.Import) -> None:
        self._check(original, *(alias.evaluated_name for alias in original.names))

    def leave_ImportFrom(self, original: cst.ImportFrom, updated: cst.ImportFrom) -> None:
        if not original.relative and original.module is not None:
            self._check(original, cst.Module([]).code_for_node(original.module))

    def _check(self, node: cst.CSTNode, *names: str) -> None:
        foreign = next((name for name in names if self._is_foreign(name.partition(".")[0])), "")
        if foreign and self._is_whole_function_idle():
            self.context.hole(node, REASON.format(package=foreign.partition(".")[0]), "foreign-import")

    def _is_foreign(self, package: str) -> bool:
        own = {file.module.partition(".")[0] for file in self.context.repo.inventory.files}
        return package not in sys.stdlib_module_names and package not in USUAL and package not in own

    def _is_whole_function_idle(self) -> bool:
        context = self.context
        outer = context.functions[0] if context.functions else None
        if outer is None or not context.observed_lines:
            return False
        body = outer.body.body
        first, last = context.span(body[0]).line, context.span(body[-1]).end_line
        return not any(first <= line <= last for line in context.observed_lines)


ABSENT = "absent-name"
"""The code of the holes of names whose import fails."""


class RefuseAbsentNames(Rule):
    """Refuse what reads a name whose import failed when the examples ran (`from scipy.misc import logsumexp`) → a hole, which `StubUnexercised` makes
    an error. Nothing that ran can have used it.
    """

    KEEP = ("from math import log\n\ndef f(x):\n    return log(x)\n",)

    def leave_Name(self, original: cst.Name, updated: cst.Name) -> None:
        parent, absent = self.context.parent(), self.context.facts.absent
        if original.value not in absent or not self.context.functions:
            return
        named = (isinstance(parent, cst.Attribute) and parent.attr is original) or (
            isinstance(parent, cst.Arg) and parent.keyword is original
        )
        if not named and not any(isinstance(node, cst.Annotation) for node in self.context.stack):
            self.context.hole(original, f"`{absent[original.value]}` failed when the examples ran", ABSENT)
