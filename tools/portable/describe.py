"""Describes a traced program to explain a refusal: its largest values and its kernels, with their lines. Used inside the sandbox."""

from __future__ import annotations

import importlib
import math
from pathlib import Path
from typing import Any

import flax
import jax

from migrate_agent.tools import portable
from migrate_agent.tools.harness.jax_side.jaxprs import equations, live_kernels

LARGEST = 5
HELPERS = ("nnx_layers.py", "nnx_layers_jax.py")
"""Files of helpers that the rewriter copies into the target tree."""


def hide_library_frames(root: Path) -> None:
    """Give operations the line of the user's code that led to them, not that of a library or a helper."""
    info: Any = importlib.import_module("jax._src.source_info_util")
    optax = importlib.import_module("optax")
    for library in (optax.__file__, flax.__file__, portable.__file__, jax.__file__):
        info.register_exclusion(str(Path(library or "").parent))
    info.register_exclusion(str(Path(__file__).parents[1]))
    for name in HELPERS:
        for path in root.rglob(name):
            info.register_exclusion(str(path))


def describe_program(jaxpr: Any, root: Path) -> dict[str, Any]:
    """`largest`: values by size, with dtype, shape and line; `kernels`: name, line, blocks and dtypes of each Pallas kernel; `live`, `loops`, `checkpoints`: how many."""
    values: dict[tuple[str, str], dict[str, Any]] = {}
    kernels: list[dict[str, Any]] = []
    loops = checkpoints = 0
    for equation in equations(jaxpr.jaxpr):
        checkpoints += equation.primitive.name in ("checkpoint", "remat", "remat2")
        loops += equation.primitive.name in ("while", "scan")
        if equation.primitive.name == "pallas_call":
            kernels.append(_kernel(equation, root))
        for variable in equation.outvars:
            size = _bytes(variable.aval)
            text = f"{variable.aval.str_short(short_dtypes=True)}" if size else ""
            row = {"bytes": size, "value": text, "line": line(equation, root)}
            key = (text, str(row["line"]))
            # A block that repeats shows the same value many times; one line says it.
            if size and key not in values:
                values[key] = row
    largest = sorted(values.values(), key=lambda row: -int(row["bytes"]))[:LARGEST]
    return {"largest": largest, "kernels": kernels, "live": live_kernels(jaxpr.jaxpr), "loops": loops, "checkpoints": checkpoints}


def line(equation: Any, root: Path) -> str:
    """`file.py:12` of the innermost frame in the candidate's own code (helpers of ours aside), else ""."""
    traceback = equation.source_info.traceback
    inside = [frame for frame in (traceback.frames if traceback else ()) if Path(frame.file_name).is_relative_to(root)]
    own = [frame for frame in inside if Path(frame.file_name).name not in HELPERS] or inside
    return f"{Path(own[0].file_name).relative_to(root)}:{own[0].line_num}" if own else ""


def _bytes(aval: Any) -> int:
    size, dtype = getattr(aval, "shape", None), getattr(aval, "dtype", None)
    return 0 if size is None or dtype is None else int(math.prod(size)) * int(getattr(dtype, "itemsize", 4))


def _kernel(equation: Any, root: Path) -> dict[str, Any]:
    mapping = equation.params.get("grid_mapping")
    blocks = [[_size(size) for size in block.block_shape] for block in getattr(mapping, "block_mappings", ())]
    return {
        "name": str(equation.params.get("name") or getattr(equation.params.get("name_and_src_info"), "name", "")),
        "line": line(equation, root),
        "blocks": blocks,
        "dtypes": [str(variable.aval.dtype) for variable in (*equation.invars, *equation.outvars)],
        "shapes": [list(variable.aval.shape) for variable in (*equation.invars, *equation.outvars)],
    }


def _size(size: Any) -> int:
    """How many elements of an axis a block holds; an axis that the kernel does not see counts as one."""
    count = getattr(size, "block_size", size)
    return count if isinstance(count, int) else 1
