"""Small helpers that the layers share: parameter initialisers, reduction dtypes, optional parameters, sizes."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx


def uniform_init(bound: float) -> Callable[..., jax.Array]:
    """An initialiser that draws from U(-bound, bound), as `torch.nn.init.uniform_(w, -bound, bound)` does.

    https://docs.pytorch.org/docs/stable/nn.init.html
    """

    def init(key: jax.Array, shape: Sequence[int], dtype: Any = jnp.float32, **_: Any) -> jax.Array:
        return jax.random.uniform(key, tuple(shape), dtype, -bound, bound)

    return init


def fan_in_bound(fan_in: int) -> float:
    """The bound 1/√fan_in of the default initialisation of linear and convolutional layers; 0 for layers without inputs.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.Linear.html
    """
    return float(fan_in) ** -0.5 if fan_in > 0 else 0.0


def promote_half(x: jax.Array) -> jax.Array:
    """`x` in the dtype that reductions run in: at least float32; float64 stays.

    https://docs.pytorch.org/docs/stable/notes/numerical_accuracy.html
    """
    return x.astype(jnp.promote_types(x.dtype, jnp.float32))


def value_of(variable: Any) -> Any:
    """The array in a parameter or buffer; anything else (`None`, a number) as it is."""
    return variable if variable is None or isinstance(variable, (bool, int, float, complex)) else variable[...]


def replace_value(variable: nnx.Variable[Any], value: jax.Array) -> None:
    """Give a variable a new array of its dtype; the shape may be another."""
    variable.set_value(jnp.asarray(value).astype(variable.dtype))


def to_tuple(value: int | Sequence[int], n: int) -> tuple[int, ...]:
    """`n` integers from one integer or a sequence of one or `n`."""
    values = (value,) if isinstance(value, int) else tuple(int(v) for v in value)
    return values * n if len(values) == 1 else values
