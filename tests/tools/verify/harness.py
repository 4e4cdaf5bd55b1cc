"""Writes a torch file and its mirror into two trees and verifies one against the other, with the real sandbox."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field, replace
from pathlib import Path

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.types import APPLIED, Evidence, Example, Inventory, Limits, SourceFile, Unit
from migrate_agent.tools.verify import Options, Performance, Portable, verify

TORCH = """
import math
import torch
import torch.nn as nn
import torch.nn.functional as F
"""
JAX = """
import math
import jax
import jax.numpy as jnp
from flax import nnx
"""


@dataclass(frozen=True)
class Wrong:
    """A wrong candidate: the right one with `old` replaced by `new`. `check` refuses it, no other check where `alone`.

    `place` is the submodule that must be named; `status` is `unverified` where the check cannot judge.
    """

    label: str
    check: str
    old: str
    new: str
    place: str = ""
    alone: bool = False
    status: str = "fail"


@dataclass(frozen=True)
class Pair:
    """A torch class `M`, its right mirror, an example, and wrong mirrors."""

    name: str
    torch: str
    jax: str
    call: str
    init: str = ""
    train: bool | None = None
    wrongs: tuple[Wrong, ...] = ()
    extra: dict[str, str] = field(default_factory=dict)
    max_slowdown: float = 0.0
    topology: str = ""
    full: str = ""
    """The constructor's arguments in the real configuration."""
    others: tuple[str, ...] = ()
    """The constructor's arguments in further examples with the same call."""
    applied: tuple[str, ...] = ()
    """The name of a function with a gradient of its own, and the arguments of a call of it that is compared, too."""

    def candidate(self, wrong: Wrong | None = None) -> str:
        """The text of the candidate."""
        text = textwrap.dedent(self.jax)
        if wrong is None:
            return JAX + text
        assert wrong.old in text, f"{self.name}: {wrong.label}: nothing to replace"
        return JAX + text.replace(wrong.old, wrong.new)


def check_pair(
    pair: Pair,
    candidate: str,
    sandbox: Sandbox,
    folder: Path,
    *,
    stop: bool = True,
    seconds: float = 120.0,
    seed: int = 0,
    budget: float = 0.0,
    file_bytes: int = Limits().file_bytes,
) -> Evidence:
    """Verify this candidate text against the pair's original; `budget` is that of a large unit, `file_bytes` what a run may write."""
    original, mirror = folder / "original", folder / "candidate"
    for root, name, text in ((original, "m.py", TORCH + textwrap.dedent(pair.torch)), (mirror, "m_jax.py", candidate)):
        root.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for name, text in pair.extra.items():
        (mirror / name).write_text(text)
    unit = Unit("m.py", "M", "m_jax.py", "rewrite")
    inventory = Inventory(original, (SourceFile("m.py", "m", "m_jax.py", "m_jax", True),), (unit,))
    inits = (pair.init, *pair.others)
    examples = [Example(unit.id, init, pair.call, train=pair.train, full=pair.full) for init in inits]
    full = f"{pair.full}, rngs=rngs" if pair.full else ""
    texts = [f"{init}, rngs=rngs" if init else "rngs=rngs" for init in inits]
    translated = [Example(unit.id, text, pair.call, train=pair.train, full=full) for text in texts]
    for name, call in [pair.applied] if pair.applied else []:
        apart = replace(examples[0], call=call, origin="inference", method=f"{APPLIED}m.{name}")
        examples.append(apart)
        translated.append(replace(apart, init=texts[0], method=f"{APPLIED}m_jax.{name}"))
    performance = Performance("eager", pair.max_slowdown) if pair.max_slowdown else Performance()
    portable = Portable((pair.topology,)) if pair.topology else Portable()
    limits = Limits(seconds=seconds, file_bytes=file_bytes)
    options = Options(limits=limits, stop=stop, seed=seed, performance=performance, portable=portable, seconds=budget)
    return verify(unit, examples, translated, original, mirror, inventory, sandbox, folder / "work", options)


def told(evidence: Evidence) -> str:
    """The verdicts as lines, for assertion messages."""
    return "\n".join(f"{v.stage}/{v.check}: {v.status} {v.measured} {v.limit} {v.detail}" for v in evidence.verdicts)
