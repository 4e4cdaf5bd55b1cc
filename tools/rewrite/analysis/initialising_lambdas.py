"""Finds the lambdas that give the parameter which they are handed new values: `lambda w: nn.init.normal_(w, std=0.02)`.

Torch's change the tensor in place. A lambda cannot assign, so the rewrite of such a lambda takes a
key and gives the new values, as the vendored initialisers do, and whoever calls it assigns them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Set

from migrate_agent.tools.rewrite.analysis.facts import Facts, span_of
from migrate_agent.tools.rewrite.analysis.repo import FileModel, Repo
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.types import Observed, Span

INIT = "torch.nn.init."
FILLING = frozenset({"fill_", "zero_", "normal_", "uniform_"})
"""In-place methods whose result does not depend on what the tensor held."""


def initialising_lambdas(repo: Repo, facts: Mapping[str, Facts]) -> dict[str, frozenset[Span]]:
    """The kind of such lambdas, as values are observed to be (`function:nets.<lambda>@12`) → their spans.

    Lambdas of one line have one kind: a call of that kind is one of an initialiser where it hands
    over a tensor and is a statement, so that nothing uses the value. Where no other lambda stands in
    the line, there must be no other call.
    """
    by_kind: dict[str, list[Span]] = {}
    others: set[str] = set()
    for module, model in repo.modules.items():
        for span, initialises in _lambdas(model, facts[model.file.path]):
            kind = f"function:{module}.<lambda>@{span.line}"
            by_kind.setdefault(kind, []).append(span) if initialises else others.add(kind)
    if not by_kind:
        return {}
    calls = [row for file in repo.files.values() for row in _calls(file, facts[file.file.path], by_kind.keys())]
    used, as_value = {kind for kind, is_statement in calls if is_statement}, {kind for kind, is_statement in calls if not is_statement}
    return {kind: frozenset(spans) for kind, spans in by_kind.items() if kind in used - (as_value - others)}


def takes_tensor(fact: Observed | None) -> bool:
    """Whether an argument was a tensor each time: another lambda of the same line may be called with something else."""
    return fact is not None and set(fact.kinds) <= {"parameter", "tensor"}


def _lambdas(file: FileModel, facts: Facts) -> Iterator[tuple[Span, bool]]:
    """(span, whether it initialises its argument) for each lambda of a file."""
    for node in walk(file.tree):
        if isinstance(node, ast.Lambda):
            target = _initialised(file, facts, node.body) if isinstance(node.body, ast.Call) else None
            if isinstance(target, ast.Attribute) and target.attr == "data":
                target = target.value
            own = [argument.arg for argument in node.args.args[:1]]
            yield span_of(node, file.lines), isinstance(target, ast.Name) and target.id in own


def _initialised(file: FileModel, facts: Facts, call: ast.Call) -> ast.expr | None:
    """The tensor that a call gives new values, `None` where it is no such call."""
    if facts.dotted.get(span_of(call.func, file.lines), "").startswith(INIT):
        return next((k.value for k in call.keywords if k.arg == "tensor"), call.args[0] if call.args else None)
    return call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr in FILLING else None


def _calls(file: FileModel, facts: Facts, kinds: Set[str]) -> Iterator[tuple[str, bool]]:
    """(kind, whether the call is a statement) for each call of one of these lambdas with a tensor."""
    statements = {id(node.value) for node in walk(file.tree) if isinstance(node, ast.Expr)}
    for node in walk(file.tree):
        if isinstance(node, ast.Call) and node.args and takes_tensor(facts.observed.get(span_of(node.args[0], file.lines))):
            fact = facts.observed.get(span_of(node.func, file.lines))
            yield from ((kind, id(node) in statements) for kind in (fact.kinds if fact else ()) if kind in kinds)
