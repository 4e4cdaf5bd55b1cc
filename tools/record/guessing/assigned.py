"""Settings that the code itself assigns: attributes of configuration objects, bodies of configuration classes, modules of constants. Read only."""

from __future__ import annotations

import ast
import builtins
import copy
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from migrate_agent.tools.record.guessing.rows import CONFIGS

CONFIG_CLASS = re.compile(r"\w*(Config|Args|Arguments|Params|Hparams|HParams|Options|Settings|Cfg)\w*")
ROOTS = re.compile(r"_{0,2}C|cfgs?")
"""Names of the trees of settings of yacs and of EasyDict."""
MENTIONED = re.compile(r"\b(_{0,2}C|\w*(config|cfg|conf|args|params|opts?|options|hps?|settings|flags))\b[\w.]*\.\w+ *=[^=]", re.I)


WRITTEN = re.compile(r"^class " + CONFIG_CLASS.pattern + r"|\b(?:" + CONFIGS.pattern + r") *= *(?:[\w.]+\(|\{)", re.M)
"""Classes of settings, and tables that are written out."""
CONSTANT = re.compile(r"^([A-Z][A-Z0-9_]+) *= *([^\s#=][^#\n]*)", re.M)


CONVERSIONS = {name: vars(builtins)[name] for name in "bool dict float int len list map max min sorted str sum tuple".split()} | {
    "eval": ast.literal_eval
}
"""What an option may be made into another value by."""


def may_assign(path: Path, source: str) -> bool:
    """Whether a file may hold settings, by its name and a quick look at its text: parsing every file of a large repository takes long."""
    return bool(CONFIGS.fullmatch(path.stem.lower()) or MENTIONED.search(source) or WRITTEN.search(source))


def constants_of(source: str) -> dict[str, ast.expr]:
    """Constants of a file, by their names in capitals."""
    texts = {match[1]: match[2] for match in CONSTANT.finditer(source)}
    return {name: node for name, text in texts.items() if (node := _parsed(text)) is not None}


def _parsed(text: str) -> ast.expr | None:
    try:
        node = ast.parse(text, mode="eval").body
        ast.literal_eval(node)
    except (SyntaxError, ValueError, TypeError):
        return None
    return node


def with_constants(tree: ast.Module, constants: Mapping[str, ast.expr]) -> ast.Module:
    """The file with the program's constants in the place of their names."""

    class Fill(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return constants[node.id] if isinstance(node.ctx, ast.Load) and node.id in constants else node

    filled: ast.Module = Fill().visit(tree)
    return filled


def _with_options(tree: ast.Module, options: Mapping[str, Any]) -> ast.Module:
    """The file with the values of its own options where it reads them: `args.layers` → `2`."""

    class Fill(ast.NodeTransformer):
        def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
            owner = node.value.id if isinstance(node.value, ast.Name) and isinstance(node.ctx, ast.Load) else ""
            return ast.parse(repr(options[node.attr]), mode="eval").body if node.attr in options and CONFIGS.fullmatch(owner) else node

    filled: ast.Module = Fill().visit(copy.deepcopy(tree))
    return filled


def assigned_settings(path: Path, source: str, tree: ast.Module, options: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The tables of settings that a file assigns: one of attributes, those that are written out, one a class, one of the constants of a file that
    is called a configuration. `options` are the values of the file's own command line."""
    if MENTIONED.search(source):
        yield _attributes(tree)
    yield from _tables(_with_options(tree, options) if options else tree)
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and CONFIG_CLASS.fullmatch(node.name):
            yield _constants(node.body)
    if CONFIGS.fullmatch(path.stem.lower()):
        yield _constants(tree.body)


def _tables(tree: ast.Module) -> Iterator[dict[str, Any]]:
    """Tables that are written out, `config = {"layers": 2}`, `config = dict(layers=2)`, `args = SimpleNamespace(layers=2)`, or filled one by one,
    `config["layers"] = 2`."""
    keyed: dict[str, dict[str, Any]] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str(key)))], value=value) if (
                CONFIGS.fullmatch(name)
            ):
                keyed[name] = {**dict(_literal(key, value)), **keyed.get(name, {})}
            case ast.Assign(targets=[ast.Name(id=name) | ast.Attribute(attr=name)], value=value) if CONFIGS.fullmatch(name):
                if table := dict(_entries(value)):
                    yield table
                # One table for each model: `configs = {Size.SMALL: dict(layers=2), …}`.
                yield from filter(None, (dict(_entries(item)) for item in value.values)) if isinstance(value, ast.Dict) else ()
    yield from filter(None, keyed.values())


def _entries(value: ast.expr) -> Iterator[tuple[str, Any]]:
    """The entries of a table whose values are literals, or tables themselves."""
    match value:
        case ast.Dict(keys=keys, values=values):
            pairs = [(key.value, item) for key, item in zip(keys, values, strict=True) if isinstance(key, ast.Constant)]
        case ast.Call(args=[], keywords=keywords):
            pairs = [(keyword.arg, keyword.value) for keyword in keywords]
        case ast.Call(args=[ast.Dict() as inner], keywords=[]):
            yield from _entries(inner)
            return
        case ast.Call(args=[ast.List(elts=rows) | ast.Tuple(elts=rows)], keywords=[]):
            pairs = [(row.elts[0].value, row.elts[1]) for row in rows if _is_pair(row)]  # type: ignore[attr-defined]
        case _:
            return
    for key, item in pairs:
        if isinstance(key, str):
            inner_table = dict(_entries(item))
            yield from ((key, inner_table),) if inner_table else _literal(key, item)


def _is_pair(row: ast.expr) -> bool:
    """Whether an item is a key and its value, as `OrderedDict([("layers", 2), …])` has them."""
    return isinstance(row, (ast.Tuple, ast.List)) and len(row.elts) == 2 and isinstance(row.elts[0], ast.Constant)


def _attributes(tree: ast.Module) -> dict[str, Any]:
    """`args.levels = 4` as `levels`, `_C.MODEL.LEVELS = 4` as a table in a table; of several values the first."""
    settings: dict[str, Any] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and (names := _path(node.targets[0])):
            table = settings
            for name in names[:-1]:
                inner = table.setdefault(name, {})
                table = inner if isinstance(inner, dict) else {}
            table.update({name: value for name, value in _literal(names[-1], node.value) if name not in table})
    return settings


def processed_options(tree: ast.Module, options: Mapping[str, Any]) -> dict[str, Any]:
    """What a program makes of its own options: `args.sizes = [int(size) for size in args.sizes.split(",")]`. Only what follows from options and
    Python's conversions is computed."""
    settings: dict[str, Any] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id=owner), attr=name)], value=value) if CONFIGS.fullmatch(owner):
                settings |= _computed(name, value, {owner: types.SimpleNamespace(**{**options, **settings})}) if name in options else {}
    return settings


def _computed(name: str, value: ast.expr, names: Mapping[str, Any]) -> dict[str, Any]:
    loaded = {one.id for one in ast.walk(value) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
    bound = {one.id for one in ast.walk(value) if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)}
    bound |= {one.arg for one in ast.walk(value) if isinstance(one, ast.arg)}
    private = any(isinstance(one, ast.Attribute) and one.attr.startswith("_") for one in ast.walk(value))
    if private or not loaded & names.keys() or not loaded <= {*names, *bound, *CONVERSIONS}:
        return {}
    try:
        result = eval(compile(ast.Expression(value), "<option>", "eval"), {"__builtins__": CONVERSIONS, **names})
        return {name: ast.literal_eval(repr(result))}
    except Exception:  # an option without a default, or text that is no literal
        return {}


def _path(target: ast.expr) -> Sequence[str]:
    """The names below a configuration object: `("MODEL", "LEVELS")` of `_C.MODEL.LEVELS`; () of anything else."""
    names: list[str] = []
    while isinstance(target, ast.Attribute):
        if names and CONFIGS.fullmatch(target.attr):  # self.args.levels
            return names[::-1]
        names.append(target.attr)
        target = target.value
    owner = target.id if isinstance(target, ast.Name) else ""
    return names[::-1] if CONFIGS.fullmatch(owner) or ROOTS.fullmatch(owner) else ()


def _constants(body: Sequence[ast.stmt]) -> dict[str, Any]:
    """What a body assigns. `width: int = None` stands for a number that the user has to say, and is none of them."""
    settings: dict[str, Any] = {}
    for statement in body:
        match statement:
            case ast.AnnAssign(annotation=ast.Name(id="int" | "float"), value=ast.Constant(value=None)):
                continue
            case ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                settings.update(_literal(name, value))
    return settings


def _literal(name: str, value: ast.expr) -> Iterator[tuple[str, Any]]:
    try:
        yield name, ast.literal_eval(value)
    except (ValueError, TypeError):
        return
