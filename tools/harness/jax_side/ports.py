"""Adapts ports that are no NNX mirror: Linen, Equinox, plain functions with a parameter tree, and NNX with other names.

Used inside the sandbox. The adapter is an NNX module whose variables are the leaves of the port's tree, so that all else runs it as any other.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from migrate_agent.tools.harness.common import methods
from migrate_agent.tools.harness.common.input_sampling import Array
from migrate_agent.tools.harness.jax_side.module import Candidate, is_key, make_namespace, modes
from migrate_agent.tools.harness.jax_side.module import called as called_with_rngs
from migrate_agent.tools.harness.jax_side.precision import narrow_constants
from migrate_agent.tools.harness.jax_side.weight_map import Leaf, MapError, match, tokens

TRAIN = ("train", "training", "is_training")
EVAL = ("deterministic", "inference", "use_running_average", "eval")
KEY = ("key", "rng", "rng_key", "prng_key")
Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class Fixed:
    """A static attribute of a module, equal to itself only: equal structures must mean the same port."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Port(nnx.Module):
    """The leaves of a port's tree as variables, and the function that calls it with them."""

    def __init__(self, values: Sequence[Any], trained: Sequence[bool], call: Fixed, key: Any) -> None:
        self.values = nnx.List([nnx.Param(value) if kind else nnx.Variable(value) for value, kind in zip(values, trained, strict=True)])
        self.call = call
        self.rngs = nnx.Rngs(key)
        self.deterministic = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the port and store its new state."""
        leaves = [value.get_value() for value in self.values]
        result, after = self.call.value(leaves, self.rngs, not self.deterministic, args, kwargs)
        for value, new, old in zip(self.values, after, leaves, strict=True):
            if new is not old:
                value.set_value(new)
        return result


class PortCandidate(Candidate):
    """A port of one example. `described` has torch's `state` and `parameters`; `sample` returns the arguments of a call."""

    def __init__(
        self,
        module: str,
        name: str,
        texts: Mapping[str, Any],
        tensors: Path | None,
        port: Mapping[str, Any],
        described: Mapping[str, Any],
        sample: Callable[[], Arguments],
        *,
        exact: bool,
    ) -> None:
        self.exact, self.port, self.sample = exact, port, sample
        self.called = str(texts.get("method", ""))
        with narrow_constants(module):
            user_module: Any = importlib.import_module(module)
        self.namespace = make_namespace(user_module, texts, tensors, exact)
        self.cls = user_module
        for part in name.split("."):
            self.cls = getattr(self.cls, part)
        self.kind = self.library = port.get("kind") or kind_of(self.cls)
        self.init = compile(f"_unit({texts['init']}\n)", "<init of the example>", "eval")
        self.wanted = {key: tuple(shape) for key, shape in described["state"].items()}
        parameters, self.tied = set(described["parameters"]), dict(described.get("tied", {}))
        self.of_torch = {key: key in parameters for key in self.wanted}
        self.how = HOWS[self.kind](self.cls, self)
        self.model = self._build()
        self.constructed = modes(self.model)

    def has(self, method: str) -> bool:
        """Whether the port has a method ("": its call). A function has none."""
        return not method or (self.kind != "function" and hasattr(self.cls, method))

    def build(self, **keywords: Any) -> Any:
        """The value of the init text, with those of the keywords that the class takes."""
        accepted = {key: value for key, value in keywords.items() if key in {**parameters_of(self.cls), **parameters_of(self.cls.__init__)}}
        return eval(self.init, {**self.namespace, "_unit": lambda *args, **kwargs: self.cls(*args, **kwargs, **accepted)})

    def _build(self) -> Any:
        shapes = self.how.leaves(jax.random.key(0))
        self.tree = [Leaf(path, tuple(shape.shape), self.how.trained(path)) for path, shape in zip(self.how.paths, shapes, strict=True)]
        has_initial_values = self.kind != "function" or "params" in self.port
        self.initialises = has_initial_values and self.port.get("initialisation") is not False
        self.copies = _batch(self.sample()) if self.port.get("vmap") else 1
        self.places, self.omitted = match(self.wanted, self.of_torch, self.tree, self.port.get("weights", {}), self.tied)
        of_leaf = {location.leaf: self.of_torch[name] for name, location in self.places.items()}
        self.trained = [of_leaf[index] if leaf.trained is None else leaf.trained for index, leaf in enumerate(self.tree)]
        return Port(
            [jnp.zeros(s.shape, self._widened(s.dtype)) for s in shapes], self.trained, Fixed(partial(self.how.call, method=self.called)), 0
        )

    def fresh(self, rngs: nnx.Rngs) -> Any:
        """A newly initialised port."""
        key = rngs.params()
        return Port(self.how.leaves(key), self.trained, self.model.call, key)

    def weights(self) -> list[dict[str, Any]]:
        """Empty: a port's own file has its weight map."""
        return []

    def load(self, state: Mapping[str, Array], model: Any = None) -> None:
        """Put a torch state into the port, or into another of the same kind. Raises `MapError`."""
        filled: dict[int, tuple[Array, Array]] = {}
        for name, location in self.places.items():
            value, shape = np.asarray(state[name]), self.tree[location.leaf].shape
            array, done = filled.setdefault(location.leaf, (np.zeros(shape, value.dtype), np.zeros(shape, bool)))
            part, moved = location.where or ..., location.to_port(value)
            alike = (array[part] == moved) | ((array[part] != array[part]) & (moved != moved))
            if bool((done[part] & ~alike).any()):
                raise MapError(f"{name} shares a leaf with another name, but they differ")
            array[part], done[part] = moved, True
        for index, (array, done) in filled.items():
            if not done.all():
                raise MapError(f"the weight map says nothing of a part of {self.tree[index]}")
            (self.model if model is None else model).values[index].set_value(jnp.asarray(array))

    def state(self, model: Any = None) -> dict[str, Array]:
        """The leaves of the port (or of another of the same kind) under torch's names and in torch's layout."""
        leaves = (self.model if model is None else model).values
        return {
            name: location.get(np.asarray(leaves[location.leaf].get_value()), self.wanted[name]) for name, location in self.places.items()
        }

    def shapes(self) -> dict[str, list[int]]:
        """State name → shape in torch's axis order."""
        return {name: list(value.shape) for name, value in self.state().items()}

    def _located(self, *parts: Any) -> None:
        """None: a port's leaves do not have the names of its attributes."""
        return


class NNX:
    """An NNX class with other state names."""

    def __init__(self, cls: Any, owner: PortCandidate) -> None:
        self.owner = owner
        self.template = owner.build(rngs=nnx.Rngs(0))
        self.paths = [path for path, value in variables_of(self.template).items() if not _is_random(value)]

    def leaves(self, key: Any) -> list[Any]:
        """Values of all variables that are no random state, in the order of `paths`."""
        variables = variables_of(self.owner.build(rngs=nnx.Rngs(key)))
        return [variables[path].get_value() for path in self.paths]

    def trained(self, path: tuple[str, ...]) -> bool | None:
        """Whether it is an `nnx.Param`."""
        return isinstance(variables_of(self.template)[path], nnx.Param)

    def call(self, leaves: Sequence[Any], rngs: nnx.Rngs, train: bool, args: Any, kwargs: Any, method: str = "") -> tuple[Any, list[Any]]:
        """Put these values into a copy of the module, call it, and read them back."""
        graphdef, state = nnx.split(self.template)
        # A copy, because a traced call must not write tracers into the template.
        model = nnx.merge(graphdef, state, copy=True)
        model.train() if train else model.eval()
        variables = variables_of(model)
        for path, value in zip(self.paths, leaves, strict=True):
            variables[path].set_value(value)
        for value in variables.values():
            if is_key(value.get_value()):
                # Layers that are scanned have a key each.
                shape = value.get_value().shape
                value.set_value(jax.random.split(rngs(), shape) if shape else rngs())
        result = called_with_rngs(model, method, args, kwargs, rngs)
        return result, [variables[path].get_value() for path in self.paths]


def variables_of(model: Any) -> dict[tuple[str, ...], Any]:
    """All variables by their path."""
    return {tuple(map(str, path)): node for path, node in nnx.iter_graph(model) if isinstance(node, nnx.Variable)}


def _is_random(value: Any) -> bool:
    return isinstance(value, nnx.RngState) or is_key(value.get_value())


class Linen:
    """A Flax Linen module: `init` and `apply`, collections other than `params` being mutable."""

    def __init__(self, cls: Any, owner: PortCandidate) -> None:
        self.owner, self.module = owner, owner.build()
        self.streams = tuple(owner.port.get("rngs", ("dropout",)))
        self.paths: list[tuple[str, ...]] = []
        self.structure: Any = None

    def _rngs(self, key: Any, *names: str) -> dict[str, Any]:
        return {name: jax.random.fold_in(key, index) for index, name in enumerate((*names, *self.streams))}

    def leaves(self, key: Any) -> list[Any]:
        """The leaves of the variables that `init` returns."""
        args, kwargs = self.owner.sample()
        flags = mode_of(type(self.module).__call__, self.owner.port, train=False)
        variables = self.module.init(self._rngs(key, "params"), *args, **kwargs, **flags)
        paths, flat, structure = flatten(dict(variables))
        if self.structure is None:
            self.paths, self.structure = paths, structure
        return flat

    def trained(self, path: tuple[str, ...]) -> bool | None:
        """Whether it is in `params`."""
        return path[0] == "params"

    def call(self, leaves: Sequence[Any], rngs: nnx.Rngs, train: bool, args: Any, kwargs: Any, method: str = "") -> tuple[Any, list[Any]]:
        """Call `apply`, and return the mutable collections with the result."""
        variables = jax.tree.unflatten(self.structure, leaves)
        others = [name for name in variables if name != "params"]
        flags = mode_of(getattr(type(self.module), method or "__call__"), self.owner.port, train=train, of_method=bool(method))
        keys = self._rngs(rngs()) if train and self.streams else {}

        def named(module: Any, *args: Any, **kwargs: Any) -> Any:
            return methods.bound(module, method)(*args, **kwargs)

        chosen = {"method": named} if method else {}
        with undrawn():
            result = self.module.apply(variables, *args, **kwargs, **flags, rngs=keys, mutable=others or False, **chosen)
        if not others:
            return result, list(leaves)
        result, updated = result
        return result, jax.tree.leaves({**variables, **updated})


@contextmanager
def undrawn() -> Iterator[None]:
    """Have Linen take the parameters that are there without tracing their initialisers: it does that to compare shapes, and the draws would count."""
    scope: Any = importlib.import_module("flax.core.scope").Scope
    original = scope.param

    def param(self: Any, name: str, init_fn: Any, *args: Any, **kwargs: Any) -> Any:
        if self.has_variable("params", name):
            value = self.get_variable("params", name)
            return original(self, name, lambda key, *args, **kwargs: value, *args, **kwargs)
        return original(self, name, init_fn, *args, **kwargs)

    scope.param = param
    try:
        yield
    finally:
        scope.param = original


class Equinox:
    """An Equinox module: its arrays are the leaves. `vmap` in the port's file maps it over the batch."""

    def __init__(self, cls: Any, owner: PortCandidate) -> None:
        self.owner = owner
        self.paths: list[tuple[str, ...]] = []
        self.structure: Any = None

    def leaves(self, key: Any) -> list[Any]:
        """The arrays of a new module."""
        import equinox

        arrays, static = equinox.partition(self.owner.build(key=key), equinox.is_inexact_array)
        paths, flat, structure = flatten(arrays)
        if self.structure is None:
            self.paths, self.structure, self.static = paths, structure, static
        return flat

    def trained(self, path: tuple[str, ...]) -> bool | None:
        """None: Equinox does not say."""
        return None

    def call(self, leaves: Sequence[Any], rngs: nnx.Rngs, train: bool, args: Any, kwargs: Any, method: str = "") -> tuple[Any, list[Any]]:
        """Call the module with these arrays, in inference mode where not `train`."""
        import equinox

        model = equinox.combine(jax.tree.unflatten(self.structure, leaves), self.static)
        model = equinox.nn.inference_mode(model, value=not train)
        function = getattr(type(model), method or "__call__")
        flags = mode_of(function, self.owner.port, train=train, of_method=bool(method))
        return called(methods.bound(model, method), self.owner.port, rngs, train, flags, args, kwargs, of=function), list(leaves)


class Function:
    """`f(params, *args)`; `params` in the port's file names a function of a key that makes them, else the weight map alone says what they are."""

    def __init__(self, function: Any, owner: PortCandidate) -> None:
        self.function, self.owner = function, owner
        self.paths: list[tuple[str, ...]] = []
        self.structure: Any = None

    def leaves(self, key: Any) -> list[Any]:
        """New parameters, or zeros in the tree that the weight map describes."""
        name, weights = self.owner.port.get("params"), self.owner.port.get("weights", {})
        paths, flat, structure = flatten(self.owner.namespace[name](key) if name else described_tree(weights, self.owner.wanted))
        if self.structure is None:
            self.paths, self.structure = paths, structure
        return flat

    def trained(self, path: tuple[str, ...]) -> bool | None:
        """None: a plain tree does not say."""
        return None

    def call(self, leaves: Sequence[Any], rngs: nnx.Rngs, train: bool, args: Any, kwargs: Any, method: str = "") -> tuple[Any, list[Any]]:
        """Call the function with these parameters."""
        params = jax.tree.unflatten(self.structure, leaves)
        flags = mode_of(self.function, self.owner.port, train=train)

        def bound(*args: Any, **kwargs: Any) -> Any:
            return self.function(params, *args, **kwargs)

        return called(bound, self.owner.port, rngs, train, flags, args, kwargs, of=self.function), list(leaves)


def is_mirror(module: str, name: str, port: Mapping[str, Any]) -> bool:
    """Whether it is an NNX class without a port file: then it must have a mirror's names."""
    with narrow_constants(module):
        value: Any = importlib.import_module(module)
    for part in name.split("."):
        value = getattr(value, part)
    return not port and isinstance(value, type) and issubclass(value, nnx.Module)


HOWS: Mapping[str, Any] = {"nnx": NNX, "linen": Linen, "equinox": Equinox, "function": Function}


def kind_of(value: Any) -> str:
    """The kind of port of a class or function (`nnx`, `linen`, `equinox`, `function`). Raises `TypeError` for anything else."""
    # By name: equinox need not be installed.
    bases = {f"{base.__module__.partition('.')[0]}.{base.__name__}" for base in getattr(value, "__mro__", ())}
    if isinstance(value, type) and issubclass(value, nnx.Module):
        return "nnx"
    if "equinox.Module" in bases:
        return "equinox"
    if "flax.Module" in bases:
        return "linen"
    if callable(value) and not isinstance(value, type):
        return "function"
    raise TypeError(f"{getattr(value, '__name__', value)} is no flax.nnx.Module, flax.linen.Module, equinox.Module or function")


def parameters_of(function: Any) -> Mapping[str, inspect.Parameter]:
    """The parameters by name; none where Python has no signature."""
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


def mode_of(function: Any, port: Mapping[str, Any], *, train: bool, of_method: bool = False) -> dict[str, bool]:
    """The keyword arguments that set the port's mode: those of the file, else the usual names among its parameters. Methods beside the call take
    those alone that they have."""
    names = parameters_of(function)
    if of_method:
        named = {port[kind]: value for kind, value in (("train", train), ("eval", not train)) if port.get(kind) in names}
        return named or {name: train for name in TRAIN if name in names} | {name: not train for name in EVAL if name in names}
    if port.get("train") or port.get("eval"):
        return {port[kind]: value for kind, value in (("train", train), ("eval", not train)) if port.get(kind)}
    return {name: train for name in TRAIN if name in names} | {name: not train for name in EVAL if name in names}


def called(
    function: Any, port: Mapping[str, Any], rngs: nnx.Rngs, train: bool, flags: Mapping[str, bool], args: Any, kwargs: Any, of: Any = None
) -> Any:
    """Call a function, with a random key where it takes one, and mapped over the batch where the file has `vmap`."""
    names = parameters_of(function if of is None else of)
    name = port.get("key") or next((key for key in KEY if key in names), "")
    key = rngs() if train and name else None
    if not port.get("vmap"):
        return function(*args, **kwargs, **flags, **({name: key} if name else {}))
    keys = None if key is None else jax.random.split(key, _batch((args, kwargs)))

    def one(args: Any, kwargs: Any, key: Any) -> Any:
        return function(*args, **kwargs, **flags, **({name: key} if name else {}))

    axes = jax.tree.map(lambda leaf: 0 if hasattr(leaf, "ndim") and leaf.ndim else None, (args, kwargs))
    return jax.vmap(one, in_axes=(*axes, None if keys is None else 0))(args, kwargs, keys)


def _batch(arguments: Arguments) -> int:
    return next((int(leaf.shape[0]) for leaf in jax.tree.leaves(arguments) if hasattr(leaf, "ndim") and leaf.ndim), 1)


def flatten(tree: Any) -> tuple[list[tuple[str, ...]], list[Any], Any]:
    """Paths, leaves and structure."""
    pairs, structure = jax.tree_util.tree_flatten_with_path(tree)
    return [tuple(_token(entry) for entry in path) for path, _ in pairs], [leaf for _, leaf in pairs], structure


def _token(entry: Any) -> str:
    return str(next(getattr(entry, name) for name in ("key", "name", "idx") if hasattr(entry, name)))


def described_tree(weights: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    """Nested dictionaries of zeros with the paths and shapes of the weight map. Raises `MapError` for names that it lacks."""
    tree: dict[str, Any] = {}
    for name, shape in shapes.items():
        row = weights.get(name)
        if row is None:
            raise MapError(f"{name} is not in the weight map, and no function makes the parameters (`params` in the file)")
        if row is False:
            continue
        table: Mapping[str, Any] = {"path": row} if isinstance(row, str) else row
        moved = np.zeros(shape) if table.get("reshape") is None else np.zeros(tuple(table["reshape"]))
        moved = moved if table.get("transpose") is None else moved.transpose(table["transpose"])
        *folders, last = tokens(table["path"])
        node = tree
        for folder in folders:
            node = node.setdefault(folder, {})
        node[last] = jnp.asarray(moved)
    return tree
