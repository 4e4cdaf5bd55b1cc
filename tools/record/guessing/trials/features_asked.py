"""Where a layer is wide enough for other features than the call brings: sizes of the constructor that make it fit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from migrate_agent.tools.record.guessing.trials.trial import Attempt, Outcome, set_init

FEATURES = re.compile(r"mat1 and mat2 shapes cannot be multiplied \(\d+x(?P<brought>\d+) and (?P<taken>\d+)x\d+\)")
WIDEST = 4096
"""A size of the constructor from which on a guess would be slow."""


def features_asked(attempt: Attempt, outcome: Outcome, sizes: Mapping[str, int]) -> Iterator[Attempt]:
    """The attempt with each size changed that the layer's width is a multiple of, in the ratio of what the call brings to what the layer takes:
    `nn.Linear(size * 3 * 3, hidden)` behind convolutions. `sizes` are those of the constructor by name."""
    match = FEATURES.search(outcome.error)
    if match is None:
        return
    brought, taken = int(match["brought"]), int(match["taken"])
    for name, size in sorted(sizes.items(), key=lambda pair: -pair[1]):
        fitting, rest = divmod(size * brought, taken)
        if size > 1 and taken % size == 0 and not rest and 0 < fitting <= WIDEST:
            yield set_init(attempt, name, str(fitting))
