"""A unit's programs as functions of flat arguments: `forward` in evaluation mode, `train` with AdamW, `gradient` with SGD.

Used inside the sandbox.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import nnx

from migrate_agent.tools.harness.common import trees
from migrate_agent.tools.harness.jax_side.module import is_key, is_leaf, is_trainable
from migrate_agent.tools.portable.abstract import SHAPE, AbstractUnit, path_of, replace_float32

MODES = {"forward": "eval", "train": "train", "gradient": "train"}
RESULTS = {
    "forward": ("output",),
    "train": ("loss", "parameter", "optimiser", "state"),
    "gradient": ("loss", "output", "gradient", "parameter", "state"),
}
RATE = 1e-3


class Steps:
    """The programs of one unit for one shape of its inputs.

    Random keys travel as the integers that they are made of.
    """

    def __init__(self, unit: AbstractUnit, tree: trees.Tree, renamed: Mapping[str, str], leaves: Sequence[Any]) -> None:
        self.unit, self.tree, self.renamed = unit, tree, renamed
        self.leaves = [SHAPE(tuple(shape), replace_float32(jnp.dtype(dtype), unit.dtype)) for shape, dtype in leaves]
        self.optimiser = optax.adamw(RATE)
        self.results: dict[str, list[str]] = {}
        """The role of each flat result, in order, by program."""

    def program(self, name: str) -> Callable[..., Any]:
        """`forward`: outputs. `train`: loss, new parameters, optimiser's state and other state. `gradient`: SGD."""
        graphdef, _, rest = self.unit.parts(MODES[name])
        wrap, unwrap = _key_converters(rest)

        def objective(parameters: Any, rest: Any, leaves: Sequence[Any]) -> Any:
            # A copy: calling the module changes its variables, which must not leak out of the
            # trace.
            model = nnx.merge(graphdef, parameters, wrap(rest), copy=True)
            args, kwargs = trees.decode(self.tree, leaves, self.renamed)
            outputs: list[Any] = []
            trees.encode(model(*args, **kwargs), outputs, is_leaf)
            outputs = [value.get_value() if isinstance(value, nnx.Variable) else jnp.asarray(value) for value in outputs]
            nnx.pop(model, nnx.Intermediate)
            after: Any = nnx.split(model, is_trainable, ...)
            return loss(outputs), (outputs, unwrap(after[2]))

        def forward(parameters: Any, rest: Any, leaves: Sequence[Any]) -> Any:
            return objective(parameters, rest, leaves)[1][0]

        def train(parameters: Any, rest: Any, leaves: Sequence[Any], state: Any) -> Any:
            (value, (_, after)), gradients = jax.value_and_grad(objective, has_aux=True)(parameters, rest, leaves)
            updates, state = self.optimiser.update(gradients, state, parameters)
            return value, optax.apply_updates(parameters, updates), state, after

        def gradient(parameters: Any, rest: Any, leaves: Sequence[Any]) -> Any:
            (value, (outputs, after)), gradients = jax.value_and_grad(objective, has_aux=True)(parameters, rest, leaves)
            stepped = jax.tree.map(lambda parameter, change: parameter - RATE * change, parameters, gradients)
            return value, outputs, gradients, stepped, after

        programs: dict[str, Callable[..., Any]] = {"forward": forward, "train": train, "gradient": gradient}
        return programs[name]

    def argument_shapes(self, name: str) -> tuple[Any, ...]:
        """The program's arguments as shapes: parameters, other state, inputs, and for `train` the optimiser's state."""
        _, trainable, rest = self.unit.parts(MODES[name])
        rest = jax.tree.map(lambda leaf: jax.eval_shape(jax.random.key_data, leaf) if is_key(leaf) else leaf, rest)
        state = (jax.eval_shape(self.optimiser.init, trainable),) if name == "train" else ()
        return (trainable, rest, self.leaves, *state)

    def rows(self, name: str) -> list[dict[str, Any]]:
        """`role`, `path`, `shape` and `dtype` of each flat argument, in order."""
        rows = []
        for role, tree in zip(("parameter", "state", "input", "optimiser"), self.argument_shapes(name), strict=False):
            for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
                rows.append({"role": role, "path": path_of(path), "shape": list(leaf.shape), "dtype": str(leaf.dtype)})
        return rows

    def flat(self, name: str) -> tuple[Any, list[Any]]:
        """The jitted program as a function of flat arguments, and these as shapes. Tracing it fills `results`."""
        flat, structure = jax.tree.flatten(self.argument_shapes(name))
        program = self.program(name)

        def of_flat(*values: Any) -> list[Any]:
            results = program(*jax.tree.unflatten(structure, values))
            parts = (results,) if name == "forward" else results
            self.results[name] = [role for role, part in zip(RESULTS[name], parts, strict=True) for _ in jax.tree.leaves(part)]
            return jax.tree.leaves(results)

        return jax.jit(of_flat), flat


def loss(outputs: Sequence[Any]) -> Any:
    """The sum over the outputs of their mean square (scalar, float32 or float64): it depends on all of them, whatever they mean."""
    total = jnp.zeros(())
    for output in outputs:
        if jnp.issubdtype(output.dtype, jnp.inexact) and output.size:
            total = total + jnp.mean(jnp.square(jnp.abs(output)).astype(jnp.float32 if output.dtype != jnp.float64 else jnp.float64))
    return total


def _key_converters(rest: Any) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Functions that turn the integer data of the state's random keys into keys, and back: exported programs take no keys."""
    kinds = [_key_kind(leaf) if is_key(leaf) else "" for leaf in jax.tree.leaves(rest)]

    def wrap(state: Any) -> Any:
        values, structure = jax.tree.flatten(state)
        keys = [jax.random.wrap_key_data(value, impl=kind) if kind else value for value, kind in zip(values, kinds, strict=True)]
        return jax.tree.unflatten(structure, keys)

    def unwrap(state: Any) -> Any:
        return jax.tree.map(lambda leaf: jax.random.key_data(leaf) if is_key(leaf) else leaf, state)

    return wrap, unwrap


def _key_kind(key: Any) -> str:
    """The generator of a key, such as `threefry2x32`."""
    names: list[str] = []

    def look(value: Any) -> Any:
        names.append(str(jax.random.key_impl(value)))
        return jax.random.key_data(value)

    # A `ShapeDtypeStruct` has no generator; only a traced key can be asked for it.
    jax.eval_shape(look, key)
    return names[0]
