"""Exports the rewrite's forward pass and training step as StableHLO for TPU. Runs inside the sandbox, on the candidate's side.

Nothing is computed: the module is constructed abstractly, so that a model far larger than this machine
can be exported. Only the program leaves the sandbox. Another process compiles it, in which none of the
candidate's code runs.
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
from migrate_agent.tools.harness.jax_side.interpreted import interpreted
from migrate_agent.tools.harness.jax_side.precision import configure, lift_to_float64
from migrate_agent.tools.portable import describe, jaxpr_cost
from migrate_agent.tools.portable.abstract import AbstractUnit
from migrate_agent.tools.portable.remat import checkpoint_blocks
from migrate_agent.tools.portable.steps import MODES, Steps

PLATFORM = "tpu"


def run(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """Job entry: exports each of `variants` and writes `<name>-<program>.bin`.

    A variant is `{"name", "leaves", "dtype", "remat", "programs"}`. Returns `variants`: name → the
    arguments and description of each program, or `refused` with the error's text and line.
    `interpreted` exports TPU kernels as plain JAX; `exact` asks for float64; `values` writes the
    constructed module's arrays by number to `<name>-values.safetensors`.
    """
    configure("jax_enable_compilation_cache", False)
    root = Path(sys.path[0])
    if arguments.get("exact"):
        lift_to_float64()
    describe.hide_library_frames(root)
    result: dict[str, Any] = {"variants": {}}
    for variant in arguments["variants"]:
        try:
            unit = AbstractUnit(arguments, inputs.get("tensors"), variant["dtype"], concrete=bool(arguments.get("values")))
            result["variants"][variant["name"]] = _export_variant(unit, arguments, variant, root, output)
        except Exception as error:
            result["variants"][variant["name"]] = {"refused": refusal(error, root)}
    return result


def refusal(error: BaseException, root: Path) -> dict[str, str]:
    """The error's text (4,000 characters: the later lines of a kernel's error explain it), and its line in the candidate's files."""
    description = describe_error(error, root)
    return {"text": f"{type(error).__name__}: {error}"[:4000].replace(f"{root}/", ""), "line": description["error"].rpartition(" at ")[2]}


def _export_variant(
    unit: AbstractUnit, arguments: Mapping[str, Any], variant: Mapping[str, Any], root: Path, output: Path
) -> dict[str, Any]:
    steps = Steps(unit, arguments["tree"], arguments["renamed"], variant["leaves"])
    programs: dict[str, Any] = {}
    if arguments.get("values"):
        values = unit.values(MODES[variant["programs"][0]])
        tensor_files.save(
            output / f"{variant['name']}-values.safetensors", {str(index): np.asarray(value) for index, value in enumerate(values)}
        )
    inside = bool(arguments.get("interpreted"))
    for name in variant["programs"]:
        try:
            jitted, flat = steps.flat(name)
            with (
                checkpoint_blocks(unit.model) if variant["remat"] else nullcontext(),
                interpreted(on_tpu=True) if inside else nullcontext(),
            ):
                # Traced before the export, so that a refused export still has a description.
                traced = jitted.trace(*flat)
                programs[name] = {
                    "arguments": steps.rows(name),
                    "results": steps.results[name],
                    **describe.describe_program(traced.jaxpr, root),
                    "counted": jaxpr_cost.count(traced.jaxpr, steps.rows(name), steps.results[name]),
                }
                blob = export.export(jitted, platforms=[arguments.get("platform", PLATFORM)])(*flat).serialize()
            (output / f"{variant['name']}-{name}.bin").write_bytes(blob)
        except Exception as error:
            programs[name] = {**programs.get(name, {}), "refused": refusal(error, root)}
    return {**programs, "root": str(root), "layers": unit.layers(), "owners": unit.owners(root), "annotations": unit.annotations()}
