"""The candidate changes nothing outside itself: no attribute of an imported module is assigned, deleted or set."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.evidence.candidate import Results
from migrate_agent.tools.verify.evidence.parsed_source import Source, bindings, dotted, judged, once, uses

SETTERS = ("setattr", "delattr", "__setattr__", "__delattr__")


def judge(results: Results) -> Verdict:
    """Fail for the first change to something imported."""
    return judged("patches", results.sources, find)


@once
def find(source: Source) -> Iterator[tuple[int, str]]:
    """Assignments to and deletions of imported attributes, and `setattr` on imported names."""
    for use in uses(source):
        # The candidate runs in the process that measures it: a changed clock or comparison would
        # forge results.
        if use.stored and "." in use.name and not use.name.startswith("builtins."):
            yield use.line, f"changes {use.name}"
        # Writing into a namespace sets an attribute without an assignment to it.
        elif ".__dict__" in use.name:
            yield use.line, f"reaches into {use.name}"
    imported = bindings(source.tree)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in SETTERS and node.args:
            head = node.args[0]
            while isinstance(head, ast.Attribute):
                head = head.value
            if isinstance(head, ast.Name) and head.id in imported:
                yield node.lineno, f"changes {imported[head.id]}"


CHECK = Check("static", "patches", judge)
