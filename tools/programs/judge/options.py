"""Options of a script that guard lines which a run did not reach: `if args.save_model:` with `--save-model`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

SWITCHES = ("store_true", "store_false", "BooleanOptionalAction")
"""What an option without a value does."""


def guarding_switches(text: str, lines: Sequence[int], command: Sequence[str]) -> list[str]:
    """The options without a value, in order, that conditions around these lines of a script ask for and `command` does not give."""
    tree = ast.parse(text)
    switches = {name: option for name, option in _switches(tree) if not set(option.split()) & set(command)}
    guards = [node for node in ast.walk(tree) if isinstance(node, (ast.If, ast.While)) and _holds(node, lines)]
    attributes = [part.attr for node in guards for part in ast.walk(node.test) if isinstance(part, ast.Attribute)]
    return list(dict.fromkeys(switches[name] for name in attributes if name in switches))


def _holds(node: ast.stmt, lines: Sequence[int]) -> bool:
    return any(node.lineno < line <= (node.end_lineno or node.lineno) for line in lines)


def _switches(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Attribute → option of each `add_argument("--save-model", action="store_true")`."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not ast.unparse(node.func).endswith("add_argument"):
            continue
        options = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str) and a.value.startswith("-")]
        named = {keyword.arg: keyword.value for keyword in node.keywords}
        action, destination = named.get("action"), named.get("dest")
        kind = action.value if isinstance(action, ast.Constant) else ast.unparse(action).rpartition(".")[2] if action is not None else ""
        if options and kind in SWITCHES:
            option = next((one for one in options if one.startswith("--")), options[0])
            name = destination.value if isinstance(destination, ast.Constant) else option.lstrip("-").replace("-", "_")
            yield str(name), option
