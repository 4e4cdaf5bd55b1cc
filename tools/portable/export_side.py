"""The rewrite's forward pass and training step as StableHLO for TPU. Run inside the sandbox, on the candidate's side.

Nothing is computed: the module is constructed abstractly, so that a model far larger than this machine can be asked about. What leaves the
sandbox is the program; the compiler sees it in another process, in which none of the candidate's code runs.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from jax import export

from migrate_agent.tools.harness.common import tensor_files
from migrate_agent.tools.harness.jax_side.errors import describe_error
from migrate_agent.tools.harness.jax_side.precision import configure, lift_to_float64
from migrate_agent.tools.portable import describe
from migrate_agent.tools.portable.abstract import AbstractUnit
from migrate_agent.tools.portable.interpreted import interpreted
from migrate_agent.tools.portable.remat import checkpointed
from migrate_agent.tools.portable.steps import MODES, Steps

PLATFORM = "tpu"


def run(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """Job entry: one row for each of `variants`, with the arguments of each program and what it holds; or the error, with its line.

    `interpreted` takes TPU kernels, as plain JAX; `exact` asks for float64, `values` for the constructed module's arrays: `<name>-values.safetensors`, by number.
    A variant is `{"name", "leaves", "dtype", "remat", "programs"}`. Writes `<name>-<program>.bin`.
    """
    configure("jax_enable_compilation_cache", False)
    root = Path(sys.path[0])
    if arguments.get("exact"):
        lift_to_float64()
    describe.hide_library_frames(root)
    found: dict[str, Any] = {"variants": {}}
    for variant in arguments["variants"]:
        try:
            unit = AbstractUnit(arguments, inputs.get("tensors"), variant["dtype"], concrete=bool(arguments.get("values")))
            found["variants"][variant["name"]] = _exported(unit, arguments, variant, root, output)
        except Exception as error:
            found["variants"][variant["name"]] = {"refused": refusal(error, root)}
    return found


def refusal(error: BaseException, root: Path) -> dict[str, str]:
    """The error in full (a kernel's says much in its later lines), and its place in the candidate's files."""
    told = describe_error(error, root)
    return {"text": f"{type(error).__name__}: {error}"[:4000].replace(f"{root}/", ""), "line": told["error"].rpartition(" at ")[2]}


def _exported(unit: AbstractUnit, arguments: Mapping[str, Any], variant: Mapping[str, Any], root: Path, output: Path) -> dict[str, Any]:
    steps = Steps(unit, arguments["tree"], arguments["renamed"], variant["leaves"])
    found: dict[str, Any] = {}
    if arguments.get("values"):
        held = unit.values(MODES[variant["programs"][0]])
        tensor_files.save(
            output / f"{variant['name']}-values.safetensors", {str(index): np.asarray(value) for index, value in enumerate(held)}
        )
    inside = bool(arguments.get("interpreted"))
    for name in variant["programs"]:
        try:
            jitted, flat = steps.flat(name)
            with checkpointed(unit.model) if variant["remat"] else nullcontext(), interpreted(on_tpu=True) if inside else nullcontext():
                traced = jitted.trace(*flat)
                found[name] = {"arguments": steps.rows(name), "results": steps.results[name], **describe.described(traced.jaxpr, root)}
                blob = export.export(jitted, platforms=[arguments.get("platform", PLATFORM)])(*flat).serialize()
            (output / f"{variant['name']}-{name}.bin").write_bytes(blob)
        except Exception as error:
            found[name] = {**found.get(name, {}), "refused": refusal(error, root)}
    return {**found, "root": str(root), "layers": unit.layers(), "owners": unit.owners(root), "annotations": unit.annotations()}
