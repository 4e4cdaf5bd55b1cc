"""Methods that must be called first: what the call reads is set by another method, and not by the constructor (`reset(batch_size)` before `read`)."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Mapping
from itertools import islice
from typing import Any, NamedTuple

from migrate_agent.tools.harness.common import methods
from migrate_agent.tools.record.guessing.choices import choices, nodes_of
from migrate_agent.tools.record.guessing.rows import DEVICES, annotation_text, call_values
from migrate_agent.tools.record.guessing.tensor_uses import used_as_tensors
from migrate_agent.tools.record.guessing.trials.place import none_asked, none_read
from migrate_agent.tools.record.guessing.values import Tensor, Value, tensors, text

BATCHES = re.compile(r"b|n|bs|bsz|bz|nb?atch|num|(.*_)?batch(_?(size|sz|dim|n))?|(n|num)_?(samples|envs|sequences|batch(es)?)")
"""Names of numbers of samples."""
SHAPES = re.compile(r"(.*_)?(shape|size|dims?)")
RESETS = re.compile(r"(re)?(init|set|start|begin|prepare|new|build|create|clear|update)")
MOST_STEPS = 4
MOST_AXES = 2
MOST_WORDS = 3


class Missing(NamedTuple):
    """An attribute that a call read and that nothing had set, of the part of the instance at a path."""

    path: str
    attribute: str


class Step(NamedTuple):
    """A method that is called first, by its name from the instance, and the axis of the call's first tensor that is its number of samples."""

    name: str
    axis: int = 0
    word: int = 0
    """Which of the words that its first parameter may be it is given."""


def missing_state(error: BaseException, instance: Any) -> Missing | None:
    """What an error of a call says is missing: an attribute that is not there, or one that is None yet."""
    import torch

    if not isinstance(instance, torch.nn.Module):
        return None
    absent = [(error.obj, error.name)] if isinstance(error, AttributeError) and error.name else []
    paths = {id(part): path for path, part in instance.named_modules()}
    for owner, name in (*absent, *(none_read(error) if "NoneType" in str(error) else ())):
        if id(owner) in paths:
            return Missing(paths[id(owner)], name)
    for owner, name in none_asked(error) if isinstance(error, REFUSALS) else ():
        if id(owner) in paths and getattr(owner, name, None) is None and _taken_by(type(owner), name):
            return Missing(paths[id(owner)], name)
    return None


REFUSALS = (AssertionError, ValueError, NotImplementedError, TypeError)
"""What code raises where it has not been told what to do."""


def _taken_by(cls: type, attribute: str) -> list[str]:
    """The public methods of a class that set an attribute to an argument of theirs."""
    return [name for name in _setting(cls, attribute) if attribute in _kept_as(inspect.getattr_static(cls, name), None)]


def _kept_as(function: Any, parameter: str | None) -> list[str]:
    """The attributes of `self` that a method sets to one of its parameters, or to any of them where it is None."""
    names = [parameter] if parameter is not None else list(getattr(getattr(function, "__code__", None), "co_varnames", ()))[1:]
    attributes: list[str] = []
    for node in nodes_of(function):
        match node:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=attribute)], value=ast.Name(id=value)) if value in names:
                attributes.append(attribute)
    return attributes


def _words(instance: Any, name: str, parameter: inspect.Parameter) -> list[str]:
    """The words that a method takes for a parameter: what it compares it with itself, and what its class compares the attribute with that keeps it."""
    method = methods.bound(instance, name)
    function, owner = getattr(method, "__func__", None), getattr(method, "__self__", None)
    if function is None:
        return []
    kept = [inspect.Parameter(attribute, inspect.Parameter.KEYWORD_ONLY) for attribute in _kept_as(function, parameter.name)]
    texts = [*choices(function, parameter), *(text for one in kept for text in choices(type(owner), one))]
    return [text for text in dict.fromkeys(texts) if text[:1] in "'\""][:MOST_WORDS]


def steps(instance: Any, missing: Missing, called: str) -> list[Step]:
    """Public methods that set what is missing, in place of `called`: the instance's own ones first, which may hand the call on to its parts."""
    owner = instance.get_submodule(missing.path)
    setting = [name for name in _setting(type(owner), missing.attribute) if missing.path or name != called]
    names = setting
    if missing.path:
        handing = [name for name in _calling(type(instance), frozenset(setting)) if name != called]
        names = [*handing, *(f"{missing.path}.{name}" for name in setting)]
    return [
        Step(name, axis, word)
        for name in names[:MOST_STEPS]
        for axis in range(MOST_AXES if _counts(instance, name) else 1)
        for word in range(max((len(_words(instance, name, one)) for one in _parameters(instance, name)), default=0) or 1)
    ]


def _setting(cls: type, attribute: str) -> list[str]:
    """The public methods of a class that give an attribute a value, by themselves or by a method of theirs; those that sound like it first."""
    own = {
        name: member for owner in reversed(methods.own_classes(cls)) for name, member in vars(owner).items() if inspect.isfunction(member)
    }
    sets = {name for name, member in own.items() if any(_sets(node, attribute) for node in nodes_of(member))}
    for _ in own:
        grown = sets | {
            name for name, member in own.items() if any(_calls(node, frozenset(sets), of_self=True) for node in nodes_of(member))
        }
        if grown == sets:
            break
        sets = grown
    return _public(cls, sets)


def _calling(cls: type, names: frozenset[str]) -> list[str]:
    """The public methods of a class that call a method of one of these names on a part."""
    own = {
        name: member for owner in reversed(methods.own_classes(cls)) for name, member in vars(owner).items() if inspect.isfunction(member)
    }
    return _public(cls, {name for name, member in own.items() if any(_calls(node, names) for node in nodes_of(member))})


def _public(cls: type, names: set[str]) -> list[str]:
    import torch

    public = [name for name in methods.public_methods(cls, torch.nn.Module) if name in names and not methods.is_property(cls, name)]
    return sorted(public, key=lambda name: RESETS.match(name) is None)


def _sets(node: ast.AST, attribute: str) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
            return name == attribute
        case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr="register_buffer"), args=[ast.Constant(value=name), *_]):
            return bool(name == attribute)
        case ast.Call(func=ast.Name(id="setattr"), args=[ast.Name(id="self"), ast.Constant(value=name), *_]):
            return bool(name == attribute)
    return False


def _calls(node: ast.AST, names: frozenset[str], *, of_self: bool = False) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name in names:
            return (isinstance(owner, ast.Name) and owner.id == "self") or not of_self
    return False


def _counts(instance: Any, name: str) -> bool:
    return any(BATCHES.fullmatch(parameter.name) for parameter in _parameters(instance, name))


def _parameters(instance: Any, name: str) -> list[inspect.Parameter]:
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    try:
        return [one for one in inspect.signature(methods.bound(instance, name)).parameters.values() if one.kind not in variadic]
    except (AttributeError, TypeError, ValueError):
        return []


def step_text(instance: Any, step: Step, call: Mapping[str, Value]) -> str:
    """The arguments of a method that is called before this call, as a dictionary."""
    main = next((tensor for value in call.values() for tensor in tensors(value) if tensor.shape), Tensor((2, 16, 64)))
    pairs = ((one.name, _value(instance, step, one, call, main)) for one in _parameters(instance, step.name))
    return f"dict({', '.join(f'{name}={text(value)}' for name, value in pairs if value is not None)})"


def _value(instance: Any, step: Step, parameter: inspect.Parameter, call: Mapping[str, Value], main: Tensor) -> Value | None:
    """What a method that is called before takes; None for an option that is left alone."""
    name, annotation = parameter.name, annotation_text(parameter.annotation)
    number = str(main.shape[min(step.axis, len(main.shape) - 1)])
    if BATCHES.fullmatch(name.lower()):
        return number
    if parameter.default is not parameter.empty:
        return None
    if words := _words(instance, step.name, parameter):
        return words[min(step.word, len(words) - 1)]
    if name in call:
        return call[name]
    if DEVICES.fullmatch(name.lower()):
        return "'cpu'"
    function = getattr(methods.bound(instance, step.name), "__func__", None)
    if SHAPES.fullmatch(name.lower()) and annotation != "int":
        return repr(tuple(main.shape))
    if name in used_as_tensors(function):
        return next(iter(islice((value for value in call_values(name, annotation, main) if isinstance(value, Tensor)), 1)), main)
    return number if annotation in ("", "int") else call_values(name, annotation, main)[0]
