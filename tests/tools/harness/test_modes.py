"""Both frameworks are made to compute in float64 and to draw the same random numbers."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from migrate_agent.sandbox.process import ProcessSandbox
from migrate_agent.tools.harness.common import host_random
from migrate_agent.tools.harness.common.random_streams import HOST, Stream
from migrate_agent.tools.harness.torch_side.precision import Vanishing
from migrate_agent.tools.types import Job, Side

ENTRIES = "migrate_agent.tests.tools.harness.entries"


def run(sandbox: ProcessSandbox, side: Side, name: str, folder: Path, **arguments: Any) -> Any:
    """The result of an entry."""
    done = sandbox.run(Job(side, f"{ENTRIES}:{name}", folder, arguments))
    assert done.status == "ok", done.error + done.traceback
    return done.result


@pytest.fixture(scope="module")
def drawn(sandbox: ProcessSandbox, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """What torch and jax drew."""
    folder = tmp_path_factory.mktemp("empty")
    return run(sandbox, "original", "torch_draws", folder), run(sandbox, "candidate", "jax_draws", folder)


def test_draws_pair_up(drawn: tuple[Any, Any]) -> None:
    torchs, jaxs = drawn
    assert torchs["draws"] == jaxs["draws"]
    for theirs, ours in zip(torchs["values"], jaxs["values"], strict=True):
        np.testing.assert_allclose(theirs, ours, rtol=1e-15)


@pytest.mark.parametrize("tilt", ["", "low", "high"])
def test_draws_on_the_host_pair_up(sandbox: ProcessSandbox, tmp_path: Path, tilt: str) -> None:
    theirs, ours = (run(sandbox, *entry, tmp_path, tilt=tilt) for entry in (("original", "host_draws"), ("candidate", "jax_host_draws")))
    assert theirs["draws"] == ours["draws"]
    for their, our in zip(theirs["values"], ours["values"], strict=True):
        np.testing.assert_allclose(their, our, rtol=1e-14)
    assert tilt == "" or theirs["values"][2] == {"low": 1, "high": 6}[tilt]


OWN = random.Random(3)


class Keeping:
    """Something with a generator of its own."""

    def __init__(self) -> None:
        self.generator = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("draw", "told"),
    [
        (lambda kept: None, []),
        (lambda kept: random.getrandbits(3), [HOST]),
        (lambda kept: random.seed(1), [HOST]),
        (lambda kept: random.shuffle([1, 2, 3]), ["integers", "integers"]),
        (lambda kept: np.random.choice(3), ["integers"]),
        (lambda kept: np.random.dirichlet([1.0, 2.0]), [HOST]),
        (lambda kept: np.random.uniform([0.0, 1.0], 2.0), [HOST]),
        (lambda kept: kept.generator.random(), [HOST]),
        (lambda kept: np.random.rand(2), ["uniform"]),
    ],
)
def test_other_draws_on_the_host_are_noticed(draw: Callable[[Keeping], Any], told: list[str]) -> None:
    stream, kept, before = Stream(0), Keeping(), (random.getstate(), random.random, np.random.rand)
    with host_random.paired(stream, [kept]):
        draw(kept)
    assert [one[0] for one in stream.log()] == told
    assert (random.random, np.random.rand) == before[1:] and type(OWN) is type(random._inst)
    random.setstate(before[0])


def test_nothing_is_paired_where_draws_are_noticed_alone() -> None:
    stream = Stream(0)
    with host_random.noticed(stream):
        random.random()
    assert stream.log() == [[HOST, [], None]]


@pytest.mark.parametrize(
    ("run", "seen"),
    [
        (lambda tiny: tiny * 2 + torch.nn.functional.logsigmoid(tiny), False),
        (lambda tiny: torch.exp(tiny - 600), False),
        (lambda tiny: tiny / 3, False),
        (lambda tiny: 3 / tiny, True),
        (lambda tiny: torch.log(tiny), True),
        (lambda tiny: tiny.sqrt(), True),
        (lambda tiny: tiny**2, True),
        (lambda tiny: 3 / (0 * tiny), False),
    ],
)
def test_divisions_by_what_nearly_vanishes_are_noticed(run: Callable[[torch.Tensor], torch.Tensor], seen: bool) -> None:
    with Vanishing() as watch:
        run(torch.tensor([1e-260], dtype=torch.float64))
    assert watch.seen == seen


def test_casts_are_lifted(drawn: tuple[Any, Any]) -> None:
    assert set(drawn[0]["casts"]) == {"torch.float64"}
    assert set(drawn[1]["casts"]) == {"float64"}


def test_rates_are_known_under_jit(drawn: tuple[Any, Any]) -> None:
    assert drawn[1]["rate"] == 0.25


def test_tracers_still_have_no_sharding(sandbox: ProcessSandbox, tmp_path: Path) -> None:
    before, after = run(sandbox, "candidate", "jax_sharding", tmp_path)
    assert before == after
    assert after[:2] == [[3.0, 6.0], False] and "'sharding' attribute is not available" in after[2]


def test_torch_quirks_are_levelled(sandbox: ProcessSandbox, tmp_path: Path) -> None:
    fourier = "which elements a Fourier transform of infinity or NaN makes NaN is up to its algorithm"
    expected = {"rates": [0.5], "gradient": [0.0, 1 / 6, 0.0], "gelu": True, "named": True, "fourier": fourier, "attended": 32}
    assert run(sandbox, "original", "torch_quirks", tmp_path) == expected


def test_what_is_computed_again_draws_nothing_new(sandbox: ProcessSandbox, tmp_path: Path) -> None:
    plain, *again = run(sandbox, "original", "torch_recomputed", tmp_path)
    assert len(plain[0]) == 10 and plain[1]
    for draws, gradient in again:
        assert draws == plain[0]
        np.testing.assert_allclose(gradient, plain[1], rtol=1e-15)


def test_maxima_keep_nan(sandbox: ProcessSandbox, tmp_path: Path) -> None:
    assert run(sandbox, "candidate", "jax_maxima", tmp_path) == [1, 1]
