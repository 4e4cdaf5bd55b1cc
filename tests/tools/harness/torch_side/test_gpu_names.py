"""Code that asks for a GPU computes the same on the CPU, and all else stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from migrate_agent.tools.harness.torch_side.gpu_names import LEGACY_TYPES, CpuInPlaceOfGpu, make_legacy_types

X = torch.arange(3.0)
CUDA: Any = torch.cuda


@pytest.mark.parametrize(
    "call",
    [
        lambda: X.cuda(),
        lambda: X.cuda(0, non_blocking=True),
        lambda: X.to("cuda:1"),
        lambda: X.to(0),
        lambda: X.to(torch.device("cuda"), torch.float32),
        lambda: X.to(device="cuda"),
        lambda: X.type("torch.cuda.FloatTensor"),
        lambda: X.type(CUDA.FloatTensor),
        lambda: CUDA.FloatTensor([0.0, 1.0, 2.0]),
        lambda: CUDA.LongTensor([0, 1, 2]).float(),
        lambda: CUDA.FloatTensor(X.shape).copy_(X),
        lambda: X.pin_memory(),
        lambda: torch.arange(3.0, device="cuda"),
        lambda: torch.nn.Identity().to("cuda").cuda()(X),
        lambda: torch.nn.Linear(3, 3, device="cuda").cuda().to("cuda").weight.detach()[0] * 0 + X,
    ],
)
def test_a_gpu_is_the_cpu(call: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (f"{dtype}Tensor" for dtype in LEGACY_TYPES):
        monkeypatch.setattr(torch.cuda, name, getattr(torch.cuda, name))  # so that they are undone
    make_legacy_types()
    assert not isinstance(X, CUDA.FloatTensor)
    with CpuInPlaceOfGpu():
        value = call()
    assert value.device.type == "cpu" and torch.equal(value, X) and value.dtype == X.dtype


def test_other_calls_stay_as_they_are() -> None:
    with CpuInPlaceOfGpu():
        assert X.to(torch.float64).dtype == torch.float64
        assert torch.zeros(2, device="meta").device.type == "meta"
        assert torch.equal(X.sum(0), torch.tensor(3.0))
