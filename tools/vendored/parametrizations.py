"""PyTorch's registered parametrisations: `torch.nn.utils.parametrize` and `torch.nn.utils.parametrizations`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import lax

from migrate_agent.tools.vendored.distance import normalize
from migrate_agent.tools.vendored.parametrise import (
    from_norm,
    in_torch_layout,
    norm_except_dim,
    parametrised_slots,
    put_computed,
    put_parameter,
    random_direction,
    slot_of,
    spectral_dim,
    spectral_matrix,
    take_parameter,
)


class ParametrizationList(nnx.Module):
    """The maps `0`, `1`, … that a parameter goes through, and what they start from: `original`, or `original0`, `original1`, ….

    https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.parametrize.ParametrizationList.html
    """

    def __init__(self, variable: nnx.Variable[Any], first: Any) -> None:
        self.count = 0
        start = first.right_inverse(variable[...]) if hasattr(first, "right_inverse") else variable[...]
        several = isinstance(start, Sequence)
        self.names = tuple(f"original{i}" for i in range(len(start))) if several else ("original",)
        for name, value in zip(self.names, start if several else (start,), strict=True):
            setattr(self, name, type(variable)(value))
        self.append(first)

    def append(self, step: nnx.Module) -> None:
        """Add a map after the others."""
        setattr(self, str(self.count), step)
        self.count += 1

    def __getitem__(self, index: int) -> Any:
        return getattr(self, str(index % self.count))

    def __len__(self) -> int:
        return self.count

    def right_inverse(self, value: Any) -> None:
        """Set the originals so that the maps give `value`, as far as they can."""
        for index in reversed(range(self.count)):
            value = self[index].right_inverse(value)
        for name, part in zip(self.names, value if len(self.names) > 1 else (value,), strict=True):
            getattr(self, name)[...] = part

    def __call__(self) -> jax.Array:
        value: jax.Array = self[0](*(getattr(self, name)[...] for name in self.names))
        for index in range(1, self.count):
            value = self[index](value)
        return value


@dataclass(frozen=True)
class RegisteredParameter:
    """A parameter that is what `module.parametrizations.<name>` gives."""

    name: str

    def __call__(self, module: Any) -> jax.Array:
        value: jax.Array = module.parametrizations[self.name]()
        return value


def register_parametrization(module: Any, tensor_name: str, parametrization: Any, *, unsafe: bool = False) -> Any:
    """Compute a parameter or buffer by `parametrization(original)`, on top of those registered before. Gives `module` back.

    Raises `ValueError` where `module` has no such parameter.
    https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.parametrize.register_parametrization.html
    """
    if is_parametrized(module, tensor_name):
        steps = module.parametrizations[tensor_name]
        if not unsafe:
            parametrization(steps())
        steps.append(parametrization)
        return module
    slot, variable = take_parameter(module, tensor_name)
    if not hasattr(module, "parametrizations"):
        module.parametrizations = nnx.Dict()
    module.parametrizations[tensor_name] = ParametrizationList(variable, parametrization)
    put_computed(module, slot, RegisteredParameter(tensor_name))
    if not unsafe:
        module.parametrizations[tensor_name]()
    return module


def is_parametrized(module: Any, tensor_name: str | None = None) -> bool:
    """Whether the module, or this parameter of it, has a registered parametrisation.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.parametrize.is_parametrized.html
    """
    names = [slot.name for slot, rule in parametrised_slots(module)[1] if isinstance(rule, RegisteredParameter)]
    return bool(names) if tensor_name is None else tensor_name in names


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Make a plain parameter of the present value, or of the original. Raises `ValueError` where this is not possible.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.parametrize.remove_parametrizations.html
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"{type(module).__name__} does not have a parametrization on {tensor_name}")
    steps = module.parametrizations[tensor_name]
    if not leave_parametrized and len(steps.names) > 1:
        raise ValueError("cannot leave unparametrized a tensor that is parametrized in terms of a sequence of tensors")
    kind = type(getattr(steps, steps.names[0]))
    value = steps() if leave_parametrized else steps.original[...]
    (slot,) = (slot for slot, rule in parametrised_slots(module)[1] if slot.name == tensor_name)
    put_parameter(module, slot, kind(value))
    del module.parametrizations[tensor_name]
    if not is_parametrized(module):
        del module.parametrizations
    return module


class WeightNormMap(nnx.Module):
    """(magnitude, direction) → weight."""

    def __init__(self, dim: int | None) -> None:
        self.dim = dim

    def __call__(self, g: jax.Array, v: jax.Array) -> jax.Array:
        return from_norm(g, v, self.dim)

    def right_inverse(self, weight: jax.Array) -> tuple[jax.Array, jax.Array]:
        """weight → (magnitude, direction)."""
        return norm_except_dim(weight, self.dim), weight


def parametrize_weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Split a parameter into its norm and its direction. Gives `module` back.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.parametrizations.weight_norm.html
    """
    return register_parametrization(module, name, WeightNormMap(dim), unsafe=True)


class SpectralNormMap(nnx.Module):
    """A weight over its largest singular value, by the singular vectors `_u` and `_v`, which each reading in training mode improves."""

    def __init__(self, weight: jax.Array, n_power_iterations: int, dim: int, eps: float, rngs: nnx.Rngs) -> None:
        if n_power_iterations <= 0:
            raise ValueError(f"expected n_power_iterations to be positive, but got {n_power_iterations}")
        if not -weight.ndim <= dim < weight.ndim:
            raise IndexError(f"dimension out of range (expected to be in range of [{-weight.ndim}, {weight.ndim - 1}] but got {dim})")
        self.dim, self.eps, self.n_power_iterations, self.deterministic = dim % weight.ndim, eps, n_power_iterations, False
        if weight.ndim > 1:
            matrix = spectral_matrix(weight, self.dim)
            self._u = nnx.Variable(random_direction(matrix.shape[0], weight.dtype, eps, rngs))
            self._v = nnx.Variable(random_direction(matrix.shape[1], weight.dtype, eps, rngs))
            self.iterate(matrix, 15)

    def iterate(self, matrix: jax.Array, n_power_iterations: int) -> None:
        """Improve the singular vectors by the power method."""
        matrix, v = lax.stop_gradient(matrix), self._v[...]
        for _ in range(n_power_iterations):
            u = normalize(matrix @ v, dim=0, eps=self.eps)
            v = normalize(matrix.T @ u, dim=0, eps=self.eps)
        self._u[...], self._v[...] = u, v

    def __call__(self, weight: jax.Array) -> jax.Array:
        if weight.ndim == 1:
            return normalize(weight, dim=0, eps=self.eps)
        matrix = spectral_matrix(weight, self.dim)
        if not self.deterministic:
            self.iterate(matrix, self.n_power_iterations)
        u, v = lax.stop_gradient(self._u[...]), lax.stop_gradient(self._v[...])
        return weight / jnp.dot(u, matrix @ v)

    def right_inverse(self, value: jax.Array) -> jax.Array:
        """The weight itself, taken to be normalised already."""
        return value


def parametrize_spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None, *, rngs: nnx.Rngs
) -> Any:
    """Divide a parameter by its largest singular value. Gives `module` back.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.parametrizations.spectral_norm.html
    """
    weight = in_torch_layout(module, slot_of(module, name))
    return register_parametrization(module, name, SpectralNormMap(weight, n_power_iterations, spectral_dim(module, dim), eps, rngs))
