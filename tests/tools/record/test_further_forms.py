"""Further calls with arguments of another form: brackets, classes of one family, times, objects that hold what an earlier call wrote, states of methods."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.sandbox.process import ProcessSandbox
from migrate_agent.tools.record.further import further_examples
from migrate_agent.tools.record.infer import infer_methods
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Example, Limits, Recording

SOURCE = """
from typing import Optional
import torch
from torch import nn

class Shaped(nn.Module):
    def __init__(self, shapes):
        super().__init__()
        widths = []
        for shape in shapes:
            if not isinstance(shape, tuple):
                shape = tuple(shape)
            widths.append(shape[0])
        self.fc = nn.Linear(sum(widths), 4)

    def forward(self, x):
        return self.fc(x)

class Conditioned(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        if not isinstance(sizes, list):
            raise ValueError("a list of sizes")
        self.sizes, self.fc = sizes, nn.Linear(sum(sizes), 4)

    def forward(self, x, parts):
        if not isinstance(parts, list):
            parts = [parts]
        for part, size in zip(parts, self.sizes):
            assert part.shape[1] == size
        return x + self.fc(torch.cat(parts, 1))

class Timed(nn.Module):
    def forward(self, x, times=None):
        if times is not None:
            x = x / times[:, None]
        return x.cumsum(1)

class Wiring:
    def __init__(self, units):
        self.units = units

    def edges(self):
        raise NotImplementedError

class Full(Wiring):
    def __init__(self, units, loops=True):
        super().__init__(units)
        self.loops = loops

    def edges(self):
        edges = torch.ones(self.units, self.units)
        if not self.loops:
            edges = edges - torch.eye(self.units)
        return edges

class Banded(Wiring):
    def edges(self):
        return torch.ones(self.units, self.units).tril()

class Other:
    def __init__(self, units):
        self.units = units

    def edges(self):
        return 1.0

class Wired(nn.Module):
    def __init__(self, wiring):
        super().__init__()
        self.fc = nn.Linear(4, wiring.units)
        self.register_buffer("edges", wiring.edges())
        self.scale = 1.0
        if isinstance(wiring, Full):
            self.scale = 0.5

    def forward(self, x):
        return self.fc(x) @ self.edges * self.scale

class Chosen(nn.Module):
    def __init__(self, mode="sum", wide=False):
        super().__init__()
        if mode == "last" and not wide:
            raise TypeError("only where it is wide")
        self.mode, self.wide = mode, wide

    def forward(self, x):
        if self.wide:
            x = torch.cat([x, x], 1)
        if self.mode == "last":
            x = x[:, -1]
        return x * 2

class Memory(nn.Module):
    def init_memory(self, batch_size):
        return [torch.ones(batch_size, 1), torch.ones(batch_size, 3)]

    def width(self, size):
        return torch.ones(size)

    def forward(self, x, memory=None):
        if memory is not None:
            first, second = memory
            x = x * first + second
        return x * 2

class Buffered(nn.Module):
    def get_buffers(self):
        return [torch.ones(1, 3)]

    def forward(self, x, in_buffers=None):
        if in_buffers:
            x = x + in_buffers[0]
        return x * 2

class Stream:
    def __init__(self, read=None):
        if read is not None:
            self.read = list(read)
        else:
            self.read = None
        self.written = []

class Streamed(nn.Module):
    def forward(self, x, stream: Optional[Stream] = None):
        if stream is not None:
            if stream.read is not None:
                x = x + stream.read.pop(0)
            stream.written.append(x.sum(1, keepdim=True))
        return x * 2
"""


def rows_of(name: str, init: str, call: str, folder: Path) -> list[tuple[str, str]]:
    """Constructor and call of the further examples of a class of the source."""
    (folder / "model.py").write_text(SOURCE)
    inventory = scan(folder)
    example = Example(f"model.py:{name}", init, call)
    with ProcessSandbox() as sandbox:
        every = further_examples(inventory, [(inventory.unit(example.unit), [example])], Recording(), sandbox, Limits())
    return [(other.init, other.call) for other in every[1:]]


@pytest.mark.parametrize(
    ("name", "init", "call", "rows"),
    [
        ("Shaped", "[(3,), (2, 5)]", "torch.randn(2, 5)", [("[[3], [2, 5]]", "torch.randn(2, 5)")]),
        (
            "Conditioned",
            "[2, 5]",
            "torch.randn(3, 4), [torch.randn(3, 2), torch.randn(3, 5)]",
            [("[2]", "torch.randn(3, 4), torch.randn(3, 2)")],
        ),
        ("Timed", "", "torch.randn(2, 5)", [("", "torch.randn(2, 5), times=torch.rand((2,)) + 0.5")]),
        ("Wired", "Full(3)", "torch.randn(2, 4)", [("Full(3, loops=False)", "torch.randn(2, 4)")]),
        (
            "Wired",
            "Banded(units=3)",
            "torch.randn(2, 4)",
            [("Full(3)", "torch.randn(2, 4)"), ("Full(3, loops=False)", "torch.randn(2, 4)")],
        ),
        ("Wired", "Other(3)", "torch.randn(2, 4)", []),
        # What one construction refuses may run beside another.
        ("Chosen", "", "torch.randn(2, 3)", [("wide=True", "torch.randn(2, 3)"), ("wide=True, mode='last'", "torch.randn(2, 3)")]),
        ("Memory", "", "torch.randn(2, 3)", [("", "torch.randn(2, 3), memory=[torch.rand(2, 1), torch.rand(2, 3)]")]),
        ("Buffered", "", "torch.randn(2, 3)", [("", "torch.randn(2, 3), in_buffers=[torch.rand(1, 3)]")]),
        (
            "Streamed",
            "",
            "torch.randn(2, 3)",
            [
                ("", "torch.randn(2, 3), stream=Stream()"),
                ("", "torch.randn(2, 3), stream=Stream(read=[torch.randn(2, 1)])"),
            ],
        ),
    ],
)
def test_arguments_of_another_form_reach_more(name: str, init: str, call: str, rows: Sequence[tuple[str, str]], tmp_path: Path) -> None:
    assert rows_of(name, init, call, tmp_path) == rows


METHODS = """
import torch
from torch import nn

class Groups:
    def __init__(self, first, second):
        self.first, self.second = first, second

    def kind(self, unit):
        if unit < self.first:
            return "first"
        if unit < self.first + self.second:
            return "second"
        return "rest"

class Stateful(nn.Module):
    def __init__(self, groups):
        super().__init__()
        self.groups = groups
        self.register_buffer("fast", torch.zeros(2, 4))
        self.register_buffer("slow", torch.zeros(3))

    def forward(self, x):
        return x + self.fast.sum(0)

    def state(self):
        return [self.fast, self.slow]

    def set_state(self, values):
        self.slow = values.pop()
        self.fast = values.pop()
"""


def test_methods_take_lists_that_others_give_and_numbers_that_an_object_keeps(repository: Any, sandbox: Sandbox) -> None:
    inventory = repository({"net.py": METHODS})
    calls, errors = infer_methods(inventory, [Example("net.py:Stateful", "Groups(3, 4)", "torch.randn(2, 4)")], [], sandbox)
    assert not errors
    assert [(call.method, call.call) for call in calls] == [
        ("state", ""),
        ("set_state", "[torch.rand(2, 4), torch.rand(3)]"),
        ("groups.kind", "1"),
        ("groups.kind", "8"),
        ("groups.kind", "3"),
    ]
