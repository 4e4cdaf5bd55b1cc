"""What user code asks of modules in torch: walking them, and switching gradients off."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import einops
import jax
import jax.numpy as jnp
from flax import nnx
from jax import lax


def no_grad(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: no gradient flows through the results (https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html)."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return jax.tree.map(lambda leaf: lax.stop_gradient(leaf) if isinstance(leaf, jax.Array) else leaf, function(*args, **kwargs))

    return wrapper


def checkpoint(function: Callable[..., Any], *args: Any) -> Any:
    """`function(*args)`, computed again for the gradient instead of being kept (https://docs.pytorch.org/docs/stable/checkpoint.html)."""
    places = [i for i, value in enumerate(args) if isinstance(value, jax.Array)]

    def run(target: Callable[..., Any], *values: Any) -> Any:
        full = list(args)
        for place, value in zip(places, values, strict=True):
            full[place] = value
        return target(*full)

    values = [args[place] for place in places]
    if isinstance(function, nnx.Module):
        return nnx.remat(run)(function, *values)
    return jax.checkpoint(functools.partial(run, function))(*values)


def masked_set(x: jax.Array, mask: jax.Array, value: Any) -> jax.Array:
    """`x[mask] = value` for a scalar value: `mask` (a, b) selects rows of `x` (a, b, …)."""
    mask = mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim))
    return jnp.where(mask, jnp.asarray(value, x.dtype), x)


def overwrite(owner: Any, key: str | int, value: Any) -> None:
    """Give the parameter or tensor `owner.key` (`owner[key]` of a container) a new value; all that share the variable see it.

    The shape may change, as it may by assigning to torch's `Tensor.data`.
    """
    keyed = not isinstance(key, str) or isinstance(owner, (dict, nnx.Dict))
    old = owner[key] if keyed else getattr(owner, key)  # type: ignore[arg-type]
    if isinstance(old, nnx.Variable):
        old.set_value(jnp.asarray(value).astype(old.dtype))
    elif keyed:
        owner[key] = value
    else:
        setattr(owner, key, value)  # type: ignore[arg-type]


def named_modules(module: nnx.Module, prefix: str = "") -> Iterator[tuple[str, nnx.Module]]:
    """The module and all inside it with torch's dotted names, each once; the levels that NNX containers add are left out.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.named_modules
    """
    for path, node in sorted(nnx.iter_graph(module), key=lambda item: len(item[0])):
        names = torch_path(module, path)
        if isinstance(node, nnx.Module) and (not path or names != torch_path(module, path[:-1])):
            yield ".".join([*([prefix] if prefix else []), *names]), node


def torch_path(module: nnx.Module, path: tuple[Any, ...]) -> list[str]:
    """The parts of torch's name for a path in an NNX module: `nnx.Sequential` keeps its parts in `layers`, torch in itself."""
    names: list[str] = []
    node: Any = module
    for key in path:
        if not isinstance(node, nnx.Sequential) or key != "layers":
            names.append(str(key))
        node = node[key] if isinstance(key, int) else getattr(node, key, None)
    return names


def named_children(module: nnx.Module) -> Iterator[tuple[str, nnx.Module]]:
    """The modules directly inside, with torch's names (https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html)."""
    for name, node in named_modules(module):
        if name and "." not in name:
            yield name, node


def modules(module: nnx.Module) -> Iterator[nnx.Module]:
    """The module and all inside it, each once (https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.modules)."""
    for _, node in named_modules(module):
        yield node


def children(module: nnx.Module) -> Iterator[nnx.Module]:
    """The modules directly inside (https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.children)."""
    for _, node in named_children(module):
        yield node


def named_parameters(module: nnx.Module) -> Iterator[tuple[str, nnx.Param[Any]]]:
    """All parameters with torch's dotted names, shared ones once.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.named_parameters
    """
    for path, value in nnx.iter_graph(module):
        if isinstance(value, nnx.Param):
            *owner, leaf = torch_path(module, path)
            yield ".".join([*owner, "weight" if leaf in ("kernel", "embedding", "scale", "tied") else leaf]), value


def parameters(module: nnx.Module) -> Iterator[nnx.Param[Any]]:
    """All parameters, shared ones once (https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.parameters)."""
    for _, value in named_parameters(module):
        yield value


class Rearrange(nnx.Module):
    """`einops.rearrange` as a module (https://einops.rocks/api/rearrange/)."""

    def __init__(self, pattern: str, **axes_lengths: int) -> None:
        self.pattern, self.axes_lengths = pattern, axes_lengths

    def __call__(self, x: jax.Array) -> jax.Array:
        return einops.rearrange(x, self.pattern, **self.axes_lengths)


class Reduce(nnx.Module):
    """`einops.reduce` as a module (https://einops.rocks/api/reduce/)."""

    def __init__(self, pattern: str, reduction: str, **axes_lengths: int) -> None:
        self.pattern, self.reduction, self.axes_lengths = pattern, reduction, axes_lengths

    def __call__(self, x: jax.Array) -> jax.Array:
        return einops.reduce(x, self.pattern, self.reduction, **self.axes_lengths)
