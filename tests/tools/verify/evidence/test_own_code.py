"""What the text of a port shows: sizes that it compares, dtypes and gradients that it shapes, and what it asks its surroundings for."""

from __future__ import annotations

import ast
import textwrap

import pytest

from migrate_agent.tools.rewrite.tables import helpers
from migrate_agent.tools.verify.checks.shared.handed_objects import handed_alone
from migrate_agent.tools.verify.checks.static import surroundings
from migrate_agent.tools.verify.evidence.own_code import compared_sizes, looks_at_dtypes, shapes_gradients
from migrate_agent.tools.verify.evidence.parsed_source import Source


def source(text: str) -> Source:
    text = f"import jax\nimport jax.numpy as jnp\n\n\n{textwrap.dedent(text)}"
    return Source("m.py", ast.parse(text), text=text)


SIZES = [
    ("def f(x):\n    return x if x.shape[0] < 64 else -x\n", (64,)),
    ("def f(x):\n    n, c = x.shape\n    return x if n * c <= 2**16 else -x\n", (65536,)),
    ("def f(x):\n    return x[: min(len(x), 128)]\n", (128,)),
    ("def f(x):\n    return -x if len(x.shape) == 4 else x\n", ()),
    ("def f(x, k):\n    return -x if k > 7 and x.shape[0] > k else x\n", ()),
    ("def f(x):\n    return -x if x.size > 1 else x\n", ()),
]


@pytest.mark.parametrize(("text", "sizes"), SIZES)
def test_sizes_that_are_compared(text: str, sizes: tuple[int, ...]) -> None:
    assert compared_sizes([source(text)]) == sizes


def test_copied_helpers_are_not_own_code() -> None:
    copied = helpers.render({"BatchNorm2d", "Dropout"})
    helper = Source("nnx_layers_jax.py", ast.parse(copied), text=copied)
    assert not looks_at_dtypes([helper]) and not shapes_gradients([helper]) and compared_sizes([helper]) == ()
    assert list(surroundings.find(helper)) == []


def test_dtypes_and_gradients_of_its_own() -> None:
    assert looks_at_dtypes([source("def f(x):\n    return x.astype(jnp.float32)\n")])
    assert looks_at_dtypes([source("def f(n):\n    return jnp.zeros(n, dtype=int)\n")])
    assert not looks_at_dtypes([source("def f(x):\n    return x + 1\n")])
    drawn = "def f(m, init, rngs):\n    m.w[...] = init(0.1)(rngs.params(), m.w.shape, {dtype})\n"
    assert not looks_at_dtypes([source(drawn.format(dtype="m.w.dtype"))])
    assert looks_at_dtypes([source(drawn.format(dtype="jnp.bfloat16"))])
    assert looks_at_dtypes([source(drawn.format(dtype="m.b.dtype"))])
    assert looks_at_dtypes([source("def f(m, x):\n    m.w[...] = x.astype(m.w.dtype)\n")])
    assert shapes_gradients([source("def f(x):\n    return jax.lax.stop_gradient(x)\n")])
    assert shapes_gradients([source("@jax.custom_vjp\ndef f(x):\n    return x\n")])
    assert not shapes_gradients([source("def f(x):\n    return jax.grad(jnp.sum)(x)\n")])


SURROUNDINGS = [
    ("class M:\n    def __call__(self, x):\n        return x * next(self.rates)\n", "self.rates"),
    ("class M:\n    def __call__(self, x):\n        rates = self.rates\n        return x * next(rates)\n", "self.rates"),
    ("class M:\n    def __call__(this, x):\n        return x * this.part.rates.__next__()\n", "this.part.rates"),
    ("class M:\n    def __call__(self, x):\n        return x * next(rates := self.rates)\n", "self.rates"),
    ("class M:\n    def __call__(self, x):\n        rates = iter(self.rates)\n        return x * next(rates)\n", ""),
    ("class M:\n    def __init__(self):\n        self.rate = next(self.rates)\n", ""),
    ("class M:\n    def __call__(self, x):\n        return next(iter(self.parts))(x)\n", ""),
    ("def f(x):\n    return x if jax.default_backend() == 'cpu' else -x\n", "jax.default_backend"),
    ("def f(x):\n    return x * jax.device_count()\n", "jax.device_count"),
    ("import time\n\n\ndef f(x):\n    return x * time.time()\n", "time"),
    ("import threading\n\nLOCK = threading.Lock()\n\n\ndef f(x):\n    with LOCK:\n        return x\n", ""),
    ("import threading\n\nLOCK = threading.Lock()\n\n\ndef f(x):\n    return x if LOCK.acquire(False) else -x\n", "threading.Lock"),
    ("import threading\n\nLOCK = threading.RLock()\n\n\ndef f(x):\n    return x if LOCK._is_owned() else -x\n", "threading.RLock"),
    ("import threading\n\n\ndef f(x):\n    return x * threading.active_count()\n", "threading.active_count"),
    ("COUNT = [0]\n\n\ndef f(x):\n    COUNT[0] += 1\n    return x\n", "COUNT"),
    ("SEEN = []\n\n\ndef f(x):\n    SEEN.append(1)\n    return x\n", "SEEN"),
    ("N = 0\n\n\ndef f(x):\n    global N\n    N = N + 1\n    return x\n", "N"),
    ("def f(x):\n    return jax.device_put(x, jax.devices()[0])\n", ""),
    ("KINDS = {}\n\n\ndef f(x):\n    KINDS = {}\n    KINDS['a'] = x\n    return KINDS\n", ""),
    ("def f(x):\n    rows = []\n    rows.append(x)\n    return rows\n", ""),
]


@pytest.mark.parametrize(("text", "name"), SURROUNDINGS)
def test_what_it_asks_its_surroundings_for(text: str, name: str) -> None:
    rows = list(surroundings.find(source(text)))
    assert (name in rows[0][1]) if name else rows == []


TABLE = "TABLE = {}\n\n\ndef entered(f):\n    TABLE[f.__name__] = f\n    return f\n\n\n"
COUNTING = "TABLE = {}\n\n\ndef entered(f):\n    def call(x):\n        TABLE['n'] = x\n        return f(x)\n\n    return call\n\n\n"
NAMING = "TABLE = {}\n\n\ndef entered(name=''):\n    def enter(f):\n        TABLE[name] = f\n        return f\n\n    return enter\n\n\n"
NAMED = (
    "TABLE = {}\n\n\ndef entered(name=''):\n    def enter(f):\n        def call(x):\n            TABLE[name] = x\n            return f(x)\n\n"
    "        return call\n\n    return enter\n\n\n"
)
KEPT = (
    "TABLE = {}\n\n\ndef entered(name=''):\n    def enter(f):\n        TABLE[name] = f\n        return f\n\n    KEPT[name] = enter\n"
    "    return enter\n\n\n"
)
DECORATED = [
    (f"{TABLE}@entered\ndef f(x):\n    return x\n", False),
    (f"{TABLE}@entered\ndef f(x):\n    return entered(x)\n", True),
    (f"{TABLE}@entered\ndef f(x):\n    return globals()['entered'](x)\n", True),
    (f"{TABLE}@entered\ndef f(x):\n    return m.entered(x)\n", True),
    (f"{TABLE}again = entered\n\n\n@entered\ndef f(x):\n    return again(x)\n", True),
    (f"{TABLE}def f(x):\n    @entered\n    def g(y):\n        return y\n\n    return g(x)\n", True),
    (f"{COUNTING}@entered\ndef f(x):\n    return x\n", True),
    (f"{NAMING}@entered()\ndef f(x):\n    return x\n", False),
    (f"{NAMING}@entered\ndef f(x):\n    return x\n", True),
    (f"{NAMING}@entered('f')\ndef f(x):\n    return entered()(x)\n", True),
    (f"{NAMING}@entered()\ndef f(x):\n    return x\n\n\n@entered\ndef g(x):\n    return x\n", True),
    (f"{KEPT}@entered()\ndef f(x):\n    return x\n", True),
    (f"{NAMING.replace('    def enter(f)', '    @kept' + chr(10) + '    def enter(f)')}@entered()\ndef f(x):\n    return x\n", True),
    (f"{NAMED}@entered()\ndef f(x):\n    return x\n", True),
    (f"from m import entered as e\n\n{TABLE}@entered\ndef f(x):\n    return e(x)\n", True),
]


@pytest.mark.parametrize(("text", "refused"), DECORATED)
def test_what_a_decorator_enters_while_a_file_is_imported(text: str, refused: bool) -> None:
    one = source(text)
    assert bool(list(surroundings.find(one, surroundings.decorators_alone([one])))) == refused


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        (f"{NAMING}def f(x):\n    return x\n", False),  # it registers the classes of other files
        (f"{NAMING}def f(x):\n    return entered()(x)\n", True),
        (f"{NAMING}def f(x):\n    return globals()['entered']()(x)\n", True),
        (f"{NAMING}def f(x):\n    return m.entered()(x)\n", True),
        (f"{TABLE}@kept\ndef entered_too(f):\n    TABLE[f] = f\n", True),
    ],
)
def test_what_functions_change_that_nothing_calls(text: str, refused: bool) -> None:
    one = source(text)
    assert bool(list(surroundings.find(one, unused=surroundings.unused_functions([one])))) == refused


ADVANCING = "class Cache:\n    def take(self):\n        return next(self.parts)\n"
HANDED = "\n\ndef f(x, cache: Cache):\n    return x + cache.take()\n"
KEPT = "\n\nclass M(nnx.Module):\n    def __init__(self, *, rngs):\n        self.cache = Cache()\n"


@pytest.mark.parametrize(("text", "refused"), [(ADVANCING + HANDED, False), (ADVANCING + KEPT, True), (ADVANCING + HANDED + KEPT, True)])
def test_an_object_that_calls_are_handed_may_advance_its_iterators(text: str, refused: bool) -> None:
    one = source(text)
    assert bool(list(surroundings.find(one, handed=handed_alone([one.tree])))) == refused
