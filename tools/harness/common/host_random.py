"""Random numbers of Python's and numpy's own generators: paired on the original's side, and noticed on both.

Used inside the sandbox.
"""

from __future__ import annotations

import math
import os
import pickle
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np

from migrate_agent.tools.harness.common.random_streams import HOST, Stream, beta

GENERATORS = (random.Random, np.random.RandomState, np.random.Generator)


@contextmanager
def noticed(stream: Stream, owners: Iterable[object] = ()) -> Iterator[None]:
    """Note a draw of kind `host` where a generator of Python or numpy changes its state inside the context.

    Watched are the global generators, those in global names of the job's own modules, and those in
    attributes of `owners`.
    """
    watched = [
        *_global(),
        *(value for owner in owners for value in getattr(owner, "__dict__", {}).values() if isinstance(value, GENERATORS)),
    ]
    before = [_state(generator) for generator in watched]
    try:
        yield
    finally:
        if before != [_state(generator) for generator in watched]:
            stream.note(HOST, ())


@contextmanager
def paired(stream: Stream, owners: Iterable[object] = ()) -> Iterator[None]:
    """As `noticed`, with the basic functions of the global generators drawing from the stream, as `jax.random` does on the other side."""
    hidden: Any = random._inst
    own, plain = type(hidden), [(name, getattr(random, name)) for name in PYTHON]
    with noticed(stream, owners):
        replaced = {id(getattr(np.random, name)): make(stream, getattr(np.random, name)) for name, make in NUMPY.items()}
        # Python's functions are bound methods of one hidden instance: a new class redirects those
        # that are not replaced by name.
        hidden.__class__ = FromStream
        hidden.stream = stream
        replaced |= {id(function): getattr(hidden, name) for name, function in plain}
        # User files may have bound them by `from random import random`.
        names = [(names, name, value) for names in _namespaces() for name, value in list(names.items()) if id(value) in replaced]
        for names_of, name, value in names:
            names_of[name] = replaced[id(value)]
        try:
            yield
        finally:
            for names_of, name, value in names:
                names_of[name] = value
            hidden.__class__ = own
            del hidden.stream


class FromStream(random.Random):
    """Python's hidden generator while it draws from a stream."""

    stream: Stream

    def random(self) -> float:
        """A number of [0, 1), as `jax.random.uniform` draws it."""
        return float(self.stream.draw("uniform", ()))

    def _randbelow(self, n: int) -> int:
        """A number below `n`, as `jax.random.randint` draws it; `choice`, `shuffle` and `randrange` call it."""
        return int(float(self.stream.draw("integers", ())) * n)

    def gauss(self, mu: float = 0.0, sigma: float = 1.0) -> float:
        """A normal number, as `jax.random.normal` draws it."""
        return mu + sigma * float(self.stream.draw("normal", ()))

    normalvariate = gauss

    def expovariate(self, lambd: float = 1.0) -> float:
        """An exponential number, as `jax.random.exponential` draws it."""
        return float(self.stream.draw("exponential", ())) / lambd

    def betavariate(self, alpha: float, beta: float) -> float:
        """A number of (0, 1) that depends on both parameters, as `jax.random.beta` draws it on the other side."""
        return _beta(self.stream, None)(alpha, beta)  # type: ignore[no-any-return]

    def sample(self, population: Any, k: int, *, counts: Any = None) -> list[Any]:
        """`k` items without replacement, as `jax.random.choice` draws them; with `counts` as Python does, by single draws."""
        if counts is not None or not 0 <= k <= len(population):
            return super().sample(population, k, counts=counts)
        order = self.stream.draw("permutation", (len(population),)).astype(np.int64)
        return [population[index] for index in order[:k]]

    def choices(self, population: Any, weights: Any = None, *, cum_weights: Any = None, k: int = 1) -> list[Any]:
        """`k` items with replacement, as `jax.random.choice` draws them; with weights as Python does, by single draws."""
        if weights is not None or cum_weights is not None or not len(population):
            return super().choices(population, weights, cum_weights=cum_weights, k=k)
        return [population[index] for index in _integers(self.stream, None)(len(population), size=(k,))]


def _sized(value: Any, size: Any) -> Any:
    return value if size is not None else value.item()


def _shape(size: Any) -> Sequence[int]:
    return () if size is None else (int(size),) if np.ndim(size) == 0 else tuple(size)


def _standard(kind: str) -> Callable[[Stream, Any], Any]:
    return lambda stream, own: lambda size=None: _sized(stream.draw(kind, _shape(size)), size)


def _spread(kind: str) -> Callable[[Stream, Any], Any]:
    return lambda stream, own: lambda *size: _sized(stream.draw(kind, size), size or None)


def _between(stream: Stream, own: Any) -> Any:
    def uniform(low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        if np.ndim(low) or np.ndim(high):
            return own(low, high, size)
        return _sized(low + stream.draw("uniform", _shape(size)) * (high - low), size)

    return uniform


def _integers(stream: Stream, own: Any) -> Any:
    def randint(low: Any, high: Any = None, size: Any = None, dtype: Any = int) -> Any:
        if np.ndim(low) or np.ndim(high):
            return own(low, high, size, dtype)
        least, most = (0, low) if high is None else (low, high)
        return _sized(np.floor(least + stream.draw("integers", _shape(size)) * (most - least)).astype(dtype), size)

    return randint


def _normal(stream: Stream, own: Any) -> Any:
    def normal(loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        if np.ndim(loc) or np.ndim(scale):
            return own(loc, scale, size)
        return _sized(loc + scale * stream.draw("normal", _shape(size)), size)

    return normal


def _permutation(stream: Stream, own: Any) -> Any:
    def permutation(x: Any) -> Any:
        order = stream.draw("permutation", (int(x) if np.ndim(x) == 0 else len(x),)).astype(np.int64)
        return order if np.ndim(x) == 0 else np.asarray(x)[order]

    return permutation


def _beta(stream: Stream, own: Any) -> Any:
    def draw(a: Any, b: Any, size: Any = None) -> Any:
        if np.ndim(a) or np.ndim(b):
            return own(a, b, size)
        return _sized(np.asarray(beta(stream.draw("beta", _shape(size)), a, b)), size)

    return draw


def _binomial(stream: Stream, own: Any) -> Any:
    def binomial(n: Any, p: Any, size: Any = None) -> Any:
        # One trial is what `jax.random.bernoulli` draws; the sum of several has no counterpart there that could be paired.
        if np.ndim(n) or np.ndim(p) or n != 1:
            return own(n, p, size)
        shape = _shape(size)
        return _sized(np.array(np.broadcast_to(stream.mask(shape, float(p)), shape), int), size)

    return binomial


def _exponential(stream: Stream, own: Any) -> Any:
    def exponential(scale: Any = 1.0, size: Any = None) -> Any:
        return own(scale, size) if np.ndim(scale) else _sized(scale * stream.draw("exponential", _shape(size)), size)

    return exponential


def _choice(stream: Stream, own: Any) -> Any:
    def choice(a: Any, size: Any = None, replace: bool = True, p: Any = None) -> Any:
        if p is not None:
            return own(a, size, replace, p)
        pool = np.arange(a) if np.ndim(a) == 0 else np.asarray(a)
        if replace or size is None:
            return pool[_integers(stream, None)(len(pool), size=size)]
        order = stream.draw("permutation", (len(pool),)).astype(np.int64)
        return pool[order[: math.prod(_shape(size))].reshape(_shape(size))]

    return choice


PYTHON = ("random", "gauss", "normalvariate", "expovariate", "betavariate", "sample", "choices")
"""Functions of `random` that are replaced by name; the others call `random` and `_randbelow` of the hidden generator."""
NUMPY: dict[str, Callable[[Stream, Any], Any]] = {
    "random": _standard("uniform"),
    "random_sample": _standard("uniform"),
    "rand": _spread("uniform"),
    "uniform": _between,
    "randint": _integers,
    "randn": _spread("normal"),
    "standard_normal": _standard("normal"),
    "normal": _normal,
    "permutation": _permutation,
    "beta": _beta,
    "binomial": _binomial,
    "exponential": _exponential,
    "choice": _choice,
}
"""Functions of `numpy.random` that draw from the stream. All others change the generator's state, and are noticed."""


def own_modules() -> list[ModuleType]:
    """The modules that were imported from the job's own folder."""
    return _imported_from(sys.path[0], len(sys.modules))


@lru_cache(1)
def _imported_from(root: str, count: int) -> list[ModuleType]:
    """The modules below `root`; `count`, the number of imported modules, makes the cache follow new imports."""
    files = ((module, getattr(module, "__file__", None) or "") for module in list(sys.modules.values()))
    # A virtual environment may lie in the repository: what is installed there is not the job's own. One that holds the repository
    # excludes nothing, or draws on the host would go unnoticed.
    installed = f"{sys.prefix}{os.sep}" if root and sys.prefix.startswith(f"{root}{os.sep}") else None
    return [module for module, file in files if root and file.startswith(root) and not (installed and file.startswith(installed))]


def _namespaces() -> list[dict[str, Any]]:
    """The namespaces in which the functions are looked up by name."""
    return [vars(random), vars(np.random), *(vars(module) for module in own_modules())]


def _global() -> list[Any]:
    """The hidden generators of Python and numpy, and what the job's own modules keep in global names."""
    generators = [value for module in own_modules() for value in vars(module).values() if isinstance(value, GENERATORS)]
    return [random._inst, np.random.mtrand._rand, *generators]


def _state(generator: Any) -> Any:
    """The generator's state as a value that can be compared; None where it has none."""
    if isinstance(generator, random.Random):
        return None if isinstance(generator, random.SystemRandom) else generator.getstate()
    if isinstance(generator, np.random.RandomState):
        # The state holds an array, for which `==` gives no bool.
        return pickle.dumps(generator.get_state(legacy=False))
    return pickle.dumps(generator.bit_generator.state)
