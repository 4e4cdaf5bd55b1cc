"""What every submodule of the candidate got and gave in one scenario. Run inside the sandbox."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from migrate_agent.tools.verify import arrays
from migrate_agent.tools.verify.jax_session import Session, stored
from migrate_agent.tools.verify.jax_unit import Program, is_leaf
from migrate_agent.tools.verify.sampling import Array


def capture(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> list[dict[str, Any]]:
    """Job entry: inputs and outputs of every submodule in one scenario, run eagerly in float64. Writes `captured.safetensors`."""
    session = Session(arguments, inputs, output, exact=True)
    scenario = arguments["scenarios"][0]
    candidate = session.candidate(scenario["example"])
    candidate.load(session.state(scenario["state"], scenario["example"]))
    graphdef, trainable, rest = candidate.parts(scenario["mode"])
    model = nnx.merge(graphdef, trainable, rest)
    recorder = Recorder({id(module): module_path(path) for path, module in nnx.iter_modules(model)})
    recorder.watch({type(module) for _, module in nnx.iter_modules(model)})
    leaves, _ = session.leaves(scenario)
    program = Program(graphdef, session.tree(scenario), arguments["renamed"], session.draws, gradient=False, paired=True)
    program.call(model, leaves)
    arrays.save(output / "captured.safetensors", recorder.found)
    return recorder.records


def module_path(path: Sequence[Any]) -> str:
    """`h.0.attn`, torch's spelling: `nnx.Sequential`'s own `layers` does not appear."""
    return ".".join(str(part) for part in path if part != "layers")


class Recorder:
    """Notes what goes into and comes out of the watched modules' calls."""

    def __init__(self, paths: Mapping[int, str]) -> None:
        self.paths = paths
        self.records: list[dict[str, Any]] = []
        self.found: dict[str, Array] = {}

    def watch(self, classes: set[type]) -> None:
        """Wrap `__call__` of these classes, each where it is defined."""
        owners = {owner for cls in classes for owner in cls.__mro__ if "__call__" in vars(owner) and issubclass(owner, nnx.Module)}
        for owner in owners:
            self._wrap(owner)

    def _wrap(self, owner: Any) -> None:
        own = vars(owner)["__call__"]

        def call(module: Any, *args: Any, **kwargs: Any) -> Any:
            result = own(module, *args, **kwargs)
            if id(module) in self.paths and type(module).__call__ is owner.__call__:
                self._note(module, (args, kwargs), result)
            return result

        owner.__call__ = call

    def _note(self, module: Any, given: Any, result: Any) -> None:
        ins, outs = _arrays(given), _arrays(result)
        if ins is None or outs is None:
            return
        number = len(self.records)
        self.found.update({f"{number}/in/{index}": value for index, value in enumerate(ins)})
        self.found.update({f"{number}/out/{index}": value for index, value in enumerate(outs)})
        self.records.append({"path": self.paths[id(module)], "type": type(module).__name__, "inputs": len(ins), "outputs": len(outs)})


def _arrays(value: Any) -> list[Array] | None:
    """The arrays in nested containers, in order; None inside a transformation, where they have no values."""
    leaves = [leaf for leaf in jax.tree.leaves(value) if is_leaf(leaf)]
    if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
        return None
    return [stored(leaf) for leaf in leaves if not jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)]
