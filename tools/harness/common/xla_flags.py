"""Flags of XLA that decide how it compiles for the CPU. Used inside the sandbox; flags count before the first compilation."""

from __future__ import annotations

import importlib.util
import mmap
import os
from functools import cache
from pathlib import Path

KERNEL_LIBRARY = "xla_cpu_experimental_ynn_fusion_type"
"""XLA's flag for the operations that its CPU backend gives to YNNPACK, which drops NaN in maxima of large arrays as no other backend does."""
CONVOLUTIONS = "individual_convolution"
"""The one operation that stays with YNNPACK: XLA's own convolutions in float64 take a hundred times as long."""
LEVEL = "xla_backend_optimization_level"
"""XLA's flag for the level of optimisation by LLVM, from 0 to 3."""
EMITTERS = "xla_cpu_use_fusion_emitters"
"""XLA's flag for code generation by MLIR: the code runs faster, and takes twice as long to compile."""
SPLITS = "xla_cpu_parallel_codegen_split_count"
"""XLA's flag for the number of parts of a program that LLVM compiles in parallel. One is best where other programs compile beside it."""


def set_flag(name: str, value: str) -> None:
    """Set a flag of XLA's where this jaxlib knows it: an unknown one ends the process."""
    if f"--{name}=" not in os.environ.get("XLA_FLAGS", "") and known(name):
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --{name}={value}".strip()


@cache
def quick() -> dict[str, str | bool]:
    """Compiler options for short compilation, for programs whose speed does not matter (float64 results, gradients)."""
    return {
        LEVEL: "0",
        "xla_llvm_disable_expensive_passes": True,
        **({EMITTERS: False} if known(EMITTERS) else {}),
    }


@cache
def usual() -> dict[str, str | bool]:
    """Compiler options of a user's program, which override jax's configuration without optimisations."""
    return {
        LEVEL: "3",
        "xla_llvm_disable_expensive_passes": False,
        **({EMITTERS: True} if known(EMITTERS) else {}),
    }


def library() -> str:
    """The value of KERNEL_LIBRARY: CONVOLUTIONS where this jaxlib knows that one, else nothing."""
    return CONVOLUTIONS if _stands_in_jaxlib(f"LIBRARY_FUSION_TYPE_{CONVOLUTIONS.upper()}".encode()) else ""


def known(name: str) -> bool:
    """Whether this jaxlib has a flag of this name. The name of one that was taken out still stands among the reserved names of a descriptor,
    where it is no text of its own."""
    return _stands_in_jaxlib(b"\0" + name.encode() + b"\0")


@cache
def _stands_in_jaxlib(text: bytes) -> bool:
    spec = importlib.util.find_spec("jaxlib")
    # Asking XLA itself would initialise it, and it exits on an unknown flag.
    libraries = [path for folder in (spec.submodule_search_locations or () if spec else ()) for path in Path(folder).glob("*jax_common*")]
    return any(_mentions(path, text) for path in libraries)


def _mentions(path: Path, text: bytes) -> bool:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(text) >= 0
