"""Loops with several ways out: rewritten where that is exact, and a hole that says why where it is not. No rule ends with an error."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from tests.tools.rewrite.snippets import rewrite_snippet

EXITS = {
    "known continue": "if i == n - 1:\n            continue",
    "known break": "if i > 3:\n            break",
    "tensor break": "if x.sum() > 3:\n            break",
    "tensor continue": "if x.sum() > 9: continue",
    "tensor break inside a branch": "if flag:\n            if x.sum() > 3:\n                break",
    "tensor break or another exit": "if x.sum() > 3:\n            break\n        elif n > 2:\n            continue",
}
PAIRS = tuple(pair for pair in permutations(EXITS, 2) if any(name.startswith("tensor") for name in pair))
FIRST_ALONE = {("known continue", "tensor continue"), ("known break", "tensor continue")}
"""Python leaves first, and what is left over is one step that a test on tensors leaves out."""


def _loop(*lines: str) -> str:
    head = "import torch\n\ndef f(x: torch.Tensor, n: int, flag: bool):\n    out = []\n    for i in range(n):\n        "
    return head + "\n        ".join(lines) + "\n    return x, out\n"


@pytest.mark.parametrize("exits", PAIRS, ids=" and ".join)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_two_exits(exits: tuple[str, str], place: int, tmp_path: Path) -> None:
    lines = [EXITS[name] for name in exits]
    lines.insert(place, "x = x + i")
    _, holes = rewrite_snippet(tmp_path, _loop(*lines))
    assert {hole.code for hole in holes} == (set() if place == 2 and exits in FIRST_ALONE else {"tensor-branch"})


@pytest.mark.parametrize("lines", [("{append}", "{leave}"), ("{append}", EXITS["known continue"], "{leave}"), ("{leave}", "{append}")])
def test_sequences_as_long_as_the_data_say(lines: tuple[str, ...], tmp_path: Path) -> None:
    """A list that grows until a tensor says so has a length that tracing cannot know."""
    texts = [line.format(append="out.append(x)", leave=EXITS["tensor break"]) for line in lines]
    _, (hole,) = rewrite_snippet(tmp_path, _loop("x = x + i", *texts))
    assert hole.code == "tensor-branch" and "how long `out` becomes" in hole.reason
