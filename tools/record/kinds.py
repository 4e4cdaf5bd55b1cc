"""The kind of a value, in the vocabulary of `tools.types.Observed`. Reads types only, so that no proxy or property of the user is run.

Beyond the kinds named there, callables have these: `method:<dotted class>.<name>` (the class that defines the method; for a class method
the class it is bound to), `partial:<kind of what is wrapped>` (of the function that runs in the end, where a partial of torch's `checkpoint`
is given it), and `function:<module>.<lambda>@<line>`.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import Any

from migrate_agent.tools.types import CALLING

Namer = Callable[[str], str]
"""Module name as it stands in `__module__` → as the repository imports it (`__main__` → `train`)."""

EXACT: dict[type, str] = {
    int: "int",
    float: "float",
    bool: "bool",
    complex: "complex",
    str: "str",
    type(None): "none",
    list: "list",
    tuple: "tuple",
    dict: "dict",
    set: "set",
    frozenset: "set",
    slice: "slice",
    type(Ellipsis): "ellipsis",
    types.ModuleType: "object:types.ModuleType",
}
BASES = {
    ("torch", "Tensor"): "tensor",
    ("torch.nn.parameter", "Parameter"): "parameter",
    ("torch.nn.parameter", "UninitializedParameter"): "parameter",
    ("torch.nn.modules.module", "Module"): "module",
    ("numpy", "ndarray"): "ndarray",
    ("torch", "Size"): "size",
    ("torch", "dtype"): "dtype",
    ("torch", "device"): "device",
    ("torch", "Generator"): "generator",
    ("torch._C", "Generator"): "generator",
    ("collections", "OrderedDict"): "dict",
    ("collections", "defaultdict"): "dict",
}
FUNCTIONS = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    type(lru_cache(len)),
)
TORCH_NAMESPACES = (
    "torch.nn.functional",
    "torch",
    "torch.linalg",
    "torch.fft",
    "torch.special",
    "torch.nn.init",
    "torch.nn.utils",
    "torch.utils.checkpoint",
    "torch.Tensor",
)


_KNOWN: dict[type, str] = dict(EXACT)


def base_kind(of: type) -> str:
    """`tensor`, `parameter`, `module`, … where the class or one of its bases is known, else ""."""
    if of not in _KNOWN:
        kinds = (BASES.get((base.__module__, base.__qualname__)) for base in of.__mro__)
        _KNOWN[of] = next((kind for kind in kinds if kind), "")
    return _KNOWN[of]


def is_lazy(of: type) -> bool:
    """Whether instances of a module class get their shapes from their first call."""
    return any(base.__qualname__ == "LazyModuleMixin" for base in of.__mro__)


def class_after_first_call(of: type) -> type:
    """The class that a lazy layer of torch has after its first call; any other class itself."""
    after = of.__dict__.get("cls_to_become") if of.__module__.startswith("torch.nn.modules.") else None
    return after if isinstance(after, type) else of


def is_class(value: object) -> bool:
    return issubclass(type(value), type)


def public_name(module: str, qualname: str, value: object) -> str:
    """The shortest dotted name under which `value` is found (`torch.nn.modules.linear.Linear` → `torch.nn.Linear`)."""
    parts = module.split(".")
    for count in range(1, len(parts)):
        package = sys.modules.get(".".join(parts[:count]))
        if vars(package).get(qualname) is value if package is not None else False:
            return ".".join([*parts[:count], qualname])
    return f"{module}.{qualname}"


@cache
def torch_names() -> dict[int, str]:
    """`id` of each function in torch's public namespaces → its documented name. Built once, when torch is there."""
    names: dict[int, str] = {}
    for dotted in TORCH_NAMESPACES:
        root, _, attribute = dotted.rpartition(".")
        namespace: Any = sys.modules.get(dotted) or getattr(sys.modules.get(root), attribute, None)
        for name, value in list(vars(namespace).items()) if namespace is not None else ():
            if not name.startswith("_") and callable(value) and not isinstance(value, type):
                names.setdefault(id(value), f"{dotted}.{name}")
    return names


class Kinds:
    """Names kinds; `own` says which modules belong to the repository (their classes keep the module that defines them)."""

    def __init__(self, own: Namer | None = None) -> None:
        self._own = own or (lambda module: "")

    def dotted(self, value: Any) -> str:
        """The dotted name of a class or function."""
        module = str(getattr(value, "__module__", None) or "builtins")
        qualname = str(getattr(value, "__qualname__", None) or getattr(value, "__name__", "?"))
        own = self._own(module)
        return f"{own}.{qualname}" if own else public_name(module, qualname, value)

    def of(self, value: Any) -> str:
        """The kind of a value."""
        cls = type(value)
        kind = base_kind(cls)
        if kind == "module":
            return f"module:{self.dotted(class_after_first_call(cls))}"
        if kind:
            return kind
        if is_class(value):
            return f"class:{self.dotted(value)}"
        return self._callable(value) or f"object:{self.dotted(cls)}"

    def _callable(self, value: Any) -> str:
        cls = type(value)
        if cls is partial:
            kind = self.of(value.func)
            through = kind.partition(":")[2] in CALLING and value.args
            return f"partial:{self.of(value.args[0]) if through else kind}"
        if cls is types.MethodType:
            return self._method(value)
        if cls is types.FunctionType and value.__name__ == "<lambda>":
            module = self._own(value.__module__) or value.__module__
            return f"function:{module}.<lambda>@{value.__code__.co_firstlineno}"
        if cls is types.BuiltinMethodType and base_kind(type(value.__self__)) in ("tensor", "parameter"):
            return f"method:torch.Tensor.{value.__name__}"
        if "torch" in sys.modules and id(value) in torch_names():
            return f"function:{torch_names()[id(value)]}"
        if cls is types.BuiltinMethodType and not isinstance(value.__self__, types.ModuleType | None):
            owner = value.__self__ if is_class(value.__self__) else type(value.__self__)
            return f"method:{self.dotted(owner)}.{value.__name__}"
        return f"function:{self.dotted(value)}" if cls in FUNCTIONS else ""

    def _method(self, value: Any) -> str:
        owner, function = value.__self__, value.__func__
        if is_class(owner):
            return f"method:{self.dotted(owner)}.{value.__name__}"
        if not hasattr(function, "__qualname__"):
            return f"method:{self.dotted(type(owner))}.{getattr(function, '__name__', '?')}"
        return f"method:{self.dotted(function)}"
