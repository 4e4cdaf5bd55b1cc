"""Largest values that nothing reads, and the places of which a script asks for."""

from __future__ import annotations

import libcst as cst
import pytest

from migrate_agent.tools.programs.rewrite.names import Imports
from migrate_agent.tools.programs.rewrite.normalise import Normalise

HEAD = "import torch\n"
CHANGE = {
    "_, predicted = outputs.max(1)\n": "predicted = outputs.argmax(1)\n",
    "_, predicted = torch.max(outputs.data, 1)\n": "predicted = torch.argmax(outputs.data, 1)\n",
    "_, worst = torch.min(outputs, dim=-1, keepdim=True)\n": "worst = torch.argmin(outputs, dim=-1, keepdim=True)\n",
}
KEEP = (
    "best, predicted = outputs.max(1)\n",
    "_, predicted = outputs.max(1)\nprint(_)\n",
    "_, predicted = pair.max(other)\n",
    "_, predicted = outputs.topk(1)\n",
    "_, mu, _ = model(x)\n",
)


def _normalised(text: str) -> str:
    module = cst.parse_module(HEAD + text)
    return module.visit(Normalise(module, Imports(HEAD + text))).code.removeprefix(HEAD)


@pytest.mark.parametrize("text", CHANGE)
def test_places_alone_are_asked_for(text: str) -> None:
    assert _normalised(text) == CHANGE[text]


@pytest.mark.parametrize("text", KEEP)
def test_other_statements_stay(text: str) -> None:
    assert _normalised(text) == text
