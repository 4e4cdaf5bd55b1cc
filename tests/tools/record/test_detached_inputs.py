"""Functions with gradients of their own are called at all inputs where a unit hands them one that is detached."""

from __future__ import annotations

from typing import Any

import pytest

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.record.infer import infer_methods
from migrate_agent.tools.types import Example

FUNCTIONS = """
import torch
from torch.autograd import Function

class Scale(Function):
    @staticmethod
    def forward(ctx, x, w, power=2):
        ctx.save_for_backward(x, w)
        return x * w.abs() ** power

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return grad * w.abs() ** 2, grad * x, None

class Anew(Function):
    @staticmethod
    def forward(x, w):
        return Scale.apply(x, w)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return grad * w, grad * x

class Closed(Function):
    @staticmethod
    def forward(ctx, x, w):
        return x * w

    @staticmethod
    def backward(ctx, grad):
        raise RuntimeError("it has no gradient")

scale = Scale.apply
"""
UNITS = """
import torch
from torch import nn
from functions import Anew, Closed, Scale, scale

class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))

class Detached(Base):
    def forward(self, x):
        return scale(x, self.w.detach(), 3)

class Attached(Base):
    def forward(self, x):
        return scale(x, self.w)

class Both(Base):
    def forward(self, x):
        return scale(x, self.w.detach()) + scale(x, self.w)

class Method(Base):
    def forward(self, x):
        return x * self.w

    def through(self, x):
        return scale(x, self.w.detach())

class WithContext(Base):
    def forward(self, x):
        return Anew.apply(x, self.w.detach())

class WithoutGradient(Base):
    def forward(self, x):
        return Closed.apply(x, self.w.detach())

class Nothing(Base):
    def forward(self, x):
        with torch.no_grad():
            return scale(x.detach(), self.w.detach()) + self.w

class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Detached()

    def forward(self, x):
        return self.inner(x)
"""
CALL = "torch.randn(2, 4)"


@pytest.mark.parametrize(
    ("unit", "known", "expected"),
    [
        ("Detached", [], {"apply of functions.Scale": f"{CALL}, torch.rand(4), 3"}),
        ("Attached", [], {}),
        ("Both", [], {}),
        ("Method", [], {"through": CALL, "apply of functions.Scale": f"{CALL}, torch.rand(4), 2"}),
        ("Method", ["through"], {"apply of functions.Scale": f"{CALL}, torch.rand(4), 2"}),
        ("Method", ["through", "apply of functions.Scale"], {}),
        ("WithContext", [], {"apply of functions.Anew": f"{CALL}, torch.rand(4)"}),
        ("WithoutGradient", [], {}),
        ("Nothing", [], {}),
        ("Outer", [], {}),
    ],
)
def test_calls_at_detached_inputs(repository: Any, sandbox: Sandbox, unit: str, known: list[str], expected: dict[str, str]) -> None:
    inventory = repository({"functions.py": FUNCTIONS, "net.py": UNITS})
    example = Example(f"net.py:{unit}", "", CALL)
    others = [Example(example.unit, "", CALL if name == "through" else f"{CALL}, torch.rand(4)", method=name) for name in known]
    found, _ = infer_methods(inventory, [example], others, sandbox)
    assert {one.method: one.call for one in found} == expected
