"""Which functions give the same when they are called twice."""

from __future__ import annotations

import ast

import pytest

from migrate_agent.tools.rewrite.analysis.ranges.number_functions import only_computes

COMPUTE = (
    "def f(v, by, least=None):\n    if least is None:\n        least = by\n    new = max(least, int(v + by / 2) // by * by)\n    return new",
    'def f(n):\n    """Half."""\n    return n // 2 if n > 1 else 1',
    "def f(n):\n    assert n > 0, f'{n} is no size'\n    if n % 2:\n        raise ValueError(n)\n    a, b = n, SIZES[n]\n    a += math.ceil(b)\n    return a",
)
MORE = (
    "def f(n):\n    MADE.append(n)\n    return n",
    "def f(n):\n    global count\n    count = n\n    return n",
    "def f(n):\n    return random.randint(1, n)",
    "def f(n):\n    while n > 3:\n        n //= 2\n    return n",
    "def f(n):\n    return other(n)",
    "def f(n):\n    SIZES[n] = 3\n    return n",
    "def f(n):\n    return n.size",
    "def f(n):\n    print(n)\n    return n",
    "def f(n):\n    yield n",
    "def f(n):\n    n + 1",
    "@cache\ndef f(n):\n    return n",
    "def f(n):\n    return [i for i in range(n)]",
)


@pytest.mark.parametrize(("source", "expected"), [*((one, True) for one in COMPUTE), *((one, False) for one in MORE)])
def test_functions_that_only_compute(source: str, expected: bool) -> None:
    assert only_computes(ast.parse(source).body[0]) == expected
