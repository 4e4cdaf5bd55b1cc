"""Parameters that are computed from others: PyTorch's `torch.nn.utils.parametrize`, weight and spectral normalisation.

As in PyTorch, a parametrised module changes to a subclass of its own class. There a property stands in the place of the parameter, and the
parameters that it is computed from are attributes with PyTorch's names. Reading (`module.kernel[...]`, `module.weight`) computes the
array; writing into it has no effect, as PyTorch computes it anew, but for `spectral_norm`, whose original an initialiser fills.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx
from jax import lax

from migrate_agent.tools.vendored.conv_layers import channels_first, channels_last
from migrate_agent.tools.vendored.distance import normalize

ParameterRule = Callable[[Any], jax.Array]
"""Computes a parameter of the module that it is given, in PyTorch's layout."""


class ParameterSlot(NamedTuple):
    """Where a parameter that PyTorch calls `name` stood."""

    name: str
    attribute: str

    @property
    def features_last(self) -> bool:
        """Whether its layout was that of `nnx.Linear` and `nnx.Conv`."""
        return self.attribute == "kernel"


class ComputedParameter:
    """Stands for a variable: `[...]` computes its array in the layout of its slot.

    Writing into it is ignored, but where the rule has an `original`: that is written to.
    """

    def __init__(self, slot: ParameterSlot, rule: ParameterRule, module: Any) -> None:
        self.slot, self.rule, self.module = slot, rule, module
        self.features_last = slot.features_last

    def get_value(self) -> jax.Array:
        """The array, in the layout of the slot."""
        weight = self.rule(self.module)
        return channels_last(weight) if self.features_last else weight

    def __getitem__(self, index: Any) -> jax.Array:
        return self.get_value()[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        original = getattr(self.rule, "original", None)
        variable = None if original is None else original(self.module)
        if variable is not None and self.features_last:
            variable[...] = channels_first(channels_last(variable[...]).at[index].set(value))
        elif variable is not None:
            variable[index] = value

    def set_value(self, value: jax.Array) -> None:
        """Give the whole array new values."""
        self[...] = value

    def __getattr__(self, name: str) -> Any:
        """The array's `shape`, `ndim` or `dtype`; nothing is computed for it, and no buffer changes."""
        return getattr(jax.eval_shape(lambda: ComputedParameter(self.slot, self.rule, nnx.clone(self.module)).get_value()), name)


@functools.cache
def computing_class(cls: type, slots: tuple[tuple[ParameterSlot, ParameterRule], ...]) -> type:
    """The subclass of `cls` in which each slot's attribute is computed by its rule; `cls` itself without slots."""
    if not slots:
        return cls
    members: dict[str, Any] = {slot.attribute: property(functools.partial(ComputedParameter, slot, rule)) for slot, rule in slots}
    members |= {"parametrised_slots": (cls, slots), "__module__": cls.__module__, "__doc__": cls.__doc__}
    return type(cls)(cls.__name__, (cls,), members)


def parametrised_slots(module: Any) -> tuple[type, tuple[tuple[ParameterSlot, ParameterRule], ...]]:
    """The module's class without parametrisations, and its computed slots."""
    found: tuple[type, tuple[tuple[ParameterSlot, ParameterRule], ...]] = getattr(type(module), "parametrised_slots", (type(module), ()))
    return found


def slot_of(module: Any, name: str) -> ParameterSlot:
    """Where `module` has the parameter that PyTorch calls `name`. Raises `ValueError` where it has none."""
    for attribute in (name, "kernel", "tied", "embedding", "scale") if name == "weight" else (name,):
        if isinstance(getattr(module, attribute, None), (nnx.Variable, ComputedParameter)):
            return ParameterSlot(name, attribute)
    raise ValueError(f"{type(module).__name__} has no parameter or buffer with name {name!r}")


def in_torch_layout(module: Any, slot: ParameterSlot) -> jax.Array:
    """The array in a slot, as PyTorch lays it out."""
    value: jax.Array = getattr(module, slot.attribute)[...]
    return channels_first(value) if slot.features_last else value


def parameter_value(module: Any, name: str) -> jax.Array:
    """The value of the parameter that PyTorch calls `name`, in its layout. Raises `ValueError` where there is none."""
    return in_torch_layout(module, slot_of(module, name))


def take_parameter(module: Any, name: str) -> tuple[ParameterSlot, nnx.Variable[Any]]:
    """The slot of a parameter, and the variable in PyTorch's layout; `module` no longer holds it. Raises `ValueError` where there is none."""
    slot = slot_of(module, name)
    kind, value = type(getattr(module, slot.attribute)), in_torch_layout(module, slot)
    if not issubclass(kind, nnx.Variable):
        raise ValueError(f"the parameter {name!r} of {type(module).__name__} is computed already")
    delattr(module, slot.attribute)
    return slot, kind(value)


def put_computed(module: Any, slot: ParameterSlot, rule: ParameterRule) -> None:
    """From now on `rule(module)` is the value of the slot."""
    cls, slots = parametrised_slots(module)
    object.__setattr__(module, "__class__", computing_class(cls, (*slots, (slot, rule))))


def put_parameter(module: Any, slot: ParameterSlot, variable: nnx.Variable[Any]) -> None:
    """Undo `take_parameter` and `put_computed`: the variable (in PyTorch's layout) is the slot's again."""
    cls, slots = parametrised_slots(module)
    object.__setattr__(module, "__class__", computing_class(cls, tuple(pair for pair in slots if pair[0] != slot)))
    if slot.features_last:
        variable = type(variable)(channels_last(variable[...]), features_last=True)
    setattr(module, slot.attribute, variable)


@dataclass(frozen=True)
class SetParameter:
    """`<name>` as it was last set, by `set_computed`."""

    name: str

    def __call__(self, module: Any) -> jax.Array:
        computed: jax.Array = getattr(module, f"{self.name}_computed")[...]
        return computed


def remove_parameter(module: Any, name: str) -> None:
    """`del module._parameters[name]` where code computes its value before each call: it is no state any more, and holds what `set_computed` gives it.

    Unlike in PyTorch it keeps its value until then. Raises `ValueError` where there is no such parameter.
    """
    slot, variable = take_parameter(module, name)
    setattr(module, f"{name}_computed", nnx.Cache(variable[...]))
    put_computed(module, slot, SetParameter(name))


def set_computed(module: Any, name: str, value: jax.Array) -> None:
    """`setattr(module, name, value)` for what `remove_parameter` removed; `value` in PyTorch's layout."""
    getattr(module, f"{name}_computed").set_value(value)  # whatever its dtype: the array replaces the one before


def norm_except_dim(weight: jax.Array, dim: int | None) -> jax.Array:
    """The 2-norm of `weight` over all axes but `dim` (size 1 there); over all axes, without any left, for `None` and -1."""
    if dim is None or dim == -1:
        return jnp.sqrt(jnp.sum(weight * weight))
    axes = tuple(axis for axis in range(weight.ndim) if axis != dim % weight.ndim)
    return jnp.sqrt(jnp.sum(weight * weight, axis=axes, keepdims=True))


def from_norm(g: jax.Array, v: jax.Array, dim: int | None) -> jax.Array:
    """The weight of direction `v` and norm `g` (see `norm_except_dim`)."""
    return v * (g / norm_except_dim(v, dim))


def spectral_matrix(weight: jax.Array, dim: int) -> jax.Array:
    """`weight` as a matrix whose rows run along the axis `dim`."""
    return jnp.moveaxis(weight, dim, 0).reshape(weight.shape[dim], -1)


def spectral_dim(module: Any, dim: int | None) -> int:
    """The axis of the outputs: 1 for transposed convolutions, else 0, where the caller gives none."""
    return (1 if isinstance(module, nnx.ConvTranspose) else 0) if dim is None else dim


def random_direction(size: int, dtype: Any, eps: float, rngs: nnx.Rngs) -> jax.Array:
    """A random unit vector."""
    return normalize(jax.random.normal(rngs.params(), (size,), dtype), dim=0, eps=eps)


@dataclass(frozen=True)
class WeightNorm:
    """`<name>` from its magnitude `<name>_g` and its direction `<name>_v`."""

    name: str
    dim: int | None

    def __call__(self, module: Any) -> jax.Array:
        return from_norm(getattr(module, f"{self.name}_g")[...], getattr(module, f"{self.name}_v")[...], self.dim)


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Split a parameter into its norm `<name>_g` and its direction `<name>_v`. Gives `module` back. Raises `ValueError` where it has no such parameter.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.weight_norm.html
    """
    slot, variable = take_parameter(module, name)
    setattr(module, f"{name}_g", nnx.Param(norm_except_dim(variable[...], dim)))
    setattr(module, f"{name}_v", nnx.Param(variable[...]))
    put_computed(module, slot, WeightNorm(name, dim))
    return module


@dataclass(frozen=True)
class SpectralNorm:
    """`<name>` as `<name>_orig` over its largest singular value, by the singular vectors `<name>_u` and `<name>_v`, improved in training."""

    name: str
    n_power_iterations: int
    eps: float
    dim: int

    def original(self, module: Any) -> nnx.Variable[Any]:
        """What an initialiser of `<name>` fills: before the first call PyTorch's `<name>` shares its memory with `<name>_orig`."""
        variable: nnx.Variable[Any] = getattr(module, f"{self.name}_orig")
        return variable

    def __call__(self, module: Any) -> jax.Array:
        weight: jax.Array = self.original(module)[...]
        matrix = spectral_matrix(weight, self.dim)
        fixed = lax.stop_gradient(matrix)
        u, v = (lax.stop_gradient(getattr(module, f"{self.name}_{letter}")[...]) for letter in "uv")
        if not module.deterministic:
            for _ in range(self.n_power_iterations):
                v = normalize(fixed.T @ u, dim=0, eps=self.eps)
                u = normalize(fixed @ v, dim=0, eps=self.eps)
            getattr(module, f"{self.name}_u")[...], getattr(module, f"{self.name}_v")[...] = u, v
        return weight / jnp.dot(u, matrix @ v)


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None, *, rngs: nnx.Rngs
) -> Any:
    """Divide a parameter by its largest singular value. Gives `module` back. Raises `ValueError` where it has no such parameter.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.spectral_norm.html
    """
    if n_power_iterations <= 0:
        raise ValueError(f"expected n_power_iterations to be positive, but got {n_power_iterations}")
    slot, variable = take_parameter(module, name)
    rule = SpectralNorm(name, n_power_iterations, eps, spectral_dim(module, dim))
    setattr(module, f"{name}_orig", variable)
    for letter, size in zip("uv", spectral_matrix(variable[...], rule.dim).shape, strict=True):
        setattr(module, f"{name}_{letter}", nnx.Variable(random_direction(size, variable[...].dtype, eps, rngs)))
    if not hasattr(module, "deterministic"):
        module.deterministic = False
    put_computed(module, slot, rule)
    return module


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Undo `weight_norm`, with the present value. Raises `ValueError` where there is nothing to undo.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.remove_weight_norm.html
    """
    return remove_norm(module, name, WeightNorm, "gv")


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Undo `spectral_norm`, with the present value. Raises `ValueError` where there is nothing to undo.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.remove_spectral_norm.html
    """
    return remove_norm(module, name, SpectralNorm, ("orig", "u", "v"))


def remove_norm(module: Any, name: str, kind: type, suffixes: Any) -> Any:
    """Make a parameter of the value that a rule of this kind computes, and remove what it is computed from."""
    for slot, rule in parametrised_slots(module)[1]:
        if slot.name == name and isinstance(rule, kind):
            training = getattr(module, "deterministic", None) is False
            module.eval()
            value = rule(module)
            if training:
                module.train()
            for suffix in suffixes:
                delattr(module, f"{name}_{suffix}")
            put_parameter(module, slot, nnx.Param(value))
            return module
    raise ValueError(f"{kind.__name__} of {name!r} not found in {type(module).__name__}")
