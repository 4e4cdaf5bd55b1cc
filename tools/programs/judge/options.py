"""Options of a script that let a run reach other lines: switches that guard them, files to go on from, and bounds that end it earlier."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SWITCHES = ("store_true", "store_false", "BooleanOptionalAction")
"""What an option without a value does."""
LOOKS = ("exists", "isfile", "is_file", "isdir", "is_dir")
"""Functions and methods that say whether a file is there."""


@dataclass(frozen=True)
class Option:
    """An option of a parser: as it is spelled in full, its attribute, `switch`, `int` or `text`, its default, and all of its spellings."""

    flag: str
    name: str
    kind: str
    default: Any
    spellings: tuple[str, ...] = ()


def guarding_switches(text: str, lines: Sequence[int], command: Sequence[str]) -> list[str]:
    """The options without a value, in order, that conditions around these lines of a script ask for and `command` does not give."""
    return [option.flag for option in _guarding(ast.parse(text), lines, command) if option.kind == "switch"]


def given_switches(text: str, lines: Sequence[int], command: Sequence[str]) -> list[str]:
    """The options without a value that conditions around these lines of a script ask for and `command` gives, as it spells them."""
    options = _asked(ast.parse(text), lines)
    return [word for option in options if option.kind == "switch" for word in command[1:] if word in option.spellings]


def resuming_options(text: str, lines: Sequence[int], command: Sequence[str], files: Sequence[str]) -> list[str]:
    """The options with which a further run may read what an earlier one left: switches, the last of `files` for an option that is empty else, and
    texts that the script compares an option with before it loads something (`--init_from=resume`).

    "" is one of them where a condition around these lines asks whether a file is there.
    """
    tree = ast.parse(text)
    options = _guarding(tree, lines, command)
    switches = [option.flag for option in options if option.kind == "switch"]
    values = [f"{option.flag} {files[-1]}" for option in options if option.kind == "text" and not option.default and files]
    looks = any(name in LOOKS for node in _guards(tree, lines) for name in _called(node.test))
    return [*switches, *values, *_loading_texts(tree, lines), *([""] if looks else [])]


def _loading_texts(tree: ast.Module, lines: Sequence[int]) -> list[str]:
    """`--init_from=resume` for each `init_from == "resume"` around what loads something, where `init_from` is an option of a parser or a variable of a
    script that a configurator sets.
    """
    flags = {option.name: option.flag for option in parser_options(tree) if option.kind == "text"}
    plain = _configured(tree)
    texts: dict[str, None] = {}
    for guard in _guards(tree, lines):
        missed = any(guard.body[0].lineno <= line <= (guard.body[-1].end_lineno or 0) for line in lines)
        if not missed or not any(name.startswith("load") for statement in guard.body for name in _called(statement)):
            continue
        match guard.test:
            case ast.Compare(left=ast.Attribute(attr=name), ops=[ast.Eq()], comparators=[ast.Constant(value=str(value))]) if name in flags:
                texts[f"{flags[name]}={value}"] = None
            case ast.Compare(left=ast.Name(id=name), ops=[ast.Eq()], comparators=[ast.Constant(value=str(value))]) if name in plain:
                texts[f"--{name}={value}"] = None
    return list(texts)


def _configured(tree: ast.Module) -> set[str]:
    """The variables with texts of a script that executes another file among its own statements, `exec(open("configurator.py").read())`."""
    executes = any(
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "exec" for node in tree.body
    )
    pairs = [(node.targets[0], node.value) for node in tree.body if isinstance(node, ast.Assign)] if executes else []
    return {target.id for target, value in pairs if isinstance(target, ast.Name) and isinstance(_constant(value), str)}


def shortening_options(text: str, command: Sequence[str], steps: int) -> list[str]:
    """Whole numbers that bound a loop, each with a smaller value: those that the run of so many steps does not come to first."""
    tree = ast.parse(text)
    bounds = {name for node in ast.walk(tree) for name in _bounds(node, attribute_names(tree))}
    pairs = [(option, given_value(option, command)) for option in parser_options(tree) if option.kind == "int" and option.name in bounds]
    limits = [(option, value) for option, value in pairs if isinstance(value, int) and value > 1 and steps > 1]
    # A bound beyond the run ends it and changes nothing else; others may be the length of a schedule too.
    limits.sort(key=lambda pair: pair[1] <= steps)
    return [f"{option.flag} {min(value, steps) // 2}" for option, value in limits]


def _guarding(tree: ast.Module, lines: Sequence[int], command: Sequence[str]) -> list[Option]:
    return [option for option in _asked(tree, lines) if not set(option.spellings) & set(command)]


def _asked(tree: ast.Module, lines: Sequence[int]) -> list[Option]:
    """The options that conditions around these lines ask for."""
    options, aliases = {option.name: option for option in parser_options(tree)}, attribute_names(tree)
    names = dict.fromkeys(name for node in _guards(tree, lines) for name in _read(node.test, aliases))
    return [options[name] for name in names if name in options]


def _guards(tree: ast.Module, lines: Sequence[int]) -> list[ast.If | ast.While]:
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, (ast.If, ast.While)) and any(node.lineno < line <= (node.end_lineno or node.lineno) for line in lines)
    ]


def _bounds(node: ast.AST, aliases: Mapping[str, str]) -> Iterator[str]:
    """The attributes that say when a loop ends."""
    if isinstance(node, ast.For):
        yield from _read(node.iter, aliases)
    elif isinstance(node, ast.While) or (isinstance(node, ast.If) and any(isinstance(one, (ast.Break, ast.Return)) for one in node.body)):
        yield from _read(node.test, aliases)


def _read(node: ast.AST, aliases: Mapping[str, str]) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute):
            yield part.attr
        elif isinstance(part, ast.Name) and part.id in aliases:
            yield aliases[part.id]


def _called(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            yield ast.unparse(part.func).rpartition(".")[2]


def attribute_names(tree: ast.Module) -> dict[str, str]:
    """Name → attribute, of each `epochs = args.epochs`."""
    pairs = [(node.targets[0], node.value) for node in ast.walk(tree) if isinstance(node, ast.Assign)]
    return {target.id: value.attr for target, value in pairs if isinstance(target, ast.Name) and isinstance(value, ast.Attribute)}


def given_value(option: Option, command: Sequence[str]) -> Any:
    """What the command gives an option for whole numbers, else its default."""
    words = [word for text in command for word in text.split("=", 1)]
    after = [words[i + 1] for i, word in enumerate(words[:-1]) if word == option.flag]
    return int(after[-1]) if after and after[-1].isdecimal() else option.default


def parser_options(tree: ast.Module) -> Iterator[Option]:
    """Those of each `add_argument("--save-model", action="store_true")`."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not ast.unparse(node.func).endswith("add_argument"):
            continue
        flags = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str) and a.value.startswith("-")]
        named = {keyword.arg: keyword.value for keyword in node.keywords}
        action, destination, default = named.get("action"), named.get("dest"), named.get("default")
        if flags and (kind := _kind(action, named.get("type"))):
            flag = next((one for one in flags if one.startswith("--")), flags[0])
            name = destination.value if isinstance(destination, ast.Constant) else flag.lstrip("-").replace("-", "_")
            yield Option(flag, str(name), kind, _constant(default), tuple(flags))


def _kind(action: ast.expr | None, of: ast.expr | None) -> str:
    """`switch`, `int` or `text`; "" for anything else."""
    if action is not None:
        word = action.value if isinstance(action, ast.Constant) else ast.unparse(action).rpartition(".")[2]
        return "switch" if word in SWITCHES else ""
    return {"None": "text", "str": "text", "int": "int"}.get(ast.unparse(of) if of is not None else "None", "")


def _constant(node: ast.expr | None) -> Any:
    """The value of a default, such as `10**9`; `None` for one that is computed."""
    if isinstance(node, ast.BinOp) and all(isinstance(side, ast.Constant) for side in (node.left, node.right)):
        return eval(compile(ast.Expression(node), "", "eval"), {"__builtins__": {}})
    return node.value if isinstance(node, ast.Constant) else None
