"""What user code asks of modules in torch: walking them, and switching gradients off."""

import copy
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import einops
import jax
import jax.numpy as jnp
from flax import nnx
from jax import lax


def no_grad(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: no gradient flows through the results, nor through what a method writes to buffers.

    https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html
    """

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        nodes = [node for _, node in nnx.iter_graph(args[0])] if args and isinstance(args[0], nnx.Module) else []
        # A parameter that is written keeps its own gradient, as a leaf does in torch.
        buffers = [node for node in nodes if isinstance(node, nnx.Variable) and not isinstance(node, nnx.Param)]
        before = [buffer.get_value() for buffer in buffers]
        result = function(*args, **kwargs)
        for buffer, old in zip(buffers, before, strict=True):
            new = buffer.get_value()
            if new is not old and isinstance(new, jax.Array) and jnp.issubdtype(new.dtype, jnp.inexact):
                buffer.set_value(lax.stop_gradient(new))
        return jax.tree.map(lambda leaf: lax.stop_gradient(leaf) if isinstance(leaf, jax.Array) else leaf, result)

    return wrapper


def checkpoint(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`function(*args, **kwargs)`, computed again for the gradient instead of being kept (https://docs.pytorch.org/docs/stable/checkpoint.html)."""
    given = [*args, *kwargs.values()]
    places = [i for i, value in enumerate(given) if isinstance(value, (jax.Array, nnx.Rngs))]

    def run(target: Callable[..., Any], *values: Any) -> Any:
        full = list(given)
        for place, value in zip(places, values, strict=True):
            full[place] = value
        return target(*full[: len(args)], **dict(zip(kwargs, full[len(args) :], strict=True)))

    values = [given[place] for place in places]
    if isinstance(function, nnx.Module):
        return nnx.remat(run)(function, *values)
    if inspect.ismethod(function) and isinstance(function.__self__, nnx.Module):
        method = function.__func__
        return nnx.remat(lambda module, *values: run(functools.partial(method, module), *values))(function.__self__, *values)
    return nnx.remat(functools.partial(run, function))(*values)


def copied(module: Any) -> Any:
    """`copy.deepcopy(module)`, which draws random numbers of its own: torch's copies all draw from one generator."""
    new = copy.deepcopy(module)
    for (_, old), (_, twin) in zip(nnx.iter_graph(module), nnx.iter_graph(new), strict=True):
        if isinstance(old, nnx.RngStream):
            twin.key[...] = old()
    return new


def masked_set(x: jax.Array, mask: jax.Array, value: Any) -> jax.Array:
    """`x[mask] = value` for a scalar value: `mask` (a, b) selects rows of `x` (a, b, …)."""
    mask = mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim))
    return jnp.where(mask, jnp.asarray(value, x.dtype), x)


def overwrite(owner: Any, key: str | int, value: Any) -> None:
    """Give the parameter or tensor `owner.key` (`owner[key]` of a container) a new value; all that share the variable see it.

    The shape may change, as it may by assigning to torch's `Tensor.data`. A property is set without a note in the static structure of the owner, which
    would be another one after a call.
    """
    keyed = not isinstance(key, str) or isinstance(owner, (dict, nnx.Dict))
    old = owner[key] if keyed else getattr(owner, key)  # type: ignore[arg-type]
    if isinstance(old, nnx.Variable):
        old.set_value(jnp.asarray(value).astype(old.dtype))
    elif keyed:
        owner[key] = value
    elif isinstance(getattr(type(owner), str(key), None), property):
        object.__setattr__(owner, str(key), value)
    else:
        setattr(owner, str(key), value)


def set_child(owner: Any, name: str, child: Any) -> None:
    """Put a module in the place of the child of this name, or beside the others; a container holds its parts in a list."""
    if hasattr(owner, "add_module"):
        owner.add_module(name, child)
    else:
        setattr(owner, name, child)


def named_children(module: Any) -> Iterator[tuple[str, Any]]:
    """The modules directly inside, with torch's names; in containers also functions that stand for layers without state.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.named_children
    """
    if isinstance(module, nnx.Sequential):
        yield from zip(getattr(module, "names", None) or map(str, range(len(module.layers))), module.layers, strict=True)
    elif isinstance(module, nnx.List):
        yield from ((str(index), child) for index, child in enumerate(module) if not isinstance(child, nnx.Variable))
    elif isinstance(module, nnx.Dict):
        yield from ((name, child) for name, child in module.items() if not isinstance(child, nnx.Variable))
    else:
        names = getattr(module, "_children", ()) or module.__dict__
        yield from ((name, child) for name in names if isinstance(child := module.__dict__.get(name), nnx.Module))


def constructor_signature(function: Callable[..., Any]) -> inspect.Signature:
    """`inspect.signature`, which sees no more than `(*args, **kwargs)` of an NNX class: that of its constructor, without `rngs`."""
    if not (isinstance(function, type) and issubclass(function, nnx.Module)):
        return inspect.signature(function)
    _, *parameters = inspect.signature(function.__init__).parameters.values()
    return inspect.Signature([parameter for parameter in parameters if parameter.name != "rngs"])


def constructor_arguments(function: Callable[..., Any]) -> inspect.FullArgSpec:
    """`inspect.getfullargspec`, as `constructor_signature`."""
    if not (isinstance(function, type) and issubclass(function, nnx.Module)):
        return inspect.getfullargspec(function)
    asked = inspect.getfullargspec(function.__init__)
    return asked._replace(kwonlyargs=[name for name in asked.kwonlyargs if name != "rngs"])


def on_arrays(name: str) -> Callable[..., Any]:
    """An operator of arrays as one of `Reference`s."""
    return lambda self, *others: getattr(self[...], name)(*(one[...] if isinstance(one, Reference) else one for one in others))


class Reference:
    """A parameter that its module keeps in another layout, read and set through the module's property; else it acts as its array."""

    def __init__(self, owner: Any, name: str) -> None:
        self.owner, self.name = owner, name

    def __getitem__(self, index: Any) -> jax.Array:
        value: jax.Array = getattr(self.owner, self.name)[index]
        return value

    def __setitem__(self, index: Any, value: Any) -> None:
        # NNX notes each name that is set on a module: a call would then change the module's structure.
        object.__setattr__(self.owner, self.name, self[...].at[index].set(value))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("owner", "name"):
            raise AttributeError(name)
        return getattr(self[...], name)

    def __jax_array__(self) -> jax.Array:
        return self[...]

    __add__, __radd__, __sub__, __rsub__ = map(on_arrays, ("__add__", "__radd__", "__sub__", "__rsub__"))
    __mul__, __rmul__, __truediv__, __rtruediv__ = map(on_arrays, ("__mul__", "__rmul__", "__truediv__", "__rtruediv__"))
    __pow__, __matmul__, __neg__, __abs__ = map(on_arrays, ("__pow__", "__matmul__", "__neg__", "__abs__"))


class KernelReference(Reference):
    """The kernel (in, out) of a linear layer of Flax's own, read and set as torch's weight (out, in)."""

    def __getitem__(self, index: Any) -> jax.Array:
        value: jax.Array = self.owner.kernel[...].T[index]
        return value

    def __setitem__(self, index: Any, value: Any) -> None:
        self.owner.kernel[...] = self[...].at[index].set(value).T


def reference(owner: Any, name: str) -> Any:
    """The parameter `owner.name` as something that is read and set by `[...]`, whatever holds it; `None` where there is none."""
    value = getattr(owner, name)
    return value if value is None or isinstance(value, nnx.Variable) else Reference(owner, name)


def named_modules(module: nnx.Module, prefix: str = "", seen: set[int] | None = None) -> Iterator[tuple[str, nnx.Module]]:
    """The module and all inside it with torch's dotted names, each once.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.named_modules
    """
    seen = set() if seen is None else seen
    if id(module) in seen:
        return
    seen.add(id(module))
    yield prefix, module
    for name, child in named_children(module):
        if isinstance(child, nnx.Module):
            yield from named_modules(child, f"{prefix}.{name}" if prefix else name, seen)


def modules(module: nnx.Module) -> Iterator[nnx.Module]:
    """The module and all inside it, each once (https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.modules)."""
    for _, node in named_modules(module):
        yield node


def in_training(module: nnx.Module) -> bool:
    """Whether a module trains: what it says itself, or else whether any module inside does. Where none has a mode, True: so modules begin."""
    modes = [
        (part is module, not getattr(part, name))
        for part in modules(module)
        for name in ("deterministic", "use_running_average")
        if isinstance(getattr(part, name, None), bool)
    ]
    own = [trains for is_own, trains in modes if is_own]
    return own[0] if own else any(trains for _, trains in modes) or not modes


def inner_first(module: nnx.Module) -> Iterator[nnx.Module]:
    """What `Module.apply` goes through: the modules inside before the module itself, shared ones wherever they stand.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.apply
    """
    for child in {id(child): child for _, child in named_children(module) if isinstance(child, nnx.Module)}.values():
        yield from inner_first(child)
    yield module


def children(module: nnx.Module) -> Iterator[Any]:
    """The modules directly inside (https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.children)."""
    for _, node in named_children(module):
        yield node


def is_parameter(variable: nnx.Variable[Any]) -> bool:
    """Whether a variable is a parameter, be it trained or frozen, and no buffer."""
    return isinstance(variable, nnx.Param) or bool(variable.get_metadata().get("frozen"))


def named_variables(module: nnx.Module) -> Iterator[tuple[str, nnx.Variable[Any], Any]]:
    """All parameters and buffers, shared ones once: torch's dotted name, the variable, and what reads and sets it in torch's layout."""
    seen: set[int] = set()
    for owner, node in named_modules(module):
        for leaf, value in node.__dict__.items():
            if isinstance(value, nnx.Variable) and not isinstance(value, (nnx.RngState, nnx.Intermediate)) and id(value) not in seen:
                seen.add(id(value))
                name = "weight" if leaf in ("kernel", "embedding", "scale", "tied") else leaf
                view: Any = value
                if leaf == "kernel" and isinstance(getattr(type(node), name, None), property):
                    view = Reference(node, name)
                elif leaf == "kernel" and isinstance(node, nnx.Linear):
                    view = KernelReference(node, name)
                yield f"{owner}.{name}" if owner else name, value, view


def named_parameters(module: nnx.Module) -> Iterator[tuple[str, Any]]:
    """All parameters with torch's dotted names, shared ones once, to be read and set by `[...]` in torch's layout.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.named_parameters
    """
    yield from ((name, view) for name, value, view in named_variables(module) if is_parameter(value))


def parameters(module: nnx.Module) -> Iterator[Any]:
    """All parameters, shared ones once (https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.parameters)."""
    for _, value in named_parameters(module):
        yield value


def named_buffers(module: nnx.Module) -> Iterator[tuple[str, Any]]:
    """All buffers with torch's dotted names, but for the names of running statistics.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.named_buffers
    """
    yield from ((name, value) for name, value, _ in named_variables(module) if not is_parameter(value))


def buffers(module: nnx.Module) -> Iterator[Any]:
    """All buffers (https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.buffers)."""
    for _, value in named_buffers(module):
        yield value


def copy_state(target: nnx.Module, source: nnx.Module) -> None:
    """`target.load_state_dict(source.state_dict())`: the parameters and buffers of another module of the same structure.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.load_state_dict
    """
    values = {name: view[...] for name, _, view in named_variables(source)}
    for name, _, view in named_variables(target):
        view[...] = values[name]


def frozen(parameter: nnx.Variable[Any], unless: bool = False) -> nnx.Variable[Any]:
    """The variable as one that is kept but not trained, as PyTorch's parameters are with `requires_grad=False`; trained with `unless`."""
    kind = nnx.Param if unless else nnx.Variable
    return kind(parameter[...], **{**parameter.get_metadata(), "frozen": not unless})


def freeze(module: nnx.Module, where: Callable[[str, Any], bool] | None = None) -> nnx.Module:
    """Train none of the parameters inside, or none of those whose name and value `where` holds for. Gives `module` back.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.requires_grad_
    """
    rows = [
        (value, view)
        for name, value, view in named_variables(module)
        if isinstance(value, nnx.Param) and (where is None or where(name, view))
    ]
    made = {id(value): frozen(value) for value, _ in rows}
    for node in modules(module):
        for name, value in list(node.__dict__.items()):
            if id(value) in made:
                setattr(node, name, made[id(value)])
    return module


def without_items(modules: nnx.List[Any], index: int | slice) -> nnx.List[Any]:
    """The list of modules without some of its items."""
    kept = list(modules)
    del kept[index]
    return nnx.List(kept)


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


class OrderedChildren(nnx.Module):
    """A base of modules whose children are gone through; NNX sorts attributes by name wherever a module is split and merged."""

    _children: tuple[str, ...] = ()

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, nnx.Module) and name not in self._children:
            super().__setattr__("_children", (*self._children, name))
        super().__setattr__(name, value)


class OwnTrain(nnx.Module):
    """A base of modules with a `train(mode)` of their own. As in torch, it runs wherever this module, or one around it, is put into another mode;
    NNX's `train()` and `eval()` set `deterministic` and call no method of the modules inside.
    """

    _deterministic = False
    _changing = False

    @property
    def deterministic(self) -> bool:
        """Whether the module is in evaluation mode; to set it is to call `train`."""
        return self._deterministic

    @deterministic.setter
    def deterministic(self, value: bool) -> None:
        self._deterministic = value
        if not self._changing:
            self._changing = True
            try:
                self.train(not value)
            finally:
                self._changing = False

    def train(self, mode: bool = True) -> Any:
        """Put this module and those inside it into training mode, or evaluation mode; gives the module."""
        changing, self._changing = self._changing, True
        try:
            super().train() if mode else super().eval()
        finally:
            self._changing = changing
        return self

    def eval(self) -> Any:
        """`train(False)`."""
        return self.train(False)
