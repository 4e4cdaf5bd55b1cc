"""Calls of packages for GPUs, rewritten without these, beside what they compute written in torch."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
import torch.nn.functional as F

from migrate_agent.tests.tools.rewrite.snippets import rewrite_snippet
from migrate_agent.tools import kernels
from migrate_agent.tools.vendored import losses

LAST = "torch.ones(3, 5, dtype=torch.bool).tril(2)"
"""What each of three queries sees of five keys: masks of FlashAttention end in the lower right corner."""
ATTEND = "F.scaled_dot_product_attention(*(x.transpose(1, 2) for x in ({})), {}).transpose(1, 2)"

CASES = (
    ("from flash_attn import flash_attn_func", "flash_attn_func(q, k, v, causal=True)", ATTEND.format("q, k, v", f"{LAST}")),
    ("import flash_attn", "flash_attn.flash_attn_func(q, k, v, softmax_scale=0.3)", ATTEND.format("q, k, v", "scale=0.3")),
    (
        "from flash_attn import flash_attn_kvpacked_func",
        "flash_attn_kvpacked_func(q, torch.stack([k, v], 2))",
        ATTEND.format("q, k, v", ""),
    ),
    ("import xformers.ops as xops", "xops.memory_efficient_attention(q, k, v)", ATTEND.format("q, k, v", "")),
    (
        "import xformers.ops as xops",
        "xops.memory_efficient_attention(q, k, v, attn_bias=xops.LowerTriangularMask())",
        ATTEND.format("q, k, v", "is_causal=True"),
    ),
    (
        "from causal_conv1d import causal_conv1d_fn",
        "causal_conv1d_fn(u, w, b, activation='silu')",
        "F.silu(F.conv1d(u, w[:, None], b, padding=3, groups=4)[..., :6])",
    ),
    ("from liger_kernel.transformers.functional import liger_swiglu", "liger_swiglu(u, z)", "F.silu(u) * z"),
    ("from liger_kernel.transformers.functional import liger_geglu", "liger_geglu(u, z)", "F.gelu(u, approximate='tanh') * z"),
    ("from liger_kernel.transformers.functional import liger_rms_norm", "liger_rms_norm(x, g, 1e-5)", "F.rms_norm(x, (4,), g, 1e-5)"),
    (
        "from liger_kernel.transformers.functional import liger_fused_linear_cross_entropy as loss",
        "loss(x, m, t, label_smoothing=0.1)",
        "F.cross_entropy(x @ m.T, t, label_smoothing=0.1)",
    ),
    (
        "from apex.contrib.xentropy import SoftmaxCrossEntropyLoss",
        "SoftmaxCrossEntropyLoss.apply(x @ m.T, t % 5, 0.1, 4)",
        "F.cross_entropy(x @ m.T, t % 5, ignore_index=4, label_smoothing=0.1, reduction='none')",
    ),
    ("from xformers.ops import unbind", "sum(unbind(u, 1))", "u.sum(1)"),
)


WEIGHT = """
import torch.nn as nn

try:
    from causal_conv1d import causal_conv1d_fn, causal_conv1d_states
except ImportError:
    causal_conv1d_fn, causal_conv1d_states = None, None


class Short(nn.Conv1d):
    def forward(self, x):
        if causal_conv1d_fn is not None:
            return causal_conv1d_fn(x, self.weight.squeeze(1), self.bias)
        return super().forward(x)
"""


def operands() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    shapes = {
        "q": (2, 3, 2, 4),
        "k": (2, 5, 2, 4),
        "v": (2, 5, 2, 4),
        "u": (2, 4, 6),
        "z": (2, 4, 6),
        "w": (4, 4),
        "b": (4,),
        "x": (7, 4),
        "g": (4,),
        "m": (5, 4),
    }
    found = {name: torch.randn(shape, dtype=torch.float64) for name, shape in shapes.items()}
    return {**found, "t": torch.tensor([0, 4, -100, 2, 1, 3, 3])}


@pytest.mark.parametrize(("imports", "call", "meaning"), CASES, ids=lambda text: text[:40])
def test_call_of_a_package_that_is_not_installed(imports: str, call: str, meaning: str, tmp_path: Path) -> None:
    text, holes = rewrite_snippet(tmp_path, f"import torch\n{imports}\n\nresult = {call}\n")
    assert not holes
    names: dict[str, Any] = {"jnp": jnp, "jax": jax}
    for info in pkgutil.iter_modules(kernels.__path__):
        names |= vars(importlib.import_module(f"{kernels.__name__}.{info.name}"))
    tensors = operands()
    names["cross_entropy"] = losses.cross_entropy
    with jax.enable_x64(True):
        names |= {name: jnp.asarray(tensor.numpy()) for name, tensor in tensors.items()}
        exec(text, names)
        found = np.asarray(names["result"])
    expected = eval(meaning, {"torch": torch, "F": F, **tensors})
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-10, atol=1e-12)


def test_function_as_a_value_keeps_its_options(tmp_path: Path) -> None:
    imports = "from mamba_ssm.ops.selective_scan_interface import selective_scan_fn\nfrom flash_attn import flash_attn_func\n"
    text, holes = rewrite_snippet(tmp_path, f"{imports}\nscan = selective_scan_fn\nattend = flash_attn_func\n")
    assert "lambda u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False, return_last_state=False: " in text
    assert [hole.text for hole in holes] == ["flash_attn_func"]


def test_weight_that_a_layer_inherits_is_an_array(tmp_path: Path) -> None:
    """On a line that never runs where the package is missing, so nothing was observed there."""
    text, holes = rewrite_snippet(tmp_path, WEIGHT)
    assert not holes
    assert "return causal_depthwise_conv(x, squeeze(self.weight, 1), bias=self.bias)" in text
    assert "super().__call__" not in text and "causal_conv1d_fn is" not in text


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("flash_attn_func(q, k, v, alibi_slopes=s)", "`alibi_slopes` is not supported by the kernel library"),
        ("flash_attn_func(q, k, v, return_attn_probs=True)", "`return_attn_probs` is not supported by the kernel library"),
    ],
)
def test_what_the_library_lacks_is_left_open(call: str, reason: str, tmp_path: Path) -> None:
    text, holes = rewrite_snippet(tmp_path, f"from flash_attn import flash_attn_func\n\nresult = {call}\n")
    assert [hole.reason for hole in holes] == [reason]
    assert call in text
