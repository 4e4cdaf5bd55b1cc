"""`python torch_run.py MODE STEPS OUT FILE …`: run a training script in torch, and keep what its optimizers began and ended with.

MODE is `exact` (float64, dropout keeps all) or `native`, STEPS where it ends (0: by itself). OUT gets `start-K.npz`,
`generator-K.npy` and `end-K.npz` of each optimizer K, and `seconds.txt`: those from step to step, and those of a step alone.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from migrate_agent.evals.programs.both_run import CONSTANT, Parts, begin, clock, median_interval, median_step, note_step, run

SINGLE = torch.float32
WRAPPERS = ("DataParallel", "DistributedDataParallel", "OptimizedModule")
"""Classes of modules that only wrap another one."""


inside = [0]
"""How many modules are being called."""


def _drawn(own: Callable[..., Any], single: Any) -> Callable[..., Any]:
    def draw(*args: Any, **kwargs: Any) -> Any:
        if inside[0]:
            return torch.full_like(_without_advance(own)(*args, **kwargs), CONSTANT)
        return own(*args, **{**kwargs, "dtype": single}).to(kwargs.get("dtype") or torch.float64)

    return draw


def _without_advance(own: Callable[..., Any]) -> Callable[..., Any]:
    def draw(*args: Any, **kwargs: Any) -> Any:
        state = torch.get_rng_state()
        try:
            return own(*args, **kwargs)
        finally:
            torch.set_rng_state(state)

    return draw


def _largest(own: Callable[..., Any]) -> Callable[..., Any]:
    """`multinomial` of one number a row, which is the most likely one: JAX samples by keys of its own. What a script samples of a distribution, and an
    environment is told, comes of torch's stream on both sides.
    """

    def draw(weights: Any, num_samples: int, *args: Any, **kwargs: Any) -> Any:
        if not inside[0] and sys._getframe(1).f_globals["__name__"].startswith("torch.distributions."):
            return own(weights, num_samples, *args, **kwargs)
        return weights.argmax(-1, keepdim=True) if num_samples == 1 else own(weights, num_samples, *args, **kwargs)

    return draw


class KeepsAll(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A mode in which every draw of zeros and ones gives ones: the masks of dropout, also of what a recurrent layer or attention drops inside."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Answer draws; everything else is torch's."""
        name = func._schema.name
        if name == "aten::bernoulli_":
            return args[0].fill_(1)
        if name == "aten::bernoulli":
            return torch.ones_like(args[0])
        if name == "aten::native_dropout":
            value, rate, train = args
            return (value / (1 - rate) if train else value), torch.ones_like(value, dtype=torch.bool)
        return func(*args, **(kwargs or {}))


def _around_modules() -> None:
    own: Any = torch.nn.Module.__call__

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = inside[0]
        # Transforms of data are modules too, and draw from torch's stream in JAX as well.
        inside[0] = 0 if type(self).__module__.startswith("torchvision.transforms") else before + 1
        try:
            return own(self, *args, **kwargs)
        finally:
            inside[0] = before

    module: Any = torch.nn.Module
    module.__call__ = call


def _wide(own: Callable[..., Any]) -> Callable[..., Any]:
    def convert(*args: Any, **kwargs: Any) -> Any:
        tensor = own(*args, **kwargs)
        return tensor.double() if tensor.dtype == SINGLE else tensor

    return convert


def widen() -> None:
    """Compute in float64, with the numbers that float32 would have drawn.

    What JAX draws from keys of its own is out of the comparison: dropout keeps all, modules draw a constant, the likeliest is sampled, and initial
    weights, which are handed over, take no numbers of the generator.
    """
    # Built before the names of narrow dtypes mean wide ones: files of tensors are read by it.
    torch.storage._storage_type_to_dtype_map()
    torch.set_default_dtype(torch.float64)
    namespace: Any = torch
    namespace.float32 = namespace.float = torch.float64
    namespace.FloatTensor = torch.DoubleTensor
    tensor: Any = torch.Tensor
    tensor.float = torch.Tensor.double
    for name in ("rand", "randn", "rand_like", "randn_like"):
        setattr(torch, name, _drawn(getattr(torch, name), SINGLE))
    for name in ("from_numpy", "as_tensor", "tensor"):
        setattr(torch, name, _wide(getattr(torch, name)))
    for name in ("normal_", "uniform_"):
        setattr(torch.Tensor, name, _without_advance(getattr(torch.Tensor, name)))
    torch.multinomial = _largest(torch.multinomial)
    _around_modules()
    mode: Any = KeepsAll()  # type: ignore[no-untyped-call]
    mode.__enter__()


def watch(watched_pairs: list[tuple[Any, Any]], stamps: list[float], out: Path, steps: int) -> None:
    """Note each optimizer at its construction, with the module whose parameters it has, and the time of each step."""
    optimizer: Any = torch.optim.Optimizer
    construct = optimizer.__init__

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        construct(self, *args, **kwargs)
        module = owner({id(p) for group in self.param_groups for p in group["params"]})
        np.save(out / f"generator-{len(watched_pairs)}.npy", torch.get_rng_state().numpy())
        if module is not None:
            save(out / f"start-{len(watched_pairs)}.npz", module)
        watched_pairs.append((self, module))
        self.register_step_post_hook(lambda *rest: note_step(stamps, steps))

    optimizer.__init__ = __init__


def watch_parts(parts: Parts) -> None:
    """Time what a step consists of: calls of modules in training, `backward()`, and the optimizer's step. What a script computes between them counts not."""
    module, tensor, optimizer = torch.nn.Module, torch.Tensor, torch.optim.Optimizer
    own_call, own_backward, construct = module.__call__, tensor.backward, optimizer.__init__

    def timed(own: Callable[..., Any], counts: Callable[[Any], bool]) -> Callable[..., Any]:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not counts(self):
                return own(self, *args, **kwargs)
            parts.open()
            try:
                return own(self, *args, **kwargs)
            finally:
                parts.close()

        return call

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        construct(self, *args, **kwargs)
        self.register_step_pre_hook(lambda *rest: parts.open())
        self.register_step_post_hook(lambda *rest: parts.close())
        self.register_step_post_hook(lambda *rest: parts.end())

    module.__call__ = timed(own_call, lambda one: one.training and torch.is_grad_enabled())  # type: ignore[method-assign]
    tensor.backward = timed(own_backward, lambda one: True)  # type: ignore[method-assign]
    optimizer.__init__ = __init__  # type: ignore[method-assign]


def watch_without_optimizer(watched_pairs: list[tuple[Any, Any]], stamps: list[float], out: Path) -> None:
    """Note what a script that updates its weights by hand begins with: its largest module at the first gradients, and the generator as the last draw
    in place left it, which gave a parameter its first values.
    """
    tensor: Any = torch.Tensor
    states = [torch.get_rng_state().numpy()]
    backward = tensor.backward

    def noting(own: Callable[..., Any]) -> Callable[..., Any]:
        def draw(*args: Any, **kwargs: Any) -> Any:
            result = own(*args, **kwargs)
            states[:] = [torch.get_rng_state().numpy()]
            return result

        return draw

    def watched(*args: Any, **kwargs: Any) -> Any:
        if not watched_pairs:
            modules = [thing for thing in gc.get_objects() if issubclass(type(thing), torch.nn.Module)]
            module = max(modules, key=lambda one: sum(p.numel() for p in one.parameters()))
            np.save(out / "generator-0.npy", states[0])
            save(out / "start-0.npz", module)
            watched_pairs.append((None, module))
        if watched_pairs[0][0] is None:
            stamps.append(clock())
        return backward(*args, **kwargs)

    for name in ("normal_", "uniform_"):
        setattr(tensor, name, noting(getattr(tensor, name)))
    tensor.backward = watched


def owner(parameters: set[int]) -> Any:
    """The module that is part of no other and holds these parameters; of several, the one with the fewest."""
    modules = [thing for thing in gc.get_objects() if issubclass(type(thing), torch.nn.Module) and type(thing).__name__ not in WRAPPERS]
    inner = {id(child) for module in modules for child in module.children()}
    outer = [m for m in modules if id(m) not in inner and parameters <= {id(p) for p in m.parameters()}]
    return min(outer, key=lambda module: len(list(module.parameters())), default=None)


def save(path: Path, module: Any) -> None:
    """A module's state dictionary."""
    np.savez(path, **{name: value.detach().numpy() for name, value in module.state_dict().items()})


def stay_on_cpu() -> None:
    """Let moves to GPUs, by name or by number, be none."""
    for kind in (torch.Tensor, torch.nn.Module):
        owner: Any = kind
        owner.to, owner.cuda = _without_devices(owner.to), lambda self, *args, **kwargs: self


def _without_devices(own: Callable[..., Any]) -> Callable[..., Any]:
    def to(self: Any, *args: Any, device: Any = None, **kwargs: Any) -> Any:
        kept = [one for one in args if not isinstance(one, (int, str, torch.device))]
        return own(self, *kept, **kwargs) if kept or kwargs else self

    return to


def main(mode: str, steps: int, out: Path, arguments: list[str]) -> None:
    """As the module says."""
    torch.manual_seed(0)
    stay_on_cpu()
    watched_pairs: list[tuple[Any, Any]] = []
    stamps: list[float] = []
    if mode == "exact":
        widen()
    parts = Parts()
    if mode != "exact":
        watch_parts(parts)
    watch(watched_pairs, stamps, out, steps)
    watch_without_optimizer(watched_pairs, stamps, out)
    begin()
    run(arguments)
    for number, (_, module) in enumerate(watched_pairs):
        if module is not None:
            save(out / f"end-{number}.npz", module)
    (out / "seconds.txt").write_text(f"{median_interval(stamps)} {median_step(parts.steps)}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:])
