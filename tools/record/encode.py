"""Recorded values as source text over the names of a unit's own file.

`Encoder.value` gives the expression; `setup` collects the imports it needs and `tensors` the tensors it refers to as `_tensors["name"]`.
What cannot be written down exactly (a lambda, an open file, …) raises `NotEncodable`.
"""

from __future__ import annotations

import ast
import builtins
import collections
import enum
import functools
import inspect
import math
import pathlib
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass
from typing import Any

from migrate_agent.tools.record.kinds import base_kind, is_class, public_name, torch_names

MAX_TEXT = 20_000
MAX_DEPTH = 24


class NotEncodable(Exception):
    """A value that has no source text; the message says which and why."""


@dataclass(frozen=True)
class Construction:
    """A module as it was constructed: class and (a snapshot of) the arguments."""

    cls: type
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


Lookup = Callable[[Any], Construction | None]
"""Module instance → how it was constructed, or `None` where that was not seen."""


def can_be_keyword(parameter: inspect.Parameter) -> bool:
    return parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)


def signature(function: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (ValueError, TypeError):
        return None


def is_plain_state(value: Any) -> bool:
    """Whether an object's whole state lies in its `__dict__`."""
    cls = type(value)
    own = all(base is object or isinstance(vars(base).get("__slots__", ()), tuple | list) for base in cls.__mro__)
    return own and hasattr(value, "__dict__") and not isinstance(value, BaseException) and not callable(getattr(value, "__next__", None))


class Encoder:
    """Encodes the values of one example.

    `namespace` holds the names of the unit's file, `prefix` starts the names of the tensors, `taken` holds what earlier setup lines bind,
    `own` maps `__module__` to the name under which the repository imports it.
    """

    def __init__(
        self,
        namespace: Mapping[str, Any],
        prefix: str = "t",
        lookup: Lookup = lambda module: None,
        bound: Mapping[str, Any] | None = None,
        own: Callable[[str], str] = lambda module: "",
    ) -> None:
        self.namespace = namespace
        self.setup: dict[str, None] = {}
        self.tensors: dict[str, Any] = {}
        self.taken = dict(bound or {})
        self._prefix = prefix
        self._lookup = lookup
        self._own = own
        self._slots: dict[int, str] = {}
        self._alive: list[Any] = []  # keeps ids from being used again
        self._modules: set[int] = set()
        self._depth = 0

    def value(self, value: Any) -> str:
        """The source text of `value`. Raises `NotEncodable`."""
        self._depth += 1
        try:
            if self._depth > MAX_DEPTH:
                raise NotEncodable("a value nested too deeply")
            text = self._encode(value)
        finally:
            self._depth -= 1
        if len(text) > MAX_TEXT:
            raise NotEncodable(f"a {type(value).__name__} whose text is too long ({len(text)} characters)")
        return text

    def arguments(self, function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        """The argument list of a call as source text. An argument without text is left out where it equals the parameter's default."""
        parameters = parameters_of(function)
        parts, keyword = [], False
        for index, value in enumerate(args):
            parameter = parameters[index] if index < len(parameters) and all(can_be_keyword(p) for p in parameters[: index + 1]) else None
            text = self._argument(value, parameter)
            if text is None:
                keyword = True
            elif keyword and parameter is None:
                raise NotEncodable("a variadic argument after one that has no text")
            else:
                parts.append(f"{parameter.name}={text}" if keyword and parameter is not None else text)
        by_name = {parameter.name: parameter for parameter in parameters}
        for name, value in kwargs.items():
            text = self._argument(value, by_name.get(name))
            if text is not None:
                parts.append(f"{name}={text}" if name.isidentifier() else f"**{{{name!r}: {text}}}")
        return ", ".join(parts)

    def _argument(self, value: Any, parameter: inspect.Parameter | None) -> str | None:
        try:
            return self.value(value)
        except NotEncodable:
            # Identity, not equality: `==` of a tensor or a user's class may do anything.
            if parameter is not None and parameter.default is value:
                return None
            raise

    def _encode(self, value: Any) -> str:
        cls = type(value)
        exact = EXACT.get(cls)
        if exact is not None:
            return exact(self, value)
        kind = base_kind(cls)
        if kind in KINDS:
            return KINDS[kind](self, value)
        if isinstance(value, enum.Enum):
            return self._enum(value)
        if (cls.__module__, cls.__qualname__) in TEXT_IS_REPR:
            return repr(value)
        if isinstance(value, str) and cls.__module__ == "torch.torch_version":
            return repr(str(value))  # what `torch.__version__` is, which code takes apart as text
        if is_class(value) or (callable(value) and hasattr(value, "__qualname__")):
            return self.name(value)
        if isinstance(value, tuple) and hasattr(cls, "_fields"):
            return self.constructed(cls, (), {field: getattr(value, field) for field in cls._fields})
        if isinstance(value, dict):
            return self._mapping(value)
        if cls.__module__ == "numpy" and hasattr(value, "item"):
            return f"{self.imported('numpy')}.{cls.__name__}({self.value(value.item())})"
        if isinstance(value, pathlib.PurePath):
            return f"{self.imported('pathlib')}.{cls.__name__}({str(value)!r})"
        if is_plain_state(value):
            return self._object(value)
        raise NotEncodable(f"a value of {cls.__module__}.{cls.__qualname__}")

    def imported(self, module: str) -> str:
        """The name of a top-level module, imported by the setup."""
        if self.namespace.get(module) is not sys.modules.get(module) and module != "torch":
            self.setup[f"import {module}"] = None
        return module

    def name(self, value: Any) -> str:
        """The text that names a class or function. Raises `NotEncodable` for local ones and those not found where they say they are."""
        qualname = str(getattr(value, "__qualname__", ""))
        if "torch" in sys.modules and id(value) in torch_names():
            return torch_names()[id(value)]
        if not qualname or "<" in qualname:
            raise NotEncodable(f"a local function or class ({qualname or value!r})")
        root, module = qualname.partition(".")[0], str(value.__module__)
        built_in = root not in self.namespace and getattr(builtins, qualname, None) is value
        if built_in or resolve(self.namespace.get(root), qualname) is value:
            return qualname
        if resolve(vars(sys.modules.get(module, object)).get(root), qualname) is not value:
            raise NotEncodable(f"{module}.{qualname}, which cannot be imported by that name")
        dotted = public_name(module, qualname, value)
        if dotted.startswith("torch."):
            return dotted
        own = self._own(module)
        home = own or dotted.removesuffix(f".{qualname}")
        return self._import(home, root, vars(sys.modules[module])[root]) + qualname.removeprefix(root)

    def _import(self, module: str, root: str, value: Any) -> str:
        bound = {**self.namespace, **self.taken}
        local = root if bound.get(root, value) is value else f"{root}_"
        while bound.get(local, value) is not value:
            local += "_"
        self.taken[local] = value
        self.setup[f"from {module} import {root}" + ("" if local == root else f" as {local}")] = None
        return local

    def constructed(self, cls: type, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        """The text of a call of the class."""
        return f"{self.name(cls)}({self.arguments(cls, args, kwargs)})"

    def _items(self, values: Iterable[Any]) -> str:
        return ", ".join(self.value(value) for value in values)

    def _tuple(self, value: tuple[Any, ...]) -> str:
        return f"({self.value(value[0])},)" if len(value) == 1 else f"({self._items(value)})"

    def _dict(self, value: Mapping[Any, Any]) -> str:
        return "{" + ", ".join(f"{self.value(key)}: {self.value(item)}" for key, item in value.items()) + "}"

    def _set(self, value: Any) -> str:
        try:
            ordered = sorted(value)
        except TypeError:
            ordered = sorted(value, key=repr)
        text = "{" + self._items(ordered) + "}" if value else "set()"
        return f"frozenset({text if value else ''})" if type(value) is frozenset else text

    def _slice(self, value: slice) -> str:
        return f"slice({self._items((value.start, value.stop, value.step))})"

    def _partial(self, value: functools.partial[Any]) -> str:
        parts = [self.value(value.func), *(self.value(argument) for argument in value.args)]
        parts += [f"{name}={self.value(argument)}" for name, argument in value.keywords.items()]
        return f"{self.imported('functools')}.partial({', '.join(parts)})"

    def _enum(self, value: enum.Enum) -> str:
        cls = type(value)
        member = cls.__members__.get(value.name or "")
        return f"{self.name(cls)}.{value.name}" if member is value else f"{self.name(cls)}({self.value(value.value)})"

    def _mapping(self, value: Any) -> str:
        cls = type(value)
        if cls is collections.defaultdict:
            return f"{self.imported('collections')}.defaultdict({self.value(value.default_factory)}, {self._dict(value)})"
        if cls is collections.OrderedDict:
            return f"{self.imported('collections')}.OrderedDict({self._dict(value)})"
        by_name = all(isinstance(key, str) and key.isidentifier() for key in value)
        calls = [((dict(value),), {}), *([((), dict(value))] if by_name else []), ((), {})]
        error = None
        for args, kwargs in calls:
            try:
                if cls(*args, **kwargs) == value:
                    return self.constructed(cls, args, kwargs)
            except Exception as raised:
                error = error or raised
        if error is not None:
            raise NotEncodable(f"a {cls.__qualname__} ({type(error).__name__} when built again)") from error
        raise NotEncodable(f"a {cls.__qualname__} that differs when built again")

    def _object(self, value: Any) -> str:
        """A dataclass instance or plain configuration object: the constructor call that gives an object of the same state."""
        cls, state = type(value), dict(vars(value))
        # States are compared by their texts, because `==` of a user's object need not compare its
        # fields.
        expected = {name: self._try(item) for name, item in state.items()}
        unknown = [name for name, text in expected.items() if text is None]
        if unknown:
            raise NotEncodable(f"a {cls.__qualname__} whose {unknown[0]} is {type(state[unknown[0]]).__qualname__}")
        for kwargs in constructor_keywords(cls, state, self._try):
            try:
                again = {name: self._try(item) for name, item in vars(cls(**kwargs)).items()}
            except Exception:
                continue
            if again == expected:
                return self.constructed(cls, (), kwargs)
        raise NotEncodable(f"a {cls.__module__}.{cls.__qualname__} that no constructor call was found for")

    def _try(self, value: Any) -> str | None:
        """The text of a value for comparison: leaves no trace in setup and tensors."""
        scratch = Encoder(self.namespace, self._prefix, self._lookup, self.taken, self._own)
        scratch._slots, scratch._alive, scratch._depth = self._slots, self._alive, self._depth
        try:
            return scratch.value(value)
        except NotEncodable:
            return None

    def _tensor(self, value: Any) -> str:
        import torch

        sparse = SPARSE.get(str(value.layout))
        if sparse and type(value) is torch.Tensor and not value.is_complex():
            return f"{self._slot(value, '', lambda tensor: tensor.to_dense())}.{sparse}()"
        if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.layout is not torch.strided or value.is_quantized:
            raise NotEncodable(f"a {type(value).__name__} of layout {value.layout}")
        # Inside `torch.func` transforms and on the meta device there are no values to save.
        if value.is_meta or torch._C._functorch.is_functorch_wrapped_tensor(value):
            raise NotEncodable("a tensor without data of its own")
        if value.is_complex():
            # safetensors has no complex dtype.
            return f"torch.complex({self._slot(value, 'r', torch.real)}, {self._slot(value, 'i', torch.imag)})"
        text = self._slot(value, "", lambda tensor: tensor)
        return f"torch.nn.Parameter({text})" if type(value) is torch.nn.Parameter else text

    def _slot(self, value: Any, suffix: str, part: Callable[[Any], Any]) -> str:
        # One slot for one tensor, so that an argument passed twice stays the same tensor.
        if id(value) not in self._slots:
            self._slots[id(value)] = f"{self._prefix}{len(self._slots)}"
            self._alive.append(value)
        name = self._slots[id(value)] + suffix
        if name not in self.tensors:
            self.tensors[name] = part(value.detach()).resolve_conj().resolve_neg().cpu().clone().contiguous()
        return f'_tensors["{name}"]'

    def _array(self, value: Any) -> str:
        import torch

        if type(value).__name__ != "ndarray" or value.dtype.kind not in "biuf":
            raise NotEncodable(f"a numpy array of {value.dtype}")
        self._alive.append(tensor := torch.from_numpy(value.copy()))
        return f"{self.imported('numpy')}.asarray({self._tensor(tensor)})"

    def _module(self, value: Any) -> str:
        if id(value) in self._modules:
            raise NotEncodable("the same module passed twice")
        # Two constructor texts would build two modules where the original shared one.
        self._modules.add(id(value))
        container = CONTAINERS.get(f"{type(value).__module__}.{type(value).__qualname__}")
        if container is not None:
            return container(self, value)
        construction = self._lookup(value)
        if construction is None or construction.cls is not type(value):
            raise NotEncodable(f"a {type(value).__qualname__} whose construction was not seen")
        return self.constructed(construction.cls, construction.args, construction.kwargs)

    def _sequential(self, value: Any) -> str:
        children = value._modules
        if list(children) == [str(index) for index in range(len(children))]:
            return f"torch.nn.Sequential({self._items(children.values())})"
        return f"torch.nn.Sequential({self._mapping(collections.OrderedDict(children))})"

    def _module_list(self, value: Any) -> str:
        return f"torch.nn.ModuleList([{self._items(value._modules.values())}])"

    def _module_dict(self, value: Any) -> str:
        return f"torch.nn.ModuleDict({self._dict(value._modules)})"


def resolve(root: Any, qualname: str) -> Any:
    """The value of `qualname` (`Outer.Inner`), where `root` is the value of its first part; `None` where there is none."""
    for part in qualname.split(".")[1:]:
        root = getattr(root, part, None)
    return root


def parameters_of(function: Any) -> list[inspect.Parameter]:
    declared = signature(function)
    return list(declared.parameters.values()) if declared is not None else []


def constructor_keywords(cls: type, state: Mapping[str, Any], text: Callable[[Any], str | None]) -> Iterable[dict[str, Any]]:
    """Keyword arguments that may rebuild an object of this state, shortest first."""
    parameters = parameters_of(cls)
    kept = {p.name: name for p in parameters if (name := p.name if p.name in state else kept_as(cls).get(p.name, "")) in state}
    named = {p.name: p for p in parameters if can_be_keyword(p) and p.name in kept}
    open_ended = not parameters or any(p.kind is p.VAR_KEYWORD for p in parameters)
    names = [name for name in state if not name.startswith("_")] if open_ended else list(named)
    full = {name: state[kept.get(name, name)] for name in names}

    factories = {field.name: field.default_factory for field in getattr(cls, "__dataclass_fields__", {}).values()}

    def default(name: str) -> Any:
        if factories.get(name, MISSING) is not MISSING:
            return factories[name]()
        return named[name].default if name in named else inspect.Parameter.empty

    # Defaults are left out: a text of three arguments can be read, one of thirty cannot.
    yield {name: value for name, value in full.items() if default(name) is inspect.Parameter.empty or text(default(name)) != text(value)}
    try:
        blank = vars(cls())
    except Exception:
        blank = None
    if blank is not None:
        yield {name: value for name, value in full.items() if name not in blank or text(blank[name]) != text(value)}
    yield full


@functools.cache
def kept_as(cls: type) -> dict[str, str]:
    """Parameter of a constructor → the attribute that holds it under another name: `self.width = width_or_file`."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls.__init__)))  # type: ignore[misc]
    except (OSError, TypeError, SyntaxError):
        return {}
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=attribute)], value=ast.Name(id=parameter)):
                names.setdefault(parameter, attribute)
    return names


def _float(encoder: Encoder, value: float) -> str:
    return repr(value) if math.isfinite(value) else f'float("{value}")'


def _complex(encoder: Encoder, value: complex) -> str:
    return f"complex({_float(encoder, value.real)}, {_float(encoder, value.imag)})"


def _repr(encoder: Encoder, value: Any) -> str:
    return repr(value)


EXACT: dict[type, Callable[[Encoder, Any], str]] = {
    **dict.fromkeys((int, bool, str, bytes, type(None), range), _repr),
    float: _float,
    complex: _complex,
    type(Ellipsis): lambda encoder, value: "...",
    type(NotImplemented): lambda encoder, value: "NotImplemented",
    slice: Encoder._slice,
    list: lambda encoder, value: f"[{encoder._items(value)}]",
    tuple: Encoder._tuple,
    dict: Encoder._dict,
    set: Encoder._set,
    frozenset: Encoder._set,
    functools.partial: Encoder._partial,
}
KINDS: dict[str, Callable[[Encoder, Any], str]] = {
    "tensor": Encoder._tensor,
    "parameter": Encoder._tensor,
    "ndarray": Encoder._array,
    "module": Encoder._module,
    "size": lambda encoder, value: f"torch.Size({list(value)})",
    "dtype": _repr,
    "device": lambda encoder, value: 'torch.device("cpu")',
}
SPARSE = {"torch.sparse_coo": "to_sparse", "torch.sparse_csr": "to_sparse_csr"}
"""Layout → the method that gives it, of the array with all of its zeros."""
TEXT_IS_REPR = {("torch", "layout"), ("torch", "memory_format")}
CONTAINERS: dict[str, Callable[[Encoder, Any], str]] = {
    "torch.nn.modules.container.Sequential": Encoder._sequential,
    "torch.nn.modules.container.ModuleList": Encoder._module_list,
    "torch.nn.modules.container.ModuleDict": Encoder._module_dict,
}
