"""Compiles exported programs with the real TPU compiler. Run inside the sandbox: the programs come from untrusted code, and the compiler is C++.

None of the candidate's code runs in this process; it reads StableHLO. Without `LIBTPU_ENVIRONMENT`, libtpu
looks for a TPU machine and its metadata server, and a second process ends at its lock file.
"""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

LIBTPU_ENVIRONMENT = {
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_MIN_LOG_LEVEL": "3",
    "TPU_STDERR_LOG_LEVEL": "3",
}


def run(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """Job entry: one row for each of `programs`: figures, or `refused` with the compiler's text. Writes `<name>.hlo`, the compiled program.

    A program is `{"name", "file", "topology", "host", "axes", "specs", "donate"}`: `specs` has for each flat argument the mesh axes of its axes.
    """
    if importlib.util.find_spec("libtpu") is None:
        return {"missing": True}
    os.environ.update(LIBTPU_ENVIRONMENT)
    return {"programs": {row["name"]: _compile_or_refuse(row, inputs["exported"], output) for row in arguments["programs"]}}


def _compile_or_refuse(row: Mapping[str, Any], exported: Path, output: Path) -> dict[str, Any]:
    try:
        return _compile(row, exported, output)
    except (MemoryError, OSError):  # of this machine, and no refusal of the chip's compiler
        raise
    except Exception as error:
        # The compiler's later lines hold tables of the whole program.
        return {"refused": f"{type(error).__name__}: {error}"[:8000]}


def _compile(row: Mapping[str, Any], exported: Path, output: Path) -> dict[str, Any]:
    import jax
    import numpy as np
    from jax import export
    from jax.experimental import topologies
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    options: Any = {"chips_per_host_bounds": tuple(row["host"])} if row["host"] else {}
    described: Any = topologies.get_topology_desc(platform="tpu", topology_name=row["topology"], **options)
    sizes = dict(row["axes"]) or {"data": len(described.devices)}
    devices: Any = np.array(described.devices)[: int(np.prod(list(sizes.values())))]
    mesh = Mesh(devices.reshape(tuple(sizes.values())), tuple(sizes))
    shape: Any = jax.ShapeDtypeStruct
    spec_of: Any = PartitionSpec
    program: Any = export.deserialize(bytearray((exported / row["file"]).read_bytes()))
    shapes = [shape(aval.shape, aval.dtype) for aval in program.in_avals]
    specs = row["specs"] or [None] * len(shapes)
    shardings = [NamedSharding(mesh, spec_of(*(tuple(axis) if isinstance(axis, list) else axis for axis in spec or ()))) for spec in specs]

    def called(*flat: Any) -> Any:
        return program.call(*flat)

    donated: Any = tuple(row["donate"])
    started = time.monotonic()
    lowered = jax.jit(called, in_shardings=tuple(shardings), donate_argnums=donated).trace(*shapes).lower(lowering_platforms=("tpu",))
    compiled = lowered.compile()
    text = compiled.as_text() or ""
    (output / f"{row['name']}.hlo").write_text(text, encoding="utf-8")
    memory: Any = compiled.memory_analysis()
    cost: Any = compiled.cost_analysis() or {}
    kinds = ("argument", "output", "alias", "temp", "generated_code")
    return {
        "devices": len(described.devices),
        "used": int(devices.size),
        "kind": described.devices[0].device_kind,
        "memory": {kind: int(getattr(memory, f"{kind}_size_in_bytes")) for kind in kinds},
        "flops": float(cost.get("flops", 0.0)),
        "bytes": float(cost.get("bytes accessed", 0.0)),
        "seconds": time.monotonic() - started,
    }
