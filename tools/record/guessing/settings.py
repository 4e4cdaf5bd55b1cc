"""Values that the repository itself gives to names: defaults of its command lines, and its configuration files. Read only."""

from __future__ import annotations

import ast
import importlib
import json
import keyword
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from migrate_agent.tools.record.guessing.assigned import assigned_settings, constants_of, may_assign, processed_options, with_constants
from migrate_agent.tools.record.guessing.objects.command_lines import texts_with_commands, written_options
from migrate_agent.tools.record.guessing.objects.interpolations import resolved
from migrate_agent.tools.record.guessing.values import Fields, Value

Settings = Mapping[str, Any]
LARGEST = 200_000
"""Bytes of a configuration file that is read."""
MOST_FILES = 60
OPTIONS = frozenset({"add_argument", "option"})
"""Methods that declare an option of a command line: argparse's, click's."""
FLAGS = MappingProxyType({"store_true": False, "store_false": True})
LARGE = 64
"""Sizes from here on are also tried at an eighth."""
WIDE, UNIT, LESS, WIDEST = 256, 64, 8, 1024
"""Of one setting alone: widths from `WIDE` on that are multiples of `UNIT` are `LESS` times smaller, all alike, so that what was equal, or a multiple,
stays so; what is wider than `WIDEST` all the same would make a guess slow."""
DEEP = re.compile(
    r"(.*_)?(depth|n?_?(um_)?(layers?|blocks?|stages?|convolutions|convs|res_?(blocks|groups|units))|(iter|step)s?|iterations)"
)
"""Settings that say how often something is repeated: twice shows as much as often."""


def command_line(tree: ast.AST) -> Settings:
    """Option → its default, of the options that a file declares; those without a literal default are left out."""
    defaults: dict[str, Any] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr in OPTIONS:
            defaults.update(_option(node))
        elif node.func.attr.startswith("DEFINE_") and len(node.args) > 1:  # absl's flags
            defaults.update(_literals([(node.args[0], node.args[1])]))
    return defaults


def _undecided(tree: ast.AST, declared: Settings) -> dict[str, bool]:
    """Option → whether it takes a list, of the options that a file declares without a literal default."""
    options: dict[str, bool] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in OPTIONS:
            takes_list = any(item.arg == "nargs" and ast.unparse(item.value) in ("'+'", "'*'") for item in node.keywords)
            options |= {name: takes_list for name in [_name(node)] if name and name not in declared}
    return options


def _name(call: ast.Call) -> str:
    """The attribute that an option's value is kept under; "" where it is not written out."""
    names = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    long = [name for name in names if name.startswith("--")] or names
    own = [item.value.value for item in call.keywords if item.arg == "dest" and isinstance(item.value, ast.Constant)]
    return str(own[0]) if own else long[0].lstrip("-").replace("-", "_") if long else ""


def _option(call: ast.Call) -> Settings:
    keywords = {item.arg: item.value for item in call.keywords if item.arg}
    action = keywords.get("action")
    default = keywords.get("default")
    if default is None and isinstance(action, ast.Constant) and isinstance(action.value, str) and action.value in FLAGS:
        default = ast.Constant(FLAGS[action.value])
    if default is None and isinstance(choices := keywords.get("choices"), ast.List | ast.Tuple) and choices.elts:
        default = choices.elts[0]
    return _literals([(ast.Constant(name), default)]) if default is not None and (name := _name(call)) else {}


def _literals(pairs: Collection[tuple[ast.expr, ast.expr]]) -> Settings:
    defaults: dict[str, Any] = {}
    for name, value in pairs:
        try:
            defaults[str(ast.literal_eval(name))] = ast.literal_eval(value)
        except (ValueError, TypeError):
            continue
    return defaults


def settings_of(root: Path, sources: Collection[Path]) -> list[Settings]:
    """What each command line and each configuration file below `root` says, and each table inside of one."""
    tables: list[Settings] = []
    texts = {path: _text(path) for path in sources}
    likely = [path for path, text in texts.items() if _declares(text) or may_assign(path, text)][:MOST_FILES]
    constants = {name: value for text in texts.values() for name, value in constants_of(text).items()} if likely else {}
    commands = texts_with_commands(root) if any(_declares(texts[path]) for path in likely) else []
    trees = {path: with_constants(tree, constants) for path in likely if (tree := _tree(texts[path])) is not None}
    options = {path: _options(path, texts[path], tree, commands) for path, tree in trees.items()}
    everywhere = {name: value for own in options.values() for name, value in own.items()}
    for path, tree in trees.items():
        # One file may declare what another one reads: `config["width"] = args.width`.
        tables += [
            {**options[path], **processed_options(tree, options[path])},
            *assigned_settings(path, texts[path], tree, options[path] or everywhere),
        ]
    files = sorted(
        path for suffix in ("json", "yaml", "yml") for path in root.rglob(f"*.{suffix}") if ".git" not in path.relative_to(root).parts
    )
    contents = {path: _parsed(path) for path in files[:MOST_FILES]}
    # A file of a folder of alternatives stands for what the folder is called: `model/small.yaml` for `model`.
    roots = [*contents.values(), *({path.parent.name: content} for path, content in contents.items() if path.parent != root)]
    for content in contents.values():
        tables += _tables(resolved(roots, content))
    return [table for table in tables if table]


def _tree(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def _declares(text: str) -> bool:
    """Whether a text declares options of a command line."""
    return any(name in text for name in (*OPTIONS, "DEFINE_"))


def _options(path: Path, text: str, tree: ast.Module, commands: Sequence[str]) -> Settings:
    """What a file of the program declares as options. Of those without a default, what command lines in the texts `commands` say."""
    declared = command_line(tree) if _declares(text) else {}
    undecided = _undecided(tree, declared) if _declares(text) else {}
    several = [name for name, takes_list in undecided.items() if takes_list]
    return {**written_options(commands, path.name, undecided, several), **declared}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig") if path.stat().st_size < LARGEST else ""
    except (OSError, ValueError):
        return ""


def _parsed(path: Path) -> Any:
    text = _text(path)
    try:
        if path.suffix == ".json":
            return json.loads(text)
        return importlib.import_module("yaml").safe_load(text)  # where the repository's environment has it
    except Exception:  # what the file holds is data that may be anything
        return None


def _tables(value: Any) -> Iterator[Settings]:
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        yield value
        for inner in value.values():
            yield from _tables(inner)


def covering(settings: Collection[Settings], names: Collection[str], share: float = 1) -> Iterator[Settings]:
    """Those that have all of these names, or that `share` of them: the most first, then the smallest; each once as it is and once with its
    sizes at an eighth, the smaller one first."""
    counted = [(sum(name in table for name in names), table) for table in settings]
    fitting = [(count, table) for count, table in counted if names and count >= max(share * len(names), 1)]
    for _, table in sorted(fitting, key=lambda row: (-row[0], _size({name: row[1][name] for name in names if name in row[1]}))):
        smaller = _smaller(table)
        yield smaller
        if smaller != table:
            yield table


def exact(settings: Collection[Settings]) -> dict[str, str]:
    """Name → text of its first value among these settings."""
    return {name: repr(value) for table in reversed([*settings]) for name, value in table.items() if not isinstance(value, dict)}


def narrowed(settings: Collection[Settings]) -> dict[str, str]:
    """Name → text of its first value among these settings, made small; those that name files, or are large all the same, are left out."""
    texts: dict[str, str] = {}
    for table in settings:
        lengths = {len(value) for value in table.values() if isinstance(value, list | tuple)}
        for name, value in table.items():
            # What counts the items of a list beside it must go on to do so.
            text = repr(value) if type(value) is int and value in lengths else _narrow(name, value)
            if text and name not in texts and name.isidentifier():
                texts[name] = text
    return texts


def deep(settings: Collection[Settings]) -> dict[str, int]:
    """Name → its first value among these settings, of those numbers that say how often something is repeated and are made small."""
    numbers = {name: value for table in reversed([*settings]) for name, value in table.items() if type(value) is int}
    small = narrowed(settings)
    return {name: value for name, value in numbers.items() if value > 2 and small.get(name) == "2"}


def _narrow(name: str, value: Any) -> str:
    if isinstance(value, dict) or (isinstance(value, str) and ("/" in value or len(value) > 24)):
        return ""
    if type(value) is int and value > 2 and DEEP.fullmatch(name.lower()):
        return "2"
    if isinstance(value, (list, tuple)) and DEEP.fullmatch(name.lower()) and all(type(item) is int for item in value):
        return repr(type(value)(min(item, 2) for item in value))
    if type(value) is int and value >= WIDE and value % UNIT == 0:
        value //= LESS
    return "" if type(value) is int and abs(value) > WIDEST else repr(value)


def _size(value: Any) -> float:
    """How large a model of these numbers may be: the sum of their logarithms."""
    match value:
        case dict():
            return sum(map(_size, value.values()))
        case list() | tuple():
            return sum(map(_size, value))
        case int() if not isinstance(value, bool) and value > 1:
            return math.log(value)
        case _:
            return 0.0


def _smaller(value: Any) -> Any:
    match value:
        case dict():
            return {name: _smaller(item) for name, item in value.items()}
        case list() | tuple():
            return type(value)(_smaller(item) for item in value)
        case int() if not isinstance(value, bool) and value >= LARGE:
            return value // 8
        case _:
            return value


def as_value(value: Any, form: str = "dict") -> Value:
    """A literal as a value of a guess; tables become dictionaries, or objects with the form `namespace`."""
    if isinstance(value, dict) and value and all(isinstance(key, str) for key in value):
        identifiers = all(key.isidentifier() and not keyword.iskeyword(key) for key in value)
        return Fields(
            tuple((key, as_value(item, form)) for key, item in value.items()),
            "namespace" if identifiers and form == "namespace" else "dict",
        )
    return repr(value)
