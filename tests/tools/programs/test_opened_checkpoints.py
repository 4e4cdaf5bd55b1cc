"""Checkpoints that a script hands to torch as open files."""

from __future__ import annotations

import libcst as cst
import pytest

from migrate_agent.tools.programs.rewrite.names import Imports
from migrate_agent.tools.programs.rewrite.normalise import Normalise

HEAD = "import torch\n"
CHANGE = {
    'with open(args.save, "wb") as f:\n    torch.save(model, f)\n': "torch.save(model, args.save)\n",
    "with open('a.pt', 'rb') as f:\n    state = torch.load(f)\n    use(state)\n": "state = torch.load('a.pt')\nuse(state)\n",
    "state = torch.load(open(path, 'rb'))\n": "state = torch.load(path)\n",
    "torch.save(state, open(path, 'wb'))\n": "torch.save(state, path)\n",
}
KEEP = (
    # The file gets something else too, or is for no checkpoint.
    "with open('a.pt', 'wb') as f:\n    torch.save(model, f)\n    f.write(b'end')\n",
    "with open('a.txt', 'w') as f:\n    f.write('text')\n",
    "with open('a.pkl', 'rb') as f:\n    state = pickle.load(f)\n",
)


def _normalised(text: str) -> str:
    module = cst.parse_module(HEAD + text)
    return module.visit(Normalise(module, Imports(HEAD + text))).code.removeprefix(HEAD)


@pytest.mark.parametrize("text", CHANGE)
def test_paths_take_the_place_of_files(text: str) -> None:
    """The rewrite's checkpoints are folders."""
    assert _normalised(text) == CHANGE[text]


@pytest.mark.parametrize("text", KEEP)
def test_other_files_stay(text: str) -> None:
    """When unsure, nothing is rewritten."""
    assert _normalised(text) == text
