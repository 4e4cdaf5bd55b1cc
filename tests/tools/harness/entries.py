"""Job entries for `test_modes`: the same draws and casts asked for in torch (and of Python and numpy beside it) and in jax."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any


def torch_draws(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> Any:
    """Values and log of one draw of each kind, in float64."""
    import torch

    from migrate_agent.tools.harness.common.random_streams import Stream
    from migrate_agent.tools.harness.torch_side.precision import PairedDraws, exact

    stream = Stream(3)
    with PairedDraws(stream), exact():
        values = [
            torch.rand(3),
            torch.randn(2, 2),
            torch.rand(2) * 3 - 1,
            torch.empty(4).uniform_(-1, 2),
            torch.randint(2, 9, (5,)),
            torch.randperm(6),
            torch.empty(3).exponential_(),
            torch.nn.functional.dropout(torch.ones(4), 0.75, True),
        ]
        narrow = (torch.ones(1).float(), torch.ones(1).to(torch.bfloat16), torch.zeros(1, dtype=torch.float16), torch.FloatTensor([0.5]))
        casts = [str(value.dtype) for value in narrow]
    return {"values": [value.tolist() for value in values], "draws": [draw[:2] for draw in stream.log()], "casts": casts}


def torch_quirks(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> Any:
    """The rate of a channel dropout of one half; the gradient of hard sigmoid, which torch computes with a sixth in float32; GELU at infinity,
    which its vectors give as NaN; whether a tensor has the dtype that it was made with, by the name that the source uses; and what comes of a
    Fourier transform of infinity."""
    import torch

    from migrate_agent.tools.harness.common.random_streams import Stream
    from migrate_agent.tools.harness.torch_side.precision import PairedDraws, exact

    stream = Stream(3)
    x = torch.tensor([-4.0, 0.5, 4.0], dtype=torch.float64, requires_grad=True)
    with PairedDraws(stream), exact():
        torch.nn.functional.dropout1d(torch.ones(2, 3, 4), 0.5, True)
        torch.nn.functional.hardsigmoid(x).sum().backward()  # type: ignore[no-untyped-call]
        named = torch.zeros(1).dtype == torch.float32
    with PairedDraws(stream):
        infinite = torch.nn.functional.gelu(torch.full((8,), torch.inf))
        try:
            fourier = str(torch.fft.rfft(torch.full((8,), torch.inf)))
        except FloatingPointError as error:
            fourier = str(error)
        q = torch.ones(1, 1, 4, 8).index_fill_(2, torch.tensor([0]), torch.nan)
        attended = int(torch.nn.functional.scaled_dot_product_attention(q, q, q).isnan().sum())
    gradient = None if x.grad is None else x.grad.tolist()
    found = {"rates": [draw[2] for draw in stream.log()], "gradient": gradient, "gelu": bool(infinite.isinf().all()), "named": named}
    return {**found, "fourier": fourier, "attended": attended}


def torch_recomputed(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> Any:
    """Draws and gradients of a function with random numbers: plain, and computed again in the backward pass."""
    import torch
    from torch.utils.checkpoint import checkpoint

    from migrate_agent.tools.harness.common.random_streams import Stream
    from migrate_agent.tools.harness.torch_side.precision import PairedDraws, exact

    def noisy(x: torch.Tensor) -> torch.Tensor:
        first = torch.nn.functional.dropout(x * torch.rand(4), 0.3)
        mixed = torch.native_dropout(first, 0.2, True)[0][torch.randperm(4)]
        return torch.sin(mixed + torch.randn_like(mixed)) * mixed

    def step(**how: Any) -> list[Any]:
        stream, x = Stream(3), torch.arange(1.0, 5.0, dtype=torch.float64, requires_grad=True)
        with PairedDraws(stream), exact():
            half = checkpoint(noisy, x, **how) if how else noisy(x)
            (checkpoint(noisy, half, **how) if how else noisy(half)).sum().backward()
        return [stream.log(), x.grad.tolist() if x.grad is not None else None]

    return [step(), step(use_reentrant=False), step(use_reentrant=True)]


def jax_sharding(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> Any:
    """What a tracer says when it is asked for its sharding, before and after it is to be brief: whether it has one, and the first lines of why not."""
    import jax
    import jax.numpy as jnp

    from migrate_agent.tools.harness.jax_side.precision import untraced_origins

    def told() -> list[Any]:
        found: list[Any] = []

        def ask(x: Any) -> Any:
            found.append(hasattr(x, "sharding"))
            try:
                found.append(str(x.sharding))
            except AttributeError as error:
                found.append(str(error).splitlines()[0])
            return jnp.asarray([x, 2 * x])

        return [jax.jit(ask)(3.0).tolist(), *found]

    before = told()
    untraced_origins()
    return [before, told()]


def host_draws(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> Any:
    """Values and log of one draw of each kind that Python and numpy share with jax, at the `tilt` asked for."""
    import random

    import numpy as np

    from migrate_agent.tools.harness.common.host_random import paired
    from migrate_agent.tools.harness.common.random_streams import Drawing, Stream

    stream = Stream(3, Drawing(arguments["tilt"]))
    with paired(stream):
        values = [
            random.random(),
            random.uniform(-1, 2),
            random.randint(1, 6),
            random.randrange(2, 9),
            [5, 6, 7][random.randrange(3)],
            random.choice([5, 6, 7]),
            random.gauss(1.0, 2.0),
            random.expovariate(2.0),
            np.random.rand(),
            np.random.rand(2, 3),
            np.random.random(4),
            np.random.random_sample(),
            np.random.uniform(-1, 2, 3),
            np.random.randint(4),
            np.random.randint(2, 9, size=(5,)),
            np.random.randn(2),
            np.random.standard_normal((1, 2)),
            np.random.normal(1.0, 2.0, 3),
            np.random.permutation(6),
            random.sample(range(2, 9), 3),
            random.choices([5, 6, 7], k=4),
        ]
    return {"values": [np.asarray(value).tolist() for value in values], "draws": [draw[:2] for draw in stream.log()]}


def jax_host_draws(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> Any:
    """The same of jax."""
    import jax
    import jax.numpy as jnp

    from migrate_agent.tools.harness.common.random_streams import Drawing, Stream
    from migrate_agent.tools.harness.jax_side.precision import Draws, lift_to_float64

    lift_to_float64()
    key, stream, draws, few = jax.random.key(0), Stream(3, Drawing(arguments["tilt"])), Draws(), jnp.asarray([5, 6, 7])
    with draws.paired(stream):
        values = [
            jax.random.uniform(key),
            jax.random.uniform(key, minval=-1, maxval=2),
            jax.random.randint(key, (), 1, 7),
            jax.random.randint(key, (), 2, 9),
            few[jax.random.randint(key, (), 0, 3)],
            few[jax.random.randint(key, (), 0, 3)],
            1 + 2 * jax.random.normal(key),
            jax.random.exponential(key) / 2,
            jax.random.uniform(key),
            jax.random.uniform(key, (2, 3)),
            jax.random.uniform(key, (4,)),
            jax.random.uniform(key),
            jax.random.uniform(key, (3,), minval=-1, maxval=2),
            jax.random.randint(key, (), 0, 4),
            jax.random.randint(key, (5,), 2, 9),
            jax.random.normal(key, (2,)),
            jax.random.normal(key, (1, 2)),
            1 + 2 * jax.random.normal(key, (3,)),
            jax.random.permutation(key, 6),
            jax.random.choice(key, jnp.arange(2, 9), (3,), replace=False),
            jax.random.choice(key, few, (4,)),
        ]
    return {"values": [value.tolist() for value in values], "draws": [draw[:2] for draw in stream.log()]}


def jax_draws(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> Any:
    """The same in jax, under `jit`."""
    import jax
    import numpy as np
    from jax.random import normal

    from migrate_agent.tools.harness.jax_side.precision import Draws, lift_to_float64

    lift_to_float64()
    import jax.numpy as jnp
    from flax import nnx

    from migrate_agent.tools.harness.common.random_streams import Stream

    stream, draws = Stream(3), Draws()

    def draw(key: Any) -> Any:
        rngs = nnx.Rngs(key)
        return [
            jax.random.uniform(key, (3,)),
            normal(key, (2, 2)),
            rngs.uniform((2,)) * 3 - 1,
            jax.random.uniform(key, (4,), minval=-1, maxval=2),
            jax.random.randint(key, (5,), 2, 9),
            jax.random.permutation(key, 6),
            jax.random.exponential(key, (3,)),
            jnp.where(rngs.bernoulli(0.25, (4,)), 1 / 0.25, 0.0),
        ]

    with draws.paired(stream):
        values = jax.jit(draw)(jax.random.key(0))
    casts = [
        jnp.ones(1).astype("float32"),
        jnp.asarray(1.0, np.float32),
        jnp.zeros(1, jnp.bfloat16),
        nnx.Linear(1, 1, rngs=nnx.Rngs(0)).kernel[...],
    ]
    rate = draws.rates[-1][0]
    log = [row[:2] for row in stream.log()]
    return {
        "values": [np.asarray(value).tolist() for value in values],
        "draws": log,
        "casts": [str(cast.dtype) for cast in casts],
        "rate": rate,
    }


def jax_maxima(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> Any:
    """How many NaN remain of one, in a maximum over everything and over windows of an array that is large enough for a library of kernels."""
    from migrate_agent.tools.harness.jax_side import precision  # isort: skip  # before the first compilation
    import jax.numpy as jnp
    from jax import lax

    assert precision.NARROW
    x = jnp.ones((2, 4, 64, 64)).at[0, 1, 3, 5].set(jnp.nan)
    pooled = lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return [int(jnp.isnan(value).sum()) for value in (jnp.max(x), pooled)]
