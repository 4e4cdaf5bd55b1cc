"""Methods that only guesses call, and that the port refuses in some of these calls: they become stubs, as where it refuses all of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from migrate_agent.tools.harness.common.methods import SETTER
from migrate_agent.tools.harness.common.reach import FUNCTIONS, Reached, heard
from migrate_agent.tools.verify.contract.scenario import Scenario
from migrate_agent.tools.verify.evidence.counted_file import CountedFile, counted_file

if TYPE_CHECKING:
    from migrate_agent.tools.verify.evidence.candidate import Results


def refused_guesses(results: Results) -> frozenset[str]:
    """The names of such methods. Of one that the port has no lines for which nothing else that was compared runs, a failure is a failure: no stub would take
    their place."""
    if results.unreached != "stub":
        return frozenset()
    answered = results.of("exact").result
    wrong = {name for name, facts in answered["scenarios"].items() if "error" in facts}
    asked = [(scenario, methods_of(results, scenario)) for scenario in results.expected.scenarios]
    names = {name for scenario, methods in asked if scenario.name in wrong for name in methods if _is_guess(results, name)}
    reached = heard(answered.get("reach", {"sets": [], "of": {}})) if names else {}
    ran = [(methods, reached[scenario.name]) for scenario, methods in asked if scenario.name in reached and scenario.name not in wrong]
    ran += [(frozenset[str](), reached[""])] if "" in reached else []
    files = {source.path: counted_file(source.text) for source in results.sources if not source.error}
    return frozenset(
        name for name in names if _runs_alone(name, files, [row for methods, row in ran if name not in methods], results.reached_before)
    )


def methods_of(results: Results, scenario: Scenario) -> frozenset[str]:
    """The names of the methods that a scenario calls, the one that comes first too."""
    examples = results.expected.examples
    numbers = [examples[scenario.example]["index"], *([examples[scenario.prior]["index"]] if scenario.prior >= 0 else [])]
    return frozenset(filter(None, (results.examples[number].method for number in numbers)))


def _is_guess(results: Results, name: str) -> bool:
    return all(example.origin == "inference" for example in results.examples if example.method == name)


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
