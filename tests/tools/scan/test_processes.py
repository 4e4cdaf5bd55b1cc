"""What only several processes need says nothing about the strategy of a module that runs in one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from migrate_agent.tools.scan import scan

Write = Callable[[Mapping[str, str | bytes]], Path]


GUARDED = "from torch import nn\nimport torch\nimport torch.distributed as dist\n{}\nclass A(nn.Module):\n    def forward(self, x): return mean(x)\n"
IS = "def is_distributed(): return dist.is_initialized() and dist.get_world_size() > 1\n"
SIZE = "def get_world_size(): return dist.get_world_size() if dist.is_initialized() else 1\n"


@pytest.mark.parametrize(
    ("helper", "strategy"),
    [
        ("def mean(x):\n    dist.send(x, 1)\n    return x\n", "redesign"),
        ("def mean(x):\n    dist.all_reduce(x)\n    return x / dist.get_world_size()\n", "rewrite"),
        ("def mean(x):\n    return dist.nn.all_reduce(x)\n", "rewrite"),
        ("def mean(x):\n    dist.all_reduce_coalesced([x])\n    return x\n", "redesign"),
        ("def mean(x):\n    if dist.is_initialized():\n        dist.send(x, 1)\n    return x\n", "rewrite"),
        ("def mean(x):\n    if dist.get_world_size() > 1:\n        dist.send(x, 1)\n    return x\n", "rewrite"),
        (IS + "def mean(x):\n    if not is_distributed():\n        return x\n    dist.send(x, 1)\n    return x\n", "rewrite"),
        (IS + "def mean(x):\n    if not is_distributed():\n        raise ValueError\n    dist.send(x, 1)\n    return x\n", "redesign"),
        (
            SIZE
            + "def mean(x):\n    world_size = get_world_size()\n    if world_size == 1:\n        return x\n    dist.send(x, 1)\n    return x\n",
            "rewrite",
        ),
        (
            SIZE
            + "def mean(x):\n    world_size = get_world_size()\n    if get_world_size() < 2:\n        return x\n    dist.send(x, 1)\n    return x\n",
            "rewrite",
        ),
        (
            SIZE
            + "def mean(x):\n    world_size = get_world_size()\n    if world_size <= 1:\n        return x\n    dist.send(x, 1)\n    return x\n",
            "rewrite",
        ),
        (
            SIZE
            + "def mean(x):\n    world_size = get_world_size()\n    if world_size == 2:\n        return x\n    dist.send(x, 1)\n    return x\n",
            "redesign",
        ),
        (
            SIZE
            + "def mean(x):\n    world_size = get_world_size()\n    if world_size > 1:\n        return x\n    dist.send(x, 1)\n    return x\n",
            "redesign",
        ),
        (
            "def other(x):\n    if not dist.is_initialized():\n        return x\ndef mean(x):\n    dist.send(x, 1)\n    return x\n",
            "redesign",
        ),
    ],
)
def test_what_only_several_processes_need_is_no_reason_to_redesign(write: Write, helper: str, strategy: str) -> None:
    assert [unit.strategy for unit in scan(write({"m.py": GUARDED.format(helper)})).units] == [strategy]
