"""Runs exported programs on the same values. Runs inside the sandbox, without the candidate's code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jax import export

from migrate_agent.tools.harness.common import tensor_files
from migrate_agent.tools.harness.jax_side.precision import configure


def run(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """Job entry: for each of `files` writes `<stem>-results.safetensors`, the results by number. `values` has the flat arguments by number."""
    configure("jax_enable_x64", True)
    stored = tensor_files.load(inputs["values"])
    for name in arguments["files"]:
        program: Any = export.deserialize(bytearray((inputs["exported"] / name).read_bytes()))
        results = program.call(*(stored[str(index)].astype(aval.dtype) for index, aval in enumerate(program.in_avals)))
        tensor_files.save(
            output / f"{Path(name).stem}-results.safetensors", {str(index): np.asarray(value) for index, value in enumerate(results)}
        )
    return {}
