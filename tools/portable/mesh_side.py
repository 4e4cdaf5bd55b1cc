"""Runs an exported program on simulated devices, once on one and once sharded over a mesh. Runs inside the sandbox, without the candidate's code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import export
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from migrate_agent.tools.harness.common import tensor_files
from migrate_agent.tools.harness.jax_side.precision import configure


def run(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """Job entry. Writes the results by number to `single.safetensors` and `sharded.safetensors`.

    `values` has the flat arguments by number; `specs` has the mesh axes of each of their axes. Returns
    the number of devices, and of arguments that were split.
    """
    axes: Mapping[str, int] = arguments["axes"]
    count = int(np.prod(list(axes.values())))
    configure("jax_num_cpu_devices", count)
    configure("jax_enable_x64", True)
    program: Any = export.deserialize(bytearray((inputs["exported"] / arguments["file"]).read_bytes()))
    stored = tensor_files.load(inputs["values"])
    values = [stored[str(index)].astype(aval.dtype) for index, aval in enumerate(program.in_avals)]
    devices: Any = np.array(jax.devices()[:count])
    mesh = Mesh(devices.reshape(tuple(axes.values())), tuple(axes))
    spec_of: Any = PartitionSpec
    shardings = [
        NamedSharding(mesh, spec_of(*(tuple(axis) if isinstance(axis, list) else axis for axis in spec or ())))
        for spec in arguments["specs"]
    ]
    placed = [jax.device_put(value, sharding) for value, sharding in zip(values, shardings, strict=True)]
    called: Any = jax.jit(lambda *flat: program.call(*flat))
    tensor_files.save(output / "single.safetensors", _by_number(called(*values)))
    tensor_files.save(output / "sharded.safetensors", _by_number(called(*placed)))
    return {"devices": len(devices), "split": sum(not sharding.is_fully_replicated for sharding in shardings)}


def _by_number(results: Any) -> dict[str, Any]:
    return {str(index): np.asarray(value) for index, value in enumerate(results)}
