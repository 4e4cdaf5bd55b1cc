"""The job on the side of the candidate: runs a training program in JAX, watched, from the state that the original's optimizers began with."""

from __future__ import annotations

import importlib
import random
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from migrate_agent.tools.programs.judge.contract import Trace
from migrate_agent.tools.programs.judge.running import files_in, printing, program_folder, run_script, steady_clock, written


def run_candidate(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """Run `arguments["command"]` (script and options) and write its trace to `output`.

    `inputs["start"]` are the weights that the original's optimizers began with, `generators` the states of torch's generator there. `exact`,
    `steps` and `keep` are as for the original.
    """
    import jax
    from safetensors.numpy import load_file

    from migrate_agent.tools.harness.jax_side.precision import counting_compilations, lift_to_float64

    if arguments["exact"]:
        lift_to_float64()
        _widen_arrays()
    np.random.seed(0)
    random.seed(0)
    trace = Trace(arguments["steps"], tuple(arguments["keep"]))
    watch = _Watch(trace, load_file(str(inputs["start"])), arguments["generators"], arguments["exact"])
    counts: dict[str, int] = {}
    with program_folder(output, arguments["command"]) as script, ExitStack() as stack:
        work = Path.cwd()
        steady_clock(work)
        watch.install()
        before = files_in(work)
        stack.enter_context(counting_compilations(counts))
        stack.enter_context(printing(trace))
        run_script(script, trace)
        barrier: Any = jax.effects_barrier
        barrier()
        watch.keep_last()
    trace.write(output, files=written(work, before), problems=watch.problems, compiled=watch.compiled, eager=watch.eager)
    return {"steps": trace.steps}


def _widen_arrays() -> None:
    """Let arrays of NumPy become arrays of float64, as on the side of the original."""
    import jax.numpy as jnp

    namespace: Any = jnp
    for name in ("asarray", "array"):
        setattr(namespace, name, _widened(getattr(jnp, name)))


def _widened(own: Callable[..., Any]) -> Callable[..., Any]:
    def convert(value: Any, *args: Any, **kwargs: Any) -> Any:
        narrow = isinstance(value, np.ndarray) and value.dtype == np.float32
        return own(value.astype(np.float64) if narrow else value, *args, **kwargs)

    return convert


class _Watch:
    """Hooks into Flax and JAX that note what a training loop does, also where it is compiled."""

    def __init__(self, trace: Trace, start: Mapping[str, Any], generators: list[Any], exact: bool) -> None:
        self.trace, self.start, self.generators, self.exact = trace, start, generators, exact
        self.models: list[Any] = []
        self.problems: list[str] = []
        self.compiled: list[str] = []
        self.eager = 0
        self._inside = False

    def install(self) -> None:
        """Watch gradients, optimizers and draws from here on."""
        import jax
        from flax import nnx

        for owner, name in ((nnx, "value_and_grad"), (nnx, "grad"), (jax, "value_and_grad"), (jax, "grad")):
            setattr(owner, name, self._gradient(getattr(owner, name), name == "grad", getattr(owner, "value_and_grad")))  # noqa: B009
        optimizer: Any = nnx.Optimizer
        self._optimizer(optimizer)
        if self.exact:
            core: Any = importlib.import_module("jax._src.random.core")
            core._bernoulli = lambda key, p, shape=None, mode="low": jax.numpy.ones(np.shape(p) if shape is None else shape, bool)

    def _gradient(self, own: Callable[..., Any], bare: bool, with_value: Callable[..., Any]) -> Callable[..., Any]:
        def transform(function: Any = None, *options: Any, **named: Any) -> Any:
            if function is None:
                return lambda f: transform(f, *options, **named)
            inner = with_value(function, *options, **named) if bare else own(function, *options, **named)
            if self._inside:
                return own(function, *options, **named)

            def differentiate(*args: Any, **kwargs: Any) -> Any:
                if self._inside:
                    return own(function, *options, **named)(*args, **kwargs)
                self._inside = True
                try:
                    value, gradients = inner(*args, **kwargs)
                finally:
                    self._inside = False
                auxiliary = bool(named.get("has_aux"))
                self._note_loss(value[0] if auxiliary else value, args)
                if bare:
                    return (gradients, value[1]) if auxiliary else gradients
                return value, gradients

            return differentiate

        return transform

    def _note_loss(self, loss: Any, args: Any) -> None:
        import jax

        if isinstance(loss, jax.core.Tracer):
            self.compiled.append(str([(leaf.shape, str(leaf.dtype)) for leaf in jax.tree.leaves(args) if hasattr(leaf, "dtype")]))
        else:
            self.eager += 1
        jax.debug.callback(lambda value: self.trace.add("backward", loss=float(value)), loss, ordered=True)

    def _optimizer(self, cls: Any) -> None:
        construct, update = cls.__init__, cls.update

        def __init__(optimizer: Any, model: Any, *args: Any, **kwargs: Any) -> None:
            number = len(self.models)
            self.models.append(model)
            self._begin(number, model)
            construct(optimizer, model, *args, **kwargs)
            # Static, so that it is the same under `jit`, where the optimizer is another object.
            object.__setattr__(optimizer, "_number", number)

        def watched_update(optimizer: Any, model: Any, grads: Any, **kwargs: Any) -> None:
            update(optimizer, model, grads, **kwargs)
            self._note_step(getattr(optimizer, "_number", 0), model)

        cls.__init__, cls.update = __init__, watched_update

    def _begin(self, number: int, model: Any) -> None:
        """Give the model and the generator the state that the original had here."""
        from migrate_agent.tools.weights import StateDictError, load_state_dict

        prefix = f"start/{number}/"
        state = {name.removeprefix(prefix): value for name, value in self.start.items() if name.startswith(prefix)}
        if not state:
            self.problems.append(f"the original has no optimizer number {number + 1}")
            return
        narrow = {
            name: value.astype(np.float32) if value.dtype == np.float64 and not self.exact else value for name, value in state.items()
        }
        try:
            load_state_dict(model, narrow)
        except StateDictError as error:
            self.problems.append(str(error))
        self._set_generator(number)

    def _set_generator(self, number: int) -> None:
        row = self.generators[number]
        bits = {"bit_generator": "MT19937", "state": {"key": np.array(row["words"], np.uint64), "pos": row["place"]}}
        for module in list(sys.modules.values()):
            generator: Any = vars(module).get("default_generator") if hasattr(module, "__dict__") else None
            if type(generator).__name__ == "TorchGenerator":
                generator.set_state({"seed": row["seed"], "spare": row["spare"], "bits": bits})

    def _note_step(self, number: int, model: Any) -> None:
        import jax

        from migrate_agent.tools.weights import leaves

        targets = leaves(model)
        values = {name: leaf.variable.get_value() for name, leaf in targets.items()}
        arrange = {name: leaf.axes for name, leaf in targets.items()}

        def note(arrays: Mapping[str, Any]) -> None:
            trace = self.trace
            trace.steps += 1
            trace.add("step", optimizer=number)
            if trace.wants(trace.steps):
                trace.store(f"step/{trace.steps}/{number}", {k: _arranged(v, arrange[k]) for k, v in arrays.items()})
            trace.end_step()

        jax.debug.callback(note, values, ordered=True)

    def keep_last(self) -> None:
        """Keep the parameters that the run ended with."""
        from migrate_agent.tools.weights import state_dict

        for number, model in enumerate(self.models):
            self.trace.store(f"end/{number}", state_dict(model))


def _arranged(array: Any, axes: Any) -> Any:
    array = np.asarray(array)
    return np.array(array if axes is None else array.transpose(axes), order="C")
