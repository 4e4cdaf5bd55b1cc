"""Configurations whose numbers the repository leaves open."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from torch import nn

from migrate_agent.tools.record.guessing.configs import accessed, filled_in
from migrate_agent.tools.record.guessing.options import Options
from migrate_agent.tools.record.guessing.trials.trial import Trial
from migrate_agent.tools.record.guessing.values import Fields


class Net(nn.Module):
    """Takes the name of a model, or its numbers."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        by_name = config.model_type is not None
        by_numbers = config.n_layer is not None
        assert by_name ^ by_numbers
        self.layers = nn.ModuleList([nn.Linear(config.n_embd, config.n_embd, bias=config.norm is None) for _ in range(config.n_layer)])


OPEN = (("model_type", "'gpt'"), ("n_layer", "None"), ("n_embd", "None"), ("norm", "None"))
FILLED = (("model_type", "'gpt'"), ("n_layer", "2"), ("n_embd", "64"), ("norm", "None"))
CLOSED = (("model_type", "'gpt'"), ("n_layer", "2"), ("norm", "None"))


@pytest.mark.parametrize(("items", "tried"), [(OPEN, [FILLED, (("model_type", "None"), *FILLED[1:]), OPEN]), (CLOSED, [CLOSED])])
def test_open_numbers_are_filled_in(items: tuple[tuple[str, str], ...], tried: list[tuple[tuple[str, str], ...]]) -> None:
    assert [fields.items for fields in filled_in(Fields(items, "namespace"), Net, "config")] == tried


class Optional(nn.Module):
    """Does without a table and a name, and asks for a number."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        if config.embedding_pretrained is not None:
            self.embedding = nn.Embedding(config.n_vocab, 8, _weight=config.embedding_pretrained)
        elif config.width is None or config.path is None:
            self.embedding = nn.Embedding(config.n_vocab, 8)


def test_what_the_code_does_without_is_left_out() -> None:
    fields = accessed(Optional, "config")
    assert fields is not None
    assert dict(fields.items) | {"n_vocab": ""} == {"embedding_pretrained": "None", "width": "32", "path": "None", "n_vocab": ""}


def test_installed_packages_say_nothing_of_what_the_repository_runs_with(tmp_path: Path) -> None:
    own, installed = tmp_path / "own/train.py", tmp_path / "site-packages/tool.py"
    for path, setting in ((own, "'n_embd': 48"), (installed, "'n_layer': 3")):
        path.parent.mkdir()
        path.write_text(f"config = {{{setting}}}\n")
    options = Options(Trial(Net, sys.modules[__name__], []), [(own, "train"), (installed, "tool")], own.parent)
    assert options._settings == {"n_embd": "48"}
