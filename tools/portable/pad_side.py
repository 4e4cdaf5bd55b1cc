"""Runs an exported program on inputs, and one for larger inputs on the padded inputs. Runs inside the sandbox, without the candidate's code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jax import export

from migrate_agent.tools.harness.common import tensor_files
from migrate_agent.tools.harness.jax_side.precision import configure


def run(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """Job entry. `runs` are `{"name", "file", "values"}`: writes `<name>.safetensors`, the program's results by number."""
    configure("jax_enable_x64", True)
    for row in arguments["runs"]:
        program: Any = export.deserialize(bytearray((inputs["exported"] / row["file"]).read_bytes()))
        stored = tensor_files.load(inputs["exported"] / row["values"])
        results = program.call(*(stored[str(index)].astype(aval.dtype) for index, aval in enumerate(program.in_avals)))
        tensor_files.save(output / f"{row['name']}.safetensors", {str(index): np.asarray(value) for index, value in enumerate(results)})
    return {}
