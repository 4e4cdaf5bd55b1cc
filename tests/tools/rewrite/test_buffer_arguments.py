"""Functions that change the buffers which they are handed: results, gradients and the state afterwards are torch's, in float64."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from migrate_agent.tests.tools.rewrite.migrating import Migrated, compare, migrated
from migrate_agent.tests.tools.rewrite.snippets import snippet_workspace

CALLS = {
    "buffer_arguments": {
        "Norm": ("3", "torch.randn(4, 3, 2)"),
        "Untracked": ("3", "torch.randn(4, 3, 2)"),
        "GroupNorm": ("3", "torch.randn(4, 6, 2)"),
        "TorchNorm": ("3", "torch.randn(4, 3, 2)"),
        "Averages": ("3", "torch.randn(4, 3)"),
    }
}


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Migrated]:
    with migrated(Path(__file__).with_name("fixtures"), CALLS, tmp_path_factory.mktemp("migrated")) as work:
        yield work


def test_nothing_is_left_open(work: Migrated) -> None:
    assert not work.draft.holes


@pytest.mark.parametrize("name", CALLS["buffer_arguments"])
@pytest.mark.parametrize("training", [True, False])
def test_results_and_state_are_torchs(work: Migrated, name: str, training: bool) -> None:
    compare(work, "buffer_arguments", name, training)


CALLER = """
def f(x: torch.Tensor, mean: torch.Tensor):
    y = norm(x, mean)
    return y, mean
"""
DECLINED = {
    "a view that is read later": "    first = mean[0]\n    mean.mul_(0.9)\n    return x - first\n",
    "the value of a change": "    new = mean.mul_(0.9)\n    return x - new\n",
    "another tensor under the name": "    mean.mul_(0.9)\n    mean = mean + 1\n    mean.mul_(0.5)\n    return x - mean\n",
    "an inner function": "    mean.mul_(0.9)\n    return (lambda: x - mean)()\n",
}


@pytest.mark.parametrize("body", DECLINED.values(), ids=DECLINED.keys())
def test_what_a_variable_cannot_follow_is_a_hole(tmp_path: Path, body: str) -> None:
    source = f"import torch\n\ndef norm(x: torch.Tensor, mean: torch.Tensor):\n{body}\n{CALLER}"
    space = snippet_workspace(tmp_path, source)
    assert [hole.code for hole in space.rewritten("snippet.py").holes] == ["alias-write"]
