"""Arguments that a call of torch spreads with stars."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.tests.tools.rewrite.snippets import rewrite_snippet


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("F.conv2d(x, w, **options)", "conv2d(x, w, **options)"),
        ("F.pad(x, *sizes)", "pad(x, *sizes)"),
        ("F.interpolate(x, scale_factor=2, **options)", "interpolate(x, scale_factor=2, **options)"),
        ("F.softmax(x, **options)", ""),  # `dtype` may be among them
        ("torch.sum(x, **options)", ""),
        ("torch.distributions.Normal(*sizes)", "Normal(*sizes)"),
        ("torch.distributions.Bernoulli(**options)", "Bernoulli(**options)"),
        ("F.batch_norm(x, *sizes)", ""),
    ],
)
def test_spread_arguments_are_passed_on_where_they_mean_the_same(call: str, expected: str, tmp_path: Path) -> None:
    text, holes = rewrite_snippet(
        tmp_path, f"import torch\nimport torch.nn.functional as F\n\ndef f(x, w, sizes, options):\n    return {call}\n"
    )
    assert (f"return {expected}\n" in text) if expected else [hole.code for hole in holes] == ["unbound-call"]
