"""Which local names stand for parameters."""

from __future__ import annotations

import ast

import pytest

from migrate_agent.tools.rewrite.analysis.parameter_loops import parameter_names

LOOPS = [
    ("for p in m.parameters():", {"p"}),
    ("for p in list(m.parameters()):", {"p"}),
    ("for name, p in m.named_parameters():", {"p"}),
    ("for p, q in zip(m.parameters(), n.parameters()):", {"p", "q"}),
    ("for p in chain(m.parameters(), n.parameters()):", {"p"}),
    ("for p, q in zip(itertools.chain(m.parameters()), chain(n.parameters(), m.buffers())):", {"p", "q"}),
    ("for p in chain(m.parameters(), rest):", set()),
    ("for p in chain():", set()),
    ("for p in rest:", set()),
]


@pytest.mark.parametrize(("loop", "names"), LOOPS)
def test_names_of_a_loop(loop: str, names: set[str]) -> None:
    function = ast.parse(f"def f(m, n, rest):\n    {loop}\n        use(p)\n").body[0]
    assert parameter_names(function, 3) == names


@pytest.mark.parametrize("value", ["list(x)", "tuple(x)", "list(reversed(x))", "zip(x)", "chain(x, x)"])
def test_a_name_that_is_made_of_itself(value: str) -> None:
    function = ast.parse(f"def f(x):\n    x = {value}\n    return all(y for y in x)\n").body[0]
    assert parameter_names(function, 3) == set()
