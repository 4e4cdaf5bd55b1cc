"""What a call hands over, so that the mirror needs its class."""

from __future__ import annotations

import pytest

from migrate_agent.tools.rewrite.assemble.translate import _handed_over


@pytest.mark.parametrize(
    ("call", "names"),
    [
        ("Skeleton(torch.ones(2)), 3", {"Skeleton"}),
        ("[Graph(n=1), Graph(n=2)], state={'a': (State(), 1)}", {"Graph", "State"}),
        ("Config(n=1).width, torch.randn(2), x", set()),
        ("", set()),
    ],
)
def test_instances_that_reach_the_port(call: str, names: set[str]) -> None:
    assert set(_handed_over(call)) == names
