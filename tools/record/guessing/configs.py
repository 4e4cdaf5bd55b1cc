"""Texts that build what a parameter takes where it is an object of the repository: a configuration, a module, a dictionary by its keys."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import Any

from migrate_agent.tools.harness.common.trees import is_own_class
from migrate_agent.tools.record.guessing.arguments import Call, by_position, text_of
from migrate_agent.tools.record.guessing.choices import choices, nodes_of
from migrate_agent.tools.record.guessing.lists import constructor, items_of, list_text
from migrate_agent.tools.record.guessing.objects.called_fields import called_text
from migrate_agent.tools.record.guessing.reads import Holder, Reads, aliases, handed_on, reads_of
from migrate_agent.tools.record.guessing.rows import (
    ARRAY_TABLES,
    CONFIGS,
    OPTIONAL,
    TABLES,
    TENSORS,
    annotation_text,
    call_values,
    parameter_texts,
)
from migrate_agent.tools.record.guessing.tensor_uses import used_as_arrays
from migrate_agent.tools.record.guessing.trials.trial import parameters, required
from migrate_agent.tools.record.guessing.values import Fields, Tensor, Value, tensors

DEPTH = 2
"""How deep constructors are nested in the text of one argument."""


def object_texts(cls: Any, name: str, classes: Mapping[str, Any], depth: int = DEPTH) -> tuple[str, ...]:
    """Texts that build an instance of a class: with small sizes, and with its defaults."""
    if isinstance(cls, type) and issubclass(cls, Enum):
        return tuple(f"{name}.{member.name}" for member in cls)
    if dataclasses.is_dataclass(cls):
        return _dataclass_texts(cls, name, classes, depth)
    parts = []
    for parameter in required(parameters(cls)):
        inner = annotation_text(parameter.annotation).strip("'\"")
        texts = object_texts(classes[inner], inner, classes, depth - 1) if inner in classes and depth else ()
        members = list_text(cls, parameter.name) if not inner else ""
        parts.append(f"{parameter.name}={members or (texts or parameter_texts(parameter.name, inner))[0]}")
    return (f"{name}({', '.join(parts)})",)


def object_values(cls: Any, name: str, classes: Mapping[str, Any], main: Tensor) -> tuple[Value, ...]:
    """An instance of a class as an argument beside a tensor, with tensors for the parameters that are annotated so, or not at all, so that they can be mended;
    then the texts that build one."""
    fields: list[tuple[str, Value]] = []
    for parameter in [] if isinstance(cls, type) and issubclass(cls, Enum) else required(parameters(cls)):
        annotation = annotation_text(parameter.annotation).strip("'\"")
        if annotation == "" or TENSORS.fullmatch(OPTIONAL.sub(r"\1", annotation)):
            fields.append((parameter.name, call_values(parameter.name, annotation, main)[0]))
        else:
            fields.append(
                (
                    parameter.name,
                    object_texts(classes[annotation], annotation, classes)[0]
                    if annotation in classes
                    else parameter_texts(parameter.name, annotation)[0],
                )
            )
    instance = Fields(tuple(fields), "object", name)
    return (*((instance,) if any(tensors(instance)) else ()), *object_texts(cls, name, classes))


def attributes_read(code: Any, name: str) -> frozenset[str]:
    """What code reads of a parameter by attribute that neither tensors nor modules have."""
    import torch

    return frozenset(reads_of(list(handed_on(Holder(code, name)))).attributes) - {*dir(torch.Tensor), *MODULE_NAMES, *TENSOR_NAMES}


MOST_RELATIVES = 4
"""Classes of one family that are tried in the place of one of them."""


def of_relatives(text: str, evaluate: Callable[[str], Any]) -> Iterator[str]:
    """Of `package.Sparse(8, seed=3)`, the same made by other classes of the repository that stand beside it and have a base of their own in common, or are
    that base: with the arguments that these have by name too, or else with those that they need. `evaluate` gives what a name stands for, or None."""
    node = ast.parse(text, mode="eval").body
    if not isinstance(node, ast.Call):
        return
    cls, call = evaluate(ast.unparse(node.func)), Call.of(", ".join(map(ast.unparse, [*node.args, *node.keywords])))
    if call is None or not isinstance(cls, type) or not is_own_class(cls):
        return
    before, _, own = ast.unparse(node.func).rpartition(".")
    prefix = f"{before}." if before else ""
    arguments = call.by_name([parameter.name for parameter in parameters(cls)])
    family = [other for other in _family(cls) if other.__name__ != own and evaluate(f"{prefix}{other.__name__}") is other]
    for other in family[:MOST_RELATIVES]:
        names = [parameter.name for parameter in parameters(other)]
        needed = required(parameters(other))
        texts = {item.name: arguments.get(item.name) or parameter_texts(item.name, annotation_text(item.annotation))[0] for item in needed}
        texts |= {name: value for name, value in arguments.items() if name in names}
        yield f"{prefix}{other.__name__}({text_of(texts, by_position(parameters(other)))})"


def _family(cls: type) -> list[type]:
    """The other classes of a class's file that it derives from, or that derive from a base that it has."""
    bases = [base for base in cls.__mro__ if is_own_class(base)]
    beside = [
        other for other in vars(sys.modules[cls.__module__]).values() if isinstance(other, type) and other.__module__ == cls.__module__
    ]
    return [other for other in beside if other is not cls and any(issubclass(other, base) for base in bases)]


def _dataclass_texts(cls: Any, name: str, classes: Mapping[str, Any], depth: int) -> tuple[str, ...]:
    small = []
    for field in (field for field in dataclasses.fields(cls) if field.init):
        needed = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        whole = isinstance(field.default, int) and not isinstance(field.default, bool) and field.default > 8
        inner = annotation_text(field.type).strip("'\"")
        if needed and inner in classes and depth:
            small.append(f"{field.name}={object_texts(classes[inner], inner, classes, depth - 1)[0]}")
        elif needed or whole or (field.default is None and inner in ("int", "float")):  # None stands for what the user has to say
            small.append(f"{field.name}={parameter_texts(field.name, 'int' if whole else inner)[0]}")
    return tuple(dict.fromkeys((f"{name}({', '.join(small)})", f"{name}()")))


def accessed(cls: Any, name: str, settings: Mapping[str, str] = MappingProxyType({})) -> Fields | None:
    """What the class, and what it hands the parameter on to, read of it by name: `config.width` of an object, `config["width"]` of a dictionary,
    `config.model.width` of an object in an object; `None` where nothing. `settings`: their texts by name."""
    holders = list(handed_on(Holder(cls, name)))
    reads = reads_of(holders)
    if reads.keys or (reads.attributes and (CONFIGS.fullmatch(name) or not reads.attributes.keys() & TENSOR_NAMES)):
        return _fields(reads, [holder.code for holder in holders], settings)
    return None


TENSOR_METHODS = frozenset("clone cpu cuda contiguous detach double float half long numpy repeat squeeze transpose unsqueeze view".split())
"""Names that nothing but a tensor is asked for."""
ONE_NUMBER = "torch.full((1,), 0.5)"
"""A tensor that goes with others of any size."""


def _fields(reads: Reads, holders: Sequence[Any], settings: Mapping[str, str]) -> Fields:
    items: list[tuple[str, Value]] = []
    for name, inner in (reads.keys or reads.attributes).items():
        if inner.attributes.keys() & TENSOR_METHODS:
            items.append((name, ONE_NUMBER))
            continue
        deeper = inner.keys or (inner.attributes.keys() - TENSOR_NAMES)
        plain = called_text(name) if inner.called and not deeper else _value(name, holders, settings)
        items.append((name, _fields(inner, holders, settings) if deeper else plain))
    return Fields(tuple(items), "dict" if reads.keys else "namespace")


def filled_in(fields: Fields, cls: Any, name: str) -> tuple[Fields, ...]:
    """A configuration whose numbers are left open (`C.n_layer = None`) with numbers for these: as it is otherwise, without the words that the code asks for
    `None` too (`config.model_type is not None`), and last as it is."""
    numbers = {item: parameter_texts(item, "")[0] for item, value in fields.items if value == "None"}
    numbers = {item: text for item, text in numbers.items() if text.isdecimal()}
    if not numbers:
        return (fields,)
    nodes = [node for holder in handed_on(Holder(cls, name)) for node in nodes_of(holder.code)]
    optional = asked_for_none(nodes)
    whole = tuple((item, numbers.get(item, value)) for item, value in fields.items)
    without = tuple((item, "None" if item in optional and item not in numbers else value) for item, value in whole)
    return tuple(dict.fromkeys((Fields(whole, fields.form), Fields(without, fields.form), fields)))


def asked_for_none(nodes: Iterable[ast.AST]) -> set[str]:
    """The attributes that code compares with `None`: `config.table is not None`."""
    compared = (node for node in nodes if isinstance(node, ast.Compare) and ast.unparse(node.comparators[0]) == "None")
    return {node.left.attr for node in compared if isinstance(node.left, ast.Attribute)}


def space(cls: Any, name: str) -> Fields | None:
    """A description of what an environment takes or gives, where the constructor reads no more than its shape or its count: `space.shape[0]`, `space.n`."""
    reads = reads_of(list(handed_on(Holder(cls, name))))
    nodes = nodes_of(constructor(cls))
    loads = sum(isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load) for node in nodes)
    described = [node for node in nodes if isinstance(node, ast.Attribute) and is_any(node.value, (name,)) and node.attr in SPACE]
    # What is used in another way too is an array, or a tensor.
    if reads.keys or not reads.attributes or not reads.attributes.keys() <= SPACE or loads > len(described):
        return None
    axes = 1
    for node in nodes:
        match node:
            case ast.Subscript(value=ast.Attribute(value=ast.Name(id=read), attr="shape"), slice=ast.Constant(value=int(index))) if (
                read == name
            ):
                axes = max(axes, index + 1)
            case ast.Assign(targets=[ast.Tuple(elts=parts)], value=ast.Attribute(value=ast.Name(id=read), attr="shape")) if read == name:
                axes = max(axes, len(parts))
    sizes = {"shape": {1: "(64,)"}.get(axes, f"({', '.join(('3', *['32'] * (axes - 1)))})"), "n": "4"}
    return Fields(tuple((attribute, sizes[attribute]) for attribute in reads.attributes), "namespace")


def module_attributes(cls: Any, name: str) -> frozenset[str]:
    """What the code of a class reads of a module that it is given as this parameter, beside what all modules have; none where it may be no module."""
    reads = reads_of(list(handed_on(Holder(cls, name))))
    names = [other for other, steps in aliases(Holder(cls, name)).items() if not steps]
    called = any(isinstance(node, ast.Call) and is_any(node.func, names) for node in nodes_of(cls))
    if reads.keys or not (called or reads.attributes.keys() & MODULE_NAMES or _calls_parts(cls, names)):
        return frozenset()
    return frozenset(reads.attributes.keys() - MODULE_NAMES - TENSOR_NAMES)


def _calls_parts(cls: Any, names: Collection[str]) -> bool:
    """Whether a class keeps attributes of one of these names, and calls them: `self.stem = model.stem`."""
    kept: set[str] = set()
    for node in nodes_of(cls):
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                pairs = list(zip(targets, values, strict=False))
            case ast.Assign(targets=[target], value=value):
                pairs = [(target, value)]
            case _:
                continue
        kept |= {ast.unparse(target) for target, value in pairs if isinstance(value, ast.Attribute) and is_any(value.value, names)}
    functions = (node.func for node in nodes_of(cls) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute))
    return any(ast.unparse(function) in kept for function in functions)


def constructions(cls: Any, name: str) -> Iterator[ast.Call]:
    """The calls of a parameter in the constructor, or in a method or constructor that is handed it: there it stands for a class, or for a function
    that makes something."""
    for holder in handed_on(Holder(cls, name), 2):
        code = vars(holder.code).get("__init__") if inspect.isclass(holder.code) else holder.code
        for node in nodes_of(code) if inspect.isfunction(code) else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == holder.name:
                yield node


def items_read(cls: Any, name: str) -> int:
    """How many items the constructor, and what it hands the parameter to, read of it as of a list; 0 where it is none, or may be a number."""
    most = 0
    for holder in handed_on(Holder(cls, name), 2):
        code = vars(holder.code).get("__init__") if inspect.isclass(holder.code) else holder.code
        for node in nodes_of(code) if inspect.isfunction(code) else ():
            if _tests_type(node, holder.name):
                return 0
            most = max(most, items_of(node, holder.name))
    return most


def tensor_texts(cls: Any, name: str) -> tuple[str, ...]:
    """Texts of tensors for a parameter that the constructor, or what it hands the parameter to, makes a parameter or a buffer of, or loads into one:
    pretrained embeddings, statistics."""
    for holder in handed_on(Holder(cls, name), 2):
        code = vars(holder.code).get("__init__") if inspect.isclass(holder.code) else holder.code
        if inspect.isfunction(code) and holder.name in used_as_arrays(code):
            return ARRAY_TABLES
        for node in nodes_of(code) if inspect.isfunction(code) else ():
            if texts := _tensors_taken(node, holder.name):
                return texts
    return ()


def _tensors_taken(node: ast.AST, name: str) -> tuple[str, ...]:
    match node:
        case ast.Call(func=ast.Attribute(attr="from_numpy"), args=[taken, *_]) if is_any(_uncast(taken), (name,)):
            return ARRAY_TABLES
        case ast.Call(func=ast.Attribute(attr="from_pretrained" | "copy_"), args=args):
            return TABLES if any(is_any(_uncast(taken), (name,)) for taken in args) else ()
        case ast.Call(func=ast.Attribute(attr="Parameter" | "register_buffer"), args=args):
            return TABLES if any(is_any(taken, (name,)) for taken in args) else ()
    return ()


CASTS = frozenset({"tensor", "as_tensor", "Tensor", "FloatTensor", "array", "asarray"})
"""Functions of torch and NumPy that make a tensor or an array of what they are given."""


def _uncast(node: ast.expr) -> ast.expr:
    """What a tensor or an array is made of by a cast or a copy: `w` of `torch.tensor(w, dtype=torch.float)` and `w.astype("float32")`."""
    while True:
        match node:
            case ast.Call(func=ast.Attribute(attr=made) | ast.Name(id=made), args=[inner, *_]) if made in CASTS:
                node = inner
            case ast.Call(func=ast.Attribute(value=inner, attr="float" | "double" | "clone" | "copy" | "astype" | "to" | "detach" | "cpu")):
                node = inner
            case _:
                return node


def _tests_type(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="isinstance" | "type"), args=[tested, *_]):
            return is_any(tested, (name,))
    return False


def norms_beside(cls: Any) -> tuple[str, ...]:
    """The norm of the convolutions that the code of a class names."""
    names = {node.attr for node in nodes_of(cls) if isinstance(node, ast.Attribute)}
    return tuple(f"torch.nn.BatchNorm{rank}d" for rank in (2, 1, 3) if f"Conv{rank}d" in names)[:1]


def takes(cls: type, call: ast.Call) -> bool:
    """Whether a class can be called with the arguments of a call, by its signature."""
    if any(isinstance(argument, ast.Starred) for argument in call.args) or any(item.arg is None for item in call.keywords):
        return True
    try:
        inspect.signature(cls).bind(*call.args, **{str(item.arg): None for item in call.keywords})
    except (TypeError, ValueError):
        return False
    return True


SPACE = frozenset({"shape", "n"})
MODULE_NAMES = frozenset(
    "parameters named_parameters train eval modules children state_dict load_state_dict requires_grad_ training".split()
)
"""Attributes that modules alone have."""
TENSOR_NAMES = frozenset(
    "shape size view reshape dim device dtype permute transpose mean sum unsqueeze squeeze to ndim forward parameters".split()
)
"""Attributes that say that a value is a tensor or a module."""


def _value(name: str, holders: Sequence[Any], settings: Mapping[str, str]) -> Value:
    """The text of a setting: as the repository has it, as the code compares it, as its name suggests."""
    if name in settings:
        return settings[name]
    field = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY)
    compared = [text for holder in holders for text in choices(holder, field)]
    text = (compared or parameter_texts(name, ""))[0]
    # What the code does without is no switch, and no word that nobody knows.
    optional = not compared and not text.isdecimal() and any(name in asked_for_none(nodes_of(holder)) for holder in holders)
    return "None" if optional else text


def words_of_field(cls: Any, name: str, field: str) -> tuple[str, ...]:
    """The words that the class, and what it hands a configuration on to, compare a field of it with; and one that is none of them."""
    parameter = inspect.Parameter(field, inspect.Parameter.KEYWORD_ONLY)
    words = dict.fromkeys(text for holder in handed_on(Holder(cls, name)) for text in choices(holder.code, parameter))
    return (*words, "'other'") if words else ()


def is_any(node: ast.expr, names: Collection[str]) -> bool:
    """Whether a node is one of these names, or an attribute of `self` that is called so."""
    match node:
        case ast.Name(id=found) | ast.Attribute(value=ast.Name(id="self"), attr=found):
            return found in names
    return False
