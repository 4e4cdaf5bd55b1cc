"""Further examples of units whose examples leave code unreached: optional arguments left out, and given; switches of constructors."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.harness.common.methods import THEN
from migrate_agent.tools.record.at_once import in_order
from migrate_agent.tools.record.guessing.distinctions import asked_containers, compares_ranks, distinctions
from migrate_agent.tools.record.session import plan
from migrate_agent.tools.types import Example, Inventory, Job, Limits, Recording, Unit

ENTRY = "migrate_agent.tools.record.guessing.beyond.job:further_calls"
SECONDS = 8.0
"""For the search of one unit."""
MOST_EXAMPLES = 3
"""Examples of one unit that the search starts from."""


def further_examples(
    inventory: Inventory, units: Sequence[tuple[Unit, Sequence[Example]]], recording: Recording, sandbox: Sandbox, limits: Limits
) -> list[Example]:
    """The examples of these units that reach code that earlier ones do not, and further ones that do, by trials in the sandbox, in this order.

    A unit whose examples call methods in place of the module is searched by the first of them. A unit is tried where its call has optional
    arguments or its constructor has arguments, and where some line of its class left no observation.
    """
    alike = [(unit, [example for example in examples if example.method == examples[0].method]) for unit, examples in units if examples]
    chosen = [
        (unit, examples[:MOST_EXAMPLES]) for unit, examples in alike if _may_reach_more(inventory, unit, examples[0].method, recording)
    ]
    searches = in_order(lambda row: list(_of_unit(inventory, *row, sandbox, limits)), chosen)
    return [example for examples in searches for example in examples]


def _of_unit(inventory: Inventory, unit: Unit, examples: Sequence[Example], sandbox: Sandbox, limits: Limits) -> Iterator[Example]:
    from migrate_agent.tools.import_closure import first_roots, needed_parts  # here alone: see `session.plan`
    from migrate_agent.tools.scan.visible import visible_from

    module = next(file.module for file in inventory.files if file.path == unit.source)
    rows = [{"init": example.init, "call": example.call, "setup": example.setup, "method": example.method} for example in examples]
    arguments: dict[str, Any] = {
        **plan(visible_from(inventory, unit.source), first_roots(inventory, unit, examples)),
        "parts": needed_parts(inventory, unit, examples),
        "units": [{"module": module, "name": unit.name, "examples": rows, "seconds": min(SECONDS, limits.seconds / 2)}],
    }
    inputs = {f"0-{index}": example.tensors for index, example in enumerate(examples) if example.tensors is not None}
    run = sandbox.run(Job("original", ENTRY, inventory.root, arguments, inputs, limits))
    sandbox.release(run)
    for row in run.result if run.status == "ok" and isinstance(run.result, list) else ():
        # The job ran the user's code, so its result may be anything.
        if isinstance(row, dict) and isinstance(row.get("call"), str) and row.get("example") in range(len(examples)):
            init = row.get("init")
            yield replace(examples[row["example"]], init=init if isinstance(init, str) else examples[row["example"]].init, call=row["call"])


def _may_reach_more(inventory: Inventory, unit: Unit, method: str, recording: Recording) -> bool:
    """Whether the unit's call, or this method of it, has optional arguments, or such as the code compares, or its constructor has any, and lines of
    it left no observation."""
    node = _definition(inventory.root / unit.source, unit.name)
    if node is None:
        return False
    last = method.rpartition(THEN)[2]
    methods = [item for item in node.body if isinstance(item, ast.FunctionDef)] if isinstance(node, ast.ClassDef) else [node]
    by_name = {item.name: item for item in methods}
    call, constructor = by_name.get(last or ("forward" if unit.kind == "module" else node.name)), by_name.get("__init__")
    if call is None:
        return False
    told_apart = distinctions(node).keys() | asked_containers(node)
    names = {argument.arg for argument in call.args.args}
    optional = bool(call.args.defaults or any(call.args.kw_defaults) or names & told_apart or compares_ranks(node))
    if not optional and (constructor is None or len(constructor.args.args) + len(constructor.args.kwonlyargs) < 2):
        return False
    lines = {span.line for span in recording.observations.get(unit.source, ())}
    return any(not _ran(statement, lines) for method in methods for statement in _leaves(method.body))


def _leaves(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements without statements in them that compute something and do not raise."""
    for statement in body:
        inner = [part for field in ("body", "orelse", "finalbody") for part in getattr(statement, field, ())]
        if inner:
            yield from _leaves(inner)
        elif not isinstance(statement, (ast.Raise, ast.Pass)) and not isinstance(getattr(statement, "value", None), ast.Constant):
            yield statement


def _ran(statement: ast.stmt, lines: set[int]) -> bool:
    return any(line in lines for line in range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))


def _definition(path: Path, name: str) -> ast.ClassDef | ast.FunctionDef | None:
    try:
        body: Sequence[ast.stmt] = ast.parse(path.read_text(encoding="utf-8-sig")).body
    except (OSError, SyntaxError, ValueError):
        return None
    node: ast.ClassDef | ast.FunctionDef | None = None
    for part in name.split("."):
        node = next((item for item in body if isinstance(item, (ast.ClassDef, ast.FunctionDef)) and item.name == part), None)
        if node is None:
            return None
        body = node.body
    return node
