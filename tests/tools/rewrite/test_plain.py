"""A module of Flax's own layers computes what torch's does, in outputs, gradients and state."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.tests.tools.rewrite.migrating import compare, migrated

CALLS = {"plain": {"Scorer": ("11, 6, True", "torch.randint(0, 11, (2, 5))")}}


@pytest.mark.ci
def test_a_module_of_flaxs_own_layers_is_as_torchs(tmp_path: Path) -> None:
    with migrated(Path(__file__).with_name("fixtures"), CALLS, tmp_path, style="plain") as work:
        model, layers = work.draft.files["plain_jax.py"], work.draft.files["nnx_layers_jax.py"]
        assert all(f"nnx.{name}(" in model for name in ("Linear", "LayerNorm"))
        assert "class Linear" not in layers and "class LayerNorm" not in layers and not work.draft.holes
        compare(work, "plain", "Scorer")
        compare(work, "plain", "Scorer", training=True)
