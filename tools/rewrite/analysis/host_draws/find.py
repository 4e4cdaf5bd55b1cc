"""Finds the random numbers of Python and NumPy that are drawn while a module is called, and what is computed from them.

Such a number becomes one of `jax.random`, which is an array while JAX traces. So what the examples showed to be a Python number counts
as a tensor from there on: its branches, conversions and indices are those of a tensor.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping

from migrate_agent.tools.rewrite.analysis.facts import Facts, span_of
from migrate_agent.tools.rewrite.analysis.host_draws.flow import DRAWN, DTYPES, Draws, Flow, Walk
from migrate_agent.tools.rewrite.analysis.randomness import FunctionKey, function_graph
from migrate_agent.tools.rewrite.analysis.repo import FileModel, Repo
from migrate_agent.tools.rewrite.tables.host_draws import HOST_DRAWS
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.types import Observed, Span

SCALAR = Observed(("tensor",), ((),), ("float32",))
INTEGER = Observed(("tensor",), ((),), ("int64",))
ROUNDS = 8
"""How often results and arguments are carried from function to function; a longer chain of calls keeps Python's numbers."""


def host_draws(repo: Repo, facts: Mapping[str, Facts], in_python: Callable[[FunctionKey], bool] = lambda key: False) -> dict[str, Draws]:
    """File → its draws on the host, of the files that have some in code that a module's call reaches. `in_python`: what is never traced."""
    drawing = HOST_DRAWS.keys() | DRAWN
    candidates = {path for path, known in facts.items() if not drawing.isdisjoint(known.dotted.values())}
    if not candidates:
        return {}
    graph = function_graph(repo, facts)
    running = _reached(graph, (key for key in graph if key[1].endswith((".forward", ".__call__")) and not in_python(key)))
    building = _reached(graph, (key for key in graph if key[1].endswith(".__init__")))
    shared = building & running
    flow = Flow(repo, facts)
    for key, function in graph.items():
        if key in running and key[0] in candidates and isinstance(function.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            flow.find(key, function.node, key in shared)
    if not any(found.calls or found.shared for found in flow.draws.values()):
        return {}
    for _ in range(ROUNDS):
        before = flow.size
        for key in sorted(running - shared):
            if isinstance(node := graph[key].node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                Walk(flow, key, node, graph[key].model).run()
        if flow.size == before:
            break
    return flow.draws


def as_tensors(observed: Mapping[Span, Observed], draws: Draws, file: FileModel, facts: Facts) -> dict[Span, Observed]:
    """The observations with the numbers that follow from draws as tensors without axes. Arrays of NumPy stay what they are."""
    result = dict(observed)
    for span in draws.traced:
        if (fact := observed.get(span)) is not None and (dtypes := _dtypes(fact)):
            result[span] = Observed(("tensor",), ((),), dtypes)
    for node in walk(file.tree):
        if isinstance(node, (ast.If, ast.IfExp, ast.While)) and (span := span_of(node.test, file.lines)) in draws.traced:
            # Python takes no array for a test.
            result.setdefault(span, Observed(("tensor",), ((),), ("bool",)))
        if isinstance(node, ast.Call) and span_of(node.func, file.lines) in draws.calls and span_of(node, file.lines) not in observed:
            name = facts.dotted.get(span_of(node.func, file.lines), "")
            if name and (name.startswith("random.") or not _is_sized(node)):
                result[span_of(node, file.lines)] = INTEGER if "rand" in name.rpartition(".")[2] and "int" in name else SCALAR
    return result


def _dtypes(fact: Observed) -> tuple[str, ...]:
    kinds = [kind.removeprefix("object:numpy.").rstrip("_0123456789") for kind in fact.kinds]
    return tuple(dict.fromkeys(DTYPES[kind] for kind in kinds)) if all(kind in DTYPES for kind in kinds) else ()


def _is_sized(call: ast.Call) -> bool:
    """Whether a call of NumPy may ask for an array: with a `size`, or with any positional argument where that may be one."""
    return bool(call.args) or any(keyword.arg in ("size", None) for keyword in call.keywords)


def _reached(graph: Mapping[FunctionKey, object], roots: Iterable[FunctionKey]) -> set[FunctionKey]:
    todo = list(roots)
    reached = set(todo)
    while todo:
        for key in graph[todo.pop()].calls:  # type: ignore[attr-defined]
            # A call that makes a module does not run what its constructor runs; a constructor that calls a module draws as any call of it does.
            if key in graph and key not in reached and not key[1].endswith((".__init__", ".forward", ".__call__")):
                reached.add(key)
                todo.append(key)
    return reached
