"""Functions with gradients of their own."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx


class AutogradContext(dict[str, Any]):
    """What `forward` keeps for `backward`, as attributes (https://docs.pytorch.org/docs/stable/autograd.html#context-method-mixins)."""

    def __getattr__(self, name: str) -> Any:
        if name not in self:
            raise AttributeError(f"nothing was kept as {name!r}")
        return self[name]

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def save_for_backward(self, *values: Any) -> None:
        self["saved_tensors"] = values

    def mark_non_differentiable(self, *values: Any) -> None:
        """Accepted: integer outputs have no gradient in JAX anyway."""

    def set_materialize_grads(self, value: bool) -> None:
        """Accepted: JAX always gives arrays."""


class AutogradFunction:
    """A function whose gradient is `backward`: subclasses define static `forward(ctx, *args)` and `backward(ctx, *grads)`, or
    `forward(*args)` and `setup_context(ctx, inputs, output)` in place of the first.

    https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.Function
    """

    forward: Any
    backward: Any
    setup_context: Any = None

    @classmethod
    def output(cls, ctx: AutogradContext, args: list[Any]) -> Any:
        """What `forward` gives, with the context filled."""
        if cls.setup_context is None:
            return cls.forward(ctx, *args)
        output = cls.forward(*args)
        cls.setup_context(ctx, tuple(args), output)
        return output

    @classmethod
    def apply(cls, *args: Any, rngs: nnx.Rngs | None = None) -> Any:
        """Call it. Arguments that are no arrays are constants. What both passes draw comes from `rngs`, as `ctx.rngs`."""
        places = [i for i, a in enumerate(args) if isinstance(a, (jax.Array, np.ndarray))]
        wanted = tuple(i in places and jnp.issubdtype(a.dtype, jnp.inexact) for i, a in enumerate(args))
        others = [None if i in places else a for i, a in enumerate(args)]  # no array may stay in what the functions below hold on to
        constants: dict[str, Any] = {}
        keys = () if rngs is None else tuple(jax.random.split(rngs()))

        def merged(values: tuple[Any, ...]) -> list[Any]:
            full = list(others)
            for index, value in zip(places, values[: len(places)], strict=True):
                full[index] = value
            return full

        def streams(values: tuple[Any, ...], number: int) -> dict[str, nnx.Rngs]:
            # Of their own: those from outside would be counted on in a trace that ends here.
            key = values[len(places) :][number : number + 1]
            return {"rngs": nnx.Rngs(*key)} if key else {}

        def context(values: tuple[Any, ...]) -> AutogradContext:
            return AutogradContext(saved_tensors=(), needs_input_grad=wanted, **streams(values, 0))

        @jax.custom_vjp
        def call(*values: Any) -> Any:
            return cls.output(context(values), merged(values))

        def forward(*values: Any) -> tuple[Any, dict[str, Any]]:
            ctx = context(values)
            output = cls.output(ctx, merged(values))
            ctx.pop("rngs", None)
            arrays = {name: value for name, value in ctx.items() if not is_static_value(value)}
            constants.update({name: value for name, value in ctx.items() if name not in arrays})
            return linked(values, output, arrays), {"arrays": arrays, "values": values}

        @jax.custom_vjp
        def linked(values: tuple[Any, ...], output: Any, arrays: dict[str, Any]) -> Any:
            # Who differentiates a gradient differentiates what `forward` gave as well, by `backward` again.
            return output

        def forward_again(values: tuple[Any, ...], output: Any, arrays: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
            return linked(values, output, arrays), {"arrays": arrays, "values": values}

        def backward_again(residuals: dict[str, Any], grads: Any) -> tuple[Any, ...]:
            of_output = jax.tree.map(lambda grad: grad if grad.dtype == jax.dtypes.float0 else jnp.zeros_like(grad), grads)
            of_arrays = jax.tree.map(lambda value: input_cotangent(None, jnp.asarray(value)), residuals["arrays"])
            return backward(residuals, grads), of_output, of_arrays

        def backward(residuals: dict[str, Any], grads: Any) -> tuple[Any, ...]:
            ctx = AutogradContext(**constants, **residuals["arrays"], **streams(residuals["values"], 1))
            result = cls.backward(ctx, *(grads if isinstance(grads, tuple) else (grads,)))
            result = result if isinstance(result, tuple) else (result,)
            gradients = (*(result[place] for place in places), None, None)  # keys have none
            return tuple(input_cotangent(gradient, value) for gradient, value in zip(gradients, residuals["values"], strict=False))

        linked.defvjp(forward_again, backward_again)
        call.defvjp(forward, backward)
        return call(*(args[place] for place in places), *keys)


def keep_gradient(value: jax.Array, old: jax.Array) -> jax.Array:
    """`value`, with the gradient of `old`, whose place it takes: torch writes to parameters without gradients, but keeps theirs."""
    return jax.lax.stop_gradient(value) + (old - jax.lax.stop_gradient(old))


def is_static_value(value: Any) -> bool:
    """Whether there is no array in a value."""
    return not any(isinstance(leaf, (jax.Array, np.ndarray)) for leaf in jax.tree.leaves(value))


def input_cotangent(gradient: Any, value: jax.Array) -> Any:
    """The gradient of an argument in the form that JAX wants: zeros for `None`, `float0` for whole numbers."""
    if not jnp.issubdtype(value.dtype, jnp.inexact):
        return np.zeros(value.shape, jax.dtypes.float0)
    return jnp.zeros_like(value) if gradient is None else jnp.asarray(gradient, value.dtype)
