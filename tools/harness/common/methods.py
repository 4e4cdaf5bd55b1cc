"""The public surface of a module class beside its call: methods, properties, class and static methods. Standard library only.

The name of a method is "" where the module itself is called, and `config.width` where it is one of an object that the module keeps. `buffer=` gives the
property `buffer` a value. `cache:step` is a method of what the call is handed as its argument `cache`, after the call; `:mode` is one of what the call gives, and
`:1.mode` of the second of the values that it gives. `reset, forward` is a call of `reset` and then one of the module: each method before the last is handed
one dictionary of its arguments, in front of those of the last. `apply of package.file.Function` is a call of a function with a gradient of its own, by which
the gradient at an input is compared that the module itself hands over without one.
"""

from __future__ import annotations

import enum
import functools
import importlib
import inspect
import itertools
import os
import sys
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

from migrate_agent.tools.types import APPLIED

LIBRARIES = frozenset({"torch", "flax", "jax", "lightning", "pytorch_lightning", "builtins", "abc", "typing", "torch_geometric"})
"""Top-level packages whose classes end a user's own: what they define is no user's to keep."""
CALLS = ("forward", "__call__")
UNCOMPARED = ("extra_repr",)
"""Methods that compute nothing."""
PROTOCOLS = ("__len__", "__iter__", "__next__", "__reversed__", "__contains__", "__getitem__", "__setitem__")
"""Methods that Python's own syntax calls: `len(x)`, `for part in x`, `x[0]`, `x[0] = y`."""
SETTER, AFTER, THEN = "=", ":", ", "


def own_classes(cls: type) -> list[type]:
    """The class and those of its bases that no library defines, nearest first."""
    return [base for base in cls.__mro__ if base.__module__.partition(".")[0] not in LIBRARIES]


def public_methods(cls: type, base: type) -> dict[str, Any]:
    """Name → what the class or an own base of it defines, in the order of definition; what overrides `base` (`nn.Module`) is left out."""
    members: dict[str, Any] = {}
    # The module of a function has the name and the file of the function, and nothing that users call.
    if hasattr(cls, "described"):
        return members
    for owner in reversed(own_classes(cls)):
        for name, member in vars(owner).items():
            if is_method(member) and not name.startswith("_") and name not in (*CALLS, *UNCOMPARED) and not hasattr(base, name):
                members[name] = member
            else:
                members.pop(name, None)
    return members


def further_methods(cls: type, base: type) -> dict[str, Any]:
    """Name → function, of what else users run of a class without naming a method: setters of properties (`buffer=`), and what syntax calls
    (`PROTOCOLS`)."""
    members: dict[str, Any] = {}
    if hasattr(cls, "described"):
        return members
    for owner in reversed(own_classes(cls)):
        for name, member in vars(owner).items():
            members.pop(f"{name}{SETTER}", None)
            if isinstance(member, property) and member.fset is not None and not name.startswith("_") and not hasattr(base, name):
                members[f"{name}{SETTER}"] = member.fset
            elif name in PROTOCOLS and inspect.isfunction(member) and not hasattr(base, name):
                members[name] = member
    return members


def helpers(instance: Any, base: type, folder: str) -> dict[str, Any]:
    """Attribute → object, of the plain objects that an instance keeps (none of `base`, `nn.Module`) and whose class a file below the folder defines."""
    return {name: value for name, value in vars(instance).items() if is_plain(value, base, folder)}


def is_plain(value: Any, base: type, folder: str) -> bool:
    """Whether a value is a plain object (none of `base`, `nn.Module`) whose class a file below the folder defines."""
    return not isinstance(value, (base, type, enum.Enum)) and _defined_below(type(value), folder)


def _defined_below(cls: type, folder: str) -> bool:
    file = getattr(sys.modules.get(cls.__module__), "__file__", None) or ""
    return file.startswith(folder + os.sep) and os.sep + "site-packages" + os.sep not in file


def is_method(member: Any) -> bool:
    """Whether what a class holds under a name is a function, a property, or a static or class method."""
    if isinstance(member, property | functools.cached_property | staticmethod | classmethod):
        return True
    return callable(member) and not isinstance(member, type) and hasattr(member, "__get__")


def is_property(cls: type, name: str) -> bool:
    """Whether the name is read, and not called."""
    member = inspect.getattr_static(cls, name, None)
    return isinstance(member, property | functools.cached_property)


def bound(instance: Any, name: str) -> Callable[..., Any]:
    """What a call of the method calls; reads the property where it is one. Raises `AttributeError`."""
    if not name:
        return instance  # type: ignore[no-any-return]
    if THEN in name:
        return functools.partial(one_after_another, name, lambda step, args, kwargs: bound(instance, step)(*args, **kwargs))
    if AFTER in name:
        return functools.partial(_after_call, instance, name)
    if name.startswith(APPLIED):
        return applied(name).apply  # type: ignore[no-any-return]
    path, _, last = name.rpartition(".")
    if path:
        return bound(functools.reduce(_part, path.split("."), instance), last)
    if last.endswith(SETTER):
        return functools.partial(_set, instance, last.removesuffix(SETTER))
    if is_property(type(instance), name):
        return lambda: getattr(instance, name)
    return getattr(instance, name)  # type: ignore[no-any-return]


def main_method(cls: Any) -> str:
    """`forward`; `__call__` of a module that has no `forward` of its own and says itself what a call does."""
    lacking = getattr(getattr(cls, "forward", None), "__name__", "") == "_forward_unimplemented"
    own = any("__call__" in vars(base) and not base.__module__.startswith("torch.") for base in getattr(cls, "__mro__", ()))
    return "__call__" if lacking and own else "forward"


def unbound(cls: Any, name: str) -> Callable[..., Any]:
    """A function with the method's signature, whose first parameter is the instance (or the class). Raises `AttributeError`."""
    if THEN in name:
        return _with_earlier(cls, *steps(name))
    if name.startswith(APPLIED):
        return _with_arguments_of(applied(name))
    name = main_method(cls) if AFTER in name else name or main_method(cls)
    if "." in name:
        return _any  # the class does not say what its instances keep
    if name.endswith(SETTER):
        return inspect.getattr_static(cls, name.removesuffix(SETTER)).fset  # type: ignore[no-any-return]
    if is_property(cls, name):
        return _read
    member = inspect.getattr_static(cls, name)
    if isinstance(member, classmethod):
        return member.__func__
    if isinstance(member, staticmethod):
        return _with_instance(member.__func__)
    return getattr(cls, name)  # type: ignore[no-any-return]


def has(cls: type, name: str) -> bool:
    """Whether a class has a method of this name; what objects have that it keeps, is handed or gives, is seen when it is called."""
    if THEN in name:
        earlier, last = steps(name)
        return all(has(cls, step) for step in (*earlier, last))
    if name.startswith(APPLIED):
        try:
            return hasattr(applied(name), "apply")
        except (ImportError, AttributeError):
            return False
    if not name or "." in name or AFTER in name:
        return True
    if name.endswith(SETTER):
        return getattr(inspect.getattr_static(cls, name.removesuffix(SETTER), None), "fset", None) is not None
    return hasattr(cls, name)


def steps(name: str) -> tuple[list[str], str]:
    """The methods that are called before, and the last one; "" for the module's own call."""
    *earlier, last = ["" if step == CALLS[0] else step for step in name.split(THEN)]
    return earlier, last


def one_after_another(name: str, call: Callable[[str, Sequence[Any], Mapping[str, Any]], Any], /, *args: Any, **kwargs: Any) -> Any:
    """What `call` gives of the last of these methods, after it was called with the others; in a tuple behind what those give, where they give something
    else than an object to call further, such as the module."""
    earlier, last = steps(name)
    given = [call(step, (), arguments) for step, arguments in zip(earlier, args, strict=False)]
    compared = [part for part in given if part is not None and not callable(part)]
    own = call(last, args[len(earlier) :], kwargs)
    return (*compared, own) if compared else own


def _with_earlier(cls: Any, earlier: Sequence[str], last: str) -> Callable[..., Any]:
    """The signature of the last method, with the arguments of the earlier ones in front."""

    def call(instance: Any, *args: Any, **kwargs: Any) -> Any:
        """Nothing calls this."""

    signature = inspect.signature(unbound(cls, last))
    first, *own = signature.parameters.values()
    names = [item.name for item in own]
    front = []
    for step in earlier:
        stem = step.rpartition(".")[2].rstrip(SETTER) or CALLS[0]
        options = itertools.chain([stem], (f"{stem}_{number}" for number in itertools.count(2)))
        names.append(next(option for option in options if option not in names))
        front.append(inspect.Parameter(names[-1], inspect.Parameter.POSITIONAL_ONLY))
    call.__signature__ = signature.replace(parameters=[first.replace(kind=first.POSITIONAL_ONLY), *front, *own])  # type: ignore[attr-defined]
    call.__name__ = THEN.join([*earlier, last])
    return call


def applied(name: str) -> Any:
    """The function with a gradient of its own in `apply of package.file.Function`. Raises `ImportError`, `AttributeError`."""
    module, _, function = name.removeprefix(APPLIED).rpartition(".")
    return getattr(importlib.import_module(module), function)


def takes_context(function: Any) -> bool:
    """Whether the `forward` of a torch function with a gradient of its own has a context in front: it has no `setup_context` then."""
    return getattr(function.setup_context, "__module__", "").partition(".")[0] == "torch"


def _with_arguments_of(function: Any) -> Callable[..., Any]:
    """The signature of `apply`, behind an instance that it does not look at."""

    def apply(*args: Any) -> Any:
        return function.apply(*args)

    parameters = list(inspect.signature(function.forward).parameters.values())
    apply.__signature__ = inspect.Signature(parameters[takes_context(function) :])  # type: ignore[attr-defined]
    return _with_instance(apply)


def _set(instance: Any, name: str, value: Any) -> None:
    setattr(instance, name, value)


def _after_call(instance: Any, name: str, /, *args: Any, **kwargs: Any) -> Any:
    """What a method without arguments gives, after the call, of what that was handed or gave."""
    handed, _, path = name.partition(AFTER)
    *parts, method = path.split(".")
    result = instance(*args, **kwargs)
    value = argument(instance, handed, args, kwargs) if handed else result
    for part in parts:
        value = _part(value, part)
    return bound(value, method)()


def _part(value: Any, name: str) -> Any:
    return value[int(name)] if name.isdigit() else getattr(value, name)


def argument(instance: Any, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What a call of an instance is handed under this name. Raises `LookupError` where it is handed nothing."""
    if name in kwargs:
        return kwargs[name]
    function = getattr(type(instance), "forward", None) or type(instance).__call__
    arguments = dict(zip(list(inspect.signature(function).parameters)[1:], args, strict=False))
    return arguments[name]


def declared(cls: Any, name: str) -> Callable[..., Any]:
    """The method as it is written: below decorators, those too that hand any arguments on and do not say what they wrap. Raises `AttributeError`."""
    function = unbound(cls, name)
    inner = inspect.unwrap(function)
    for cell in getattr(inner, "__closure__", None) or () if getattr(inner, "__name__", name) != name else ():
        content = _content(cell)
        if callable(content) and getattr(content, "__name__", "") == name:
            return content  # type: ignore[no-any-return]
    return function


def _content(cell: Any) -> Any:
    """What a cell of a closure holds; None where it holds nothing yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _read(instance: Any) -> None:
    """The signature of a property."""


def _any(instance: Any, /, *args: Any, **kwargs: Any) -> None:
    """The signature of a method of an object that is not known."""


def _with_instance(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(instance: Any, *args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    signature = inspect.signature(function)
    first = inspect.Parameter("instance_", inspect.Parameter.POSITIONAL_ONLY)
    parameters = list(signature.parameters.values())
    # Parameters before a positional-only one must be positional-only too, which the first is.
    call.__signature__ = signature.replace(parameters=[first, *parameters])  # type: ignore[attr-defined]
    call.__name__ = getattr(function, "__name__", "")  # else `declared` takes it for a decorator
    return call


def code_of(member: Any) -> Any:
    """The code object behind a member of a class, below decorators that name what they wrap; None where there is none."""
    function = getattr(member, "fget", None) or getattr(member, "func", None) or getattr(member, "__func__", None) or member
    return getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None


def called_in(members: Mapping[str, Any], action: Callable[[], object], ignored: Container[str] = ()) -> set[str]:
    """The names of those members that run while `action` runs, which it need not where there are none. Raises the errors of the action."""
    names = {code: name for name, member in members.items() if name not in ignored and (code := code_of(member)) is not None}
    ran: set[str] = set()
    if not names:
        return ran  # most classes have no further methods, and a large unit takes seconds to construct

    def note(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code in names:
            ran.add(names[frame.f_code])

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(before)
    return ran
