"""Examples that the user wrote: in the configuration, or by the `get_init_inputs`/`get_inputs` convention."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from migrate_agent.tools.types import Example, Inventory


class ExampleError(ValueError):
    """An example in the configuration that cannot be used; the message says which and what to do."""


def from_config(inventory: Inventory, example_rows: Iterable[Any]) -> tuple[Example, ...]:
    """The `[[example]]` rows (mappings or objects with `module`, `init`, `call`, `setup`, `train`, `domain`, `method`, `full`) as
    examples.

    `module` is `file:qualified name`, or a class name that one unit alone has. Raises `ExampleError` on one that names no unit
    (naming near matches), on several, on texts that are no argument lists, and on an empty or unordered domain.
    """
    return tuple(_example(inventory, row, index) for index, row in enumerate(example_rows, 1))


def _example(inventory: Inventory, row: Any, index: int) -> Example:
    def get(name: str, default: Any = "") -> Any:
        value = row.get(name) if isinstance(row, Mapping) else getattr(row, name, None)
        return default if value is None else value

    unit = find_unit(inventory, str(get("module")), f"example {index}")
    domain = _domain(get("domain", None), index)
    example = Example(
        unit, get("init"), get("call"), get("setup"), get("train", None), domain, "config", method=get("method"), full=get("full")
    )
    label = f"example {index} ({unit})"
    try:
        ast.parse(example.setup)
    except SyntaxError as error:
        raise ExampleError(f"{label}: `setup` is not valid Python: {error.msg}") from error
    _check_arguments(example.init, f"{label}: `init`")
    _check_arguments(example.call, f"{label}: `call`")
    _check_arguments(example.full, f"{label}: `full`")
    return example


def _check_arguments(text: str, label: str) -> None:
    try:
        call = ast.parse(f"f({text}\n)", mode="eval").body
    except SyntaxError as error:
        raise ExampleError(f"{label} is not valid Python: {error.msg}") from error
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise ExampleError(f"{label} is not what stands between the parentheses of a call")


def _domain(domain: Any, index: int) -> tuple[float, float] | None:
    if domain is None:
        return None
    if isinstance(domain, Mapping):
        low, high = domain.get("min"), domain.get("max")
    elif isinstance(domain, tuple | list):
        low, high = domain
    else:
        low, high = getattr(domain, "min", None), getattr(domain, "max", None)
    if low is None or high is None or not float(low) < float(high):
        raise ExampleError(f"example {index}: domain needs min < max, got min = {low}, max = {high}")
    return float(low), float(high)


def find_unit(inventory: Inventory, text: str, label: str = "module") -> str:
    """The id of the unit that `text` names. Raises `ExampleError` with near matches."""
    ids = [unit.id for unit in inventory.units]
    exact = [unit.id for unit in inventory.units if text in (unit.id, unit.name)]
    if len(exact) == 1:
        return exact[0]
    if exact:
        raise ExampleError(f"{label}: {text} is ambiguous: {', '.join(exact)}")
    near = difflib.get_close_matches(text, ids, 3, 0.5) + difflib.get_close_matches(text, [unit.name for unit in inventory.units], 3, 0.6)
    hint = (
        f"; did you mean {' or '.join(dict.fromkeys(near))}?"
        if near
        else f"; there are {len(ids)} modules and functions to migrate, see `migrate-agent scan`"
    )
    raise ExampleError(f"{label}: no module or function {text}{hint}")


def from_convention(inventory: Inventory) -> tuple[Example, ...]:
    """Examples of files that define a class `Model` beside `get_init_inputs()` and `get_inputs()`. Only reads the files.

    `get_init_inputs` may be missing: then the constructor gets no arguments.
    """
    names = {unit.id for unit in inventory.units}
    result = []
    for file in inventory.files:
        unit = f"{file.path}:Model"
        if unit not in names or file.error:
            continue
        functions = _functions((inventory.root / file.path).read_bytes())
        if "get_inputs" in functions:
            init = "*get_init_inputs()" if "get_init_inputs" in functions else ""
            result.append(Example(unit, init, "*get_inputs()", origin="convention"))
    return tuple(result)


def _functions(source: bytes) -> frozenset[str]:
    """Names of the top-level functions that can be called without arguments."""
    return frozenset(
        node.name
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef) and len(node.args.posonlyargs) + len(node.args.args) == len(node.args.defaults)
    )
