"""NumPy's arrays among the arguments of a call."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from migrate_agent.tools.harness.common import trees
from migrate_agent.tools.harness.jax_side.host_arrays import HostArray, constants, given


def is_leaf(item: object) -> bool:
    return isinstance(item, (jax.Array, np.ndarray))


def test_constants_of_a_program() -> None:
    """One program serves equal constants, another one other values, shapes or dtypes; the function sees an array of its own."""
    seen: list[np.ndarray] = []

    @jax.jit
    def call(leaves: list[object]) -> jax.Array:
        x, power = given(leaves)
        seen.append(power)
        power += 1
        return jnp.multiply(x, np.sum(power))

    first = np.arange(3.0)
    for constant in (first, first.copy(), first + 1, first.astype(np.float32), first.reshape(3, 1)):
        assert call([jnp.ones(2), HostArray(constant)]).tolist() == [float(np.sum(constant + 1))] * 2
    assert len(seen) == 4
    assert first.tolist() == [0, 1, 2]


def test_constants_are_told_by_their_values() -> None:
    one, same, other = HostArray(np.ones(2)), HostArray(np.ones(2)), HostArray(np.zeros(2))
    assert constants([jnp.ones(2), one]) == constants([same]) != constants([other])
    assert constants([jnp.ones(2)]) == ""


def test_numpys_leaves_of_a_tree() -> None:
    arguments = ((jnp.ones(2), {"t": np.ones(3)}), {"grid": [np.ones(1)]})
    assert trees.host_leaves(trees.encode(arguments, [], is_leaf, arguments=True)) == {1, 2}
    assert trees.host_leaves(trees.encode(arguments, [], is_leaf)) == set()
