"""The check of signatures."""

from __future__ import annotations

from typing import Any

import torch

from migrate_agent.tools.harness.common.signatures import describe
from migrate_agent.tools.verify.checks.spec.signature import constructor_problem, parameters_problem


class Base:
    """Stands for `nn.Module`."""

    def __init__(self, *args: Any) -> None:
        pass


class Theirs(Base):
    """An original."""

    def __init__(self, d: int, act: type = int, eps: float = 1e-5, *rest: int, flag: bool = False) -> None:
        pass


class Ours(Base):
    """Its mirror."""

    def __init__(self, d: int, act: type = float, eps: float = 1e-5, *rest: int, flag: bool = False, rngs: Any) -> None:
        pass


class Other(Base):
    """A mirror with another default."""

    def __init__(self, d: int, act: type = float, eps: float = 1e-6, *rest: int, flag: bool = False, rngs: Any) -> None:
        pass


def test_signatures() -> None:
    theirs = describe(Theirs, "__init__", Base)
    assert constructor_problem(theirs, describe(Ours, "__init__", Base)) == ""
    assert "eps has the default 1e-06" in constructor_problem(theirs, describe(Other, "__init__", Base))
    assert "no keyword-only parameter rngs" in constructor_problem(theirs, theirs)
    assert parameters_problem("f", theirs, theirs) == ""
    assert describe(Base, "__init__", Base) == []
    assert describe(torch.nn.Linear, "__init__", torch.nn.Module) is None
