"""Containers of layers and parameters with PyTorch's behaviour."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import jax
from flax import nnx


def run_after_first(layers: Any, x: jax.Array) -> tuple[jax.Array, Any]:
    """What a tensor holds after PyTorch has run layers on it whose first may be an activation in place; and what the layers give."""
    first, *others = layers.layers
    result = first(x)
    # What has a weight gives a new tensor, and leaves its argument as it is.
    changed = x if isinstance(first, nnx.Module) and jax.tree.leaves(nnx.state(first)) else result
    for layer in others:
        result = layer(result)
    return changed, result


class Sequential(nnx.Sequential):
    """Calls its layers one after the other; each takes the whole output of the one before, tuples included.

    Layers come as arguments or as one mapping from names; `names` are their names in state dictionaries.
    https://docs.pytorch.org/docs/stable/generated/torch.nn.Sequential.html
    """

    names: tuple[str, ...] = ()

    def __init__(self, *args: Any, rngs: nnx.Rngs | None = None) -> None:
        named = args[0] if len(args) == 1 and isinstance(args[0], Mapping) else {str(i): layer for i, layer in enumerate(args)}
        super().__init__(*named.values())
        self.names = tuple(named)

    def __call__(self, input: Any) -> Any:
        for layer in self.layers:
            input = layer(input)
        return input

    def __len__(self) -> int:
        return len(self.layers)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.layers)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(dict(zip(self.names[index], self.layers[index], strict=True)))
        return self.layers[index]

    def __setitem__(self, index: int, layer: Any) -> None:
        self.layers[index] = layer

    def __getattr__(self, name: str) -> Any:
        if name not in self.names:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self.layers[self.names.index(name)]

    def append(self, layer: Any) -> "Sequential":
        """Add a layer at the end, named by its position; gives the container."""
        self.add_module(str(len(self)), layer)
        return self

    def extend(self, layers: Iterable[Any]) -> "Sequential":
        """Add layers at the end; gives the container."""
        for layer in layers:
            self.append(layer)
        return self

    def insert(self, index: int, layer: Any) -> "Sequential":
        """Put a layer before that of this position; all are named by their positions then. Gives the container."""
        layers = [*self.layers]
        layers.insert(index, layer)
        self._replace(layers)
        return self

    def pop(self, index: int | slice) -> Any:
        """Take layers out, and give them; those that are left are named by their positions."""
        layer = self[index]
        del self[index]
        return layer

    def __delitem__(self, index: int | slice) -> None:
        layers = [*self.layers]
        del layers[index]
        self._replace(layers)

    def __add__(self, other: "Sequential") -> "Sequential":
        return Sequential(*self.layers, *other.layers)

    def _replace(self, layers: list[Any]) -> None:
        self.layers = nnx.List(layers)
        self.names = tuple(map(str, range(len(layers))))

    def add_module(self, name: str, layer: Any) -> None:
        """Add a layer at the end, or replace the one of this name."""
        if name in self.names:
            self.layers[self.names.index(name)] = layer
        else:
            self.layers.append(layer)
            self.names = (*self.names, name)


class ModuleList(nnx.List[Any]):
    """A list of layers. https://docs.pytorch.org/docs/stable/generated/torch.nn.ModuleList.html"""

    def __init__(self, modules: Iterable[Any] | None = None, *, rngs: nnx.Rngs | None = None) -> None:
        super().__init__(modules)


class LayerStack(nnx.Module):
    """`count` equal layers, applied one after the other by a scan, so that they are compiled once.

    `make(rngs)` makes a layer. Each array of all of them is one, along a new first axis. A layer must give what it takes: an array of the same
    shape and dtype; further arguments are the same for all.
    """

    stacked = "layers"

    def __init__(self, make: Callable[[nnx.Rngs], nnx.Module], count: int, *, rngs: nnx.Rngs) -> None:
        self.count = count
        self.layers = nnx.data(nnx.vmap(make)(rngs.split(count)) if count else None)

    def __call__(self, x: jax.Array, *args: Any, **kwargs: Any) -> jax.Array:
        @nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
        def step(x: jax.Array, layer: Any) -> Any:
            return layer(x, *args, **kwargs)

        return step(x, self.layers) if self.count else x


class OrderedModuleDict(nnx.Dict[Any]):
    """Modules and variables by name, in the order in which they came; NNX's own dictionary is sorted wherever it is split and merged.

    Attributes that are neither are no entries.
    """

    _names: tuple[str, ...] = ()

    def __init__(self, entries: Mapping[str, Any] | Iterable[Any] | None = None) -> None:
        super().__init__()
        self.update({} if entries is None else dict(entries))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, (nnx.Module, nnx.Variable)):
            self[name] = value
        else:
            super().__setattr__(name, value)

    def __setitem__(self, key: str, value: Any) -> None:
        if key not in self._names:
            self._names = (*self._names, key)
        super().__setattr__(key, value)

    def __delitem__(self, key: str) -> None:
        super().__delitem__(key)
        self._names = tuple(name for name in self._names if name != key)


class ModuleDict(OrderedModuleDict):
    """Layers by name. https://docs.pytorch.org/docs/stable/generated/torch.nn.ModuleDict.html"""

    def __init__(self, modules: Mapping[str, Any] | Iterable[Any] | None = None, *, rngs: nnx.Rngs | None = None) -> None:
        super().__init__(modules)


def as_parameter(value: Any) -> Any:
    """An array as `nnx.Param`; anything else as it is."""
    return nnx.Param(value) if isinstance(value, jax.Array) else value


class ParameterList(nnx.List[Any]):
    """A list of parameters; arrays become parameters.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.ParameterList.html
    """

    def __init__(self, values: Iterable[Any] | None = None, *, rngs: nnx.Rngs | None = None) -> None:
        super().__init__(as_parameter(value) for value in values or ())

    def append(self, value: Any) -> None:
        """Add a parameter at the end."""
        super().append(as_parameter(value))

    def __setitem__(self, index: int | slice, value: Any) -> None:
        super().__setitem__(index, as_parameter(value) if isinstance(index, int) else [as_parameter(one) for one in value])


class ParameterDict(OrderedModuleDict):
    """Parameters by name; arrays become parameters.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.ParameterDict.html
    """

    def __init__(self, parameters: Mapping[str, Any] | Iterable[Any] | None = None, *, rngs: nnx.Rngs | None = None) -> None:
        super().__init__(parameters)

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, as_parameter(value))


class UnregisteredList(nnx.List[Any]):
    """A plain list of modules that are registered under other names, by which alone they stand in state dictionaries."""

    registered = False


class UnregisteredDict(OrderedModuleDict):
    """A plain dictionary of modules that are registered under other names, by which alone they stand in state dictionaries."""

    registered = False


class DataParallel(nnx.Module):
    """Calls `module` on the whole batch. One process drives all devices: the sharding of the arguments decides where each part of a batch is computed.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html
    """

    def __init__(
        self, module: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0, *, rngs: nnx.Rngs | None = None
    ) -> None:
        self.module = module

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)
