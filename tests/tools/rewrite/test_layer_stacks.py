"""Equal layers as one scan: what is stacked, what is not, and that it computes what torch's list does."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from migrate_agent.tests.tools.rewrite.migrating import compare, migrated

INPUT = "torch.randn(4, 6)"
CALLS = {
    "stacked": {
        "Stacked": ("6, 3", f"{INPUT}, torch.tensor(0.5)"),
        **dict.fromkeys(("Numbered", "Indexed", "Narrowing", "Fed", "Named", "Shared"), ("6", INPUT)),
    }
}


@pytest.mark.parametrize("style", ["plain", "close"])
def test_equal_layers_are_one_scan(tmp_path: Path, style: Literal["plain", "close"]) -> None:
    with migrated(Path(__file__).with_name("fixtures"), CALLS, tmp_path, style=style, scan_layers=True) as work:
        text = work.draft.files["stacked_jax.py"]
        assert not work.draft.holes
        assert text.count("LayerStack(") == 1
        assert "h=LayerStack(lambda rngs: Block(dim, rngs=rngs), depth, rngs=rngs)" in text
        assert "x = self.parts.h(x, scale=scale)" in text
        for training in (False, True):
            compare(work, "stacked", "Stacked", training=training)


def test_nothing_is_stacked_where_nobody_asks(tmp_path: Path) -> None:
    with migrated(Path(__file__).with_name("fixtures"), CALLS, tmp_path) as work:
        assert "LayerStack" not in "".join(work.draft.files.values())
