"""Calls of functions that launch kernels: an extension in C++ that torch compiles here, and Triton's interpreter."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.harness.common.example_text import load_tensors
from migrate_agent.tools.record import load_recording, record
from migrate_agent.tools.record.command import record_command
from migrate_agent.tools.record.kernel_calls import MAX_BYTES, KernelCapture
from migrate_agent.tools.record.session import plan
from migrate_agent.tools.rewrite.analysis.custom_kernels import launching
from migrate_agent.tools.types import Example, KernelCall, Recording

TRITON = """
    import torch
    from torch import nn
    import triton
    import triton.language as tl

    @triton.jit
    def _gate_kernel(a, b, out, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(a + at, mask=at < n)
        tl.store(out + at, x * tl.sigmoid(tl.load(b + at, mask=at < n)), mask=at < n)

    def gate(a, b, scale=1.0):
        out = torch.empty_like(a)
        _gate_kernel[(triton.cdiv(out.numel(), 64),)](a, b, out, out.numel(), BLOCK=64)
        return out * scale

    class Gate(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            out = torch.empty_like(a)
            _gate_kernel[(triton.cdiv(out.numel(), 64),)](a, b, out, out.numel(), BLOCK=64)
            return out

        @staticmethod
        def backward(ctx, grad):
            return grad, grad

    class Net(nn.Module):
        def forward(self, x):
            for size in range(2, 8):
                gate(x[:size], x[:size], scale=2.0)
            return gate(x, x) + Gate.apply(x, x)
"""
EXTENSION = """
    import torch
    from torch import nn
    from torch.utils.cpp_extension import load_inline

    ext = load_inline(name="doubling", cpp_sources="torch::Tensor twice(torch::Tensor x) { return 2 * x; }", functions=["twice"])

    def twice(x):
        return ext.twice(x)

    class Net(nn.Module):
        def forward(self, x):
            return twice(x)
"""


def test_which_functions_launch(repository: Any) -> None:
    assert launching(repository({"net.py": TRITON})) == {"net.py": {"gate": 0, "Gate.forward": 1}}


def test_kernels_that_draw_are_left_out(repository: Any) -> None:
    random = TRITON.replace("tl.store(out + at, x", "tl.store(out + at, x * tl.rand(1, at)")
    assert launching(repository({"net.py": random, "plain.py": "import torch\n"})) == {}


def of(found: Recording, name: str) -> list[KernelCall]:
    return [call for call in found.kernel_calls if call.name == name]


def test_a_repository_is_searched_for_launches_once(repository: Any) -> None:
    inventory = repository({"net.py": TRITON})
    assert plan(inventory)["launching"] is plan(inventory)["launching"]
    assert plan(repository({"net.py": "import torch\n"}))["launching"] == {}


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="triton is not installed")
def test_calls_of_triton_kernels_are_kept(repository: Any, sandbox: Sandbox, tmp_path: Path) -> None:
    found = record(repository({"net.py": TRITON}), [Example("net.py:Net", "", "torch.arange(8.0)")], sandbox, tmp_path / "out")
    assert not found.errors
    assert found == load_recording(tmp_path / "out")
    (applied,) = of(found, "Gate.forward")
    assert applied.arguments == {"tuple": [{"list": [{"leaf": 0}, {"leaf": 1}]}, {"dict": []}]}
    held = load_tensors(applied.tensors)
    x = torch.arange(8.0)
    assert held.keys() == {"in/0", "in/1", "out/0"}
    assert torch.equal(held["in/1"], x)
    torch.testing.assert_close(held["out/0"], x * torch.sigmoid(x))
    sizes = sorted(len(load_tensors(call.tensors)["out/0"]) for call in of(found, "gate"))
    assert sizes == [2, 3, 4]
    assert of(found, "gate")[0].arguments["tuple"][1] == {"dict": [["scale", {"float": "2.0"}]]}


@pytest.mark.slow
@pytest.mark.skipif(not (shutil.which("c++") and shutil.which("ninja")), reason="a C++ compiler and ninja are not installed")
def test_a_command_s_calls_of_an_extension_are_kept(repository: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "extensions"))
    inventory = repository({"net.py": EXTENSION, "go.py": "import torch, net\nnet.twice(torch.ones(3))\n"})
    found = record_command(inventory, [sys.executable, "go.py"], tmp_path / "out")
    (call,) = found.kernel_calls
    assert (call.source, call.name, call.result) == ("net.py", "twice", {"leaf": 0})
    assert load_tensors(call.tensors)["out/0"].tolist() == [2.0, 2.0, 2.0]


def inplace(x: torch.Tensor, y: torch.Tensor) -> None:
    y.copy_(x)


def nothing_kept(function: Callable[..., Any], *args: Any) -> str:
    capture = KernelCapture()
    capture.observe("a.py", "f", 0)(function)(*args)
    assert not capture.samples()
    return capture.reasons()["a.py:f"]


def test_arguments_that_are_changed_are_named() -> None:
    capture = KernelCapture()
    capture.observe("a.py", "f", 0)(inplace)(torch.ones(2), torch.zeros(2))
    (sample,) = capture.samples()
    assert sample.changed == ("y",)
    assert sample.tensors["in/1"].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("function", "argument", "reason"),
    [
        (lambda x: x, torch.zeros(MAX_BYTES), "its calls hold more than 4 MiB of tensors"),
        (lambda x: x.expand(MAX_BYTES), torch.zeros(1), "its calls hold more than 4 MiB of tensors"),
        (lambda x: torch.rand(3), torch.zeros(1), "it draws random numbers"),
        (lambda x: x, object(), "Unencodable: a value of type builtins.object"),
        (lambda x: x, torch.zeros(2, device="meta"), "a tensor without data of its own"),
    ],
)
def test_what_is_not_kept_says_why(function: Callable[..., Any], argument: Any, reason: str) -> None:
    assert nothing_kept(function, argument) == reason
