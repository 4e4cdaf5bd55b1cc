"""Lazy layers get the one size that examples showed; where they showed none or several, a hole says so."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from migrate_agent.tools.record.kinds import Kinds, class_after_first_call
from migrate_agent.tools.record.observe import Recorder
from migrate_agent.tools.rewrite.tables.layers.lazy import LAZY
from migrate_agent.tools.rewrite.tables.registry import layers
from migrate_agent.tools.types import Observed, Span
from tests.tools.rewrite.snippets import snippet_workspace

SOURCE = "from torch import nn\n\n\ndef build():\n    return nn.LazyLinear(5)\n"
SPAN = Span(5, 11, 5, 27)


def rewritten(folder: Path, shapes: tuple[tuple[int, ...], ...]) -> tuple[str, list[str]]:
    fact = Observed(("module:torch.nn.Linear",), shapes)
    space = snippet_workspace(folder, SOURCE, {"snippet.py": {SPAN: fact}})
    return "".join(s.text for s in space.statements("snippet.py")), [hole.reason for hole in space.rewritten("snippet.py").holes]


def test_the_size_is_written(tmp_path: Path) -> None:
    text, holes = rewritten(tmp_path, ((3,),))
    assert "def build(*, rngs: nnx.Rngs):\n    return Linear(3, 5, rngs=rngs)" in text and not holes


@pytest.mark.parametrize(("shapes", "reason"), [((), "no example calls it"), (((3,), (7,)), "examples gave it 3, 7")])
def test_several_sizes_are_a_hole(tmp_path: Path, shapes: tuple[tuple[int, ...], ...], reason: str) -> None:
    _, holes = rewritten(tmp_path, shapes)
    assert len(holes) == 1 and reason in holes[0]


@pytest.mark.parametrize("lazy", LAZY)
def test_every_lazy_layer_becomes_one_with_a_row(lazy: str) -> None:
    after = class_after_first_call(getattr(torch.nn, lazy.rpartition(".")[2]))
    assert Kinds().dotted(after) == LAZY[lazy] and LAZY[lazy] in layers()


def test_the_recorder_sees_the_size() -> None:
    recorder = Recorder()
    recorder.begin("model.py")
    recorder.entry(SPAN)
    layers_ = [recorder.observe(0, torch.nn.LazyLinear(5)) for _ in range(3)]
    for layer, width in zip(layers_[:2], (4, 4), strict=True):
        layer(torch.ones(2, width))
    assert recorder.table()["model.py"][SPAN] == Observed(("module:torch.nn.Linear",), ((4,),))
