"""What `--module` takes along: what the units need, and what their examples are built of."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from migrate_agent.agent.config.config import Config
from migrate_agent.agent.config.errors import UsageError
from migrate_agent.agent.loop.nodes.plan import widen_scope
from migrate_agent.agent.loop.scope import plan_scope, with_named
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Example, Inventory

BLOCK = "class {0}(nn.Module):\n    def forward(self, x):\n        return x\n\n"
NET = "class Net(nn.Module):\n    def __init__(self, block):\n        super().__init__()\n        self.block = block()\n"


@pytest.fixture
def inventory(tmp_path: Path) -> Inventory:
    head = "from torch import nn\n\n"
    (tmp_path / "net.py").write_text(head + BLOCK.format("Basic") + BLOCK.format("Other") + NET)
    (tmp_path / "blocks.py").write_text(head + BLOCK.format("Wide") + BLOCK.format("Basic") + BLOCK.format("Twin"))
    (tmp_path / "more.py").write_text(head + BLOCK.format("Twin"))
    return scan(tmp_path)


EXAMPLES = [
    ("Basic", "", ["net.py:Net", "net.py:Basic"]),
    ("Wide", "from blocks import Wide", ["net.py:Net", "blocks.py:Wide"]),
    ("Twin", "from more import Twin", ["net.py:Net"]),
    ("nn.ReLU", "", ["net.py:Net"]),
]


@pytest.mark.parametrize(("init", "setup", "wanted"), EXAMPLES)
def test_what_an_example_is_built_of_is_in_scope(inventory: Inventory, init: str, setup: str, wanted: list[str]) -> None:
    examples = [Example("net.py:Net", init, "torch.randn(2)", setup), Example("blocks.py:Wide", "Other", "", "")]
    assert list(with_named(inventory, examples, ["net.py:Net"]))[: len(wanted)] == wanted


def test_what_is_named_may_name_more(inventory: Inventory) -> None:
    examples = [Example("net.py:Net", "Wide", "torch.randn(2)"), Example("blocks.py:Wide", "Other", "torch.randn(2)")]
    assert with_named(inventory, examples, ["net.py:Net"]) == ("net.py:Net", "blocks.py:Wide", "net.py:Other")


def test_an_unknown_module_is_told(inventory: Inventory) -> None:
    with pytest.raises(UsageError, match="no module or function Nett"):
        with_named(inventory, [], ["net.py:Nett"])


@pytest.mark.parametrize(
    ("modules", "order"), [(("net.py:Net",), ("blocks.py:Wide", "net.py:Net")), ((), None)], ids=["some modules", "all modules"]
)
def test_parts_of_a_guess_come_into_scope(
    inventory: Inventory, tmp_path: Path, modules: tuple[str, ...], order: tuple[str, ...] | None
) -> None:
    before = plan_scope(inventory, modules, ())
    notes: list[str] = []
    progress = SimpleNamespace(total=0, note=notes.append)
    context = SimpleNamespace(
        inventory=inventory,
        settings=SimpleNamespace(modules=modules),
        config=Config(),
        original=tmp_path,
        folder=tmp_path,
        progress=progress,
    )
    context.scope = before
    widen_scope(cast(Any, context), [Example("net.py:Net", "Wide", "torch.randn(2)", "from blocks import Wide")])
    assert context.scope.order == (order or before.order)
    assert (tmp_path / "scope.json").exists() is bool(notes) is bool(order)
