"""Methods that must be called first: examples of modules whose call reads what another method sets."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.record import record
from migrate_agent.tools.record.infer import infer, infer_methods
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Example

SOURCE = """
import torch
from torch import nn

class Stateful(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size, self.cell = size, nn.GRUCell(size, size)

    def reset(self, bsz):
        self.h = torch.zeros(bsz, self.size)

    def forward(self, x):
        self.h = self.cell(x, self.h)
        return self.h

    def peek(self):
        return self.h * 2

class Spiking(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.fc, self.mem = nn.Linear(features, features), None

    def init_state(self, batch_size, device=None):
        self.mem = torch.zeros(batch_size, self.fc.out_features, device=device)

    def forward(self, x):
        self.mem = 0.9 * self.mem + self.fc(x)
        return self.mem

class Net(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.layers = nn.ModuleList([Spiking(features), Spiking(features)])

    def start(self, n):
        for layer in self.layers:
            layer.init_state(n)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

class Reader(nn.Module):
    def __init__(self, memory: Stateful):
        super().__init__()
        self.memory = memory

    def forward(self, x):
        return x + self.memory.peek()

class Masked(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.linear = nn.Linear(dim, dim)

    def update_mask(self, shape):
        self.mask = torch.ones(shape).tril()

    def forward(self, x):
        return self.linear(x) * self.mask

class Complete(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.linear, self.scale = nn.Linear(dim, dim), 1.0

    def set_scale(self, scale):
        self.scale = scale

    def forward(self, x):
        return self.linear(x) * self.scale
"""


CHOSEN = """
import torch
from torch import nn

class Asserting(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.linear, self.decode_type, self.temp = nn.Linear(dim, dim), None, 1.0

    def set_decode_type(self, decode_type, temp=None):
        self.decode_type = decode_type
        if temp is not None:
            self.temp = temp

    def forward(self, x):
        return self._select(torch.softmax(self.linear(x) / self.temp, -1))

    def _select(self, probs):
        {asserted}
        if self.decode_type == "greedy":
            return probs.max(-1)[0]
        elif self.decode_type == "sampling":
            return probs * 2
        else:
            {refused}
"""
REFUSALS = {
    "asserted": ("assert self.decode_type is not None", "return None"),
    "refused last": ("", "assert False, 'Unknown decode type'"),
    "raised": ("", "raise ValueError('unknown')"),
    "not written": ("", "raise NotImplementedError"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_the_code_asks_for_is_chosen_first(tmp_path: Path, sandbox: Sandbox, name: str) -> None:
    asserted, refused = REFUSALS[name]
    (tmp_path / "m.py").write_text(CHOSEN.format(asserted=asserted, refused=refused), encoding="utf-8")
    inventory = scan(tmp_path)
    example = infer(inventory, inventory.unit("m.py:Asserting"), sandbox, tmp_path / "out").example
    assert example is not None and example.method == "set_decode_type, forward"
    assert example.call.startswith("dict(decode_type='greedy'), torch.")


def example_of(folder: Path, sandbox: Sandbox, name: str) -> Example | None:
    (folder / "m.py").write_text(SOURCE, encoding="utf-8")
    inventory = scan(folder)
    return infer(inventory, inventory.unit(f"m.py:{name}"), sandbox, folder / "out").example


@pytest.mark.parametrize(
    ("name", "method", "argument"),
    [
        ("Stateful", "reset, forward", "bsz"),
        ("Spiking", "init_state, forward", "batch_size"),
        ("Net", "start, forward", "n"),
        ("Reader", "memory.reset, forward", "bsz"),
        ("Masked", "update_mask, forward", "shape"),
    ],
)
def test_what_sets_the_state_is_called_first(tmp_path: Path, sandbox: Sandbox, name: str, method: str, argument: str) -> None:
    example = example_of(tmp_path, sandbox, name)
    assert example is not None and example.method == method
    assert example.call.startswith(f"dict({argument}=") and ", torch." in example.call


def test_nothing_is_called_first_where_the_call_runs(tmp_path: Path, sandbox: Sandbox) -> None:
    example = example_of(tmp_path, sandbox, "Complete")
    assert example is not None and example.method == ""


def test_other_methods_and_a_second_call_come_after_it_too(tmp_path: Path, sandbox: Sandbox) -> None:
    (tmp_path / "m.py").write_text(SOURCE, encoding="utf-8")
    example = Example("m.py:Stateful", "4", "dict(bsz=2), torch.randn(2, 4)", method="reset, forward")
    calls, errors = infer_methods(scan(tmp_path), [example], (), sandbox)
    by_method = {one.method: one.call for one in calls}
    assert "peek" not in errors
    assert by_method["reset, peek"].startswith("dict(bsz=2)")
    assert by_method["reset, forward, forward"] == "dict(bsz=2), dict(x=torch.randn(2, 4)), torch.randn(2, 4)"


def test_a_recorded_call_of_a_part_comes_after_what_it_reads(tmp_path: Path, sandbox: Sandbox) -> None:
    (tmp_path / "m.py").write_text(SOURCE, encoding="utf-8")
    outer = Example("m.py:Net", "4", "dict(n=3), torch.randn(3, 4)", method="start, forward")
    recorded = record(scan(tmp_path), [outer], sandbox, tmp_path / "out").examples
    parts = {one.method: one.call for one in recorded if one.unit == "m.py:Spiking"}
    assert parts["init_state, forward"].startswith("dict(batch_size=3), _tensors[")
