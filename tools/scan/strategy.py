"""The strategy of a module, with its reason: each function yields choices of one kind, and the strictest strategy wins."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import NamedTuple

from migrate_agent.tools.scan.detectors import DETECTORS, Hit
from migrate_agent.tools.scan.graph import FOREIGN_MODULE, TORCH_MODULE, Graph, Key, Reach
from migrate_agent.tools.types import Strategy

_HOST = re.compile(r"(PIL|cv2|skimage|soundfile|librosa|decord|sentencepiece|tokenizers|nltk|albumentations)\..+")
_NO_MATHS = re.compile(
    r"torch\.nn\.Module|torch\.Tensor|torch\.is_tensor|torch\.(from_numpy|as_tensor|tensor)|torch\.(no_grad|inference_mode)"
)
_TEST = re.compile(r"test_.*\.py|.*_test\.py|conftest\.py")


class Choice(NamedTuple):
    """A strategy and its one-line reason."""

    strategy: Strategy
    reason: str


def is_test(path: str) -> bool:
    """Whether a file is a test by the conventions of pytest and unittest."""
    file = PurePosixPath(path)
    return _TEST.fullmatch(file.name) is not None or any(folder in ("tests", "test") for folder in file.parts[:-1])


def choose(graph: Graph, key: Key, reach: Reach, hits: Mapping[Key, tuple[Hit, ...]]) -> Choice:
    """The strategy of a module: `redesign` before `substitute` before `keep`, and `rewrite` where nothing speaks against it.

    A unit to redesign is not attempted by the rules, so only what the class does itself, or a function that it calls, makes it one.
    """
    reasons = [*_bases(graph, key), *_detected(graph, key, hits), *_host(graph, key, reach)]
    for strategy in ("redesign", "substitute", "keep"):
        for choice in reasons:
            if choice.strategy == strategy:
                return choice
    return Choice("rewrite", "")


def _bases(graph: Graph, key: Key) -> Iterator[Choice]:
    for name in graph.ancestry(key).outside:
        for row in DETECTORS:
            if row.unit != "rewrite" and row.base_pattern.fullmatch(name):
                yield Choice(row.unit, f"inherits from {name}: {row.detail}")
        if FOREIGN_MODULE.fullmatch(name) and not TORCH_MODULE.fullmatch(name):
            yield Choice("redesign", f"inherits from {name}, which is not in this repository: write out what it takes from it")
    if not graph.is_module(key):
        name = graph.unknown_bases(key)[0]
        yield Choice("redesign", f"inherits from {name}, which is not in this repository: write out what it takes from it")


def _detected(graph: Graph, key: Key, hits: Mapping[Key, tuple[Hit, ...]]) -> Iterator[Choice]:
    near = {key, *(used for used in graph.edges(key).inside if graph.definitions[used].kind == "function")}
    for owner in (key, *graph.called(key)):
        for hit in hits.get(owner, ()):
            row = DETECTORS[hit.row]
            if hit.optional:
                continue
            if row.unit == "substitute" or (row.unit == "redesign" and owner in near):
                through = "" if owner == key else f" through {owner.name}"
                yield Choice(row.unit, f"uses {hit.name}{through} ({owner.path}:{hit.line}): {row.detail}")


def _host(graph: Graph, key: Key, reach: Reach) -> Iterator[Choice]:
    """A module that wraps image, sound or text libraries and calls nothing of torch."""
    outside = graph.edges(key).outside
    used = sorted(name for name in outside if _HOST.fullmatch(name))
    maths = any(name.startswith("torch.") and not _NO_MATHS.fullmatch(name) for name in outside)
    if used and not maths and not reach.units:
        yield Choice("keep", f"no torch maths: it wraps {used[0]}, which stays on the host")
