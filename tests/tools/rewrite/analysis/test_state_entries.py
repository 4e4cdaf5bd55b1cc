"""Entries of a `state_dict` as the attributes that they stand for, in a text whose columns stay."""

from __future__ import annotations

import pytest

from migrate_agent.tools.rewrite.analysis.state_entries import entries_as_attributes

LOOP = "for name, value in self.gru.state_dict().items():\n    {body}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("init.zeros_(self.fc.state_dict()['bias'])", "init.zeros_(self.fc.bias)"),
        ('nn.init.normal_(self.body.state_dict()["0.weight"], 0, 1)', "nn.init.normal_(self.body[0].weight, 0, 1)"),
        (
            LOOP.format(body="if 'weight' in name: nn.init.orthogonal_(value)"),
            "for name, value in self.gru.named_parameters():\n    if 'weight' in name: nn.init.orthogonal_(value)\n",
        ),
    ],
)
def test_entries_become_attributes(before: str, after: str) -> None:
    changed = entries_as_attributes(before)
    assert "".join(changed.split()) == "".join(after.split())
    # What stands behind an entry keeps its column.
    assert [len(line) for line in changed.splitlines()] == [len(line) for line in before.splitlines()]


@pytest.mark.parametrize(
    "text",
    [
        "weight = self.fc.state_dict()[name]",
        "groups = optimizer.state_dict()['param_groups']",
        "keys = list(self.state_dict())",
        LOOP.format(body="nn.init.orthogonal_(value)"),  # of a batch norm it would reach buffers
        LOOP.format(body="if 'weight' in name: found.append(value)"),
        "self.fc.state_dict()['no-name']",
    ],
)
def test_other_reads_stay(text: str) -> None:
    assert entries_as_attributes(text) == text
