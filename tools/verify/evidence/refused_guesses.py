"""Methods that only guesses call, and that the port refuses in some of these calls: they become stubs, as where it refuses all of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from migrate_agent.tools.harness.common.methods import SETTER
from migrate_agent.tools.harness.common.reach import FUNCTIONS, Reached, heard
from migrate_agent.tools.types import Example
from migrate_agent.tools.verify.contract.scenario import Scenario
from migrate_agent.tools.verify.evidence.counted_file import CountedFile


def refused_guesses(
    examples: Sequence[Example],
    calls: Mapping[str, frozenset[str]],
    answered: Mapping[str, Any],
    files: Mapping[str, CountedFile],
    before: Mapping[str, Collection[str]],
) -> frozenset[str]:
    """The names of such methods. Of one for whose lines that is not all, a failure is a failure: no stub would take their place.

    `calls` is scenario → the methods that it calls (`methods_of`), `answered` the result of the port's job, `files` path → file of the port, and `before` what
    of it ran where other units were verified, by function.
    """
    wrong = {name for name, facts in answered["scenarios"].items() if isinstance(facts, Mapping) and "error" in facts}
    names = {name for scenario, called in calls.items() if scenario in wrong for name in called if _is_guess(examples, name)}
    try:
        reached = heard(answered.get("reach", {"sets": [], "of": {}})) if names else {}
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):  # safe: then a failure is a failure
        return frozenset()
    ran = [(called, reached[scenario]) for scenario, called in calls.items() if scenario in reached and scenario not in wrong]
    ran += [(frozenset[str](), reached[""])] if "" in reached else []
    return frozenset(name for name in names if _runs_alone(name, files, [row for called, row in ran if name not in called], before))


def methods_of(scenario: Scenario, described: Sequence[Mapping[str, Any]], examples: Sequence[Example]) -> frozenset[str]:
    """The names of the methods that a scenario calls, the one that comes first too. `described` are the examples that ran, with the `index` of each."""
    numbers = [described[scenario.example]["index"], *([described[scenario.prior]["index"]] if scenario.prior >= 0 else [])]
    return frozenset(filter(None, (examples[number].method for number in numbers)))


def _is_guess(examples: Sequence[Example], name: str) -> bool:
    return all(example.origin == "inference" for example in examples if example.method == name)


def _runs_alone(name: str, files: Mapping[str, CountedFile], ran: Collection[Reached], before: Mapping[str, Collection[str]]) -> bool:
    """Whether the port has functions of this name, and none of their lines ran otherwise, nor where another unit was verified."""
    lines = {path: set(_lines_of(name, file)) for path, file in files.items()}
    return any(lines.values()) and not any(
        numbers & (row.get(path, frozenset()) | files[path].numbers_of(before, path))
        for path, numbers in lines.items()
        for row in (*ran, {})
    )


def _lines_of(name: str, file: CountedFile) -> Iterator[int]:
    """The numbers of the places in the methods of this name."""
    last = re.split(r"[.:]", name)[-1]
    for cls in ast.walk(file.tree):
        for node in cls.body if isinstance(cls, ast.ClassDef) else ():
            if isinstance(node, FUNCTIONS) and node.name == last.removesuffix(SETTER) and _is_setter(node) == last.endswith(SETTER):
                span = range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1)
                yield from (number for number, place in enumerate(file.places) if place.line in span)


def _is_setter(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(ast.unparse(decorator) == f"{node.name}.setter" for decorator in node.decorator_list)
