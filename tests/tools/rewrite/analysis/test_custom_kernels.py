"""Kernels that a repository brings itself: which torch function takes their place, and what is said where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.tests.tools.rewrite.snippets import rewrite_snippet, snippet_workspace
from migrate_agent.tools.rewrite.analysis.custom_kernels import Launches, stem

KERNEL = """
import torch
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.autotune(configs=[], key=["n"])
@triton.jit
def _gate_kernel(a, b, out, n, BLOCK: tl.constexpr):
    tl.store(out, tl.load(a).to(tl.float32) * tl.sigmoid(tl.load(b)))


def gate_fwd(a, b):
    out = torch.empty_like(a)
    _gate_kernel[(triton.cdiv(out.numel(), 64),)](a, b, out, out.numel(), BLOCK=64)
    return out
"""
FUNCTION = """

class FusedGateFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        return gate_fwd(a, b)

    @staticmethod
    def backward(ctx, grad):
        raise NotImplementedError


def fused(a, b):
    return FusedGateFunction.apply(a, b)
"""
EXTENSION = """
import torch
from torch.utils.cpp_extension import load

ext = load(name="ext", sources=["gate.cpp"])


def gate(a, b):
    return ext.gate(a, b)


def gate_fallback(a, b):
    return a * torch.sigmoid(b)
"""
REFERENCES = ("def gate_ref(a, b):\n    return a * torch.sigmoid(b)\n", "def gate_torch(x, b):\n    return x * torch.sigmoid(b)\n")


@pytest.mark.parametrize(
    ("name", "said"),
    [("_swiglu_fwd", "swiglu"), ("SwiGLUFunction", "swiglu"), ("swiglu_reference", "swiglu"), ("triton_layer_norm", "layernorm")],
)
def test_names_say_what_is_computed(name: str, said: str) -> None:
    assert stem(name) == said


@pytest.mark.parametrize(
    ("source", "name", "reference"),
    [
        (f"{KERNEL}\n\n{REFERENCES[0]}", "gate_fwd", "gate_ref"),
        (f"{KERNEL}\n\n{REFERENCES[1]}", "gate_fwd", ""),  # other parameters
        (f"{KERNEL}\n\n{REFERENCES[0]}\n\n{REFERENCES[0].replace('gate_ref', 'gate_naive')}", "gate_fwd", ""),  # which of two?
        (f"{KERNEL}{FUNCTION}\n\n{REFERENCES[0]}", "FusedGateFunction", "gate_ref"),
        (EXTENSION, "gate", "gate_fallback"),
    ],
)
def test_the_torch_function_beside_a_kernel(tmp_path: Path, source: str, name: str, reference: str) -> None:
    space = snippet_workspace(tmp_path, source)
    launches = Launches(space.repo, space.repo.files["snippet.py"])
    assert name in launches.by_name
    assert launches.reference(name) == reference


def test_calls_of_an_autograd_function_call_the_torch_function(tmp_path: Path) -> None:
    text, holes = rewrite_snippet(tmp_path, f"{KERNEL}{FUNCTION}\n\n{REFERENCES[0]}")
    assert not holes
    assert "def fused(a, b):\n    return gate_ref(a, b)\n" in text
    assert "def gate_fwd(a, b):\n    return jax.lax.stop_gradient(gate_ref(a, b))\n" in text


def test_an_extension_is_left_to_its_gradient(tmp_path: Path) -> None:
    text, _ = rewrite_snippet(tmp_path, EXTENSION)
    assert "def gate(a, b):\n    return gate_fallback(a, b)\n" in text


def test_a_launch_without_a_torch_function_is_a_hole_with_its_signature(tmp_path: Path) -> None:
    _, holes = rewrite_snippet(tmp_path, KERNEL)
    (hole,) = (hole for hole in holes if hole.code == "custom-kernel")
    assert hole.reason.startswith("gate_fwd launches the Triton kernel `_gate_kernel`, and no function of plain torch here")
    assert hole.reason.endswith("as gate_fwd(a, b)")


@pytest.mark.parametrize(("use", "holes"), [("", 1), ("\n\ndef handed_on():\n    return ext.gate\n", 2), ("\n\nother = ext\n", 2)])
def test_loading_an_extension_is_no_hole_beside_its_launches(tmp_path: Path, use: str, holes: int) -> None:
    _, found = rewrite_snippet(tmp_path, EXTENSION.partition("def gate_fallback")[0] + use)
    assert len(found) == holes, [hole.reason for hole in found]
