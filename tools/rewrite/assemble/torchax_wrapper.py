"""The thin wrapper that stands in a mirror for a module class that is not rewritten: it runs the original through torchax.

It has the original's constructor with `rngs`, its call and its public methods. What it computes is torch's own code, so that nothing of it is
said to be a rewrite.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from migrate_agent.tools.rewrite.analysis.repo import ClassModel, FunctionNode, Repo
from migrate_agent.tools.rewrite.assemble.class_stubs import constants
from migrate_agent.tools.types import Inventory, Unit

BASE, DEFAULT = "TorchaxModule", "TORCH_DEFAULT"
HELPERS = frozenset({BASE, DEFAULT})
"""The helpers that wrappers use (`tools/torchax/torchax_modules.py`)."""


class Unwrappable(ValueError):
    """There is no wrapper for a unit, with the reason."""


class _Arguments(NamedTuple):
    """The parameters of a method after `self`, without annotations, and how they are passed on; each text begins with a comma where it is not empty.

    `star`: whether a `*` or `*args` is among the parameters. `rest` is `**kwargs`.
    """

    parameters: str
    star: bool
    rest: str
    passed: str


def wrapper(inventory: Inventory, identifier: str) -> str:
    """The text of the class that runs the unit of this id through torchax. Raises `Unwrappable`."""
    return _wrapper(Repo(inventory), inventory.unit(identifier))


def wrapped(inventory: Inventory, texts: Mapping[str, str]) -> tuple[Unit, ...]:
    """The units whose class in these files (path → text) is their wrapper, statement by statement."""
    classes = [(unit, node) for unit in inventory.units if (node := _derived(unit, texts.get(unit.target, ""))) is not None]
    if not classes:
        return ()
    repo = Repo(inventory)
    return tuple(unit for unit, node in classes if _is_wrapper(repo, unit, node))


def _is_wrapper(repo: Repo, unit: Unit, node: ast.ClassDef) -> bool:
    try:
        return ast.dump(node) == ast.dump(ast.parse(_wrapper(repo, unit)).body[0])
    except Unwrappable:
        return False


def _derived(unit: Unit, text: str) -> ast.ClassDef | None:
    """The last definition of the unit's class in a text, where it derives from the helper."""
    if BASE not in text:
        return None
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError):  # safe: the check `parses` says so
        return None
    nodes = [node for node in body if isinstance(node, ast.ClassDef) and node.name == unit.name]
    return nodes[-1] if nodes and [ast.unparse(base).rpartition(".")[2] for base in nodes[-1].bases] == [BASE] else None


def _wrapper(repo: Repo, unit: Unit) -> str:
    from flax import nnx  # here, since it takes long, and most mirrors have no wrapper

    file = repo.files.get(unit.source)
    model = file.classes.get(unit.name) if file is not None else None
    if file is None or model is None or unit.kind != "module" or "." in unit.name:
        raise Unwrappable("torchax runs classes at the top of a file alone")
    methods = _methods(repo, model)
    constructor, call = _arguments(methods.pop("__init__", None), repo, model), _arguments(methods.pop("forward", None), repo, model)
    star = "" if constructor.star else ", *"
    lines = [
        f"class {unit.name}({BASE}):",
        f'    """The original `{file.file.module}.{unit.name}`, run through torchax: not rewritten."""',
        "",
        *(f"    {line}" for line in constants(model.node)),
        *([""] if constants(model.node) else []),
        f"    def __init__(self{constructor.parameters}{star}, rngs: nnx.Rngs{constructor.rest}):",
        f"        from {file.file.module} import {unit.name} as Torch{unit.name}",
        "",
        f"        super().__init__(Torch{unit.name}{constructor.passed}, rngs=rngs{constructor.rest})",
        "",
        f"    def __call__(self{call.parameters}{call.rest}):",
        f'        return self.call_torch("forward"{call.passed}{call.rest})',
    ]
    for name, method in methods.items():
        if not name.startswith("_") and not hasattr(nnx.Module, name) and not method.decorator_list:
            arguments = _arguments(method, repo, model)
            parameters, passed = (f"{text}{arguments.rest}" for text in (arguments.parameters, arguments.passed))
            lines += ["", f"    def {name}(self{parameters}):", f'        return self.call_torch("{name}"{passed})']
    return "\n\n" + "\n".join(lines) + "\n"


def _methods(repo: Repo, model: ClassModel) -> dict[str, FunctionNode]:
    """The methods of a class and of its bases in the repository, by name; the nearest counts."""
    methods: dict[str, FunctionNode] = {}
    for one in reversed(list(repo.ancestors(model))):
        methods |= one.methods
    return methods


def _arguments(method: FunctionNode | None, repo: Repo, model: ClassModel) -> _Arguments:
    """The parameters of a method after `self`. One that the repository does not define takes what torch's own takes. Raises `Unwrappable`."""
    if method is None:
        plain = all(name.endswith("nn.Module") for name in repo.bases(model))
        return _Arguments("", False, "", "") if plain else _Arguments(", *args", True, ", **kwargs", ", *args")
    if method.args.posonlyargs or "rngs" in {argument.arg for argument in (*method.args.args, *method.args.kwonlyargs)}:
        raise Unwrappable(f"the parameters of {model.qualname}.{method.name} cannot be passed on")
    arguments = method.args
    parameters = arguments.args[1:]
    defaults: list[ast.expr | None] = [*[None] * (len(arguments.args) - len(arguments.defaults)), *arguments.defaults][1:]
    signature, passed, by_name = [], [], False
    for parameter, default in zip(parameters, defaults, strict=True):
        by_name = by_name or _text_of(default) == DEFAULT
        signature.append(_parameter(parameter, default))
        passed.append(f"{parameter.arg}={parameter.arg}" if by_name else parameter.arg)
    if arguments.vararg is not None and by_name:
        raise Unwrappable(f"the defaults of {model.qualname}.{method.name} are no plain values")
    star = [f"*{arguments.vararg.arg}"] if arguments.vararg is not None else []
    signature += star or (["*"] if arguments.kwonlyargs else [])
    signature += [_parameter(one, default) for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    passed += [*star, *(f"{one.arg}={one.arg}" for one in arguments.kwonlyargs)]
    rest = f", **{arguments.kwarg.arg}" if arguments.kwarg is not None else ""
    return _Arguments(_listed(signature), bool(star or arguments.kwonlyargs), rest, _listed(passed))


def _listed(parts: Sequence[str]) -> str:
    return "".join(f", {part}" for part in parts)


def _parameter(parameter: ast.arg, default: ast.expr | None) -> str:
    return parameter.arg if default is None else f"{parameter.arg}={_text_of(default)}"


def _text_of(default: ast.expr | None) -> str:
    """A default as it stands in the wrapper: one that is no plain value is left to torch's own signature."""
    try:
        return "" if default is None else repr(ast.literal_eval(default))
    except ValueError:
        return DEFAULT
