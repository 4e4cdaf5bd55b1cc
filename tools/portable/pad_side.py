"""Runs an exported program on inputs as they were, and one for larger inputs on the same with padding. Run inside the sandbox, on no code of the candidate's."""

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
        given = tensor_files.load(inputs["exported"] / row["values"])
        found = program.call(*(given[str(index)].astype(aval.dtype) for index, aval in enumerate(program.in_avals)))
        tensor_files.save(output / f"{row['name']}.safetensors", {str(index): np.asarray(value) for index, value in enumerate(found)})
    return {}
