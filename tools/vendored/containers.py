"""Containers of layers and parameters with PyTorch's behaviour."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import jax
from flax import nnx


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


class ModuleDict(nnx.Dict[Any]):
    """Layers by name. https://docs.pytorch.org/docs/stable/generated/torch.nn.ModuleDict.html"""

    def __init__(self, modules: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None, *, rngs: nnx.Rngs | None = None) -> None:
        super().__init__({} if modules is None else dict(modules))


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


class ParameterDict(nnx.Dict[Any]):
    """Parameters by name; arrays become parameters.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.ParameterDict.html
    """

    def __init__(self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None, *, rngs: nnx.Rngs | None = None) -> None:
        super().__init__({name: as_parameter(value) for name, value in dict(parameters or {}).items()})

    def __setitem__(self, key: str, value: Any) -> None:
        setattr(self, key, as_parameter(value))
