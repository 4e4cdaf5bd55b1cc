"""Optimizers and schedules that a configuration names."""

from __future__ import annotations

import libcst as cst
import pytest

from migrate_agent.tools.programs.rewrite.configured import Construction, configured
from migrate_agent.tools.programs.rewrite.names import Imports, code

ADAM = Construction(3, "Adam", ("lr", "eps"))


@pytest.mark.parametrize(
    ("call", "constructions", "plain", "others"),
    [
        (
            'getattr(torch.optim, cfg.name)(net.parameters(), **cfg["optim"])',
            [ADAM],
            'torch.optim.Adam(net.parameters(), lr=cfg["optim"]["lr"], eps=cfg["optim"]["eps"])',
            ('cfg.name != "Adam"', 'set(cfg["optim"]) != {"lr", "eps"}'),
        ),
        (
            "torch.optim.Adam(net.parameters(), lr=0.1, **kw)",
            [ADAM],
            'torch.optim.Adam(net.parameters(), lr=0.1, eps=kw["eps"])',
            ('set(kw) != {"eps"}',),
        ),
        ("torch.optim.Adam(net.parameters(), **kw)", [Construction(3, "Adam", ())], "torch.optim.Adam(net.parameters())", ("kw",)),
        # It names everything, more than one was constructed here, none was, or the options are computed.
        ("torch.optim.Adam(net.parameters(), lr=0.1)", [ADAM], "", ()),
        ("getattr(torch.optim, name)(net.parameters())", [ADAM, Construction(3, "SGD", ())], "", ()),
        ("getattr(torch.optim, name)(net.parameters())", [], "", ()),
        ("torch.optim.Adam(net.parameters(), **options())", [ADAM], "", ()),
    ],
)
def test_class_and_options_of_the_run(call: str, constructions: list[Construction], plain: str, others: tuple[str, ...]) -> None:
    """They are written out, and others are refused."""
    node = cst.ensure_type(cst.parse_expression(call), cst.Call)
    result = configured(node, Imports("import torch"), constructions)
    assert (code(result.call) if result else "", result.others if result else ()) == (plain, others)
    if result:
        assert "NotImplementedError" in code(result.guard())
