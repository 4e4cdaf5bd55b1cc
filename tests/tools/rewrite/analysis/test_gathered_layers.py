"""Which plain containers of modules become local variables, and by which attribute the methods read their modules."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.tests.tools.rewrite.snippets import snippet_workspace
from migrate_agent.tools.rewrite.analysis.containers.gathered_layers import GatheredLayers, gathered_layers

FILLED = "self.xs = []; self.xs.append(nn.Linear(2, 2))"
LISTED = "self.net = nn.ModuleList(self.xs)"
LOOP = "for m in self.xs:\n            x = m(x)"
AS_LOCAL = {"xs": ""}
NOTHING: dict[str, str] = {}

CASES: list[tuple[str, str, str, dict[str, str]]] = [
    # constructor, forward, further code at the top of the file → local variable → attribute that methods read
    (f"{FILLED}; {LISTED}", "pass", "", AS_LOCAL),
    (f"{FILLED}; self.net = nn.Sequential(*self.xs)", "pass", "", AS_LOCAL),
    (f"{FILLED}; self.xs += [nn.ReLU()]; self.xs = self.xs + [nn.ReLU()]; {LISTED}", "pass", "", AS_LOCAL),
    ("self._xs = (nn.Linear(2, 2), nn.ReLU()); self.net = nn.Sequential(*self._xs)", "pass", "", AS_LOCAL),
    ("xs = 3; self.xs = [nn.ReLU() for _ in range(xs)]; self.net = nn.Sequential(*self.xs)", "pass", "", {"xs_parts": ""}),
    ("ys = [nn.Linear(2, 2)]; self.xs = ys; self.net = nn.Sequential(*ys)", "pass", "", {"ys": ""}),
    ("self.xs = {}; self.xs['a'] = nn.Linear(2, 2); self.net = nn.ModuleDict(self.xs)", "pass", "", AS_LOCAL),
    # What methods read is what is registered.
    (f"{FILLED}; {LISTED}", LOOP, "", {"xs": "net"}),
    (f"{FILLED}; {LISTED}", "return [m(x) for m in self.xs[1:]], self.xs[-1], len(self.xs)", "", {"xs": "net"}),
    (f"ys = [nn.Linear(2, 2)]; self.xs = ys; {LISTED}", LOOP, "", {"ys": "net"}),
    ("self.xs = {'a': nn.Linear(2, 2)}; self.net = nn.ModuleDict(self.xs)", "return self.xs['a'](x)", "", {"xs": "net"}),
    # Flax's own dictionary is sorted.
    ("self.xs = {'a': nn.Linear(2, 2)}; self.net = nn.ModuleDict(self.xs)", "return self.xs.values()", "", NOTHING),
    # What is registered is another sequence, or may be.
    (f"{FILLED}; self.net = nn.Sequential(*self.xs)", LOOP, "", NOTHING),
    (f"{FILLED}; self.net = nn.ModuleList(self.xs[1:])", LOOP, "", NOTHING),
    (f"{FILLED}; {LISTED}; self.xs.append(nn.ReLU())", LOOP, "", NOTHING),
    (f"{FILLED}; {LISTED}; self.net.append(nn.ReLU())", LOOP, "", NOTHING),
    (f"{FILLED}; {LISTED}; self.net = nn.ModuleList()", LOOP, "", NOTHING),
    (f"{FILLED}; {LISTED}; change(self)", LOOP, "", NOTHING),
    (f"{FILLED}; {LISTED}; self.other = self.xs", LOOP, "", NOTHING),
    (f"{FILLED}; ys = self.xs; {LISTED}; ys.append(nn.ReLU())", LOOP, "", NOTHING),
    (f"ys = [nn.Linear(2, 2)]; self.xs = ys; {LISTED}; ys.append(nn.ReLU())", LOOP, "", NOTHING),
    (f"{FILLED}; {LISTED}", LOOP, "def f(m):\n    m.net[0] = None\n", NOTHING),
    (f"{FILLED}; {LISTED}", "self.xs.append(x)", "", NOTHING),
    (f"{FILLED}; {LISTED}", "return self.xs", "", NOTHING),
    (f"{FILLED}; self.forward(1); {LISTED}", LOOP, "", NOTHING),
    # Others may see the attribute.
    (f"{FILLED}; {LISTED}", "pass", "def f(m):\n    return m.xs\n", NOTHING),
    (f"{FILLED}; {LISTED}", "pass", "def f(m):\n    return getattr(m, 'xs')\n", NOTHING),
    (f"{FILLED}; {LISTED}", "return getattr(self, x)", "", NOTHING),
    (f"{FILLED}; {LISTED}", "return vars(self)", "", NOTHING),
    (f"{FILLED}; {LISTED}; self.f = lambda: self.xs", "pass", "", NOTHING),
    (f"{FILLED}; {LISTED}", "pass", "class N(M):\n    def f(self):\n        return self.xs\n", NOTHING),
    (f"{FILLED}; {LISTED}", "pass", "class N(M):\n    xs = None\n", NOTHING),
    (f"{FILLED}; {LISTED}", "pass", "class N(M):\n    def xs(self):\n        pass\n", NOTHING),
    (f"{FILLED}; {LISTED}", "pass", "class N(M, Unknown):\n    pass\n", NOTHING),
    # An attribute of the same name in an unrelated class is another one.
    (f"{FILLED}; {LISTED}", "pass", "class N(nn.Module):\n    def f(self):\n        return self.xs\n", AS_LOCAL),
    # No plain container of modules, or one that serves nothing.
    (f"self.xs = [2, 2]; {LISTED}", "pass", "", NOTHING),
    (FILLED, "pass", "", NOTHING),
    (f"self.xs = nn.ModuleList([nn.ReLU()]); {LISTED}", "pass", "", NOTHING),
    (f"self.xs = None; {FILLED}; {LISTED}", "pass", "", NOTHING),
]


def _gathered(folder: Path, source: str) -> GatheredLayers:
    space = snippet_workspace(folder, source)
    file = space.repo.files["snippet.py"]
    return gathered_layers(space.repo, file.classes["M"], space.facts("snippet.py"))


@pytest.mark.parametrize(("constructor", "forward", "more", "expected"), CASES)
def test_gathering(constructor: str, forward: str, more: str, expected: dict[str, str], tmp_path: Path) -> None:
    source = (
        "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super(M, self).__init__()\n"
        f"        {constructor}\n\n    def forward(self, x):\n        {forward}\n\n{more}"
    )
    gathered = _gathered(tmp_path, source)
    reads = set(gathered.reads.values()) or {""}
    assert {local: read for local in gathered.locals.values() for read in reads} == expected


def test_two_attributes_do_not_become_one_variable(tmp_path: Path) -> None:
    source = (
        "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.xs = [nn.ReLU()]\n        self._xs = [nn.Tanh()]\n        self.net = nn.Sequential(*self.xs, *self._xs)\n"
    )
    assert len(_gathered(tmp_path, source).locals) == 2


def test_a_base_that_cannot_be_followed_may_read_the_attribute(tmp_path: Path) -> None:
    source = (
        "from torch import nn\n\nclass M(nn.TransformerEncoder):\n    def __init__(self):\n        nn.Module.__init__(self)\n"
        "        self.xs = [nn.ReLU()]\n        self.net = nn.Sequential(*self.xs)\n"
    )
    assert _gathered(tmp_path, source) == GatheredLayers()
