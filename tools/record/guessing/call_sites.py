"""How the repository itself constructs a class: the arguments of calls, as far as they can be read without running anything."""

from __future__ import annotations

import ast
import builtins
import copy
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from inspect import Parameter
from itertools import islice
from pathlib import Path

from migrate_agent.tools.record.guessing.refused import conditions, fitting
from migrate_agent.tools.record.guessing.rows import CONFIGS, parameter_texts

MOST = 6
OUTER = 2
"""Through how many constructors around a call its arguments are followed."""
NUMERIC = ("torch", "numpy", "math")
"""Packages that texts of arguments may name as a whole."""
LARGEST = 500_000
"""Bytes of a file that is read."""
NOTEBOOK = ".ipynb"
MOST_NOTEBOOKS = 20
LARGEST_NOTEBOOK = 20_000_000
"""Notebooks that are read, and the bytes of one: pictures are most of them."""
Bindings = Mapping[str, ast.expr]


@dataclass
class Program:
    """What the texts of call sites may name beside what the unit's file has. `modules`: file → its module; `settings`: name → text of a setting of the
    repository. `imports` gathers the lines that import what texts name, by name."""

    modules: Mapping[Path, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)
    _texts: dict[Path, str] = field(default_factory=dict)
    _trees: dict[Path, ast.Module] = field(default_factory=dict)

    def layers(self, dotted: str) -> tuple[ast.expr, ast.Module, str] | None:
        """What a file of the repository binds a name such as `nets.decoder` to at its top level, where that makes layers; with the file's tree and module.

        Whoever names it on the other side would find none: there a layer is made where random numbers are at hand.
        """
        module, _, name = dotted.rpartition(".")
        file = next((path for path, other in self.modules.items() if other == module), None)
        tree = self.tree(file, name) if file is not None else ast.Module([], [])
        value = _assigned(tree.body).get(name)
        return (value, tree, module) if value is not None and _makes_layers(value) else None

    def tree(self, file: Path, name: str) -> ast.Module:
        """The parsed file, read once; nothing where its text lacks the name."""
        if file not in self._texts:
            try:
                text = file.read_text(encoding="utf-8-sig")
                self._texts[file] = _cells(text) if file.suffix == NOTEBOOK else text
            except (OSError, ValueError, TypeError, KeyError):
                self._texts[file] = ""
        text = self._texts[file]
        if name not in text or len(text) >= LARGEST:
            return ast.Module([], [])
        if file not in self._trees:
            try:
                self._trees[file] = ast.parse(text)
            except (ValueError, SyntaxError):
                self._trees[file] = ast.Module([], [])
        return self._trees[file]


def notebooks(root: Path) -> list[Path]:
    """The notebooks below a folder."""
    paths = (path for path in sorted(root.rglob(f"*{NOTEBOOK}")) if not any(part.startswith(".") for part in path.relative_to(root).parts))
    return [path for path in islice(paths, MOST_NOTEBOOKS) if path.stat().st_size < LARGEST_NOTEBOOK]


def _cells(text: str) -> str:
    """The program of a notebook: its cells of code in their order, those that parse without IPython's own commands. Raises for what is none."""
    program = []
    for cell in json.loads(text)["cells"]:
        if cell["cell_type"] == "code":
            lines = "".join(cell["source"]).splitlines()
            source = "\n".join(line for line in lines if not line.lstrip().startswith(("%", "!", "?")))
            try:
                ast.parse(source)
            except SyntaxError:
                continue
            program.append(source)
    return "\n".join(program)


def call_sites(
    files: Collection[Path], name: str, parameters: list[Parameter], scope: Collection[str], program: Program | None = None
) -> list[dict[str, str]]:
    """Parameter → text for each place that constructs the class, complete ones first; `known` are names that the unit's file has."""
    return _sites(files, name, parameters, scope, program or Program(), OUTER)


def _sites(
    files: Collection[Path], name: str, parameters: list[Parameter], scope: Collection[str], program: Program, depth: int
) -> list[dict[str, str]]:
    sites: list[dict[str, str]] = []
    followed: set[str] = set()

    def made(owner: ast.ClassDef) -> dict[str, ast.expr]:
        """What the parameters of the constructor around a call are, as the repository constructs its class first."""
        constructor = _constructor(owner)
        followed.add(owner.name)
        if constructor is None or owner.name == name or not depth or len(followed) > MOST:
            return {}
        outer = [Parameter(argument.arg, Parameter.POSITIONAL_OR_KEYWORD) for argument in _plain(constructor)[1:]]
        first = _sites(files, owner.name, outer, scope, program, depth - 1)[:1]
        return {other: ast.parse(text, mode="eval").body for site in first for other, text in site.items()}

    trees = {file: program.tree(file, name) for file in files}
    homes = {part for file, tree in trees.items() if _defines(tree, name) for part in (*file.parts, file.stem)}
    for file, tree in trees.items():
        if not any(_last_name(call.func) == name for call in _all_calls(tree)) or (homes and _imports_another(tree, name, homes)):
            continue
        importable = _importable(tree, program.modules[file], program.modules.values()) if file in program.modules else {}
        for call, bindings in _calls(tree, name, made, scope if _defines(tree, name) else ()):
            site = _arguments(call, parameters, Inline(bindings, scope, importable, program))
            if site and site not in sites:
                sites.append(site)
    return sorted(sites, key=len, reverse=True)[:MOST]


def _defines(tree: ast.Module, name: str) -> bool:
    return any(isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name for node in tree.body)


def _imports_another(tree: ast.Module, name: str, homes: set[str]) -> bool:
    """Whether a file takes the name from a module that has no part in the paths of the files which define it: torchvision's `ResNet`."""
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom) and not node.level and node.module]
    modules = [node.module or "" for node in imports if any((alias.asname or alias.name) == name for alias in node.names)]
    return bool(modules) and all(not homes & set(module.split(".")) for module in modules)


def _constructor(owner: ast.ClassDef) -> ast.FunctionDef | None:
    return next((node for node in owner.body if isinstance(node, ast.FunctionDef) and node.name == "__init__"), None)


def _calls(
    tree: ast.Module, name: str, made: Callable[[ast.ClassDef], dict[str, ast.expr]] = lambda owner: {}, scope: Collection[str] = ()
) -> Iterator[tuple[ast.Call, dict[str, ast.expr]]]:
    """Calls of the class, each with what the names around it are bound to: what a block binds once, and what it has bound last before a call; and what
    `made` says of the parameters of a constructor around it. Tables that the unit's own file has, as `scope` says, keep their names."""

    def walk(
        node: ast.AST, bindings: dict[str, ast.expr], owner: ast.ClassDef | None = None
    ) -> Iterator[tuple[ast.Call, dict[str, ast.expr]]]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            is_constructor = owner is not None and node.name == "__init__" and any(_last_name(c.func) == name for c in _all_calls(node))
            outer = made(owner) if owner is not None and is_constructor else {}
            for words in _words(node):
                arguments = _defaults(node) | words | outer
                yield from below(node, bindings | arguments | _asserted(node, arguments) | _assigned(node.body))
            return
        if isinstance(node, ast.Module):
            bindings = {bound: value for bound, value in _assigned(node.body).items() if bound not in tables}
        if isinstance(node, ast.Call) and _last_name(node.func) == name:
            yield node, bindings
        yield from below(node, bindings)

    def below(node: ast.AST, bindings: dict[str, ast.expr]) -> Iterator[tuple[ast.Call, dict[str, ast.expr]]]:
        for child in ast.iter_child_nodes(node):
            yield from walk(child, bindings, node if isinstance(node, ast.ClassDef) else None)
            if isinstance(child, ast.Assign | ast.AnnAssign) and not (node is tree and tables & _assigned([child]).keys()):
                bindings = bindings | {bound: _unfolded(value, bound, bindings) for bound, value in _assigned([child]).items()}

    tables = {bound for bound, value in _assigned(tree.body).items() if bound in scope and _is_table(value)}
    yield from walk(tree, {})


def _is_table(value: ast.expr) -> bool:
    return isinstance(value, ast.Dict | ast.List) and not any(isinstance(part, ast.Name | ast.Call) for part in ast.walk(value))


def _words(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[dict[str, ast.expr]]:
    """Words for the parameters without a default that a function compares with words: each of the first one's, beside the first one of others."""
    missing = _plain(function)[: len(_plain(function)) - len(function.args.defaults)]
    words: dict[str, list[ast.expr]] = {}
    for node in ast.walk(function):
        match node:
            case ast.Compare(left=ast.Name(id=compared), ops=[ast.Eq() | ast.NotEq()], comparators=[ast.Constant(value=str()) as word]):
                words.setdefault(compared, []).append(word)
    rows = [words[argument.arg] for argument in missing if argument.arg in words]
    names = [argument.arg for argument in missing if argument.arg in words]
    first = rows[0][:MOST] if rows else []
    return [dict(zip(names, (word, *(row[0] for row in rows[1:])), strict=True)) for word in first] or [{}]


def _all_calls(node: ast.AST) -> Iterator[ast.Call]:
    return (part for part in ast.walk(node) if isinstance(part, ast.Call))


def _unfolded(value: ast.expr, name: str, bindings: Bindings) -> ast.expr:
    """The value that a name is bound to anew, with what the name stood for in its place: `model = Wrapper(model)`."""

    class Unfold(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return bindings[name] if node.id == name and name in bindings else node

    unfolded: ast.expr = Unfold().visit(copy.deepcopy(value))
    return unfolded


def _last_name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _defaults(function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, ast.expr]:
    """What parameters are: their defaults, else what their names suggest."""
    plain = _plain(function)
    missing = len(plain) - len(function.args.defaults)
    pairs = [
        *zip(plain[missing:], function.args.defaults, strict=True),
        *zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True),
    ]
    bindings = {}
    for argument in (*plain, *function.args.kwonlyargs):
        annotation = ast.unparse(argument.annotation) if argument.annotation else ""
        if argument.arg != "self" and (texts := parameter_texts(argument.arg, annotation)):
            bindings[argument.arg] = ast.parse(texts[0], mode="eval").body
    return bindings | {argument.arg: default for argument, default in pairs if default is not None}


def _asserted(function: ast.FunctionDef | ast.AsyncFunctionDef, bindings: Bindings) -> dict[str, ast.expr]:
    """Other numbers for those parameters of which a function asserts what theirs do not fulfil."""
    tests = conditions(list(ast.walk(function)))
    values = {name: node.value for name, node in bindings.items() if isinstance(node, ast.Constant) and type(node.value) in (int, float)}
    others: dict[str, ast.expr] = {}
    for name, value in values.items():
        numbers = list(fitting(tests, name, values))
        if numbers and value not in numbers:
            others[name] = ast.Constant(numbers[0])
            values[name] = numbers[0]
    return others


def _plain(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args]


def _assigned(body: list[ast.stmt]) -> dict[str, ast.expr]:
    """Names that simple statements of a block bind once."""
    values: dict[str, ast.expr] = {}
    twice: set[str] = set()
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name) | ast.Attribute(value=ast.Name(id="self"), attr=name)], value=value):
                twice |= {name} & values.keys()
                values[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                twice |= {name} & values.keys()
                values[name] = value
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value) if all(isinstance(target, ast.Name) for target in targets):
                names = [target.id for target in targets if isinstance(target, ast.Name)]
                twice |= {*names} & values.keys()
                values |= zip(names, _items(value, len(names)), strict=True)
    return {name: value for name, value in values.items() if name not in twice}


LAYERS = re.compile(r"(torch\.)?nn\.[A-Z]\w*")
"""What constructors of torch's layers are called."""


def _makes_layers(value: ast.expr) -> bool:
    return any(LAYERS.fullmatch(ast.unparse(call.func)) for call in _all_calls(value))


def _imported(line: str) -> str:
    """The dotted name of what a line imports."""
    match ast.parse(line).body:
        case [ast.ImportFrom(module=str(module), names=[alias])]:
            return f"{module}.{alias.name}"
        case [ast.Import(names=[alias])]:
            return alias.name if alias.asname else alias.name.partition(".")[0]
    return ""


def _items(value: ast.expr, count: int) -> list[ast.expr]:
    """What each of so many names gets of a value that is unpacked: `base, head = parts(3)` binds `head` to `parts(3)[1]`."""
    if isinstance(value, ast.Tuple) and len(value.elts) == count:
        return value.elts
    return [ast.Subscript(copy.deepcopy(value), ast.Constant(at), ast.Load()) for at in range(count)]


def _importable(tree: ast.Module, module: str, own: Collection[str]) -> dict[str, str]:
    """Name → the line that imports it, of the classes and functions of a file, and of what it imports itself from files of the repository or elsewhere;
    of whole modules, the repository's `own` and those of numbers: what others make, such as the arguments of a command line, is not the repository's."""
    own_names = [node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)] if module else []
    lines = {name: f"from {module} import {name}" for name in own_names}
    for node in tree.body:
        if isinstance(node, ast.Import):
            modules = [alias for alias in node.names if alias.name in own or alias.name.partition(".")[0] in NUMERIC]
            lines |= {alias.asname or alias.name.partition(".")[0]: ast.unparse(ast.Import([alias])) for alias in modules}
            continue
        if isinstance(node, ast.ImportFrom) and node.level:
            package = ".".join(module.split(".")[: -node.level])
            source = f"{package}.{node.module}" if node.module and package else node.module or package
        elif isinstance(node, ast.ImportFrom):
            source = node.module or ""
        else:
            continue
        for alias in node.names if source else ():
            renamed = f" as {alias.asname}" if alias.asname else ""
            lines[alias.asname or alias.name] = f"from {source} import {alias.name}{renamed}"
    return lines


def _held_by(node: ast.Attribute) -> ast.expr:
    """What a chain of attributes begins with."""
    owner = node.value
    while isinstance(owner, ast.Attribute):
        owner = owner.value
    return owner


def _number_of(name: str) -> ast.expr:
    """A number as the name of what holds it suggests."""
    text = next((text for text in parameter_texts(name, "") if text.replace(".", "").isdigit()), "64")
    return ast.parse(text, mode="eval").body


class Inline(ast.NodeTransformer):
    """Puts the values of names in their places; `open` says whether there are names without one. `importable`: name → the line that imports it."""

    def __init__(self, bindings: Bindings, scope: Collection[str], importable: Mapping[str, str], program: Program, depth: int = 6) -> None:
        self.bindings, self.scope, self.importable, self.program = bindings, scope, importable, program
        self.depth, self.open = depth, False
        self.own: frozenset[str] = frozenset()
        """Names that the expression binds itself, in a comprehension or a lambda."""

    def inlined(self, node: ast.expr) -> ast.expr:
        """The expression with what its names stand for."""
        stored = {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        self.own |= stored | {part.arg for part in ast.walk(node) if isinstance(part, ast.arg)}
        changed: ast.expr = self.visit(node)
        return changed

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return node if node.id in self.own else self._inlined(node.id, node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        match node.value:
            case ast.Name(id="self"):
                return self._inlined(node.attr, node)
            case ast.Name(id=owner) | ast.Attribute(attr=owner) if CONFIGS.fullmatch(owner) and node.attr in self.program.settings:
                return ast.parse(self.program.settings[node.attr], mode="eval").body
            case ast.Name(id=owner) if owner in self.importable and owner not in self.bindings:
                layers = self._elsewhere(f"{_imported(self.importable[owner])}.{node.attr}")
                if layers is not None:
                    return layers
        if self._is_number(_held_by(node)):
            return _number_of(node.attr)
        self.generic_visit(node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if isinstance(node.func, ast.Attribute) and self._is_number(_held_by(node.func)):
            self.open = True  # what a method of it gives is not known
            return node
        if (value := self._looked_up(node)) is not None:
            return value
        self.generic_visit(node)
        return node

    def _looked_up(self, node: ast.Call) -> ast.expr | None:
        """What a configuration of which nothing is known gives for a key: its setting, or else what the code does without one, `params.get("pool", "mean")`."""
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr="get"), args=[ast.Constant(value=str(key)), default]):
                pass
            case ast.Call(func=ast.Name(id="getattr"), args=[ast.Name(id=owner), ast.Constant(value=str(key)), default]):
                pass
            case _:
                return None
        if not CONFIGS.fullmatch(owner) or not isinstance(self.bindings.get(owner, ast.Constant(0)), ast.Constant):
            return None
        looked_up: ast.expr = (
            ast.parse(self.program.settings[key], mode="eval").body if key in self.program.settings else self.visit(default)
        )
        return looked_up

    def _is_number(self, node: ast.expr) -> bool:
        """Whether a name stands for a number, as one does of which nothing is known: an object whose attributes are read is none."""
        was_open = self.open
        is_bound = isinstance(node, ast.Name) and node.id in self.bindings and not CONFIGS.fullmatch(node.id)
        value = self.visit(copy.deepcopy(node)) if is_bound else node
        self.open = was_open
        return isinstance(value, ast.Constant) and type(value.value) in (int, float)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        match node:
            case ast.Subscript(value=ast.Name(id=owner) | ast.Attribute(attr=owner), slice=ast.Constant(value=str(key))):
                if CONFIGS.fullmatch(owner) and key in self.program.settings:
                    return ast.parse(self.program.settings[key], mode="eval").body
                self.open = self.open or bool(CONFIGS.fullmatch(owner))  # what the table holds is not known: no number stands for it
        self.generic_visit(node)
        return node

    def _elsewhere(self, dotted: str) -> ast.expr | None:
        """The layers that another file binds a name to."""
        layers = self.program.layers(dotted) if self.depth else None
        if layers is None:
            return None
        value, tree, module = layers
        others = {name: bound for name, bound in _assigned(tree.body).items() if bound is not value}
        return self._within(
            Inline(others, self.scope, _importable(tree, module, self.program.modules.values()), self.program, self.depth - 1), value
        )

    def _within(self, inner: Inline, value: ast.expr) -> ast.expr:
        """A value with what its names stand for where it is bound."""
        inlined = inner.inlined(copy.deepcopy(value))
        self.open = self.open or inner.open
        return inlined

    def _inlined(self, name: str, node: ast.expr) -> ast.expr:
        if name not in self.bindings and name in self.importable:
            layers = self._elsewhere(_imported(self.importable[name]))
            if layers is not None:
                return layers
        if name not in self.bindings or not self.depth:
            self.open = self.open or not self.depth or isinstance(node, ast.Attribute) or not self._is_known(name)
            return node
        without = {other: value for other, value in self.bindings.items() if other != name}
        inner = Inline(without, self.scope, self.importable, self.program, self.depth - 1)
        inner.own = self.own
        return self._within(inner, self.bindings[name])

    def _is_known(self, name: str) -> bool:
        """Whether a name stands for something where the text is read; what must be imported for that is noted."""
        if name in self.scope or hasattr(builtins, name):
            return True
        if name in self.importable:
            self.program.imports[name] = self.importable[name]
            return True
        return False


def _arguments(call: ast.Call, parameters: list[Parameter], inline: Inline) -> dict[str, str]:
    """Parameter → text of those arguments whose names can all be resolved."""
    plain = [parameter.name for parameter in parameters if parameter.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)]
    starred = next((at for at, arg in enumerate(call.args) if isinstance(arg, ast.Starred)), len(call.args))
    arguments = dict(zip(plain, call.args[:starred], strict=False))
    arguments |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg in {p.name for p in parameters}}
    texts = {}
    for name, node in arguments.items():
        inline.open = False
        value = inline.inlined(copy.deepcopy(node))
        if not inline.open and name:
            texts[name] = ast.unparse(value)
    return texts
