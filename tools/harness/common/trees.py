"""Argument and output trees (pytrees) as JSON plus numbered arrays, the same for torch, jax and numpy.

A tree is `{"leaf": i}` for the i-th array, `{"value": …}` for a plain Python value, or a container. Classes (dataclasses, named tuples, plain
objects of the user's) are written as `module:qualified name`; the reader imports them by a table of renamed modules.
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import importlib
import itertools
import os
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

Tree = dict[str, Any]

_PLAIN = (bool, int, float, str, type(None))
_PROTOCOLS = frozenset({"abc", "typing", "collections.abc"})
"""Modules of classes that say what an object can do, and keep nothing in it."""
_COLLECTIONS = (dict, list)
DISTRIBUTIONS = {
    **dict.fromkeys(("Normal", "LogNormal", "Laplace", "Gumbel"), ("loc", "scale")),
    **dict.fromkeys(("Bernoulli", "Categorical", "OneHotCategorical", "OneHotCategoricalStraightThrough"), ("probs", "logits")),
    "Uniform": ("low", "high"),
    "Exponential": ("rate",),
    "Poisson": ("rate",),
    "Independent": ("base_dist", "reinterpreted_batch_ndims"),
    "MultivariateNormal": ("loc", "scale_tril"),
    "LowRankMultivariateNormal": ("loc", "cov_factor", "cov_diag"),
    "Gamma": ("concentration", "rate"),
    "Dirichlet": ("concentration",),
    "Beta": ("concentration1", "concentration0"),
}
"""Distributions of torch (https://docs.pytorch.org/docs/stable/distributions.html) that rewrites have too → what makes one."""
FUNCTIONS = {
    **{name: f"jax.numpy:{name}" for name in ("tanh", "sin", "cos", "exp")},
    **{name: f"jax.nn:{name}" for name in ("sigmoid", "relu", "silu", "softplus", "elu", "selu", "celu")},
}
"""Functions of torch and of `torch.nn.functional` that a call may be handed → what stands for them in JAX."""
HELPERS = ("nnx_layers", "nnx_layers_jax")
"""Last parts of the modules in which rewrites have them."""
FRAMEWORKS = frozenset("torch torchvision jax jaxlib flax optax numpy scipy equinox tensorflow keras transformers migrate_agent".split())
"""Top-level packages whose objects have another counterpart, or are more than what they keep."""
_OF_PYTHON = 1 << 9
"""The flag of classes that a `class` statement makes (`Py_TPFLAGS_HEAPTYPE`), and no C code."""
CONSUMED: tuple[Any, ...] = (map, filter, zip, enumerate, reversed, itertools.chain, types.GeneratorType)
"""Classes of what a call gives to be gone through once: what it holds is made as it is written down."""
SETS = (set, frozenset)
"""Of plain values alone: what they hold is known when a program is traced."""
ITERATORS: tuple[Any, ...] = (type(iter([])), type(iter(())))
"""Classes of what goes through a list or a tuple: what is left is written down."""


class Leaf(NamedTuple):
    """A reference to an array, by its number."""

    number: int


class Unencodable(Exception):
    """Raised for a value that has no counterpart on the other side; names its type."""


def encode(value: Any, leaves: list[Any], is_leaf: Callable[[Any], bool], *, arguments: bool = False) -> Tree:
    """Encode `value` as a tree; arrays, as `is_leaf` decides, are appended to `leaves`. Raises `Unencodable`.

    Of a plain object, of the user's or of an installed package, all attributes are written down, and of a dictionary or a list of a class of the user's its
    items too; of a generator of random numbers among them only that it is one; of a distribution what makes it. With `arguments`, it is noted where the class
    of an object gives an equal one without arguments (the reader's constructor runs there), and where an array is NumPy's; distributions, objects of
    packages, and what is gone through once, are refused.
    """
    around: list[int] = []

    def walk(item: Any) -> Tree:
        if isinstance(item, CONSUMED) and not arguments:
            return {"iterator": [walk(part) for part in item]}
        if is_leaf(item):
            leaves.append(item)
            return {"leaf": len(leaves) - 1, **({"host": True} if arguments and type(item).__module__ == "numpy" else {})}
        if isinstance(item, _PLAIN) and type(item) in _PLAIN:
            return {"float": repr(item)} if isinstance(item, float) else {"value": item}
        if isinstance(item, complex):
            return {"complex": [item.real, item.imag]}
        if isinstance(item, slice):
            return {"slice": [walk(item.start), walk(item.stop), walk(item.step)]}
        if item is Ellipsis:
            return {"ellipsis": True}
        if _dtype_name(item):
            return {"dtype": _dtype_name(item)}
        if name := _function_name(item):
            return {"function": name}
        if type(item).__name__.lower() == "device" and type(item).__module__.partition(".")[0] in ("torch", "jax", "jaxlib"):
            return {"device": True}  # which one is no matter of the maths: each side has its own
        if not arguments and (names := distribution_names(type(item))):
            return {"distribution": type(item).__name__, "fields": {name: walk(getattr(item, name)) for name in names}}
        if not (is_object(item) or is_namespace(item) or is_own_collection(item) or (not arguments and is_of_package(type(item)))):
            return _container(item, walk)
        if id(item) in around:
            raise Unencodable(f"an object of type {_name(type(item))} that holds itself")
        around.append(id(item))
        fields = {name: _random(part) or walk(part) for name, part in sorted(vars(item).items())}
        inside = {"items": walk(plain(item))} if is_own_collection(item) else {}
        around.pop()
        return {
            "object": _name(type(item)),
            "fields": fields,
            **inside,
            **({"fresh": True} if arguments and is_fresh(item, is_leaf) else {}),
        }

    return walk(value)


def distribution_names(cls: type) -> tuple[str, ...]:
    """The names of what makes a distribution of torch, or of the helpers of a rewrite, or of a class of the user's that derives from one and keeps
    nothing else; none of any other class."""
    above = itertools.dropwhile(lambda base: not _is_helper(base) and _is_own(base) and "__init__" not in vars(base), cls.__mro__)
    base = next(above, object)
    return DISTRIBUTIONS.get(base.__name__, ()) if _is_helper(base) or base.__module__.startswith("torch.distributions.") else ()


def _is_helper(cls: type) -> bool:
    """Whether this is a distribution of the helpers of a rewrite."""
    return cls.__module__.rpartition(".")[2] in HELPERS and any(base.__name__ == "Distribution" for base in cls.__mro__)


def is_object(item: Any) -> bool:
    """Whether a value is a plain object of a class of the user's: it has nothing of a library, and keeps all that it has in attributes."""
    return not dataclasses.is_dataclass(type(item)) and hasattr(item, "__dict__") and is_own_class(type(item))


def is_namespace(item: Any) -> bool:
    """Whether a value is one of Python's own holders of attributes, such as the options of a command line."""
    return type(item) in (types.SimpleNamespace, argparse.Namespace)


def is_own_collection(item: Any) -> bool:
    """Whether a value is a dictionary or a list of a class of the user's, such as a cache with properties."""
    return is_collection_class(type(item)) and hasattr(item, "__dict__")


def is_collection_class(cls: type) -> bool:
    """Whether a class is the user's own, and derives from a dictionary or a list, and from nothing else of a library."""
    own = [base for base in cls.__mro__ if base not in (object, *_COLLECTIONS) and base.__module__ not in _PROTOCOLS]
    return issubclass(cls, _COLLECTIONS) and bool(own) and all(map(_is_own, own))


def plain(item: Any) -> Any:
    """The items of a dictionary or a list of a class of the user's, in a plain one."""
    return dict(dict.items(item)) if isinstance(item, dict) else list(list.__iter__(item))


def is_fresh(item: Any, is_leaf: Callable[[Any], bool]) -> bool:
    """Whether the class of a plain object makes one that is equal to it without arguments; one that holds arrays is not looked at."""
    leaves: list[Any] = []
    try:
        return encode(type(item)(), leaves, is_leaf) == encode(item, leaves, is_leaf) and not leaves
    except Exception:  # it needs arguments, or is of what cannot be written down
        return False


def is_own_class(cls: type) -> bool:
    """Whether a class is the user's own, and derives from nothing of a library, as a module does."""
    bases = [base for base in cls.__mro__ if base is not object and base.__module__ not in _PROTOCOLS]
    return bool(bases) and all(map(_is_own, bases))


def _is_own(cls: type) -> bool:
    """Whether a file outside of the standard library and of the installed packages defines a class."""
    if cls.__module__.partition(".")[0] in sys.stdlib_module_names:
        return False
    file = getattr(sys.modules.get(cls.__module__), "__file__", None) or ""
    return bool(file) and f"{os.sep}site-packages{os.sep}" not in file and "__slots__" not in vars(cls)


def is_of_package(cls: type) -> bool:
    """Whether an installed package defines a class in plain Python, and its objects keep all that they have in attributes: a graph of networkx, but nothing
    of the frameworks that a rewrite goes from or to."""
    above = [base for base in cls.__mro__ if base is not object and base.__module__ not in _PROTOCOLS]
    if not above or dataclasses.is_dataclass(cls) or not all(_is_installed(base) for base in above):
        return False
    return not any({"__slots__", "__getstate__", "__reduce__"} & vars(base).keys() for base in above)


def _is_installed(cls: type) -> bool:
    """Whether a Python file of an installed package, and of no framework, defines a class."""
    file = getattr(sys.modules.get(cls.__module__), "__file__", None) or ""
    plain = file.endswith(".py") and f"{os.sep}site-packages{os.sep}" in file and bool(cls.__flags__ & _OF_PYTHON)
    return plain and cls.__module__.partition(".")[0] not in FRAMEWORKS


def _random(item: Any) -> Tree | None:
    """A generator of random numbers by its type; None for all else."""
    cls = type(item)
    is_generator = (cls.__module__.partition(".")[0], cls.__name__) in (
        ("numpy", "Generator"),
        ("numpy", "RandomState"),
        ("random", "Random"),
    )
    return {"generator": cls.__name__} if is_generator else None


def with_objects(result: Any, arguments: Any) -> Any:
    """The result of a call, with the plain objects among its arguments beside it, as the call left them: what it writes to them it gives too. The result
    alone where there are none."""
    objects = list(_objects(arguments))
    return (result, *objects) if objects else result


def _objects(value: Any) -> Iterator[Any]:
    if is_own_collection(value):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _objects(part)
    elif isinstance(value, dict):
        yield from _objects(list(value.values()))
    elif is_object(value) or is_namespace(value):
        yield value


def _dtype_name(item: Any) -> str:
    """`float32` for a torch, numpy or jax dtype, else the empty string."""
    if type(item).__name__ == "dtype" and type(item).__module__ == "torch":
        return str(item).removeprefix("torch.")
    name = getattr(item, "name", None)
    if type(item).__module__.startswith("numpy") and isinstance(name, str) and "Type" in type(item).__name__:
        return name
    return ""


def _function_name(item: Any) -> str:
    """The name of a function of torch that has a counterpart in JAX, or of that counterpart; else the empty string."""
    if type(item).__module__.partition(".")[0] not in ("builtins", "jax", "jaxlib"):
        return ""
    name = getattr(item, "__name__", "")
    if name not in FUNCTIONS:
        return ""
    homes = map(sys.modules.get, ("torch", "torch.nn.functional", FUNCTIONS[name].partition(":")[0]))
    return str(name) if any(getattr(home, name, None) is item for home in homes) else ""


def _container(item: Any, walk: Callable[[Any], Tree]) -> Tree:
    cls = type(item)
    if isinstance(item, tuple) and hasattr(item, "_fields") and cls.__module__.startswith("torch."):
        # torch's own result types (`torch.return_types.max`) exist on one side only.
        return {"tuple": [walk(part) for part in item]}
    if isinstance(item, tuple) and hasattr(item, "_fields"):
        return {"named": _name(cls), "fields": {key: walk(part) for key, part in zip(item._fields, item, strict=True)}}
    if dataclasses.is_dataclass(item) and not isinstance(item, type):
        fields = {field.name: walk(getattr(item, field.name)) for field in dataclasses.fields(item) if field.init}
        return {"dataclass": _name(cls), "fields": fields}
    if isinstance(item, ITERATORS):
        return {"iterator": [walk(part) for part in copy.copy(item)]}
    if cls is list:
        return {"list": [walk(part) for part in item]}
    if isinstance(item, tuple):
        return {"tuple": [walk(part) for part in item]}
    if isinstance(item, dict) and all(isinstance(key, (str, int)) for key in item):
        return {"dict": [[key, walk(part)] for key, part in item.items()]}
    if cls in SETS and all(type(part) in _PLAIN for part in item):
        return {cls.__name__: [walk(part) for part in sorted(item, key=lambda part: (type(part).__name__, part is not None and part))]}
    raise Unencodable(f"a value of type {cls.__module__}.{cls.__qualname__}")


def _name(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def decode(tree: Tree, leaves: Sequence[Any], renamed: Mapping[str, str]) -> Any:
    """The value of a tree, with its arrays taken from `leaves` and its classes from modules `renamed`."""

    def walk(node: Tree) -> Any:
        kind, body = next(iter(node.items()))
        match kind:
            case "leaf":
                return leaves[body]
            case "value":
                return body
            case "float":  # spelled out, since JSON has no inf or nan
                return float(body)
            case "complex":
                return complex(*body)
            case "slice":
                return slice(*map(walk, body))
            case "ellipsis":
                return ...
            case "dtype":
                return _dtype(body)
            case "device":
                return _device()
            case "function":
                return _class(FUNCTIONS[body], {})
            case "list":
                return [walk(part) for part in body]
            case "tuple":
                return tuple(walk(part) for part in body)
            case "dict":
                return {key: walk(part) for key, part in body}
            case "set" | "frozenset":
                return {"set": set, "frozenset": frozenset}[kind](map(walk, body))
            case "iterator":
                return iter([walk(part) for part in body])
            case "generator":
                raise Unencodable(f"a generator of random numbers, {body}, in an argument")
            case "object":
                cls = _class(body, renamed)
                attributes = {key: walk(part) for key, part in node["fields"].items()}
                return cls() if node.get("fresh") else made(cls, attributes, walk(node["items"]) if "items" in node else None)
            case _:
                return _class(body, renamed)(**{key: walk(part) for key, part in node["fields"].items()})

    return walk(tree)


def made(cls: Any, attributes: Mapping[str, Any], contents: Any = None) -> Any:
    """A plain object of a class with these attributes, whose constructor does not run; a dictionary or a list of the user's with these items."""
    if isinstance(contents, dict):
        item = dict.__new__(cls)
        dict.update(item, contents)
    elif isinstance(contents, list):
        item = list.__new__(cls)
        list.extend(item, contents)
    else:
        item = cls() if cls is types.SimpleNamespace else object.__new__(cls)
    vars(item).update(attributes)
    return item


def _dtype(name: str) -> Any:
    import jax.numpy as jnp

    return getattr(jnp, {"bool": "bool_"}.get(name, name))


def _device() -> Any:
    import jax

    return jax.devices()[0]


def _class(name: str, renamed: Mapping[str, str]) -> Any:
    module_name, _, qualified = name.partition(":")
    try:
        value: Any = importlib.import_module(renamed.get(module_name, module_name))
    except ImportError:
        value = importlib.import_module(module_name)
    for part in qualified.split("."):
        value = getattr(value, part)
    return value


def rearranged(tree: Tree, value: Any, is_leaf: Callable[[Any], bool]) -> bool:
    """Whether a value that was decoded from `tree` has other containers or keys now."""
    try:
        return bool(skeleton(encode(value, [], is_leaf)) != skeleton(tree))
    except Unencodable:
        return False


def host_leaves(tree: Tree) -> frozenset[int]:
    """The numbers of the leaves that are NumPy's arrays, of a tree of arguments."""
    return frozenset(_host_leaves(tree))


def _host_leaves(node: Any) -> Iterator[int]:
    if isinstance(node, dict):
        if node.get("host") is True and isinstance(node.get("leaf"), int):
            yield node["leaf"]
        for part in node.values():
            yield from _host_leaves(part)
    elif isinstance(node, list):
        for part in node:
            yield from _host_leaves(part)


def skeleton(tree: Tree) -> Any:
    """The part of a tree that must be equal on both sides: containers, keys and class names without module. Numbers count as leaves."""
    kind, body = next(iter(tree.items()))
    match kind:
        case "leaf" | "complex" | "float":
            return "leaf"
        case "value":
            return "leaf" if isinstance(body, (bool, int)) else ("value", body)
        case "device":
            return ("value", None)  # JAX places arrays itself: a rewrite says `None` where torch names a device
        case "list" | "tuple" | "iterator":
            return (kind, tuple(skeleton(part) for part in body))
        case "dict":
            return (kind, tuple((key, skeleton(part)) for key, part in body))
        case "named" | "dataclass" | "object" | "distribution":
            fields = tuple((key, skeleton(part)) for key, part in tree["fields"].items())
            return (kind, body.rpartition(":")[2], fields, *((skeleton(tree["items"]),) if "items" in tree else ()))
        case _:
            return (kind, str(body))


def items(tree: Tree) -> list[Any]:
    """The leaves of `skeleton` in its order: arrays as `Leaf`, Python numbers as they are."""
    numbers: list[Any] = []

    def walk(node: Tree) -> None:
        kind, body = next(iter(node.items()))
        if kind == "leaf":
            numbers.append(Leaf(body))
        elif kind == "float":
            numbers.append(float(body))
        elif kind == "complex":
            numbers.append(complex(*body))
        elif kind == "value" and isinstance(body, (bool, int)):
            numbers.append(body)
        elif kind in ("list", "tuple", "iterator"):
            for part in body:
                walk(part)
        elif kind == "dict":
            for _, part in body:
                walk(part)
        elif kind in ("named", "dataclass", "object", "distribution"):
            for part in (*node["fields"].values(), *([node["items"]] if "items" in node else ())):
                walk(part)

    walk(tree)
    return numbers
