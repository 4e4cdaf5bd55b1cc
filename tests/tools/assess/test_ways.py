"""The facts have sources and a date; architectures are recognised by name and by what they are made of."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

from migrate_agent.tools.assess.ways import existing, facts, open_ways
from migrate_agent.tools.scan import scan

DECODER = """
import torch
import torch.nn.functional as F
from torch import nn


class RMSNorm(nn.Module):
    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = RMSNorm()

    def forward(self, x, freqs_cis):
        mask = torch.triu(torch.ones(4, 4))
        return F.silu(self.norm(x))


class NAME(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()

    def forward(self, x, freqs_cis):
        return self.block(x, freqs_cis)
"""


def test_each_fact_has_its_source_and_the_day_it_was_read() -> None:
    known = facts()
    assert date.fromisoformat(known.as_of) <= date.today()
    assert all(way.sources and set(way.fits) <= {"rewrite", "substitute", "redesign"} for way in known.ways)
    links = [link for way in known.ways for link in way.sources] + [link for family in known.families for link in family.links]
    assert all(re.fullmatch(r"https://[\w./-]+", link) for link in links)
    assert all(row.source for row in known.phases)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (DECODER.replace("NAME", "Transformer"), [("Transformer", "Llama", "RMSNorm, freqs_cis, silu, triu")]),
        (DECODER.replace("NAME", "Qwen3ForCausalLM"), [("Qwen3ForCausalLM", "Qwen", "its name")]),
        (DECODER.replace("NAME", "ResNet50"), [("ResNet50", "ResNet", "its name")]),
        (DECODER.replace("NAME", "Decoder").replace("freqs_cis", "steps"), []),
        (DECODER.replace("NAME", "VGGLoss").replace("freqs_cis", "steps"), []),
        (DECODER.replace("NAME", "Wanderer").replace("silu", "relu"), []),
    ],
    ids=("by what it is made of", "name before marks", "another name", "one mark is missing", "a loss", "a word that begins alike"),
)
def test_architectures_that_exist_in_jax(source: str, expected: list[tuple[str, str, str]], tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(source)
    rows = existing(scan(tmp_path))
    assert [(row.unit.rpartition(":")[2], row.family, row.by) for row in rows] == expected
    assert all(row.links for row in rows)


def test_the_ways_that_are_open_for_a_unit(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(DECODER.replace("NAME", "Top"))
    (unit, *_) = scan(tmp_path).units
    assert open_ways(unit)[0] == "verified rewrite" and len(open_ways(unit)) > 2
