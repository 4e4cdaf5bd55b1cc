"""Which plain classes of a port nothing keeps objects of."""

from __future__ import annotations

import ast

import pytest

from migrate_agent.tools.verify.checks.shared.handed_objects import handed_alone

CACHE = """
class Cache:
    def __init__(self, parts=None):
        self.parts = iter(parts or ())

    def __iter__(self):
        return self

    def take(self):
        return next(self.parts, None)

"""
CALLED = "class M(nnx.Module):\n    def __call__(self, x, cache: Cache | None = None):\n        "
BUILT = "class M(nnx.Module):\n    def __init__(self, parts, *, rngs):\n        "
HANDED = [
    f"{CALLED}return x if cache is None else x + cache.take()\n",
    f"{CALLED}if cache:\n            x = x + cache.take()\n        return self.fc(x, cache=cache)\n\ndef fc(x, cache):\n    return cache.take()\n",
    f"{CALLED}own = Cache()\n        y = self(x, cache=own)\n        return y, own.parts\n",
    f"{CALLED}return x if isinstance(cache, Cache) else -x\n",
]
KEPT = [
    f"{CALLED}self.cache = cache\n        return x\n",
    f"{CALLED}return self.fc(x, cache)\n",
    f"{CALLED}return x, cache\n",
    f"{CALLED}self.all.append(cache)\n        return x\n",
    f"{CALLED}other = cache\n        self.cache = other\n        return x\n",
    f"{CALLED}return dict(cache=cache, kept=cache)\n",
    f"{BUILT}self.cache = Cache(parts)\n",
    f"{BUILT}cache = Cache(parts)\n        self.cache = cache\n",
    f"{BUILT}self.fc = fc(cache=Cache(parts))\n\ndef fc(cache):\n    return [cache]\n",
    f"{BUILT}self.caches = [Cache(part) for part in parts]\n",
    f"{BUILT}self.kind = Cache\n",
    "CACHE = Cache\n",
    "class More(Cache):\n    pass\n",
    "from m import Cache as C\n",
    "@dataclass\nclass Kept:\n    cache: object\n\ndef f(x):\n    return Kept(cache=Cache())\n\ndef g(cache):\n    return cache.take()\n",
]
ALONE = [(CACHE + text, True) for text in HANDED] + [(CACHE + text, False) for text in KEPT]
ALONE += [
    (CACHE.replace("class Cache", "class Cache(nnx.Module)") + HANDED[0], False),
    (CACHE.replace("return next", "ALL.append(self)\n        return next") + HANDED[0], False),
]


@pytest.mark.parametrize(("text", "alone"), ALONE)
def test_what_nothing_keeps(text: str, alone: bool) -> None:
    assert handed_alone([ast.parse(text)]) == ({"Cache"} if alone else set())


def test_what_constructs_a_module_is_kept() -> None:
    tree = ast.parse(CACHE + HANDED[0])
    assert handed_alone([tree], ["4, Cache([1])"]) == frozenset()
    assert handed_alone([tree], ["4, Caches"]) == {"Cache"}
