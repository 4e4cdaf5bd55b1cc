"""What torch differentiates wrongly the second time goes by its formula."""

from __future__ import annotations

import torch

from migrate_agent.tools.harness.torch_side.second_derivatives import WeightNormByFormula


def test_weight_norm_is_differentiated_twice() -> None:
    v, g = (torch.rand(shape, dtype=torch.float64, requires_grad=True) for shape in ((4, 3), (4, 1)))
    plain = torch._weight_norm(v, g, 0)
    with WeightNormByFormula():
        assert torch.allclose(torch._weight_norm(v, g, 0), plain, rtol=1e-14)
        assert torch.autograd.gradgradcheck(lambda one, other: torch._weight_norm(one, other, 0), (v, g))
