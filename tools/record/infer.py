"""A guessed example for a unit that no other example runs: from signature, annotations, parameter names, layers and errors."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.record.session import plan
from migrate_agent.tools.types import Example, Inventory, Job, Limits, Unit

ENTRY = "migrate_agent.tools.record.guessing.job:guess_example"
LIMITS = Limits(seconds=60.0)
SECONDS = 8.0
"""Of computing, for the search for one unit's example."""


class Guess(NamedTuple):
    """An example that ran; or else the one that came furthest, and the error it ended with.

    `imported` says whether the unit's file could be imported at all; `None` where the search died before it said so.
    """

    example: Example | None = None
    nearest: Example | None = None
    error: str = ""
    imported: bool | None = None


def infer(inventory: Inventory, unit: Unit, sandbox: Sandbox, folder: Path, limits: Limits = LIMITS, seconds: float = SECONDS) -> Guess:
    """Search, within `seconds`, for an example that builds, runs and gives finite tensors, by trials in the sandbox.

    `folder` is not written to (guesses need no tensors); it stands in the signature for those that do.
    """
    beside = _modules_beside(inventory, unit)
    guess = _search(inventory, unit, beside, sandbox, folder, limits, seconds)
    # What a neighbour needs may not be installed.
    return _search(inventory, unit, (), sandbox, folder, limits, seconds) if beside and guess.imported is False else guess


def _modules_beside(inventory: Inventory, unit: Unit) -> tuple[Example, ...]:
    """A text that names the other modules of the unit's file, which its constructor may be handed, and the functions there that construct it: of a script,
    nothing else brings them along."""
    names = [other.name for other in inventory.units if other.source == unit.source and other.kind == "module" and other.name != unit.name]
    plain = [name for name in names if "." not in name]
    plain += _factories_beside(inventory.root / unit.source, unit.name)
    return (Example(unit.id, ", ".join(dict.fromkeys(plain)), ""),) if plain else ()


def _factories_beside(file: Path, name: str) -> list[str]:
    """The functions of a file that construct a class of it."""
    try:
        tree = ast.parse(file.read_text(encoding="utf-8-sig"))
    except (OSError, SyntaxError, ValueError):
        return []
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return [function.name for function in functions if any(_constructs(node, name) for node in ast.walk(function))]


def _constructs(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def _search(
    inventory: Inventory, unit: Unit, beside: tuple[Example, ...], sandbox: Sandbox, folder: Path, limits: Limits, seconds: float
) -> Guess:
    from migrate_agent.tools.import_closure import first_roots, needed_parts  # here alone: see `session.plan`
    from migrate_agent.tools.scan.visible import visible_from

    module = next(file.module for file in inventory.files if file.path == unit.source)
    arguments = {
        **plan(visible_from(inventory, unit.source), first_roots(inventory, unit, ())),
        "module": module,
        "name": unit.name,
        "parts": needed_parts(inventory, unit, beside),
        "seconds": min(seconds, limits.seconds / 4),
    }
    run = sandbox.run(Job("original", ENTRY, inventory.root, arguments, {}, limits))
    sandbox.release(run)
    if run.status != "ok":
        return Guess(error=run.error or run.status)
    return _read(unit, run.result)


def _read(unit: Unit, result: object) -> Guess:
    # The job ran the user's code, so its result may be anything.
    if not isinstance(result, dict):
        return Guess(error="the search gave no answer")
    error, imported = str(result.get("error", "")), result.get("imported") is not False
    if not all(isinstance(result.get(part), str) for part in ("init", "call", "setup")):
        return Guess(error=error or "the search gave no answer", imported=imported)
    train = False if result.get("train") is False else None
    method = str(result.get("method", ""))
    full = str(result.get("full", ""))
    example = Example(unit.id, result["init"], result["call"], result["setup"], train, origin="inference", method=method, full=full)
    return Guess(None, example, error, imported) if error else Guess(example, imported=imported)


METHODS = "migrate_agent.tools.record.guessing.method_calls:guess_methods"
METHOD_SECONDS = 10.0
"""For the search for calls of one unit's methods."""


def infer_methods(
    inventory: Inventory, examples: Sequence[Example], of_methods: Sequence[Example], sandbox: Sandbox, limits: Limits = LIMITS
) -> tuple[tuple[Example, ...], dict[str, str]]:
    """Examples of the public methods of a unit, beside those of which there are examples (`of_methods`), each of which ran on the instance of the first of
    its examples, or ran there alone on another's, or ran more; and why others did not, by method."""
    from migrate_agent.tools.import_closure import first_roots, needed_parts  # here alone: see `session.plan`
    from migrate_agent.tools.scan.visible import visible_from

    unit = inventory.unit(examples[0].unit)
    arguments = {
        **plan(visible_from(inventory, unit.source), first_roots(inventory, unit, examples)),
        "module": next(file.module for file in inventory.files if file.path == unit.source),
        "name": unit.name,
        "parts": needed_parts(inventory, unit, examples),
        "examples": [_row(example) for example in examples],
        "known": [_row(example) for example in of_methods],
        "seconds": min(METHOD_SECONDS, limits.seconds / 2),
    }
    tensors = {f"tensors{index}": example.tensors for index, example in enumerate(examples) if example.tensors}
    tensors |= {f"known{index}": example.tensors for index, example in enumerate(of_methods) if example.tensors}
    run = sandbox.run(Job("original", METHODS, inventory.root, arguments, tensors, limits))
    sandbox.release(run)
    try:
        # The job ran the user's code, so its result may be anything.
        rows = [(examples[index], str(name), str(call)) for index, name, call in run.result["calls"]]
        errors = {str(name): str(error) for name, error in run.result["errors"].items()}
    except (TypeError, KeyError, IndexError, ValueError, AttributeError):
        return (), {}
    return tuple(replace(example, call=call, method=name, origin="inference") for example, name, call in rows), errors


def _row(example: Example) -> dict[str, str]:
    return {"init": example.init, "call": example.call, "setup": example.setup, "method": example.method}
