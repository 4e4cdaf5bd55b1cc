"""`python jax_run.py MODE STEPS START OUT FILE …`: run a migrated training script without torch, from what the original's optimizers began with.

MODE and STEPS are as there, START is the folder that `torch_run.py` wrote; OUT gets `end-K.npz` of each optimizer K, and `seconds.txt` as there.
"""

from __future__ import annotations

import gc
import sys
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from migrate_agent.evals.programs.both_run import CONSTANT, Parts, begin, median_interval, median_step, note_step, run
from migrate_agent.tools.weights import load_state_dict, state_dict

COMPILED = "/jax/core/compile/backend_compile_duration"
"""What JAX calls it when a program has been compiled."""


def widen(drawing: list[Any]) -> None:
    """Compute in float64; dropout keeps all, and the likeliest is sampled. What else is drawn from keys is a constant, once `drawing` holds something."""
    settings: Any = jax.config
    settings.update("jax_enable_x64", True)
    namespace: Any = jnp
    # Flax's layers have taken the default types of their parameters already.
    layers: list[Any] = [value for value in vars(nnx).values() if isinstance(value, type) and issubclass(value, nnx.Module)]
    for layer in layers:
        defaults = getattr(layer.__init__, "__kwdefaults__", None) or {}
        defaults |= {name: jnp.float64 for name, value in defaults.items() if value is jnp.float32}
    namespace.float32 = jnp.float64
    numbers: Any = jax.random
    numbers.bernoulli = lambda key, p=0.5, shape=None, **rest: jnp.ones(np.shape(p) if shape is None else shape, bool)
    numbers.categorical = lambda key, logits, axis=-1, **rest: jnp.argmax(logits, axis=axis)
    for name in ("normal", "uniform"):
        setattr(numbers, name, _constant(getattr(jax.random, name), drawing))
    for name in ("asarray", "array"):
        setattr(namespace, name, _wide(getattr(jnp, name)))


def _constant(own: Any, drawing: list[Any]) -> Any:
    def draw(key: Any, shape: Any = (), *args: Any, **kwargs: Any) -> Any:
        return jnp.full(shape, CONSTANT) if drawing else own(key, shape, *args, **kwargs)

    return draw


def _wide(own: Any) -> Any:
    def convert(value: Any, *args: Any, **kwargs: Any) -> Any:
        single = isinstance(value, np.ndarray) and value.dtype == np.float32
        return own(value.astype(np.float64) if single else value, *args, **kwargs)

    return convert


def watch(models: list[Any], stamps: list[float], parts: Parts, counts: list[int], start: Path, steps: int) -> None:
    """Put torch's weights and generator in at the construction of each optimizer, and note the time of each step, and how much was compiled by then.

    Of a step alone counts what takes gradients or has an optimizer among its arguments.
    """
    optimizer: Any = nnx.Optimizer
    programs = [0]

    def count(event: str, seconds: float, **rest: Any) -> None:
        programs[0] += event == COMPILED

    listen: Any = jax.monitoring.register_event_duration_secs_listener
    listen(count)
    construct, jit = optimizer.__init__, nnx.jit
    wait: Any = jax.block_until_ready

    def __init__(self: Any, model: Any, *args: Any, **kwargs: Any) -> None:
        number = len(models)
        models.append(model)
        with np.load(start / f"start-{number}.npz") as saved:
            for module in [*copies(model), model]:
                load_state_dict(module, dict(saved))
        for module in list(sys.modules.values()):
            generator: Any = getattr(module, "__dict__", {}).get("default_generator")
            if hasattr(generator, "set_torch_state"):
                generator.set_torch_state(np.load(start / f"generator-{number}.npy"))
        construct(self, model, *args, **kwargs)

    def timed_jit(function: Any = None, **options: Any) -> Any:
        if function is None:
            return lambda f: timed_jit(f, **options)
        compiled = jit(function, **options)
        takes: list[bool] = []

        def call(*args: Any, **kwargs: Any) -> Any:
            updates = any(isinstance(value, nnx.Optimizer) for value in (*args, *kwargs.values()))
            before = gradients[0]
            parts.open()
            result = compiled(*args, **kwargs)
            takes[:] = takes or [True] * (gradients[0] > before)
            if updates or takes:
                wait(result)
            parts.close(counts=bool(updates or takes))
            if updates:
                parts.end()
                counts.append(programs[0])
                note_step(stamps, steps)
            return result

        return call

    def counting(own: Any) -> Any:
        def take(*args: Any, **kwargs: Any) -> Any:
            gradients[0] += 1
            return own(*args, **kwargs)

        return take

    gradients = [0]
    for name in ("value_and_grad", "grad"):
        setattr(nnx, name, counting(getattr(nnx, name)))
    optimizer.__init__ = __init__
    setattr(nnx, "jit", timed_jit)  # noqa: B010


def copies(model: Any) -> list[Any]:
    """Other modules that hold the same weights as this one: copies that were made of it."""
    own = state_dict(model)
    found = []
    for module in [thing for thing in gc.get_objects() if issubclass(type(thing), nnx.Module) and thing is not model]:
        if type(module) is type(model) and equal(own, state_dict(module)):
            found.append(module)
    return found


def equal(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two state dictionaries hold the same."""
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


class NoTorch(MetaPathFinder):
    """The scripts must run where there is no torch. An empty entry among the modules would be one to packages that look whether it is loaded."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Raises `ModuleNotFoundError` for torch."""
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")


def main(mode: str, steps: int, start: Path, out: Path, arguments: list[str]) -> None:
    """As the module says."""
    sys.meta_path.insert(0, NoTorch())
    models: list[Any] = []
    stamps: list[float] = []
    counts: list[int] = []
    if mode == "exact":
        widen(models)
    parts = Parts()
    watch(models, stamps, parts, counts, start, steps)
    # A stream that the script does not seed is that of seed 0, as torch's is.
    namespace: Any = np.random
    own = namespace.SeedSequence
    zeros = SimpleNamespace(generate_state=lambda count: np.zeros(count, np.uint32))
    namespace.SeedSequence = lambda *args, **kwargs: own(*args, **kwargs) if args or kwargs else zeros
    begin()
    run(arguments)
    for number, model in enumerate(models):
        arrays: dict[str, Any] = state_dict(model)
        np.savez(out / f"end-{number}.npz", **arrays)
    (out / "seconds.txt").write_text(f"{median_interval(stamps, counts)} {median_step(parts.steps, counts)}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4]), sys.argv[5:])
