"""Which files do more than bind names when they are imported."""

from __future__ import annotations

import ast

import pytest

from migrate_agent.tools.scan.scripts import is_script, trains

ACTING = [
    "args = parser.parse_args()",
    "for x in data:\n    loss(x).backward()",
    "with open('x') as file:\n    text = file.read()",
    "data = datasets.MNIST('.', download=True)",
    "weights = torch.load('x.pt')",
    "def main():\n    pass\n\nmain()",
    "if True:\n    optimizer.step()",
    "class A:\n    rows = pd.read_csv('x')",
    "def f(x=torch.load('y')):\n    pass",
]
BINDING = [
    "import torch\nX = torch.ones(3)\nLOG = logging.getLogger(__name__)",
    "TABLE = {}\nfor n in range(3):\n    TABLE[n] = n",
    "def main():\n    args = parse_args()\n    model(args).backward()",
    "if __name__ == '__main__':\n    main()",
    "try:\n    import apex\nexcept ImportError:\n    apex = None",
    "f = lambda: torch.load('x')",
    "x = datasets.MNIST('.', download=False)",
    "torch.manual_seed(0)",
    "@TABLE.register('a')\nclass A:\n    def fit(self):\n        self.fit()",
    "print('ready')",
]


@pytest.mark.parametrize("text", ACTING)
def test_scripts(text: str) -> None:
    assert is_script(ast.parse(text))


@pytest.mark.parametrize("text", BINDING)
def test_files_that_bind_names(text: str) -> None:
    assert not is_script(ast.parse(text))


def test_what_trains() -> None:
    assert [trains(ast.parse(text).body[-1]) for text in (ACTING[1], ACTING[2], ACTING[6])] == [True, False, True]
