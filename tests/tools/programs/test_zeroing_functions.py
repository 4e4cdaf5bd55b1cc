"""Functions that only set gradients to zero stand where they are called."""

from __future__ import annotations

import libcst as cst
import pytest

from migrate_agent.tools.programs.rewrite.passes.zeroing_functions import ZeroingFunctions

RESET = "def reset():\n    d.zero_grad()\n    g.zero_grad()\n"
METHOD = "class T:\n    def reset(self):\n        '''Why.'''\n        self.d.zero_grad()\n    def fit(self):\n        {}\n"
CASES = {
    "a function": (
        f"{RESET}for x in y:\n    # Anew.\n    reset()\n    z()\n",
        "for x in y:\n    # Anew.\n    d.zero_grad()\n    g.zero_grad()\n    z()\n",
    ),
    "a method": (METHOD.format("self.reset()"), "class T:\n    def fit(self):\n        self.d.zero_grad()\n"),
    "called twice": (f"{RESET}reset()\nz()\nreset()\n", "d.zero_grad()\ng.zero_grad()\nz()\nd.zero_grad()\ng.zero_grad()\n"),
}
KEPT = {
    "does more": f"{RESET}    print(1)\nreset()\n",
    "takes something": f"{RESET.replace('()', '(d)', 1)}reset(d)\n",
    "is handed on": f"{RESET}reset()\nuse(reset)\n",
    "is called by others": METHOD.format("self.reset()") + "T().reset()\n",
    "by its name": METHOD.format("getattr(self, 'reset')()"),
    "its names are others there": f"{RESET}def fit(d):\n    reset()\n",
    "of a base": METHOD.format("self.reset()") + "class U(T):\n    pass\n",
    "gives something": f"{RESET}x = reset()\n",
}


def placed(text: str) -> str:
    """The script after the pass."""
    module = cst.parse_module(text)
    return module.visit(ZeroingFunctions(module)).code


@pytest.mark.parametrize("label", CASES)
def test_statements_stand_where_the_function_was_called(label: str) -> None:
    before, after = CASES[label]
    assert placed(before) == after


@pytest.mark.parametrize("label", KEPT)
def test_others_stay(label: str) -> None:
    assert placed(KEPT[label]) == KEPT[label]
