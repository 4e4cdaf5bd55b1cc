"""Runs TPU kernels as plain JAX, so that any machine computes their results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import jax
from jax.experimental import pallas as pl

FORGET: Callable[[], None] = jax.clear_caches


@contextmanager
def interpreted(on_tpu: bool = False) -> Iterator[None]:
    """Run Pallas kernels (jax's own too) in their interpreter inside the context.

    `on_tpu` takes the TPU branch of `jax.lax.platform_dependent`.
    """
    FORGET()
    call, choose = pl.pallas_call, jax.lax.platform_dependent

    def plainly(*arguments: Any, compiler_params: Any = None, **options: Any) -> Any:
        return call(*arguments, **{**options, "interpret": True})

    def chosen(*operands: Any, default: Any = None, **platforms: Any) -> Any:
        branch = platforms.get("tpu", default) if on_tpu else None
        return branch(*operands) if branch else choose(*operands, default=default, **platforms)

    with mock.patch.object(pl, "pallas_call", plainly), mock.patch.object(jax.lax, "platform_dependent", chosen):
        yield
    FORGET()
