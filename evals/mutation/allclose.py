"""The usual test of a port: equal weights, one random input, evaluation mode, `allclose` on the outputs."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
import torch
from flax import nnx

from migrate_agent.evals.mutation.corpus import HELPERS, Original, write_trees
from migrate_agent.evals.operators.parity import map_tensors, to_jax, to_numpy
from migrate_agent.tools.weights import load_state_dict

TOLERANCES = (1e-2, 1e-4, 1e-5)
"""Absolute and relative, as people write them."""


def passes_allclose(original: Original, candidate: str, folder: Path) -> dict[str, bool]:
    """Tolerance (`1e-05`) → whether the test passes. A candidate that raises, or gives other shapes, does not pass."""
    theirs, ours = write_trees(original, candidate, folder)
    try:
        pairs = _outputs(original, theirs, ours)
    except Exception:
        return dict.fromkeys(map(_name, TOLERANCES), False)
    return {_name(tolerance): all(_close(mine, yours, tolerance) for mine, yours in pairs) for tolerance in TOLERANCES}


def _name(tolerance: float) -> str:
    return f"{tolerance:.0e}"


def _close(mine: Any, yours: Any, tolerance: float) -> bool:
    return mine.shape == yours.shape and bool(np.allclose(mine, yours, rtol=tolerance, atol=tolerance, equal_nan=True))


def _outputs(original: Original, theirs: Path, ours: Path) -> list[tuple[Any, Any]]:
    """Pairs of output leaves (candidate, original). Raises the errors of both sides, and `ValueError` where the trees differ."""
    example = original.examples[0]
    torch.manual_seed(0)
    model = _evaluate(f"M({example.init})", vars(_module("model", theirs)))
    args, kwargs = _evaluate(f"_arguments({example.call})", {"torch": torch, "_arguments": _arguments})
    jax_arguments: Mapping[str, Any] = map_tensors(
        to_jax, {"args": args, "kwargs": kwargs}
    )  # before the call, which may write to its arguments
    if (ours / f"{HELPERS}.py").stat().st_size:
        sys.modules[HELPERS] = _module(HELPERS, ours)
    port_names = vars(_module("model_jax", ours))
    port = _evaluate(f"M({example.init}{', ' if example.init else ''}rngs=_rngs)", {**port_names, "_rngs": nnx.Rngs(0)})
    load_state_dict(port, {name: to_numpy(value) for name, value in model.state_dict().items()})
    model.eval()
    port.eval()
    with torch.no_grad():
        expected = _leaves(map_tensors(to_numpy, model(*args, **kwargs)))
    actual = _leaves(port(*jax_arguments["args"], **jax_arguments["kwargs"]))
    return [(np.asarray(mine), np.asarray(yours)) for mine, yours in zip(actual, expected, strict=True)]


def _leaves(result: Any) -> list[Any]:
    """The arrays and numbers of a result; of an object of the model's file those that it keeps."""
    files = ("model", "model_jax")
    every = jax.tree.leaves(result)
    return [part for leaf in every for part in (jax.tree.leaves(vars(leaf)) if type(leaf).__module__ in files else [leaf])]


def _arguments(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return args, kwargs


def _evaluate(text: str, names: Mapping[str, Any]) -> Any:
    return eval(text, dict(names))


def _module(name: str, folder: Path) -> Any:
    """The module of this file, loaded anew."""
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
