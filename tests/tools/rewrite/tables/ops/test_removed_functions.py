"""Functions that PyTorch has removed: what the originals' side computes for them, and what their rows give."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np
import pytest
import torch

from migrate_agent.tests.tools.rewrite.snippets import rewrite_snippet
from migrate_agent.tests.tools.rewrite.tables.ops.differential import leaves, namespace, to_jax
from migrate_agent.tools.harness.torch_side import removed_functions
from migrate_agent.tools.harness.torch_side.removed_functions import restore_functions

CALLS = [
    "torch.rfft(x, 2)",
    "torch.rfft(x, 1, normalized=True)",
    "x.rfft(2, onesided=False)",
    "torch.irfft(torch.rfft(x, 2), 2, signal_sizes=(4, 5))",
    "torch.irfft(torch.rfft(x, 2, onesided=False), 2, onesided=False)",
    "torch.fft(torch.rfft(x, 1, onesided=False), 1, True)",
    "torch.ifft(torch.rfft(x, 2, onesided=False), 2)",
    "torch.symeig(s)[0]",
    "torch.symeig(s, eigenvectors=True, upper=False)[0]",
    "torch.solve(s, s + 1)[0]",
]


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Both sides in float64, and torch as the originals' side has it."""
    kept = {name: vars(torch).get(name) for name in removed_functions.REMOVED}
    methods = {name: getattr(torch.Tensor, name, None) for name in (*removed_functions.REMOVED, "fft")}
    restore_functions()
    with jax.enable_x64(True):
        yield
    for owner, before in ((torch, kept), (torch.Tensor, methods)):
        for name, value in before.items():
            if value is None:
                delattr(owner, name)
            else:
                setattr(owner, name, value)


@pytest.mark.parametrize("text", CALLS)
def test_rows_compute_what_the_function_computed(tmp_path: Path, text: str) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(3, 4, 5, dtype=torch.float64, generator=generator)
    s = x[0, :, :4] @ x[0, :, :4].T
    theirs = eval(text, {"torch": torch, "x": x, "s": s})
    source, holes = rewrite_snippet(tmp_path, f"import torch\n\ndef f(x: torch.Tensor, s: torch.Tensor):\n    return {text}\n")
    assert not holes
    names = vars(namespace()["vendored"]) | dict(namespace())
    exec(source, names)
    ours = names["f"](to_jax(x), to_jax(s))
    for one, other in zip(leaves(ours), leaves(theirs), strict=True):
        np.testing.assert_allclose(np.asarray(one), other.numpy(), rtol=1e-9, atol=1e-12)


def test_transforms_go_back() -> None:
    x = torch.randn(2, 6, dtype=torch.float64)
    pairs = torch.rfft(x, 1, onesided=False)  # type: ignore[attr-defined]
    torch.testing.assert_close(torch.ifft(torch.fft(pairs, 1), 1), pairs)  # type: ignore[attr-defined,operator]
    torch.testing.assert_close(torch.irfft(torch.rfft(x, 1), 1, signal_sizes=[6]), x)  # type: ignore[attr-defined]
