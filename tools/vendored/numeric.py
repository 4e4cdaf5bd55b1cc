"""Small helpers that the layers share: parameter initialisers, reduction dtypes, optional parameters, sizes."""

import math
from collections.abc import Callable, Iterable, Sequence
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


def features_last_init(bound: float) -> Callable[..., jax.Array]:
    """As `uniform_init`, for a weight with its features last, (…, in, out): the numbers are drawn in torch's layout (out, in, …)."""

    def init(key: jax.Array, shape: Sequence[int], dtype: Any = jnp.float32, **_: Any) -> jax.Array:
        # A layer that is made while a module is called then gets the numbers of torch's, not their transpose.
        drawn = jax.random.uniform(key, (shape[-1], shape[-2], *shape[:-2]), dtype, -bound, bound)
        return drawn.transpose(*range(2, len(shape)), 1, 0)

    return init


def fan_in_bias(fan_in: int) -> nnx.Initializer:
    """PyTorch's default initial values of the bias of a layer with `fan_in` inputs: U(-b, b) with b = 1/√fan_in.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.Linear.html
    """
    bound = float(fan_in) ** -0.5 if fan_in > 0 else 0.0  # a layer may be without inputs
    return lambda key, shape, dtype=jnp.float32, **_: jax.random.uniform(key, shape, dtype, -bound, bound)


def fan_in_kernel(key: jax.Array, shape: Sequence[int], dtype: Any = jnp.float32, **_: Any) -> jax.Array:
    """PyTorch's default initial values of a kernel (…, in, out): those of its bias."""
    return fan_in_bias(math.prod(shape[:-1]))(key, shape, dtype)


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


def repeated(x: Any, count: int) -> tuple[Any, ...]:
    """`x` for each of `count` axes, or the values that an iterable `x` has for them: `torch.nn.modules.utils._pair` and its like."""
    return tuple(x) if isinstance(x, Iterable) else (x,) * count


def value_of(variable: Any) -> Any:
    """The array in a parameter or buffer; anything else (`None`, a number) as it is."""
    return variable if variable is None or isinstance(variable, (bool, int, float, complex)) else variable[...]


def as_variable(x: Any) -> Any:
    """A variable that holds an array, so that what changes it in place shows under this name too; a variable, or None, as it is."""
    return x if x is None or isinstance(x, nnx.Variable) else nnx.Variable(x)


def replace_value(variable: nnx.Variable[Any], value: jax.Array) -> None:
    """Give a variable a new array of its dtype; the shape may be another."""
    variable.set_value(jnp.asarray(value).astype(variable.dtype))


def cast_parameters(module: nnx.Module, dtype: Any) -> None:
    """Give the floating parameters and statistics of a new layer the dtype that its constructor was asked for; `None` leaves them as they are.

    Constructors take `device` too, as torch's do, and ignore it: JAX places arrays itself.
    """
    for _, variable in nnx.iter_graph(module) if dtype is not None else ():
        if isinstance(variable, nnx.Variable) and jnp.issubdtype(variable.dtype, jnp.floating):
            variable.set_value(variable[...].astype(dtype))


def absolute(x: jax.Array) -> jax.Array:
    """`|x|`, of which the gradient at 0 is 0, where that of `jnp.abs` is 1 (https://pytorch.org/docs/stable/generated/torch.abs.html)."""
    return x * jnp.sign(x) if jnp.issubdtype(jnp.result_type(x), jnp.floating) else jnp.abs(x)


def to_tuple(value: int | Sequence[int], n: int) -> tuple[int, ...]:
    """`n` integers from one integer or a sequence of one or `n`."""
    values = (value,) if isinstance(value, int) else tuple(int(v) for v in value)
    return values * n if len(values) == 1 else values
