"""Translates examples: their setup and constructor arguments, rewritten for the mirror by the same
rules as the code.
"""

from __future__ import annotations

import ast
import dataclasses
from collections import Counter
from collections.abc import Iterator, Set
from dataclasses import dataclass

import libcst as cst

from migrate_agent.tools.rewrite.analysis.inference import infer
from migrate_agent.tools.rewrite.analysis.randomness import FunctionKey, lambda_name
from migrate_agent.tools.rewrite.analysis.repo import FileModel
from migrate_agent.tools.rewrite.assemble.workspace import Workspace, workspace
from migrate_agent.tools.rewrite.rules.context import Host
from migrate_agent.tools.rewrite.rules.engine import Rewritten, rewrite_file
from migrate_agent.tools.rewrite.tables import helpers
from migrate_agent.tools.rewrite.tables.canonical_names import CANONICAL
from migrate_agent.tools.scan.names import Imports
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.scan.symbols import attribute_chains, global_names
from migrate_agent.tools.types import APPLIED, Example, Hole, Inventory, Observations

_UNIT = "_unit"


class Untranslatable(ValueError):
    """The example's text has places that no rule knows."""


@dataclass(frozen=True)
class Translation:
    """A translated example. `wanted`: (file, name) of what its text needs in the mirror.
    `vendored`: the helpers it uses.
    """

    example: Example
    path: str
    wanted: frozenset[tuple[str, str]]
    vendored: frozenset[str]
    holes: tuple[Hole, ...]


def translate(inventory: Inventory, observations: Observations, example: Example) -> Example:
    """The example in the mirror's names, `rngs=rngs` added to `init`. Raises `Untranslatable` with
    the reason.
    """
    result = translation(workspace(inventory, observations, inventory.unit(example.unit).source), example)
    if result.holes:
        raise Untranslatable("; ".join(f"{hole.text}: {hole.reason}" for hole in result.holes))
    if not example.full:
        return result.example
    full = translate(inventory, observations, dataclasses.replace(example, init=example.full, full=""))
    return dataclasses.replace(result.example, full=full.init)


def translation(space: Workspace, example: Example) -> Translation:
    """Rewrite `setup` and `init` as if they stood at the end of the unit's file."""
    unit = space.inventory.unit(example.unit)
    home = space.repo.files[unit.source]
    # A function around the constructor gives the rules an `rngs` to pass on.
    # What the module of a function holds is given by name, as to `dict`.
    callee = _UNIT if unit.kind == "module" else "dict"
    text = f"{example.setup}\n\ndef _build(*, rngs):\n    return {callee}({example.init.strip()})\n"
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise Untranslatable(f"the example of {example.unit} does not parse: {error.msg}") from error
    model = FileModel(home.file, text, tree)
    model.top_names = set(home.top_names)
    # `torch` is bound even where the unit's file does not import it, since examples use it.
    model.bindings = {**home.bindings, _UNIT: f"{home.file.module}.{unit.name}", "torch": "torch"}
    model.bindings |= {name: space.repo.canonical(dotted, home.file) for name, dotted in Imports(tree, home.file).names.items()}
    build_key = {(home.file.path, "_build")}
    lambdas = _lambdas_with_rngs(space.randomness.parameter, home.file.path, tree.body[-1])
    others = {key for key in space.randomness.parameter if key[0] != home.file.path or not key[1].startswith("<lambda>@")}
    randomness = dataclasses.replace(space.randomness, parameter=others | lambdas | build_key)
    if space.repo.is_plain:  # arguments are made as a constructor makes its own layers
        randomness = dataclasses.replace(randomness, constructing=randomness.constructing | build_key)
    # No observations: those of the unit's file are keyed by its own lines.
    # Modules that `setup` makes are given the original's weights, so that any generator will do; what else it draws would differ.
    outside = Host({}, frozenset({"_build"}), draws=False)
    result = rewrite_file(space.repo, model, infer(space.repo, model, {}), randomness, host=outside)
    texts = ["".join(result.header.code_for_node(node) for node in nodes) for nodes in result.body]
    texts = _without_idle_imports(texts, {file.file.target_module for file in space.repo.files.values()})
    build = result.body[-1][0]
    names: set[tuple[str, str]] = set()
    needs = frozenset(name for part in texts for name in global_names(part)) if texts else frozenset()
    for name in needs - {_UNIT}:
        if name in home.top_names or name in home.bindings:
            names.add((home.file.path, name))
        elif (dotted := model.bindings.get(name)) and (definition := space.repo.resolve(dotted)) and definition[1]:
            names.add((definition[0].file.path, definition[1].partition(".")[0]))
            module, _, own = dotted.rpartition(".")
            if module in space.repo.modules:  # what is imported may itself import it
                names.add((space.repo.modules[module].file.path, own))
    for name in _handed_over(example.call):
        definition = space.repo.resolve(model.bindings.get(name, f"{home.file.module}.{name}"))
        if definition is not None and definition[1] in definition[0].classes:
            names.add((definition[0].file.path, definition[1]))
    names |= _names_through_packages(space, model, "\n".join(texts))
    setup = "\n".join([*_imports(home, needs, result), *(t.strip() for t in texts[:-1] if t.strip())])
    init = _constructor_arguments(build)
    if unit.kind == "function":
        init = ", ".join([*([init] if init else []), "rngs=rngs"])
    new = dataclasses.replace(example, setup=setup, init=init, method=_method(space, example.method))
    return Translation(new, home.file.path, frozenset(names), result.vendored | result.qualified, result.holes)


def _handed_over(call: str) -> Iterator[str]:
    """The names of what is called for whole arguments of a call, inside of containers too: instances of these classes reach the port."""
    row: list[ast.expr] = [ast.parse(f"_({call}\n)", mode="eval").body]
    arguments = row[0].args + [keyword.value for keyword in row[0].keywords] if isinstance(row[0], ast.Call) else []
    while arguments:
        match arguments.pop():
            case ast.Call(func=ast.Name(id=name)):
                yield name
            case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Dict(values=items):
                arguments += items


def _method(space: Workspace, name: str) -> str:
    """The name of a method in the mirror: that of a function with a gradient of its own says in which file it is."""
    module, _, function = name.removeprefix(APPLIED).rpartition(".")
    if not name.startswith(APPLIED) or module not in space.repo.modules:
        return name
    return f"{APPLIED}{space.repo.modules[module].file.target_module}.{function}"


def _without_idle_imports(texts: list[str], mirror: Set[str]) -> list[str]:
    """The statements without names from the mirror that none of them uses: what only the call used is made on the side of the original, and the
    mirror need not have it.
    """
    used = {node.id for text in texts for node in walk(ast.parse(text)) if isinstance(node, ast.Name)}

    def without(text: str) -> str:
        match ast.parse(text).body:
            case [ast.ImportFrom(module=str(module), level=0, names=names)] if module in mirror:
                kept = [name for name in names if name.name == "*" or (name.asname or name.name) in used]
                return text if len(kept) == len(names) else f"from {module} import {', '.join(map(ast.unparse, kept))}\n" if kept else ""
        return text

    return [without(text) for text in texts]


def _lambdas_with_rngs(parameter: Set[FunctionKey], path: str, build: ast.stmt) -> set[FunctionKey]:
    """The lambdas of an example's `init`, where it is written into `build`, that are called as a class is and so take `rngs`.

    They were observed by their lines in `init` alone, so that of two on one line neither is known.
    """
    lines = Counter(node.lineno for node in walk(build) if isinstance(node, ast.Lambda))
    within = {line: line - build.lineno for line, count in lines.items() if count == 1}
    return {(path, lambda_name(line)) for line, own in within.items() if (path, lambda_name(own)) in parameter}


def _names_through_packages(space: Workspace, model: FileModel, text: str) -> set[tuple[str, str]]:
    """(file, name) of each step of a chain such as `pkg_jax.layers.Block` after `import pkg`, or `parts.Block` after `from pkg import parts`."""
    names: set[tuple[str, str]] = set()
    handles = {name: dotted for name, dotted in model.bindings.items() if dotted in space.repo.modules and name != dotted}
    for mirror, name in {**handles, **space.repo.mirrored(model)}.items():
        for chain in attribute_chains(text, mirror):
            module = space.repo.modules.get(name)
            for attribute in chain:
                if module is None:
                    break
                names.add((module.file.path, attribute))
                module = space.repo.modules.get(module.bindings.get(attribute, f"{module.file.module}.{attribute}"))
    return names


def _constructor_arguments(build: cst.BaseStatement) -> str:
    """The text of the arguments of `return _unit(…)`."""
    assert isinstance(build, cst.FunctionDef) and isinstance(build.body, cst.IndentedBlock)
    line = build.body.body[-1]
    assert isinstance(line, cst.SimpleStatementLine) and isinstance(line.body[0], cst.Return)
    call = line.body[0].value
    assert isinstance(call, cst.Call)
    return ", ".join(cst.Module([]).code_for_node(a.with_changes(comma=cst.MaybeSentinel.DEFAULT)) for a in call.args)


def _imports(home: FileModel, needs: frozenset[str], result: Rewritten) -> list[str]:
    lines = [CANONICAL[name] for name in sorted(needs) if name in CANONICAL and name not in home.bindings]
    package, module = helpers.module_of(home.file)
    root = home.file.target_module.partition(".")[0]
    if result.vendored:
        lines.append(f"from {root + '.' if package else ''}{module} import {', '.join(sorted(result.vendored))}")
    if result.qualified:
        lines.append(f"from {root} import {module}" if package else f"import {module} as nnx_layers")
    return lines
