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


SELECTING = {
    "selecting": {
        "Nearest": ("4, 5", "torch.randn(3, 4)"),
        "Farthest": ("", "torch.randn(2, 6, 3), 4"),
        "Widened": ("", "torch.randn(2, 1, 4, 4)"),
    }
}


@pytest.mark.ci
def test_what_is_selected_is_written_by_functions_of_jax(tmp_path: Path) -> None:
    with migrated(Path(__file__).with_name("fixtures"), SELECTING, tmp_path, style="plain") as work:
        text = work.draft.files["selecting_jax.py"]
        assert (
            "nearest = jnp.argmax(-distance, axis=1)" in text
            and "jnp.sort(distance, axis=-1)" in text
            and "largest_along_last(distance, 2)[0]" in text
        )
        assert "distance = jnp.where(nearer, step, distance)" in text and "seen = jnp.where(nearer, True, seen)" in text
        assert "chosen = jnp.where(chosen > 3, 0, chosen)" in text and "topk" not in text and not work.draft.holes
        assert "x = jnp.pad(x, ((0, 0), (0, 0), (0, 1), (0, 1)))" in text and "pad = " not in text
        for name in SELECTING["selecting"]:
            compare(work, "selecting", name)


DIVISIBLE = {"divisible": {"Squeezed": ("12", "torch.randn(5, 12)")}}


@pytest.mark.ci
def test_sizes_of_functions_that_only_compute_are_written_twice(tmp_path: Path) -> None:
    with migrated(Path(__file__).with_name("fixtures"), DIVISIBLE, tmp_path, style="plain") as work:
        text = " ".join(work.draft.files["divisible_jax.py"].split())
        assert "self.up = nnx.Linear( divisible(width // 3), width," in text and "bias_init=fan_in_bias(divisible(width // 3))" in text
        assert "self.last = Linear(counted(width), 2, rngs=rngs)" in text and not work.draft.holes
        compare(work, "divisible", "Squeezed")
