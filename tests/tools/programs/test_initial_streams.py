"""Initial values of several modules of one script."""

from __future__ import annotations

import pytest

from migrate_agent.tools.programs.rewrite.initial_streams import repeats_streams


@pytest.mark.parametrize(
    ("text", "repeats"),
    [
        ("def main():\n    net = Net(rngs=nnx.Rngs(0))\n\n\nmain()\n", False),
        ("a, b = Net(rngs=nnx.Rngs(0)), Net(rngs=nnx.Rngs(0))\n", True),
        ("nets = [Net(rngs=nnx.Rngs(0)) for _ in range(2)]\n", True),
        ("def net():\n    return Net(rngs=nnx.Rngs(0))\n\n\na, b = net(), net()\n", True),
        ("def net():\n    return Net(rngs=nnx.Rngs(0))\n\n\nnets = [net() for _ in range(2)]\n", True),
        ("class Net(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.a = Linear(2, 2, rngs=rngs)\n", False),
    ],
)
def test_streams_that_would_repeat(text: str, repeats: bool) -> None:
    """Two layers of one shape would begin with the same weights."""
    assert repeats_streams(text) == repeats
