"""The original's results, kept for further attempts on the same unit: its sources, examples and seed say which are the same.

They stay in this process's memory, since no file may hold them while a candidate runs; only what candidates are given lies in a folder.
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

MOST = 64
MOST_BYTES = 2**30
"""How much is kept unless more is allowed."""
_LOCK = threading.Lock()
_ALLOWED = {"bytes": MOST_BYTES}
_KEPT: OrderedDict[str, Expectations] = OrderedDict()


def allow(number: int) -> None:
    """Keep up to so many bytes from now on in this process, as where one original is run with many seeds."""
    _ALLOWED["bytes"] = number


def kept(key: str, make: Callable[[Path], Expectations]) -> Expectations:
    """What is kept under this key, else what `make` gives in a folder that lives as long. Raises what `make` raises."""
    with _LOCK:
        if key in _KEPT:
            _KEPT.move_to_end(key)
            return _KEPT[key]
    folder = Path(tempfile.mkdtemp(prefix="migrate-agent-given-"))
    try:
        made = make(folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(made, shutil.rmtree, folder, ignore_errors=True)  # not before the last verification that uses it has ended
    with _LOCK:
        found = _KEPT.setdefault(key, made)
        while len(_KEPT) > MOST or (len(_KEPT) > 1 and sum(map(_size, _KEPT.values())) > _ALLOWED["bytes"]):
            _KEPT.popitem(last=False)
    return found


def _size(expectations: Expectations) -> int:
    scenarios = (value.nbytes for scenario in expectations.scenarios for value in scenario.arrays.values())
    return sum(scenarios) + sum(value.nbytes for fresh in expectations.initial.values() for value in fresh.values())


def key_of(unit: Unit, examples: Sequence[Example], original: Path, inventory: Inventory, seed: int) -> str:
    """Equal for the same original: its unit, the sources of its repository, its examples with their tensors, and the seed."""
    asked = [unit.id, str(original), seed, [texts(example) for example in examples]]
    digest = hashlib.sha256(json.dumps(asked).encode())
    for path in [original / file.path for file in inventory.files] + [example.tensors for example in examples if example.tensors]:
        content = path.read_bytes() if path.is_file() else b"-"
        digest.update(len(content).to_bytes(8, "big") + content)
    return digest.hexdigest()
