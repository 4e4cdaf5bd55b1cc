"""One example of the candidate: constructed, loaded with given states, run as a compiled program. Used inside the sandbox."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.interpreters import partial_eval

from migrate_agent.tools import weights
from migrate_agent.tools.record.evaluate import seed_python
from migrate_agent.tools.verify import codec, host_draws
from migrate_agent.tools.verify.configurations import changed
from migrate_agent.tools.verify.jax_again import Again, Keys
from migrate_agent.tools.verify.jax_errors import CONCRETISATION
from migrate_agent.tools.verify.jax_modes import Draws, tracers_as_data
from migrate_agent.tools.verify.sampling import Array
from migrate_agent.tools.verify.streams import USUAL, Drawing, Stream
from migrate_agent.tools.verify.xla_flags import quick
from migrate_agent.tools.weights import Leaf


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
    """As `split`, without what the model has noted in `nnx.Intermediate`s: by NNX's convention that is no state. Takes them out of the model."""
    parts: Any = nnx.split(model, nnx.Intermediate, is_trainable, ...)
    if not len(parts[1]):
        return parts[0], parts[2], parts[3]
    nnx.pop(model, nnx.Intermediate)
    return split(model)


def sets_modes_alone(model: Any) -> bool:
    """Whether `train` and `eval` are NNX's own and meet no property of a class: then they set flags, and nothing else."""
    own = all(getattr(type(model), name) is getattr(nnx.Module, name) for name in ("train", "eval", "set_attributes"))
    flags = ("deterministic", "use_running_average")
    return own and not any(hasattr(getattr(type(module), flag, None), "__set__") for _, module in nnx.iter_modules(model) for flag in flags)


def keeps_tracers(graphdef: Any) -> bool:
    """Whether a module constructed under `jit` holds tracers where arrays would be if it were constructed eagerly."""
    values = [getattr(attribute, "value", None) for _, attribute in graphdef.attributes]
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(values))


class Candidate:
    """The candidate's module of one example. Raises what import, setup and constructor raise."""

    copies = 1
    """How many times over each draw counts that is seen while tracing happens."""
    initialises = True
    """Whether fresh initial values are compared."""
    omitted: Sequence[str] = ()
    """State names of the original that this one does not keep."""

    def __init__(self, module: str, name: str, texts: Mapping[str, Any], tensors: Path | None, *, exact: bool) -> None:
        found: Any = importlib.import_module(module)
        self.namespace = make_namespace(found, texts, tensors, exact)
        self.cls = found
        for part in name.split("."):
            self.cls = getattr(self.cls, part)
        if not (isinstance(self.cls, type) and issubclass(self.cls, nnx.Module)):
            raise TypeError(f"{name} is no flax.nnx.Module")
        self.unit = changed(self.cls, texts.get("changes") or {})
        self.init = compile(f"_unit({texts['init']}\n)", "<init of the example>", "eval")
        self.exact = exact
        self.model = self._build()
        self.constructed = modes(self.model)

    def fresh(self, rngs: nnx.Rngs) -> Any:
        """A newly constructed module."""
        seed_python()
        return eval(self.init, {**self.namespace, "_unit": self.unit, "rngs": rngs})

    def _build(self) -> Any:
        """The module with parameters of zero: their initial values are never compiled, since a state is loaded over them anyway."""
        try:
            graphdef, trainable, rest = self._staged()
            if keeps_tracers(graphdef):
                raise jax.errors.UnexpectedTracerError("a static attribute holds a tracer")
        except (*CONCRETISATION, jax.errors.UnexpectedTracerError):
            graphdef, trainable, rest = split(self.fresh(nnx.Rngs(0)))
        zeros = jax.tree.map(lambda leaf: jax.device_put(np.zeros(leaf.shape, self._widened(leaf.dtype))), trainable)
        return nnx.merge(graphdef, zeros, jax.tree.map(self._widen, rest))

    def _staged(self) -> tuple[Any, Any, Any]:
        """The parts of a new module, constructed once under a trace: of the parameters only their shapes, the rest computed."""
        made: list[Any] = []

        def construct() -> Any:
            graphdef, trainable, rest = split(self.fresh(nnx.Rngs(0)))
            made[:] = [graphdef]
            return trainable, rest

        with tracers_as_data():
            program, (trainable, rest) = jax.make_jaxpr(construct, return_shape=True)()
        count = len(jax.tree.leaves(trainable))
        wanted = [index >= count for index in range(len(program.jaxpr.outvars))]
        jaxpr, _ = partial_eval.dce_jaxpr(program.jaxpr, wanted)
        values = jax.jit(lambda: jax.core.eval_jaxpr(jaxpr, program.consts), compiler_options=quick())() if any(wanted) else []
        return made[0], trainable, jax.tree.unflatten(jax.tree.structure(rest), values)

    def _widened(self, dtype: Any) -> Any:
        if not self.exact or not jnp.issubdtype(dtype, jnp.inexact):
            return dtype
        return np.complex128 if jnp.issubdtype(dtype, jnp.complexfloating) else np.float64

    def _widen(self, leaf: Any) -> Any:
        return leaf if is_key(leaf) else jax.device_put(np.asarray(leaf).astype(self._widened(leaf.dtype)))

    def load(self, state: Mapping[str, Array]) -> None:
        """Put a torch state into the module. Raises what `load_state_dict` raises."""
        weights.load_leaves(self._leaves, dict(state))

    def state(self, model: Any = None) -> dict[str, Array]:
        """The module's state (or another's of the same class) under torch's names and in torch's layout."""
        if model is not None:
            return weights.state_dict(model)
        return {name: leaf.to_torch(leaf.variable.get_value()) for name, leaf in self._leaves.items()}

    def weights(self) -> list[dict[str, Any]]:
        """The weight map as data: torch's name, the variable's path, the shape in torch, the order of axes."""
        paths = weights.variable_paths(self.model)
        return [
            {"name": name, "path": paths[name], "shape": list(leaf.shape), "axes": None if leaf.axes is None else list(leaf.axes)}
            for name, leaf in self._leaves.items()
        ]

    @cached_property
    def _leaves(self) -> dict[str, Leaf]:
        """What `load` fills."""
        return weights.leaves(self.model)

    def parts(self, mode: str) -> tuple[Any, Any, Any]:
        """Graph definition, trainable parameters and the rest, in `train` or `eval` mode. The states hold the model's own variables."""
        if mode not in self._parts or not self._sets_modes_alone:
            self.model.train() if mode == "train" else self.model.eval()
            self._parts[mode] = split(self.model)
        return self._parts[mode]

    @cached_property
    def _parts(self) -> dict[str, tuple[Any, Any, Any]]:
        return {}

    @cached_property
    def _sets_modes_alone(self) -> bool:
        return sets_modes_alone(self.model)

    def state_of(self, graphdef: Any, *states: Any) -> dict[str, Array]:
        """These leaves under torch's names and in torch's layout."""
        values, structure = jax.tree.flatten(states)
        key = (id(graphdef), structure)
        if key not in self._places:
            self._places[key] = graphdef, self._located(graphdef, structure, values)
        places = self._places[key][1]
        if places is None:
            return {name: np.asarray(value) for name, value in self.state(nnx.merge(graphdef, *states, copy=True)).items()}
        return {name: leaf.to_torch(values[number]) for name, (number, leaf) in places.items()}

    @cached_property
    def _places(self) -> dict[Any, tuple[Any, dict[str, tuple[int, Leaf]] | None]]:
        """By graph definition (kept, since its id is the key) and structure: where each name's leaf is."""
        return {}

    def _located(self, graphdef: Any, structure: Any, values: Sequence[Any]) -> dict[str, tuple[int, Leaf]] | None:
        """The number of the leaf behind each name; None where the model has to be made, since its variables give other values than they hold."""
        mark: Any = jax.ShapeDtypeStruct
        marks = [mark(value.shape, value.dtype) for value in values]
        numbers = {id(each): number for number, each in enumerate(marks)}
        try:
            made = nnx.merge(graphdef, *jax.tree.unflatten(structure, marks), copy=True)
            return {name: (numbers[id(leaf.variable.get_value())], leaf) for name, leaf in weights.leaves(made).items()}
        except Exception:  # what is wrong here is told where it is made of values
            return None

    def kinds(self) -> dict[str, str]:
        """`parameter` or `buffer` by state name: parameters are filled with ones, all else with zeros, and the state is read back."""
        graphdef, trainable, rest = self.parts("eval")
        ones = jax.tree.map(lambda leaf: jax.device_put(np.ones(leaf.shape, leaf.dtype)), trainable)
        zeros = jax.tree.map(lambda leaf: leaf if is_key(leaf) else jax.device_put(np.zeros(leaf.shape, leaf.dtype)), rest)
        state = self.state_of(graphdef, ones, zeros)
        return {name: "parameter" if value.size and bool((value == 1).all()) else "buffer" for name, value in state.items()}


def modes(model: Any) -> list[Any]:
    """What says of each part of a module whether it trains."""
    return [[getattr(part, name, None) for name in ("deterministic", "use_running_average")] for _, part in nnx.iter_modules(model)]


def make_namespace(module: Any, texts: Mapping[str, Any], tensors: Path | None, exact: bool) -> dict[str, Any]:
    """The names in which the example's texts are evaluated. Raises what the setup raises."""
    namespace = {**vars(module), "nnx": nnx, "jax": jax, "jnp": jnp, "_tensors": _tensors(tensors, exact)}
    seed_python()
    exec(compile(texts["setup"], "<setup of the example>", "exec"), namespace)
    return namespace


def _tensors(path: Path | None, exact: bool) -> dict[str, Any]:
    if path is None:
        return {}
    from safetensors.flax import load_file

    found = load_file(path)
    return {
        name: value.astype(jnp.float64) if exact and jnp.issubdtype(value.dtype, jnp.floating) else value for name, value in found.items()
    }


@dataclass
class Traced:
    """What tracing a program showed: output tree, dtypes, draws, and the graph definition after the call."""

    tree: codec.Tree = field(default_factory=dict)
    draws: list[list[object]] = field(default_factory=list)
    graphdef: Any = None
    rearranged: bool = False
    """Whether the call changed the containers among its arguments."""


class Program:
    """One compiled function: forward, and backward where `gradient`, of a module in one mode on one argument tree."""

    def __init__(
        self,
        graphdef: Any,
        tree: codec.Tree,
        renamed: Mapping[str, str],
        draws: Draws,
        *,
        gradient: bool,
        paired: bool,
        drawing: Drawing = USUAL,
    ) -> None:
        self.graphdef, self.tree, self.renamed, self.draws = graphdef, tree, renamed, draws
        self.gradient, self.paired, self.drawing = gradient, paired, drawing
        self.traced = Traced()
        self.rearranged = False
        self.again = False  # whether the backward pass draws, as one that the candidate defines may
        self._known: dict[Any, Traced] = {}
        self._ahead: dict[Any, Future[Any]] = {}
        self.jitted = jax.jit(self.candidate_step)

    def __call__(self, trainable: Any, rest: Any, leaves: Sequence[Any], targets: Mapping[str, Any], kept: Any = None) -> Any:
        """Runs it; `self.traced` describes the program that ran. `kept`, where given, says which masks of dropout are of ones."""
        arguments = (trainable, rest, list(leaves), dict(targets), kept)
        compiled = self._ahead.get(_avals(arguments)) if self._ahead else None
        result = (compiled.result() if compiled else self.jitted)(*arguments)
        if self.again and (keys := self._keys(*arguments)) is not None:
            result = self.jitted(*arguments, keys)
        self.traced = self._known.setdefault(_shapes(leaves), self.traced)
        return result

    def compile_ahead(
        self, pool: Executor, trainable: Any, rest: Any, leaves: Sequence[Any], targets: Mapping[str, Any], kept: Any
    ) -> None:
        """Trace it here for such arguments, and have a thread of the pool compile it. Raises what tracing raises."""
        arguments = (trainable, rest, list(leaves), dict(targets), kept)
        key = _avals(arguments)
        if key not in self._ahead:
            lowered = self.jitted.lower(*arguments)
            self._known.setdefault(_shapes(leaves), self.traced)
            self._ahead[key] = pool.submit(lowered.compile, quick())

    def _keys(self, trainable: Any, rest: Any, leaves: Any, targets: Any, kept: Any) -> Keys | None:
        """The keys that the forward pass draws with."""

        def forward(trainable: Any, rest: Any, leaves: Any) -> None:
            self.call(nnx.merge(self.graphdef, trainable, rest, copy=True), leaves, kept)

        with self.draws.hearing() as heard:
            jax.jit(forward)(trainable, rest, leaves)
        return heard.keys()

    def candidate_step(
        self, trainable: Any, rest: Any, leaves: list[Any], targets: dict[str, Any], kept: Any = None, keys: Keys | None = None
    ) -> Any:
        """(loss, outputs, rest, gradients of parameters, gradients of float inputs, what the call wrote to parameters by number of the leaf).
        `keys`, where given, are those that the forward pass draws with. jax's name for the function appears in compile events.
        """
        floats = {str(index): leaf for index, leaf in enumerate(leaves) if jnp.issubdtype(leaf.dtype, jnp.inexact)}
        if not self.gradient:
            value, (outputs, after, written), _ = self._objective(trainable, floats, rest, leaves, targets, kept)
            return value, outputs, after, None, None, written
        backward = Again(0, self.drawing, keys=keys)

        def objective(*arguments: Any) -> Any:
            value, found, backward.forward = self._objective(*arguments)
            return value, found

        function = jax.value_and_grad(objective, argnums=(0, 1), has_aux=True)
        with self.draws.paired(backward) if self.paired else nullcontext():  # a backward pass of the candidate's own may draw masks again
            (value, (outputs, after, written)), (of_parameters, of_inputs) = function(trainable, floats, rest, leaves, targets, kept)
        self.again |= bool(backward.draws)
        return value, outputs, after, of_parameters, of_inputs, written

    def _objective(self, trainable: Any, floats: dict[str, Any], rest: Any, leaves: list[Any], targets: dict[str, Any], kept: Any) -> Any:
        model = nnx.merge(self.graphdef, trainable, rest, copy=True)
        result, stream = self.call(model, [floats.get(str(index), leaf) for index, leaf in enumerate(leaves)], kept)
        outputs: list[Any] = []
        tree = codec.encode(result, outputs, is_leaf)
        outputs = [value.get_value() if isinstance(value, nnx.Variable) else jnp.asarray(value) for value in outputs]
        graphdef, kept, after = split_kept(model)
        self.traced = Traced(tree, stream.log(), graphdef, self.rearranged)
        return loss(outputs, targets), (outputs, after, _written(trainable, kept)), stream

    def call(self, model: Any, leaves: Sequence[Any], kept: Any = None) -> tuple[Any, Stream]:
        """What the module returns for these leaves, and the stream that was drawn from."""
        args, kwargs = codec.decode(self.tree, leaves, self.renamed)
        stream = Stream(0, self.drawing, kept)
        owners = [module for _, module in nnx.iter_modules(model)] if isinstance(model, nnx.Module) else []
        with self.draws.paired(stream) if self.paired else nullcontext(), host_draws.noticed(stream, owners):
            result = model(*args, **kwargs)
        self.rearranged = codec.rearranged(self.tree, (args, kwargs), is_leaf)
        return result, stream


def _shapes(leaves: Sequence[Any]) -> tuple[Any, ...]:
    return tuple((leaf.shape, str(leaf.dtype)) for leaf in leaves)


def _avals(arguments: Any) -> tuple[Any, ...]:
    """What a compiled program is bound to: structure, shapes and types of its arguments."""
    values, structure = jax.tree.flatten(arguments)
    return (structure, *(jax.typeof(value) for value in values))


def _written(before: Any, after: Any) -> dict[str, Any]:
    """The leaves that are others than before, by number."""
    old, new = jax.tree.flatten_with_path(before)[0], jax.tree.flatten_with_path(after)[0]
    if [path for path, _ in old] != [path for path, _ in new]:
        return {}
    return {str(index): new[index][1] for index, (_, value) in enumerate(old) if new[index][1] is not value}


def moved(trainable: Any, written: Mapping[str, Any]) -> Any:
    """The parameters after a call that wrote to some of them."""
    values, structure = jax.tree.flatten(trainable)
    return jax.tree.unflatten(structure, [written.get(str(index), value) for index, value in enumerate(values)])


def loss(outputs: Sequence[Any], targets: Mapping[str, Any]) -> Any:
    """The same as on torch's side: sum over the outputs of the mean squared distance to their targets, where finite."""
    total = jnp.zeros(())
    for index, target in targets.items():
        if int(index) >= len(outputs) or outputs[int(index)].shape != target.shape:
            continue  # the output tree is compared elsewhere
        output = outputs[int(index)]
        distance = jnp.where(jnp.isfinite(output), output - target.astype(output.dtype), 0)
        total = total + jnp.mean(jnp.real(distance * jnp.conj(distance)))
    return total


class Programs:
    """The programs of one candidate, made once each."""

    def __init__(self, renamed: Mapping[str, str], draws: Draws) -> None:
        self.renamed, self.draws = renamed, draws
        self._made: dict[Any, Program] = {}

    def get(
        self, candidate: Candidate, mode: str, tree: codec.Tree, *, gradient: bool, paired: bool = True, drawing: Drawing = USUAL
    ) -> Program:
        """The program for this candidate, mode and argument tree."""
        key = (id(candidate), mode, json.dumps(tree), gradient, paired, drawing)
        if key not in self._made:
            self._made[key] = Program(
                candidate.parts(mode)[0], tree, self.renamed, self.draws, gradient=gradient, paired=paired, drawing=drawing
            )
        return self._made[key]
