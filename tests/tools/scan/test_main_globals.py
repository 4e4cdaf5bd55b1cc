"""Statements of a main block that definitions read go to the top level, and no others."""

from __future__ import annotations

import pathlib

import pytest

from migrate_agent.tools.scan.main_globals import COMMENT, lift_main_globals, lifted

HEAD = "import argparse\nimport torch\nfrom torch import nn\nfrom data import load\n\n\n"
NET = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.lin = nn.Linear(size, width)\n\n\n"
MAIN = 'if __name__ == "__main__":\n'

CASES = {
    "constants": (
        NET + MAIN + "    size = 2  # features\n\n    width = size * 3\n\n    net = Net()\n    print(net)\n",
        NET + f"{COMMENT}\nsize = 2  # features\n\nwidth = size * 3\n{MAIN}    net = Net()\n    print(net)\n",
    ),
    "all of it": (NET + MAIN + "    size = width = 2\n", NET + f"{COMMENT}\nsize = width = 2\n"),
    "a table, filled in a loop": (
        NET
        + MAIN
        + "    words = {}\n    for i, word in enumerate('a b'.split()):\n        words[word] = i\n    size = width = len(words)\n    n = Net()\n",
        NET
        + f"{COMMENT}\nwords = {{}}\nfor i, word in enumerate('a b'.split()):\n    words[word] = i\nsize = width = len(words)\n{MAIN}    n = Net()\n",
    ),
    "one between that can go along": (
        NET + MAIN + "    size = 2\n    steps = 5\n    width = 3\n    n = Net()\n",
        NET + f"{COMMENT}\nsize = 2\nsteps = 5\nwidth = 3\n{MAIN}    n = Net()\n",
    ),
    "one between that acts": (
        NET + MAIN + "    size = 2\n    rows = load('x')\n    width = 3\n    n = Net()\n",
        NET + f"{COMMENT}\nsize = 2\n{MAIN}    rows = load('x')\nwidth = 3\n{MAIN}    n = Net()\n",
    ),
    "one between that only has an effect": (
        NET + MAIN + "    size = 2\n    torch.manual_seed(0)\n    print(size)\n    width = 3\n",
        NET + f"{COMMENT}\nsize = 2\n{MAIN}    torch.manual_seed(0)\n    print(size)\nwidth = 3\n",
    ),
    "one first that acts": (
        NET + MAIN + "    # rows\n    rows = load('x')\n\n    size = width = 3\n",
        NET + MAIN + "    # rows\n    rows = load('x')\n\nsize = width = 3\n",
    ),
    "arguments of the command line": (
        "def side():\n    return args.side\n\n\n"
        + MAIN
        + "    parser = argparse.ArgumentParser()\n    parser.add_argument('--side', default=3)\n    args = parser.parse_args()\n    print(side())\n",
        f"def side():\n    return args.side\n\n\n{COMMENT}\nparser = argparse.ArgumentParser()\nparser.add_argument('--side', default=3)\n"
        f"args = parser.parse_args()\n{MAIN}    print(side())\n",
    ),
    "a text of several lines": (
        NET + MAIN + "    text = '''a\n    b'''\n    size = width = len(text)\n    n = Net()\n",
        NET + f"{COMMENT}\ntext = '''a\n    b'''\nsize = width = len(text)\n{MAIN}    n = Net()\n",
    ),
    "a value, changed later": (
        "def best():\n    return top\n\n\n" + MAIN + "    top = 0\n    top = load(top)\n",
        f"def best():\n    return top\n\n\n{COMMENT}\ntop = 0\n{MAIN}    top = load(top)\n",
    ),
    "names of what the file calls": (NET + MAIN + "    size = width = load('x')\n", None),
    "a layer": ("def run(x):\n    return net(x)\n\n\n" + NET.replace("size, width", "2, 2") + MAIN + "    net = Net()\n", None),
    "what nothing reads": (NET.replace("size, width", "2, 2") + MAIN + "    size = 2\n", None),
    "what the file binds too": ("size = width = 1\n\n\n" + NET + MAIN + "    size = 2\n", None),
    "what is trained": ("def last():\n    return loss\n\n\n" + MAIN + "    loss = torch.ones(1).sum().backward()\n", None),
    "a parameter of that name": ("def double(size):\n    return size * 2\n\n\n" + MAIN + "    size = 2\n    print(double(size))\n", None),
    "a star import": ("from layers import *\n\n\n" + NET + MAIN + "    size = width = 2\n", None),
    "other guards": (NET + 'if __name__ == "__main__":\n    size = width = 2\nelse:\n    size = width = 3\n', None),
    "statements on one line": (NET + MAIN + "    size = 2; width = 3\n", None),
    "no Python": ("def f(:\n", None),
}


@pytest.mark.parametrize("case", CASES)
def test_main_globals(case: str) -> None:
    """The text is as it should be, and the script still does the same in the same order."""
    text, wanted = CASES[case]
    assert lifted(HEAD + text) == HEAD + (text if wanted is None else wanted)
    assert lifted(lifted(HEAD + text)) == lifted(HEAD + text)


def test_files(tmp_path: pathlib.Path) -> None:
    """Files with Windows line ends keep them; what is no text, and links, stay."""
    (tmp_path / "a.py").write_bytes((HEAD + CASES["constants"][0]).replace("\n", "\r\n").encode())
    (tmp_path / "b.py").write_bytes(b"\xff__main__")
    (tmp_path / "c.py").symlink_to(tmp_path / "b.py")
    lift_main_globals(tmp_path)
    assert (tmp_path / "a.py").read_bytes() == (HEAD + str(CASES["constants"][1])).replace("\n", "\r\n").encode()
    assert (tmp_path / "b.py").read_bytes() == b"\xff__main__"
