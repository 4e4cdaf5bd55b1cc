"""Initial values of several modules of one script."""

from __future__ import annotations

import libcst as cst
import pytest

from migrate_agent.tools.programs.rewrite.drafts.initial_streams import repeats_streams
from migrate_agent.tools.programs.rewrite.names import Imports
from migrate_agent.tools.programs.rewrite.program_file import _seeds


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


def test_methods_have_the_number_that_is_set_anywhere() -> None:
    """A trainer class makes its model in a method, and `main` sets the seed."""
    text = "import torch\n\n\nclass Exp:\n    def build(self):\n        pass\n\n\ndef main(args):\n    torch.manual_seed({})\n"
    seeds = [_seeds(cst.parse_module(text.format(seed)), Imports(text)) for seed in ("2021", "args.seed")]
    assert seeds == [{"": "2021", "build": "2021", "main": "2021"}, {"": "0", "build": "0", "main": "args.seed"}]
