"""The rows of the kernel library: what each kernel is, and the shapes that it is checked on.

A kernel file ends with `SHAPES` and `KERNEL`. They serve the checks and the bench, and are not copied into users' repositories.
"""

from __future__ import annotations

import importlib
import math
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

Kind = Literal["float", "float32", "positive", "negative", "int", "int8", "float8", "bool", "partition", "lengths"]

NARROW: Mapping[str, str] = {"int8": " int8", "float8": " float8"}


@dataclass(frozen=True)
class Array:
    """An operand to be drawn at random.

    `float` has the dtype under test, `float32`, `positive` (0.01 … 0.5) and `negative` (-1 … -0.1) are always float32. `int` is below `high`;
    `partition` are non-negative integers whose sum is `high`, `lengths` integers from 1 to `high`.
    """

    shape: tuple[int, ...]
    kind: Kind = "float"
    high: int = 2
    scale: float = 1.0

    def draw(self, dtype: Any, generator: np.random.Generator) -> jax.Array:
        """One random array."""
        if self.kind == "partition":
            cuts = np.sort(generator.integers(0, self.high + 1, self.shape[0] - 1))
            return jnp.asarray(np.diff([0, *cuts, self.high]), jnp.int32)
        if self.kind in ("int", "lengths"):
            first = 1 if self.kind == "lengths" else 0
            return jnp.asarray(generator.integers(first, self.high + first, self.shape), jnp.int32)
        if self.kind == "int8":
            return jnp.asarray(generator.integers(-127, 128, self.shape), jnp.int8)
        if self.kind == "bool":
            return jnp.asarray(generator.random(self.shape) < 0.7)
        if self.kind in ("positive", "negative"):
            bounds = (0.01, 0.5) if self.kind == "positive" else (-1.0, -0.1)
            return jnp.asarray(generator.uniform(*bounds, self.shape), jnp.float32)
        values = jnp.asarray(self.scale * generator.standard_normal(self.shape), jnp.float32)
        return values.astype({"float8": jnp.float8_e4m3fn, "float32": jnp.float32}.get(self.kind, dtype))

    def aval(self, dtype: Any, sharding: Any = None) -> jax.ShapeDtypeStruct:
        """Its shape and dtype, placed by `sharding`."""
        fixed = {"float": dtype, "int8": jnp.int8, "bool": jnp.bool_, "float8": jnp.float8_e4m3fn}
        whole = {"int": jnp.int32, "partition": jnp.int32, "lengths": jnp.int32}
        return jax.ShapeDtypeStruct(self.shape, fixed.get(self.kind, whole.get(self.kind, jnp.float32)), sharding=sharding)


@dataclass(frozen=True)
class Case:
    """A call: operands by position (`None` stays), and keyword options. `tiny` ones are small enough for the checking interpreter."""

    operands: tuple[Array | None, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    tiny: bool = False

    @property
    def label(self) -> str:
        """A short name for reports: shapes, narrow dtypes and options."""
        shapes = ",".join("None" if x is None else "x".join(map(str, x.shape)) + NARROW.get(x.kind, "") for x in self.operands)
        return shapes + "".join(f",{name}={value}" for name, value in self.options.items())

    def draw(self, dtype: Any, seed: int = 0) -> list[jax.Array | None]:
        """Random operands; floats in `dtype`."""
        generator = np.random.default_rng(seed)
        return [None if x is None else x.draw(dtype, generator) for x in self.operands]

    def avals(self, dtype: Any, sharding: Any = None) -> list[jax.ShapeDtypeStruct | None]:
        """The operands' shapes and dtypes, all placed by `sharding`."""
        return [None if x is None else x.aval(dtype, sharding) for x in self.operands]

    @property
    def elements(self) -> int:
        """How many numbers go in."""
        return sum(math.prod(x.shape) for x in self.operands if x is not None)


@dataclass(frozen=True)
class Kernel:
    """One kernel of the library.

    `call(*operands, implementation=…, **options)` is the public function; `implementation="xla"` is its reference in plain JAX.
    `origin` says whose kernel it is, and why it is ours where none is maintained. `gradient` says where the gradient comes from.
    `bench` are sizes of real models. `constant`: positions of operands that get no gradient although they are floats.
    """

    name: str
    call: Callable[..., Any]
    origin: str
    gradient: str
    shapes: tuple[Case, ...]
    bench: tuple[Case, ...]
    dtypes: tuple[Any, ...] = (jnp.float32, jnp.bfloat16)
    constant: tuple[int, ...] = ()

    def differentiable(self, case: Case) -> tuple[int, ...]:
        """Positions of the operands that get a gradient."""
        floats = ("float", "float32", "positive", "negative")
        return tuple(i for i, x in enumerate(case.operands) if x is not None and x.kind in floats and i not in self.constant)


@cache
def kernels() -> Mapping[str, Kernel]:
    """Name → kernel, over all files of this folder. Raises `ValueError` where two have one name."""
    found: dict[str, Kernel] = {}
    package = importlib.import_module("migrate_agent.tools.kernels")
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda info: info.name):
        kernel = getattr(importlib.import_module(f"migrate_agent.tools.kernels.{info.name}"), "KERNEL", None)
        if isinstance(kernel, Kernel):
            if kernel.name in found:
                raise ValueError(f"two kernels named {kernel.name}")
            found[kernel.name] = kernel
    return found
