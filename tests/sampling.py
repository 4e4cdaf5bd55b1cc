"""A fixed part of many like cases for `make test`; `make test-all` runs the others too."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def one_in(number: int, cases: Iterable[tuple[str, Any]]) -> list[Any]:
    """(Id, case) as parameters: each `number`-th is quick, the others are marked slow. Which ones depends on the order alone."""
    return [pytest.param(case, id=name, marks=[pytest.mark.slow] * (index % number != 0)) for index, (name, case) in enumerate(cases)]
