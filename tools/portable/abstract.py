"""A module of the candidate with shapes in place of arrays. Used inside the sandbox."""

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
from migrate_agent.tools.harness.jax_side.function_module import function_module
from migrate_agent.tools.harness.jax_side.module import is_key, is_trainable, keeps_tracers, make_namespace
from migrate_agent.tools.harness.jax_side.precision import tracers_as_data
from migrate_agent.tools.portable.describe import HELPERS

SHAPE: Any = jax.ShapeDtypeStruct


class AbstractUnit:
    """The unit as an example constructs it, with `ShapeDtypeStruct` for parameters and state.

    `dtype` (`bf16`, or "" for its own) is the dtype of its floats. `concrete` constructs real arrays,
    for `values`. Raises the errors of import, setup and constructor.
    """

    def __init__(self, arguments: Mapping[str, Any], tensors: Path | None, dtype: str = "", concrete: bool = False) -> None:
        module: Any = importlib.import_module(arguments["module"])
        texts = arguments["example"]
        namespace = make_namespace(module, texts, tensors, exact=bool(arguments.get("exact")))
        cls = module
        for part in arguments["name"].split("."):
            cls = getattr(cls, part)
        if arguments.get("kind") == "function":
            cls = function_module(cls, texts["init"])
        if not (isinstance(cls, type) and issubclass(cls, nnx.Module)):
            raise TypeError(f"{arguments['name']} is no flax.nnx.Module")
        init = compile(f"_unit({texts['init']}\n)", "<init of the example>", "eval")
        self.dtype = dtype

        def build() -> Any:
            return eval(init, {**namespace, "_unit": cls, "rngs": nnx.Rngs(0)})

        self.model = build() if concrete else self._abstract(build)

    def _abstract(self, build: Any) -> Any:
        try:
            # Abstract evaluation allocates nothing, so that a model larger than this machine can be
            # described.
            with tracers_as_data():
                model = nnx.eval_shape(build)
                graphdef = nnx.split(model)[0]
            if keeps_tracers(graphdef):
                raise jax.errors.UnexpectedTracerError("a static attribute holds a tracer")
        # A constructor that needs numbers (`float(rates[i])`) cannot be traced: it runs on real
        # arrays.
        except (*CONCRETISATION, jax.errors.UnexpectedTracerError):
            model = build()
        return model

    def parts(self, mode: str) -> tuple[Any, Any, Any]:
        """Graph definition, trainable parameters and the rest as shapes, in `train` or `eval` mode."""
        self.model.train() if mode == "train" else self.model.eval()
        parts: Any = nnx.split(self.model, is_trainable, ...)
        return parts[0], self._shapes(parts[1]), self._shapes(parts[2])

    def values(self, mode: str) -> list[Any]:
        """The arrays of parameters and other state, in the order of `parts`; random keys as their integer data."""
        self.model.train() if mode == "train" else self.model.eval()
        parts: Any = nnx.split(self.model, is_trainable, ...)
        return [jax.random.key_data(leaf) if is_key(leaf) else leaf for part in parts[1:] for leaf in jax.tree.leaves(part)]

    def _shapes(self, tree: Any) -> Any:
        return jax.tree.map(lambda leaf: SHAPE(leaf.shape, leaf.dtype if is_key(leaf) else replace_float32(leaf.dtype, self.dtype)), tree)

    def layers(self) -> dict[str, list[str]]:
        """Path of each module → names of its NNX classes, own class first. A shared module appears under its first path."""
        return {
            "/".join(map(str, path)): [base.__name__ for base in type(module).__mro__ if issubclass(base, nnx.Module)]
            for path, module in nnx.iter_modules(self.model)
        }

    def owners(self, root: Path) -> dict[str, list[str]]:
        """Path of each module → file and qualified name of its class, for classes of the rewrite itself (helpers left out)."""
        classes = {}
        for path, module in nnx.iter_modules(self.model):
            file = Path(getattr(sys.modules.get(type(module).__module__), "__file__", None) or "")
            if file.is_relative_to(root) and file.name not in HELPERS:
                classes["/".join(map(str, path))] = [file.relative_to(root).as_posix(), type(module).__qualname__]
        return classes

    def annotations(self) -> dict[str, list[Any]]:
        """Path of each variable → the sharding that the code itself annotates."""
        shardings = {}
        for path, value in nnx.iter_graph(self.model):
            if isinstance(value, nnx.Variable) and value.get_metadata().get("out_sharding"):
                shardings["/".join(map(str, path))] = list(value.get_metadata()["out_sharding"])
        return shardings


def replace_float32(dtype: Any, replacement: str) -> Any:
    """`replacement` (`bf16`, `f64`) in place of float32; any other dtype, and all where it is "", as they are."""
    return {"bf16": jnp.bfloat16, "f64": jnp.float64}[replacement] if replacement and dtype == jnp.float32 else dtype


def path_of(path: Any) -> str:
    """A path in a state as `a/b/0/kernel`."""
    return "/".join(str(getattr(part, "key", getattr(part, "idx", getattr(part, "name", part)))) for part in path if str(part) != ".value")
