"""A module of the candidate's that holds shapes in place of arrays. Used inside the sandbox."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from migrate_agent.tools.harness.jax_side.errors import CONCRETISATION
from migrate_agent.tools.harness.jax_side.module import is_key, is_trainable, keeps_tracers, make_namespace
from migrate_agent.tools.harness.jax_side.precision import tracers_as_data
from migrate_agent.tools.portable.describe import HELPERS

SHAPE: Any = jax.ShapeDtypeStruct


class AbstractUnit:
    """The unit as an example constructs it, with shapes for parameters and state. `dtype` (`bf16`, or "" for its own) is that of its floats.

    `concrete` keeps the arrays, for `values`. A constructor that needs numbers (`float(rates[i])`) runs on real arrays instead. Raises what
    import, setup and constructor raise.
    """

    def __init__(self, arguments: Mapping[str, Any], tensors: Path | None, dtype: str = "", concrete: bool = False) -> None:
        module: Any = importlib.import_module(arguments["module"])
        texts = arguments["example"]
        namespace = make_namespace(module, texts, tensors, exact=bool(arguments.get("exact")))
        cls = module
        for part in arguments["name"].split("."):
            cls = getattr(cls, part)
        if not (isinstance(cls, type) and issubclass(cls, nnx.Module)):
            raise TypeError(f"{arguments['name']} is no flax.nnx.Module")
        init = compile(f"_unit({texts['init']}\n)", "<init of the example>", "eval")
        self.dtype = dtype

        def build() -> Any:
            return eval(init, {**namespace, "_unit": cls, "rngs": nnx.Rngs(0)})

        self.model = build() if concrete else self._abstract(build)

    def _abstract(self, build: Any) -> Any:
        try:
            with tracers_as_data():
                model = nnx.eval_shape(build)
                graphdef = nnx.split(model)[0]
            if keeps_tracers(graphdef):
                raise jax.errors.UnexpectedTracerError("a static attribute holds a tracer")
        except (*CONCRETISATION, jax.errors.UnexpectedTracerError):
            model = build()
        return model

    def parts(self, mode: str) -> tuple[Any, Any, Any]:
        """Graph definition, trainable parameters and the rest as shapes, in `train` or `eval` mode."""
        self.model.train() if mode == "train" else self.model.eval()
        parts: Any = nnx.split(self.model, is_trainable, ...)
        return parts[0], self._shapes(parts[1]), self._shapes(parts[2])

    def values(self, mode: str) -> list[Any]:
        """The arrays of parameters and other state, in the order of `parts`; keys as the integers that they are made of."""
        self.model.train() if mode == "train" else self.model.eval()
        parts: Any = nnx.split(self.model, is_trainable, ...)
        return [jax.random.key_data(leaf) if is_key(leaf) else leaf for part in parts[1:] for leaf in jax.tree.leaves(part)]

    def _shapes(self, tree: Any) -> Any:
        return jax.tree.map(lambda leaf: SHAPE(leaf.shape, leaf.dtype if is_key(leaf) else narrowed(leaf.dtype, self.dtype)), tree)

    def layers(self) -> dict[str, list[str]]:
        """Class names of the module at each path, own class first. What is reached on several paths has the first."""
        return {
            "/".join(map(str, path)): [base.__name__ for base in type(module).__mro__ if issubclass(base, nnx.Module)]
            for path, module in nnx.iter_modules(self.model)
        }

    def owners(self, root: Path) -> dict[str, list[str]]:
        """File and qualified name of the class at each path, where it is one of the rewrite's own and no helper."""
        found = {}
        for path, module in nnx.iter_modules(self.model):
            file = Path(getattr(sys.modules.get(type(module).__module__), "__file__", None) or "")
            if file.is_relative_to(root) and file.name not in HELPERS:
                found["/".join(map(str, path))] = [file.relative_to(root).as_posix(), type(module).__qualname__]
        return found

    def annotations(self) -> dict[str, list[Any]]:
        """The shardings that the code itself asks for, by path of the variable."""
        found = {}
        for path, value in nnx.iter_graph(self.model):
            if isinstance(value, nnx.Variable) and value.get_metadata().get("out_sharding"):
                found["/".join(map(str, path))] = list(value.get_metadata()["out_sharding"])
        return found


def narrowed(dtype: Any, wanted: str) -> Any:
    """The dtype that is wanted (`bf16`, `f64`) in the place of float32."""
    return {"bf16": jnp.bfloat16, "f64": jnp.float64}[wanted] if wanted and dtype == jnp.float32 else dtype


def path_of(path: Any) -> str:
    """A path in a state as `a/b/0/kernel`."""
    return "/".join(str(getattr(part, "key", getattr(part, "idx", getattr(part, "name", part)))) for part in path if str(part) != ".value")
