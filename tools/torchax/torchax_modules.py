"""Modules of PyTorch that run inside JAX through torchax, with their parameters and buffers as variables of NNX.

torch and torchax are imported where such a module is constructed or called, and nowhere else: what stands beside it needs neither.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

TORCH_DEFAULT = object()
"""Stands for a default of torch's own signature: an argument that is this is not passed on."""


class TorchaxPart(nnx.Module):
    """The parameters and buffers of a module of PyTorch and of its submodules, as variables under torch's names, and the mode of each.

    `tensors`: variables by the ids of torch's tensors. `parts`: what was made of submodules already, by their ids.
    """

    def __init__(self, original: Any, tensors: dict[int, Any], parts: dict[int, TorchaxPart]) -> None:
        parts[id(original)] = self
        self.deterministic = not original.training
        members = {**original._parameters, **original._buffers, **original._modules}
        for name, member in members.items():
            if hasattr(TorchaxModule, name) or name in ("deterministic", "original", "rngs"):
                raise ValueError(f"{type(original).__name__}.{name} has the name of an attribute of Flax's modules")
            if name in original._modules and member is not None:
                setattr(self, name, parts[id(member)] if id(member) in parts else TorchaxPart(member, tensors, parts))
            elif member is not None:
                setattr(self, name, tensors[id(member)])


class TorchaxModule(TorchaxPart):
    """A module of PyTorch that runs through torchax (https://github.com/google/torchax) as a module of NNX.

    `original` is its class, which is constructed from the other arguments. The initial values are torch's own, by a seed from `rngs`.
    """

    def __init__(self, original: Callable[..., Any], *args: Any, rngs: nnx.Rngs, **kwargs: Any) -> None:
        kwargs = {name: value for name, value in kwargs.items() if value is not TORCH_DEFAULT}

        def make(seed: Any) -> Any:
            import torch

            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(int(seed))
                return original(*args, **kwargs)

        module = make(0)
        shapes = {name: jax.ShapeDtypeStruct(value.shape, value.dtype) for name, value in torch_state(module).items()}
        # Under a trace the seed is no number: then torch's constructor is called where the program runs.
        values = jax.pure_callback(lambda seed: torch_state(make(seed)), shapes, jax.random.bits(rngs.params()), vmap_method="sequential")
        super().__init__(module, torch_variables(module, values), {})
        self.original = module.to("meta")
        self.rngs = rngs

    def call_torch(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """What a method of the original gives, with arrays in the place of tensors. Variables get what it writes to parameters and buffers.

        Raises `NotImplementedError` where it keeps anything else of the call.
        """
        import torch
        from torch.utils._pytree import tree_map_only

        environment = torchax_environment()
        variables = {name: self.member(name) for name in torch_tensors(self.original)}
        tensors = {id(variable): environment.tensor(variable.get_value()) for variable in variables.values()}
        state = {name: tensors[id(variable)] for name, variable in variables.items()}
        given = {name: value for name, value in kwargs.items() if value is not TORCH_DEFAULT}
        arguments, named = tree_map_only((jax.Array, np.ndarray), environment.tensor, (args, given))
        with self.in_use(environment), environment, torch.nn.utils.stateless._reparametrize_module(self.original, state):
            function = self.original if method == "forward" else getattr(self.original, method)
            output = function(*arguments, **named)
        for name, variable in variables.items():
            if (value := environment.array(state[name])) is not variable.get_value():
                variable.set_value(value)
        return tree_map_only(torch.Tensor, environment.array, output)

    def member(self, name: str) -> Any:
        """The variable or part of this dotted name; the module itself for ""."""
        member: Any = self
        for part in name.split(".") if name else ():
            member = getattr(member, part)
        return member

    @contextmanager
    def in_use(self, environment: Any) -> Iterator[None]:
        """The original in the modes of this module's parts, with the tensors among its attributes as torchax has them, and keys from `rngs`.

        Raises `NotImplementedError` where an attribute of it is another afterwards.
        """
        import torch

        modules = dict(self.original.named_modules())
        before = {name: dict(vars(module)) for name, module in modules.items()}
        for name, module in modules.items():
            constants = {
                key: environment.tensor(jnp.asarray(torch_array(value)))
                for key, value in vars(module).items()
                if isinstance(value, torch.Tensor)
            }
            module.__dict__.update(constants, training=not self.member(name).deterministic)
        during = {name: dict(vars(module)) for name, module in modules.items()}
        environment.draw_key = self.rngs.dropout
        try:
            yield
            for name, module in modules.items():
                for key, value in vars(module).items():
                    if during[name].get(key, module) is not value:
                        raise NotImplementedError(
                            f"{type(module).__name__} sets its attribute {key} in a call, which does not go through torchax"
                        )
        finally:
            environment.draw_key = None  # else it would hold tracers beyond their trace
            for name, module in modules.items():
                module.__dict__.clear()
                module.__dict__.update(before[name])


def torch_tensors(module: Any) -> dict[str, Any]:
    """Name → tensor of all parameters and buffers of a module of PyTorch; one that is shared stands under each of its names."""
    return {**dict(module.named_parameters(remove_duplicate=False)), **dict(module.named_buffers(remove_duplicate=False))}


def torch_array(tensor: Any) -> np.ndarray[Any, Any]:
    """The values of a tensor, in the dtype that JAX has for it."""
    import torch

    values = tensor.detach().cpu()
    array = values.float().numpy().astype(jnp.bfloat16) if values.dtype == torch.bfloat16 else values.numpy()
    return array.astype(jax.dtypes.canonicalize_dtype(array.dtype))


def torch_state(module: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Name → values of all parameters and buffers of a module of PyTorch."""
    return {name: torch_array(tensor) for name, tensor in torch_tensors(module).items()}


def torch_variables(module: Any, values: dict[str, Any]) -> dict[int, nnx.Variable[Any]]:
    """A variable with its initial value for each parameter and buffer, by the ids of torch's tensors."""
    import torch

    variables: dict[int, nnx.Variable[Any]] = {}
    for name, tensor in torch_tensors(module).items():
        owner, _, attribute = name.rpartition(".")
        holder = module.get_submodule(owner)
        kind: type[nnx.Variable[Any]] = nnx.Variable
        if isinstance(tensor, torch.nn.Parameter):
            kind = nnx.Param if tensor.requires_grad else nnx.Variable
        elif attribute in holder._non_persistent_buffers_set:
            kind = nnx.Cache
        elif attribute.startswith("running_"):
            kind = nnx.BatchStat
        variables.setdefault(id(tensor), kind(values[name]))
    return variables


@cache
def torchax_environment() -> Any:
    """What torchax runs operators in. `tensor` and `array` turn one into the other, and random numbers come from keys of `draw_key`.

    torchax itself draws from a seed that is no argument of the program.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torchax uses names of JAX that are deprecated
        import torchax

        environment: Any = torchax.tensor.Environment()
    wrapped = torchax.tensor.Tensor
    environment.get_and_rotate_prng_key = lambda generator=None: environment.draw_key()
    environment.tensor = lambda array: wrapped(jnp.asarray(array), environment)
    environment.array = lambda tensor: tensor.jax() if isinstance(tensor, wrapped) else jnp.asarray(torch_array(tensor))
    mend_operators(environment)
    return environment


def mend_operators(environment: Any) -> None:
    """Have masks drawn as PyTorch draws them, and batch normalisation move its running statistics, which torchax leaves as they are.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.Dropout.html
    https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm1d.html
    """
    import torch
    from torch.utils._pytree import tree_map_only

    normalise = environment._ops[torch.ops.aten.native_batch_norm].func

    def drawn(values: Any, p: Any) -> jax.Array:
        return jax.random.bernoulli(environment.draw_key(), p, values.shape)

    def bernoulli(values: Any, p: float | None = None, *, generator: Any = None) -> Any:
        return environment.tensor(drawn(values, values.jax() if p is None else p).astype(values.jax().dtype))

    def bernoulli_(values: Any, p: float = 0.5, *, generator: Any = None) -> Any:
        return values.apply_jax_(lambda old: drawn(values, p).astype(old.dtype))

    def native_dropout(values: Any, p: float, train: bool | None) -> Any:
        if train is False or p == 0.0:
            return values, environment.tensor(jnp.ones(values.shape, bool))
        if p == 1.0:
            return environment.tensor(jnp.zeros_like(values.jax())), environment.tensor(jnp.zeros(values.shape, bool))
        mask = drawn(values, 1 - p)
        return environment.tensor(jnp.where(mask, values.jax() / (1 - p), 0)), environment.tensor(mask)

    def native_batch_norm(input: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float, eps: float) -> Any:
        arrays = tree_map_only(torch.Tensor, environment.array, (input, weight, bias, mean, var))
        if training and mean is not None:
            x, axes = jax.lax.stop_gradient(arrays[0]), (0, *range(2, input.ndim))
            mean.apply_jax_(lambda old: (1 - momentum) * old + momentum * x.mean(axes))
            var.apply_jax_(lambda old: (1 - momentum) * old + momentum * x.var(axes, ddof=1))
        return tree_map_only(jax.Array, environment.tensor, normalise(*arrays, training, momentum, eps))

    mended = {
        torch.ops.aten.bernoulli.default: bernoulli,
        torch.ops.aten.bernoulli.p: bernoulli,
        torch.ops.aten.bernoulli_.float: bernoulli_,
        torch.ops.aten.native_dropout.default: native_dropout,
        torch.ops.aten.native_batch_norm: native_batch_norm,
    }
    for operator, function in mended.items():
        environment.override_op_definition(operator, function)
