"""One example of the candidate: constructed, and loaded with given states. Used inside the sandbox."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.interpreters import partial_eval

from migrate_agent.tools import weights
from migrate_agent.tools.harness.common import methods
from migrate_agent.tools.harness.common.argument_changes import changed
from migrate_agent.tools.harness.common.conditions import AS_MADE, Conditions
from migrate_agent.tools.harness.common.example_text import seed_python
from migrate_agent.tools.harness.common.input_sampling import Array
from migrate_agent.tools.harness.common.random_streams import NO_CUSTOMS
from migrate_agent.tools.harness.common.xla_flags import quick
from migrate_agent.tools.harness.jax_side.embeddings import follow_tables
from migrate_agent.tools.harness.jax_side.errors import CONCRETISATION
from migrate_agent.tools.harness.jax_side.function_module import function_module
from migrate_agent.tools.harness.jax_side.precision import narrow_constants, tracers_as_data
from migrate_agent.tools.harness.named_files import bring
from migrate_agent.tools.types import Kind
from migrate_agent.tools.weights import Leaf

_EVALUATED: dict[str, list[Any]] = {}
"""Results of programs by their text."""


def is_trainable(path: Any, value: Any) -> bool:
    """An nnx filter: parameters of floating dtype."""
    return isinstance(value, nnx.Param) and jnp.issubdtype(value.get_value().dtype, jnp.inexact)


def is_leaf(value: Any) -> bool:
    """Whether a value travels as an array."""
    return isinstance(value, (jax.Array, np.ndarray, np.generic, nnx.Variable))


def is_key(value: Any) -> bool:
    """Whether an array holds random keys."""
    return bool(jnp.issubdtype(value.dtype, jax.dtypes.prng_key))


def split(model: Any) -> tuple[Any, Any, Any]:
    """Graph definition, trainable parameters, and the rest."""
    parts: Any = nnx.split(model, is_trainable, ...)
    return parts[0], parts[1], parts[2]


def split_kept(model: Any) -> tuple[Any, Any, Any]:
    """As `split`, without `nnx.Intermediate`s, which by NNX's convention are no state. Removes them from the model."""
    parts: Any = nnx.split(model, nnx.Intermediate, is_trainable, ...)
    if not len(parts[1]):
        return parts[0], parts[2], parts[3]
    nnx.pop(model, nnx.Intermediate)
    return split(model)


def sets_modes_alone(model: Any) -> bool:
    """Whether `train` and `eval` set flags and do nothing else: they are NNX's own, and no class has a property of a flag's name."""
    own = all(getattr(type(model), name) is getattr(nnx.Module, name) for name in ("train", "eval", "set_attributes"))
    flags = ("deterministic", "use_running_average")
    return own and not any(hasattr(getattr(type(module), flag, None), "__set__") for _, module in nnx.iter_modules(model) for flag in flags)


def _settings(module: Any) -> dict[str, Any]:
    """The plain values that a module holds: numbers, words and flags."""
    return {name: value for name, value in vars(module).items() if isinstance(value, (bool, int, float, str, type(None)))}


def keeps_tracers(graphdef: Any) -> bool:
    """Whether a module constructed under `jit` holds tracers where arrays would be if it were constructed eagerly."""
    values = [getattr(attribute, "value", None) for _, attribute in graphdef.attributes]
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(values))


def _evaluated(jaxpr: Any, constants: Sequence[Any]) -> Sequence[Any]:
    """The results of a program without arguments; cached for one that makes keys and counters alone, which other configurations share."""

    def evaluate() -> list[Any]:
        return list(jax.jit(lambda: jax.core.eval_jaxpr(jaxpr, constants), compiler_options=quick())())

    if constants or not all(
        is_key(variable.aval) or (not variable.aval.shape and variable.aval.dtype.kind in "iu") for variable in jaxpr.outvars
    ):
        return evaluate()
    text = str(jaxpr)
    if text not in _EVALUATED:
        _EVALUATED[text] = evaluate()
    return _EVALUATED[text]


class Absent:
    """The type of an attribute that is not there."""


def module_path(path: Sequence[Any]) -> str:
    """The dotted path in torch's spelling (`h.0.attn`), without the `layers` of `nnx.Sequential`."""
    return ".".join(str(part) for part in path if part != "layers")


class MadeWhenAsked(Mapping[str, Array]):
    """Arrays by name, each made when it is asked for: all of a large unit's take as long as a call."""

    def __init__(self, makers: Mapping[str, Callable[[], Array]]) -> None:
        self._makers = makers

    def __getitem__(self, name: str) -> Array:
        return self._makers[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


class Candidate:
    """The candidate's module of one example. Raises the errors of import, setup and constructor."""

    copies = 1
    """How often a traced draw happens when the program runs (the batch size under `vmap`)."""
    initialises = True
    """Whether fresh initial values are compared."""
    omitted: Sequence[str] = ()
    """State names of the original that this module does not have."""
    customs = NO_CUSTOMS
    method = ""
    """The method that the example calls; "" where it calls the module."""
    library = "nnx"
    """What the module is written in: a `kind` of ports."""
    held: Sequence[str] = ()
    """Paths of plain attributes in which the original's call leaves or finds arrays."""
    changes_objects = False
    """Whether the original's call changes plain objects that it holds: then each call gets those of the port as they were."""
    _as_constructed: Sequence[tuple[Any, Any]] = ()
    """Submodules and their settings as constructed, where `train` and `eval` may change more than modes; none of a port, which has no such methods."""
    loaded: Mapping[str, Any] = MappingProxyType({})
    _as_given: Mapping[int, Any] = MappingProxyType({})
    """By their ids, the arrays that were loaded last and whose variables hold them as they were given."""
    keeps_all = False
    """Whether all variables hold what was loaded last as it was given."""

    def __init__(
        self, module: str, name: str, texts: Mapping[str, Any], tensors: Path | None, *, exact: bool, kind: Kind = "module"
    ) -> None:
        with narrow_constants(module):
            user_module: Any = importlib.import_module(module)
        self.namespace = make_namespace(user_module, texts, tensors, exact)
        self.cls = user_module
        for part in name.split("."):
            self.cls = getattr(self.cls, part)
        if kind == "function":
            self.cls = function_module(self.cls, texts["init"])
        if not (isinstance(self.cls, type) and issubclass(self.cls, nnx.Module)):
            raise TypeError(f"{name} is no flax.nnx.Module")
        self.unit = changed(self.cls, texts.get("changes") or {})
        self.init = compile(f"_unit({texts['init']}\n)", "<init of the example>", "eval")
        self.exact = exact
        self.model = self._build()
        follow_tables(self.model)
        self.constructed = modes(self.model)
        self._as_constructed = [] if self._sets_modes_alone else [(module, _settings(module)) for _, module in nnx.iter_modules(self.model)]

    def fresh(self, rngs: nnx.Rngs) -> Any:
        """A newly constructed module."""
        seed_python()
        return eval(self.init, {**self.namespace, "_unit": self.unit, "rngs": rngs})

    def arguments(self) -> Any:
        """The constructor's arguments, evaluated anew; None where they cannot be."""
        seed_python()
        try:
            return eval(self.init, {**self.namespace, "_unit": lambda *args, **kwargs: (args, kwargs), "rngs": None})
        except Exception:  # safe: the constructor itself evaluates the same text, and its error is told
            return None

    def _build(self) -> Any:
        """The module with zero parameters. Their initial values are never compiled, because a state is loaded over them."""
        try:
            graphdef, trainable, rest = self._staged()
            if keeps_tracers(graphdef):
                raise jax.errors.UnexpectedTracerError("a static attribute holds a tracer")
        # A constructor that branches on a number, or keeps an array as a static attribute, runs
        # eagerly.
        except (*CONCRETISATION, jax.errors.UnexpectedTracerError):
            graphdef, trainable, rest = split(self.fresh(nnx.Rngs(0)))
        zeros = jax.tree.map(lambda leaf: jax.device_put(np.zeros(leaf.shape, self._widened(leaf.dtype))), trainable)
        return nnx.merge(graphdef, zeros, jax.tree.map(self._widen, rest))

    def _staged(self) -> tuple[Any, Any, Any]:
        """The parts of a new module, constructed once under a trace: parameters as shapes, and other state computed."""
        graphdefs: list[Any] = []

        def construct() -> Any:
            graphdef, trainable, rest = split(self.fresh(nnx.Rngs(0)))
            graphdefs[:] = [graphdef]
            return trainable, rest

        with tracers_as_data():
            program, (trainable, rest) = jax.make_jaxpr(construct, return_shape=True)()
        count = len(jax.tree.leaves(trainable))
        computed = [index >= count for index in range(len(program.jaxpr.outvars))]
        values = _evaluated(partial_eval.dce_jaxpr(program.jaxpr, computed)[0], program.consts) if any(computed) else []
        return graphdefs[0], trainable, jax.tree.unflatten(jax.tree.structure(rest), values)

    def _widened(self, dtype: Any) -> Any:
        if not self.exact or not jnp.issubdtype(dtype, jnp.inexact):
            return dtype
        return np.complex128 if jnp.issubdtype(dtype, jnp.complexfloating) else np.float64

    def _widen(self, leaf: Any) -> Any:
        """The leaf in the width of this run; a number that adapts to other dtypes, as `jnp.array(2.0)` does, stays one."""
        if is_key(leaf):
            return leaf
        if getattr(leaf, "weak_type", False) and leaf.ndim == 0:
            return jnp.asarray(leaf.item())
        return jax.device_put(np.asarray(leaf).astype(self._widened(leaf.dtype)))

    def load(self, state: Mapping[str, Array], model: Any = None) -> None:
        """Put a torch state into the module, or into another of the same class. Raises what `load_state_dict` raises."""
        put = weights.load_leaves(self._leaves if model is None else weights.leaves(model), dict(state))
        if model is None:
            self.loaded = {name: leaf.variable.get_value() for name, leaf in self._leaves.items()}
            # A variable may give something else than it is given, and hold it in another dtype.
            unchanged = {name for name, array in put.items() if self.loaded[name] is array and array.dtype == state[name].dtype}
            self._as_given = {id(self.loaded[name]): self.loaded[name] for name in unchanged}
            self.keeps_all = len(unchanged) == len(self._leaves)

    def reload(self) -> None:
        """Put the state back that was loaded last. Only of a candidate that `keeps_all`."""
        for name, value in self.loaded.items():
            self._leaves[name].variable.set_value(value)

    def has(self, method: str) -> bool:
        """Whether the module has a method ("": its call)."""
        return methods.has(self.cls, method)

    def state(self, model: Any = None) -> dict[str, Array]:
        """The module's state (or another's of the same class) under torch's names and in torch's layout."""
        if model is not None:
            return weights.state_dict(model)
        return {name: leaf.to_torch(leaf.variable.get_value()) for name, leaf in self._leaves.items()}

    def weights(self) -> list[dict[str, Any]]:
        """The weight map as JSON: torch's name, the variable's path, the shape in torch, the order of axes."""
        paths = weights.variable_paths(self.model)
        return [
            {
                "name": name,
                "path": paths[name] + "".join(f"[{number}]" for number in leaf.index),
                "shape": list(leaf.shape),
                "axes": None if leaf.axes is None else list(leaf.axes),
            }
            for name, leaf in self._leaves.items()
        ]

    @cached_property
    def _leaves(self) -> dict[str, Leaf]:
        """The leaves that `load` fills. Cached: listing the variables of a large module is slow."""
        return weights.leaves(self.model)

    def parts(self, mode: str, conditions: Conditions = AS_MADE) -> tuple[Any, Any, Any]:
        """Graph definition, trainable parameters and the rest, in `train` or `eval` mode. The states hold the model's own variables."""
        key = mode, conditions.of_module
        if key not in self._parts or not self._sets_modes_alone:
            self._start_anew()
            self.model.train() if mode == "train" else self.model.eval()
            with self._under(conditions, mode == "train"):
                self._parts[key] = split(self.model)
        return self._parts[key]

    def _start_anew(self) -> None:
        """Make the module what it was after its state was loaded, where `train` and `eval` may change more than modes: torch's has a copy for each run."""
        for module, settings in self._as_constructed:
            vars(module).update(settings)
        for name, value in self.loaded.items() if self._as_constructed else ():
            self._leaves[name].variable.set_value(value)

    @cached_property
    def _parts(self) -> dict[tuple[str, Conditions], tuple[Any, Any, Any]]:
        return {}

    def absent(self, conditions: Conditions) -> str:
        """The first submodule or attribute that the conditions name and this module has not, or not with that value; "" where it has all."""
        modules = self._by_path
        missing = [path for path in conditions.turned if path not in modules]
        for path, old, _ in conditions.attributes:
            owner, _, name = path.rpartition(".")
            # An attribute of the class is one of the module, too.
            value = vars(modules[owner]).get(name, getattr(type(modules[owner]), name, Absent)) if owner in modules else Absent
            missing += [path] if type(value) is not type(old) or value != old else []
        return missing[0] if missing else ""

    def lacks(self, conditions: Conditions) -> str:
        """The first buffer that is to be cast and that this module has no variable for; "" where it has all."""
        modules = self._by_path if conditions.unsaved else {}
        return next((path for path in conditions.unsaved if not isinstance(_at(modules, path), nnx.Variable)), "")

    @contextmanager
    def cast(self, conditions: Conditions) -> Iterator[None]:
        """The model with the buffers that no state fills in the width of the conditions."""
        modules = self._by_path if conditions.unsaved else {}
        variables = [_at(modules, path) for path in conditions.unsaved]
        values = [variable.get_value() for variable in variables]
        for variable, value in zip(variables, values, strict=True):
            variable.set_value(value.astype(conditions.width))
        try:
            yield
        finally:
            for variable, value in zip(variables, values, strict=True):
                variable.set_value(value)

    def part_paths(self) -> list[str]:
        """The dotted paths of its submodules; one that stands in several places has one path."""
        return sorted(self._by_path)

    @property
    def _by_path(self) -> dict[str, Any]:
        """Submodules by their dotted paths in torch's spelling; "" is the module itself."""
        return {module_path(path): module for path, module in nnx.iter_modules(self.model)}

    @contextmanager
    def _under(self, conditions: Conditions, trains: bool) -> Iterator[None]:
        """The model as the conditions have it. Raises `KeyError` where it has no such submodule."""
        modules = self._by_path if conditions != AS_MADE else {}
        for path in conditions.turned:
            modules[path].eval() if trains else modules[path].train()
        of_class = {path for path, _, _ in conditions.attributes if path.rpartition(".")[2] not in vars(modules[path.rpartition(".")[0]])}
        for path, _, new in conditions.attributes:
            setattr(modules[path.rpartition(".")[0]], path.rpartition(".")[2], new)
        try:
            yield
        finally:
            for path in conditions.turned:
                modules[path].train() if trains else modules[path].eval()
            for path, old, _ in conditions.attributes:
                owner, _, name = path.rpartition(".")
                delattr(modules[owner], name) if path in of_class else setattr(modules[owner], name, old)

    @cached_property
    def _sets_modes_alone(self) -> bool:
        return sets_modes_alone(self.model)

    def state_of(self, graphdef: Any, *states: Any, changed: bool = False) -> dict[str, Array]:
        """These leaves under torch's names and in torch's layout; where `changed`, without those that still are the arrays that were loaded."""
        values, structure = jax.tree.flatten(states)
        leaf_numbers = self._numbers(graphdef, structure, values)
        if leaf_numbers is None:
            return {name: np.asarray(value) for name, value in self.state(nnx.merge(graphdef, *states, copy=True)).items()}
        left_out = self._as_given if changed else {}
        return {name: leaf.to_torch(values[number]) for name, (number, leaf) in leaf_numbers.items() if id(values[number]) not in left_out}

    def _numbers(self, graphdef: Any, structure: Any, values: Sequence[Any]) -> dict[str, tuple[int, Leaf]] | None:
        """As `_located`, looked for once."""
        key = (id(graphdef), structure)
        if key not in self._places:
            self._places[key] = graphdef, self._located(graphdef, structure, values)
        return self._places[key][1]

    @cached_property
    def _places(self) -> dict[Any, tuple[Any, dict[str, tuple[int, Leaf]] | None]]:
        """By graph definition (kept, since its id is the key) and structure: where each name's leaf is."""
        return {}

    def _located(self, graphdef: Any, structure: Any, values: Sequence[Any]) -> dict[str, tuple[int, Leaf]] | None:
        """State name → index and leaf of its value; None where that needs a merged model, because its variables transform their values."""
        shape_of: Any = jax.ShapeDtypeStruct
        # Merging shapes in place of arrays shows which leaf each variable gets, by identity.
        marks = [shape_of(value.shape, value.dtype) for value in values]
        numbers = {id(shape): number for number, shape in enumerate(marks)}
        try:
            marked = nnx.merge(graphdef, *jax.tree.unflatten(structure, marks), copy=True)
            return {name: (numbers[id(leaf.variable.get_value())], leaf) for name, leaf in weights.leaves(marked).items()}
        except Exception:  # what is wrong here is told where it is made of values
            return None

    def as_loaded(self) -> Mapping[str, Array]:
        """What was loaded last, under torch's names, each array made when it is asked for. Only of a candidate that `keeps_all`."""
        return MadeWhenAsked({name: partial(leaf.to_torch, self.loaded[name]) for name, leaf in self._leaves.items()})

    def origins(self) -> dict[int, tuple[str, Sequence[int]]]:
        """By the ids of the arrays that hold what was loaded last as it was given: the name in the state, and the order of its axes that gives the array."""
        origins: dict[int, tuple[str, Sequence[int]]] = {}
        for name, array in self.loaded.items():
            if id(array) in self._as_given:
                axes = self._leaves[name].axes
                origins[id(array)] = name, [int(axis) for axis in (range(array.ndim) if axes is None else np.argsort(axes))]
        return origins

    def shapes(self) -> dict[str, list[int]]:
        """State name → shape in torch's axis order."""
        return {name: list(leaf.shape) for name, leaf in self._leaves.items()}

    def kinds(self) -> dict[str, str]:
        """State name → `parameter` or `buffer`: which part the leaf of a name stands in, or where none does, what the state reads as with parameters
        filled with ones and other state with zeros."""
        graphdef, trainable, rest = self.parts("eval")
        values, structure = jax.tree.flatten((trainable, rest))
        if (leaf_numbers := self._numbers(graphdef, structure, values)) is not None:
            count = len(jax.tree.leaves(trainable))
            return {name: "parameter" if number < count and all(leaf.shape) else "buffer" for name, (number, leaf) in leaf_numbers.items()}
        filled = jax.tree.map(lambda leaf: jax.device_put(np.ones(leaf.shape, leaf.dtype)), trainable)
        zeros = jax.tree.map(lambda leaf: leaf if is_key(leaf) else jax.device_put(np.zeros(leaf.shape, leaf.dtype)), rest)
        state = self.state_of(graphdef, filled, zeros)
        return {name: "parameter" if value.size and bool((value == 1).all()) else "buffer" for name, value in state.items()}


def called(model: Any, method: str, args: Sequence[Any], kwargs: Mapping[str, Any], rngs: nnx.Rngs) -> Any:
    """What the method ("": the call) gives. One that takes `rngs`, where torch's draws by itself, is handed these. Raises its errors."""
    if methods.THEN in method:
        return methods.one_after_another(method, lambda step, given, named: called(model, step, given, named, rngs), *args, **kwargs)
    function = methods.bound(model, method)
    takes = method and "rngs" not in kwargs and "rngs" in _parameters(function)
    return function(*args, **kwargs, **({"rngs": rngs} if takes else {}))


def _parameters(function: Any) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


def described_state(model: Any) -> dict[str, list[Any]]:
    """Torch name → shape in torch's axis order and dtype, of a module whose leaves may be shapes alone."""
    return {name: [list(leaf.shape), str(leaf.variable.get_value().dtype)] for name, leaf in weights.leaves(model).items()}


def _at(modules: Mapping[str, Any], path: str) -> Any:
    """What a module of these holds under a dotted path; None where it holds nothing."""
    owner, _, name = path.rpartition(".")
    return vars(modules[owner]).get(name) if owner in modules else None


def modes(model: Any) -> list[Any]:
    """The mode flags of each submodule."""
    return [[getattr(part, name, None) for name in ("deterministic", "use_running_average")] for _, part in nnx.iter_modules(model)]


def make_namespace(module: Any, texts: Mapping[str, Any], tensors: Path | None, exact: bool) -> dict[str, Any]:
    """The namespace in which the example's texts are evaluated. Raises the errors of the setup."""
    namespace = {**vars(module), "nnx": nnx, "jax": jax, "jnp": jnp, "_tensors": _tensors(tensors, exact)}
    bring(texts["init"], texts["setup"])
    seed_python()
    exec(compile(texts["setup"], "<setup of the example>", "exec"), namespace)
    return namespace


def _tensors(path: Path | None, exact: bool) -> dict[str, Any]:
    if path is None:
        return {}
    from safetensors.numpy import load_file

    # `safetensors.flax` copies each array by a program, which is compiled for each shape.
    stored = load_file(path)
    return {
        name: jax.device_put(value.astype(np.float64) if exact and jnp.issubdtype(value.dtype, jnp.floating) else value)
        for name, value in stored.items()
    }
