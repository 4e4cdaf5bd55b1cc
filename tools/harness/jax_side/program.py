"""The compiled programs of a candidate: forward, and backward where gradients are compared. Used inside the sandbox."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from migrate_agent.tools.harness.common import choices, host_random, trees
from migrate_agent.tools.harness.common.conditions import AS_MADE, Conditions
from migrate_agent.tools.harness.common.kept_objects import kept
from migrate_agent.tools.harness.common.random_streams import NO_CUSTOMS, REPEATED, USUAL, Customs, Drawing, Stream
from migrate_agent.tools.harness.common.xla_flags import quick
from migrate_agent.tools.harness.jax_side.backward_draws import Again, Heard, Keys
from migrate_agent.tools.harness.jax_side.comparisons import compares, quick_for
from migrate_agent.tools.harness.jax_side.convolutions import spreading
from migrate_agent.tools.harness.jax_side.held_values import held_arrays
from migrate_agent.tools.harness.jax_side.host_arrays import given
from migrate_agent.tools.harness.jax_side.jaxprs import narrow_float, narrow_kinds
from migrate_agent.tools.harness.jax_side.module import Candidate, called, is_leaf, module_path, split_kept
from migrate_agent.tools.harness.jax_side.precision import Draws, configured, current_trace

CHOSEN = "chosen"
"""Beside the numbers of leaves, the key under which a program gives the sides that data chose."""

HELD = "left/"
"""In front of the path of a plain attribute, there too, the key of what it holds after the call."""


class ChoicesHeard:
    """While a module is called: for each call by which data chooses, whether its condition held somewhere, and everywhere.

    Only of calls of the function that is traced itself: the values of an inner one (the body of a loop) cannot leave it.
    """

    def __init__(self, listening: bool) -> None:
        self.listening = listening
        self.numbers: list[int] = []
        self.sides: list[tuple[Any, Any]] = []

    def __enter__(self) -> None:
        self._trace = current_trace()
        choices.LISTENER.hear = self._hear if self.listening else None

    def __exit__(self, *_: object) -> None:
        choices.LISTENER.hear = None

    def _hear(self, number: int, condition: Any) -> None:
        if isinstance(condition, (jax.Array, nnx.Variable)) and current_trace() is self._trace:
            holds = jnp.asarray(condition) != 0
            self.numbers.append(number)
            self.sides.append((holds.any(), holds.all()))


@dataclass
class Traced:
    """Facts from tracing a program: output tree, draws, and the graph definition after the call."""

    tree: trees.Tree = field(default_factory=dict)
    draws: list[list[object]] = field(default_factory=list)
    crossed: list[list[object]] = field(default_factory=list)
    graphdef: Any = None
    rearranged: bool = False
    """Whether the call changed the containers among its arguments."""
    branching: Stream | None = None
    """The stream, where some of its draws stand in branches."""
    choices: tuple[int, ...] = ()
    """The numbers of the calls by which data chose."""


class OnHost:
    """A step that runs in Python, where a compiled one would stand: its result is NumPy's."""

    def __init__(self, step: Callable[..., Any]) -> None:
        self.step = step

    def __call__(self, *arguments: Any) -> Any:
        return self.step(*arguments)

    def trace(self, *arguments: Any) -> None:
        """Raise what a call raises."""
        self.step(*arguments)


class Prior(NamedTuple):
    """A method of the module that is called before the call itself, the tree of its arguments, and the number of their arrays, which stand in front."""

    method: str
    tree: trees.Tree
    arrays: int


class Program:
    """One compiled function: forward, and backward where `gradient`, of a module in one mode on one argument tree."""

    def __init__(
        self,
        graphdef: Any,
        tree: trees.Tree,
        renamed: Mapping[str, str],
        draws: Draws,
        *,
        gradient: bool,
        paired: bool,
        drawing: Drawing = USUAL,
        customs: Customs = NO_CUSTOMS,
        method: str = "",
        second: bool = False,
        changes_objects: bool = False,
        prior: Prior | None = None,
        held_paths: Sequence[str] = (),
        on_host: bool = False,
    ) -> None:
        self.held_paths, self.on_host = held_paths, on_host
        self.method, self.second, self.changes_objects, self.prior = method, second, changes_objects, prior
        self.graphdef, self.tree, self.renamed, self.draws = graphdef, tree, renamed, draws
        self.gradient, self.paired, self.drawing, self.customs = gradient, paired, drawing, customs
        self._host_leaves = _host_leaves(tree, prior)
        self.traced = Traced()
        self.rearranged = False
        self.repeats = False
        """Whether two steps of a loop drew the same numbers in the last run."""
        self.listening = False
        """Whether the sides that data chooses are results of the program as well."""
        self._heard = ChoicesHeard(False)
        self.again = False  # whether the backward pass draws, as one that the candidate defines may
        self._known: dict[Any, Traced] = {}
        self._telling: dict[Any, tuple[Heard, Any]] = {}
        self._ahead: dict[Any, Future[Any]] = {}
        self._left: set[Any] = set()
        self.jitted: Any = OnHost(self.candidate_step) if on_host else jax.jit(self.candidate_step)

    @property
    def restructured(self) -> bool:
        """Whether the last run changed the module's structure: its attributes that are no arrays."""
        try:
            return bool(self.traced.graphdef != self.graphdef)
        except Exception:  # safe: the code of the candidate compares its own values
            return False

    def of_structure(self, graphdef: Any) -> Program:
        """The same call of a module of another structure."""
        options: dict[str, Any] = {"gradient": self.gradient, "paired": self.paired, "drawing": self.drawing, "customs": self.customs}
        options |= {
            "method": self.method,
            "second": self.second,
            "changes_objects": self.changes_objects,
            "prior": self.prior,
            "held_paths": self.held_paths,
            "on_host": self.on_host,
        }
        again = Program(graphdef, self.tree, self.renamed, self.draws, **options)
        again.listening = self.listening
        return again

    def __call__(self, trainable: Any, rest: Any, leaves: Sequence[Any], targets: Mapping[str, Any], mask_ones: Any = None) -> Any:
        """Run the program; `self.traced` describes it then. `mask_ones`, bool [masks, 1 + AXES], says which masks of dropout are ones."""
        arguments = (trainable, rest, list(leaves), dict(targets), mask_ones)
        with spreading(not self.gradient):
            try:
                result = self._compiled(arguments)(*arguments)
            except TypeError:  # one that an earlier call left behind came in as an argument more: jit tells what it is
                result = self.jitted(*arguments)
        if self.again and (keys := self._keys(*arguments)) is not None:
            result = self.jitted(*arguments, keys)
        if not self.on_host:  # what is compiled was traced by the first call alone
            self.traced = self._known.setdefault(_shapes(leaves), self.traced)
        self.repeats = self.draws.loop_keys.take_repeated()
        return result

    def _compiled(self, arguments: tuple[Any, ...]) -> Callable[..., Any]:
        """The program compiled ahead for these arguments, or compiled now where they need optimisations that jit would omit; else jit itself."""
        if self.on_host:
            return OnHost(self.candidate_step)
        key = _avals(arguments)
        if key not in self._ahead and key not in self._left and configured("jax_disable_most_optimizations"):
            # Traced once for each kind of arguments: `compares` costs a walk of the whole program.
            self._left.add(key)
            traced = self.jitted.trace(*arguments)
            if compares(traced.jaxpr):
                self._ahead[key] = Future()
                self._ahead[key].set_result(traced.lower().compile(quick_for(traced.jaxpr)))
        compiled: Callable[..., Any] = self._ahead[key].result() if key in self._ahead else self.jitted
        return compiled

    def compile_ahead(
        self, pool: Executor, trainable: Any, rest: Any, leaves: Sequence[Any], targets: Mapping[str, Any], mask_ones: Any
    ) -> None:
        """Trace the program for these arguments, and compile it in a thread of the pool; nothing for one in Python. Raises the errors of tracing."""
        arguments = (trainable, rest, list(leaves), dict(targets), mask_ones)
        if self.on_host:
            return
        key = _avals(arguments)
        if key not in self._ahead:
            traced = self.jitted.trace(*arguments)
            with spreading(not self.gradient):
                lowered, options = traced.lower(), quick_for(traced.jaxpr)
            self._known.setdefault(_shapes(leaves), self.traced)
            self._ahead[key] = pool.submit(lowered.compile, options)

    def narrow_kinds(
        self, trainable: Any, rest: Any, leaves: Sequence[Any], targets: Mapping[str, Any], mask_ones: Any = None
    ) -> list[str]:
        """The kinds of operators that the program computes in less than float32, as far as it is compiled."""
        if self.on_host:
            return []
        return narrow_kinds(self.jitted.trace(trainable, rest, list(leaves), dict(targets), mask_ones).jaxpr.jaxpr)

    def narrow(self, trainable: Any, rest: Any, leaves: Sequence[Any], targets: Mapping[str, Any], mask_ones: Any = None) -> str:
        """The narrowest float dtype below float32 that the program computes with, backward pass included; "" where there is none, or where it is
        not compiled."""
        if self.on_host:
            return ""
        return narrow_float(self.jitted.trace(trainable, rest, list(leaves), dict(targets), mask_ones).jaxpr.jaxpr)

    def executed(self, trainable: Any, rest: Any, leaves: Sequence[Any], mask_ones: Any = None) -> list[list[object]]:
        """The draws of a run of the program that `traced` describes, without those in branches that the run does not take.

        One of kind `REPEATED` stands for steps of a loop that drew the same numbers.
        """
        if self.repeats:
            return [*self.traced.draws, [REPEATED, [], None]]
        if self.traced.branching is None:
            return self.traced.draws
        keys = self._keys(trainable, rest, leaves, {}, mask_ones)
        return self.traced.branching.executed(set() if keys is None else {int(number) for number in keys.number})

    def _keys(self, trainable: Any, rest: Any, leaves: Any, targets: Any, mask_ones: Any) -> Keys | None:
        """The keys of the forward pass's draws, found by running it once more; None where they are not known."""

        def forward(trainable: Any, rest: Any, leaves: Any, mask_ones: Any) -> None:
            self.call(nnx.merge(self.graphdef, trainable, rest, copy=True), leaves, mask_ones)

        shapes = _avals((trainable, rest, leaves, mask_ones))
        if shapes not in self._telling:
            heard = Heard()
            with self.draws.hearing(heard):
                self._telling[shapes] = heard, jax.jit(forward).lower(trainable, rest, leaves, mask_ones).compile(quick())
        heard, run_forward = self._telling[shapes]
        run_forward(trainable, rest, leaves, mask_ones)
        return heard.keys()

    def candidate_step(
        self, trainable: Any, rest: Any, leaves: list[Any], targets: dict[str, Any], mask_ones: Any = None, keys: Keys | None = None
    ) -> Any:
        """(loss, outputs, rest, gradients of parameters, gradients of float inputs but NumPy's, what the call wrote to parameters by number of the leaf).
        `keys`, where given, are those that the forward pass draws with. jax's name for the function appears in compile events.
        """
        moving = [(str(index), leaf) for index, leaf in enumerate(leaves) if index not in self._host_leaves]
        floats = {index: leaf for index, leaf in moving if jnp.issubdtype(leaf.dtype, jnp.inexact)}
        if not self.gradient:
            value, (outputs, after, written), _ = self._objective(trainable, floats, rest, leaves, targets, mask_ones)
            return value, outputs, after, None, None, written
        backward = Again(0, self.drawing, customs=self.customs, keys=keys)

        def objective(*arguments: Any) -> Any:
            value, auxiliary, backward.forward = self._objective(*arguments)
            return value, auxiliary

        function = jax.value_and_grad(
            squared_gradients(objective, bool(floats)) if self.second else objective, argnums=(0, 1), has_aux=True
        )
        with self.draws.paired(backward) if self.paired else nullcontext():  # a backward pass of the candidate's own may draw masks again
            (value, (outputs, after, written)), (of_parameters, of_inputs) = function(trainable, floats, rest, leaves, targets, mask_ones)
        self.again |= bool(backward.draws)
        return value, outputs, after, of_parameters, of_inputs, written

    def _objective(
        self, trainable: Any, floats: dict[str, Any], rest: Any, leaves: list[Any], targets: dict[str, Any], mask_ones: Any
    ) -> Any:
        model = nnx.merge(self.graphdef, trainable, rest, copy=True)
        result, stream = self.call(model, [floats.get(str(index), leaf) for index, leaf in enumerate(leaves)], mask_ones)
        outputs: list[Any] = []
        tree = trees.encode(result, outputs, is_leaf)
        outputs = [self._array(value) for value in outputs]
        attributes = self._held(model) if self.held_paths else {}
        graphdef, parameters, after = split_kept(model)
        written = _written(trainable, parameters) | attributes | ({CHOSEN: self._heard.sides} if self._heard.sides else {})
        branching = stream if stream.optional else None
        self.traced = Traced(tree, stream.log(), stream.crossed, graphdef, self.rearranged, branching, tuple(self._heard.numbers))
        return loss(outputs, targets), (outputs, after, written), stream

    def _array(self, value: Any) -> Any:
        """An output as an array; NumPy's keeps its dtype where no compiler sees it."""
        if isinstance(value, nnx.Variable):
            return value.get_value()
        return np.asarray(value) if self.on_host and isinstance(value, (np.ndarray, np.generic)) else jnp.asarray(value)

    def _held(self, model: Any) -> dict[str, Any]:
        """What the model holds in plain attributes after the call: a result of the program, since its structure keeps no arrays."""
        modules = {module_path(path): module for path, module in nnx.iter_modules(model)}
        return {f"{HELD}{path}": value for path, value in held_arrays(modules, self.held_paths).items()}

    def call(self, model: Any, leaves: Sequence[Any], mask_ones: Any = None) -> tuple[Any, Stream]:
        """The module's output for these argument leaves, and the stream of its draws."""
        owners = [module for _, module in nnx.iter_modules(model)] if isinstance(model, nnx.Module) else []
        if self.prior is None:
            return self._call(model, leaves, mask_ones, owners)
        # All calls share the plain objects that the module holds, which the other method may change.
        with kept(owners, _is_copied):
            self._call_before(model, self.prior, leaves)
            return self._call(model, leaves[self.prior.arrays :], mask_ones, owners)

    def _call(self, model: Any, leaves: Sequence[Any], mask_ones: Any, owners: Sequence[Any]) -> tuple[Any, Stream]:
        args, kwargs = trees.decode(self.tree, given(leaves), self.renamed)
        stream = Stream(0, self.drawing, mask_ones, customs=self.customs)
        with self.draws.paired(stream) if self.paired else nullcontext(), host_random.noticed(stream, owners):
            self._heard = ChoicesHeard(self.listening)
            with self._heard, kept(owners, _is_copied) if self.changes_objects else nullcontext():
                result = called(model, self.method, args, kwargs, nnx.Rngs(0)) if self.method else model(*args, **kwargs)
        self.rearranged = trees.rearranged(self.tree, (args, kwargs), is_leaf)
        return trees.with_objects(result, (args, kwargs)), stream

    def _call_before(self, model: Any, prior: Prior, leaves: Sequence[Any]) -> None:
        """Call the other method for what it leaves in the module, with draws of its own."""
        args, kwargs = trees.decode(prior.tree, given(leaves[: prior.arrays]), self.renamed)
        with self.draws.paired(Stream(0, self.drawing, customs=self.customs)) if self.paired else nullcontext():
            called(model, prior.method, args, kwargs, nnx.Rngs(0))


def _host_leaves(tree: trees.Tree, prior: Prior | None) -> frozenset[int]:
    """The numbers of the leaves of a call that are NumPy's, behind those of the method that is called before."""
    of_prior, earlier = (trees.host_leaves(prior.tree), prior.arrays) if prior is not None else (frozenset[int](), 0)
    return of_prior | {earlier + number for number in trees.host_leaves(tree)}


def _is_copied(value: Any) -> bool:
    """Whether `nnx.merge` copies a value that a module holds."""
    return isinstance(value, (nnx.Pytree, nnx.Variable, jax.Array))


def squared_gradients(objective: Callable[..., Any], by_inputs: bool) -> Callable[..., Any]:
    """Half the squared length of the objective's gradient by the inputs, or by the parameters; as torch's side has it."""
    differentiate = jax.grad(objective, argnums=1 if by_inputs else 0, has_aux=True)

    def function(*arguments: Any) -> Any:
        gradients, auxiliary = differentiate(*arguments)
        return sum((0.5 * jnp.sum(gradient**2) for gradient in jax.tree.leaves(gradients)), jnp.zeros(())), auxiliary

    return function


def _shapes(leaves: Sequence[Any]) -> tuple[Any, ...]:
    return tuple((leaf.shape, str(leaf.dtype)) for leaf in leaves)


def _avals(arguments: Any) -> tuple[Any, ...]:
    """The key of a compiled program: structure, shapes and types of its arguments."""
    values, structure = jax.tree.flatten(arguments)
    return (structure, *(jax.typeof(value) for value in values))


def _written(before: Any, after: Any) -> dict[str, Any]:
    """Index → leaf, of the leaves that the call replaced."""
    old, new = jax.tree.flatten_with_path(before)[0], jax.tree.flatten_with_path(after)[0]
    # The call added or removed parameters: the comparison of structures reports that.
    if [path for path, _ in old] != [path for path, _ in new]:
        return {}
    return {str(index): new[index][1] for index, (_, value) in enumerate(old) if new[index][1] is not value}


def moved(trainable: Any, written: Mapping[str, Any]) -> Any:
    """The parameters with the leaves that a call wrote."""
    values, structure = jax.tree.flatten(trainable)
    return jax.tree.unflatten(structure, [written.get(str(index), value) for index, value in enumerate(values)])


def loss(outputs: Sequence[Any], targets: Mapping[str, Any]) -> Any:
    """The loss of torch's side: the sum over the outputs of the mean squared distance to their targets, where finite (scalar)."""
    total = jnp.zeros(())
    for index, target in targets.items():
        if int(index) >= len(outputs) or outputs[int(index)].shape != target.shape:
            continue  # the output tree is compared elsewhere
        output = outputs[int(index)]
        distance = jnp.where(jnp.isfinite(output), output - target.astype(output.dtype), 0)
        total = total + jnp.mean(jnp.real(distance * jnp.conj(distance)))
    return total


class Programs:
    """The programs of one candidate, each made once."""

    def __init__(self, renamed: Mapping[str, str], draws: Draws) -> None:
        self.renamed, self.draws = renamed, draws
        self.listening = False
        """Whether programs tell which sides data chooses."""
        self._made: dict[Any, Program] = {}

    def get(
        self,
        candidate: Candidate,
        mode: str,
        tree: trees.Tree,
        *,
        gradient: bool,
        paired: bool = True,
        drawing: Drawing = USUAL,
        conditions: Conditions = AS_MADE,
        second: bool = False,
        prior: Prior | None = None,
        on_host: bool = False,
    ) -> Program:
        """The program for this candidate, mode and argument tree."""
        key = (id(candidate), mode, json.dumps(tree), gradient, paired, drawing, conditions, second, json.dumps(prior), on_host)
        if key not in self._made:
            self._made[key] = Program(
                candidate.parts(mode, conditions)[0],
                tree,
                self.renamed,
                self.draws,
                gradient=gradient,
                paired=paired,
                drawing=drawing,
                customs=candidate.customs,
                method=candidate.method,
                second=second,
                changes_objects=candidate.changes_objects,
                prior=prior,
                held_paths=candidate.held,
                on_host=on_host,
            )
            self._made[key].listening = self.listening
        return self._made[key]
