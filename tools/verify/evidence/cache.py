"""Caches the original's results for further attempts on the same unit, by its sources, examples and seed.

They stay in this process's memory: a candidate could read expected results from a file. Only the
candidates' inputs lie in a folder.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path

from migrate_agent.tools.types import Example, Inventory, Unit
from migrate_agent.tools.verify.contract.jobs import texts
from migrate_agent.tools.verify.contract.scenario import Expectations
from migrate_agent.tools.verify.contract.schedule import LARGE_ELEMENTS

MOST = 64
MOST_BYTES = 2**30
"""Default limits of the cache."""
_LOCK = threading.Lock()
_ALLOWED = {"bytes": MOST_BYTES}
_KEPT: OrderedDict[str, Expectations] = OrderedDict()


def allow(number: int) -> None:
    """Set the cache's limit in bytes for this process, for one original that runs with many seeds."""
    _ALLOWED["bytes"] = number


def kept(key: str, make: Callable[[Path], Expectations]) -> Expectations:
    """The cached expectations of this key, else those of `make`, whose folder lives as long. Raises the errors of `make`."""
    with _LOCK:
        if key in _KEPT:
            _KEPT.move_to_end(key)
            return _KEPT[key]
    # Outside of the lock, so that originals of other units run at the same time.
    folder = Path(tempfile.mkdtemp(prefix="migrate-agent-given-"))
    try:
        expectations = make(folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(expectations, shutil.rmtree, folder, ignore_errors=True)  # not before the last verification that uses it has ended
    with _LOCK:
        # Two verifications may have run the same original at the same time; the first result counts
        # for both.
        cached = _KEPT.setdefault(key, expectations)
        while len(_KEPT) > MOST or (len(_KEPT) > 1 and sum(map(_size, _KEPT.values())) > _ALLOWED["bytes"]):
            _KEPT.popitem(last=False)
    return cached


def _size(expectations: Expectations) -> int:
    scenarios = (value.nbytes for scenario in expectations.scenarios for value in scenario.arrays.values())
    return sum(scenarios) + sum(value.nbytes for fresh in expectations.initial.values() for value in fresh.values())


def key_of(
    unit: Unit,
    examples: Sequence[Example],
    original: Path,
    inventory: Inventory,
    seed: int,
    sizes: Sequence[int] = (),
    budget: float = 0.0,
    large_from: int = LARGE_ELEMENTS,
) -> str:
    """A digest of the unit, the sources of its repository, its examples with their tensors, the seed, the sizes that are exceeded, and the budget
    with the elements that a unit has it from."""
    description = [unit.id, str(original), seed, list(sizes), budget, large_from, [texts(example) for example in examples]]
    digest = hashlib.sha256(json.dumps(description).encode())
    for path in [original / file.path for file in inventory.files] + [example.tensors for example in examples if example.tensors]:
        content = path.read_bytes() if path.is_file() else b"-"
        # The length keeps the end of one file from counting as the start of the next.
        digest.update(len(content).to_bytes(8, "big") + content)
    return digest.hexdigest()
