"""A fixed part of many like cases for `make test`, a larger one for CI; `make test-all` runs all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def one_in(number: int, cases: Iterable[tuple[str, Any]], *, ci: int | None = None) -> list[Any]:
    """(Id, case) as parameters: each `number`-th is quick, each `ci`-th of the others is CI's, and the rest is slow. The order alone decides."""
    return [pytest.param(case, id=name, marks=_lane(index, number, ci or number)) for index, (name, case) in enumerate(cases)]


def first_quick(number: int, cases: Iterable[Any]) -> list[Any]:
    """The cases as parameters: the first `number` are quick, and CI runs the others."""
    return [pytest.param(case, marks=[pytest.mark.ci] * (index >= number)) for index, case in enumerate(cases)]


def _lane(index: int, number: int, ci: int) -> list[pytest.MarkDecorator]:
    if index % number == 0:
        return []
    return [pytest.mark.ci if index % ci == 0 else pytest.mark.slow]
