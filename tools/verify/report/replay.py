"""The input that shows a failure, as files, and how it is run again: both sides once, call by call of their submodules."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.harness.common import tensor_files, tolerances
from migrate_agent.tools.harness.common.compare_arrays import pattern_problem, rms
from migrate_agent.tools.types import Example, Inventory, Limits, Unit, Verdict
from migrate_agent.tools.verify.contract.jobs import texts
from migrate_agent.tools.verify.contract.scenario import Expectations, Scenario
from migrate_agent.tools.verify.evidence.candidate import Results
from migrate_agent.tools.verify.report.localise import Record, captured, find, find_backward, matched

NAME = "failing"
VERSION = 4
SAVED = ("name", "role", "extreme", "mode", "gradient", "state", "drawing", "conditions", "leaf_dtypes", "narrow", "tree", "before")
DESCRIBED = ("tree", "state", "state_dtypes", "frozen", "parameters", "changes", "customs", "changes_objects", "on_host", "held")


class NoReplay(ValueError):
    """A file that is no saved failure, or one of another unit; its text says which."""


@dataclass(frozen=True)
class Call:
    """One call of a submodule on both sides: relative errors of what went in and came out (of the gradients there, for `gradients`)."""

    path: str
    kind: str
    into: float
    out: float


@dataclass(frozen=True)
class Replayed:
    """What a replay showed: the calls in order of completion, and the first that diverges (None where none does)."""

    how: str
    calls: tuple[Call, ...]
    culprit: Call | None


def save(results: Results, scenario: Scenario, verdict: Verdict, capture: str) -> Path:
    """Write `failing.json` and `failing.safetensors` (inputs, targets, state) into the verification's folder; gives the former."""
    folder, index = results.expected.given, scenario.example
    described = results.expected.examples[index]
    example, translated = results.examples[described["index"]], results.translated[described["index"]]
    stored = {f"input/{key}": value for key, value in tensor_files.load(folder / f"inputs/{scenario.name}.safetensors").items()}
    stored |= {
        f"state/{key}": np.array(value)  # in full, so that other programs can read the file
        for key, value in tensor_files.load(folder / f"states/{scenario.state}.safetensors").items()
    }
    tensor_files.save(results.folder / f"{NAME}.safetensors", stored)
    if example.tensors is not None:
        shutil.copyfile(example.tensors, results.folder / f"{NAME}-tensors.safetensors")
    row = scenario.to_json()
    document = {
        "version": VERSION,
        "unit": results.unit.id,
        "target": results.unit.target,
        "check": verdict.check,
        "detail": verdict.detail,
        "how": capture,
        "seed": results.seed,
        "scenario": {key: row[key] for key in SAVED},
        "described": {key: described[key] for key in DESCRIBED},
        "original": texts(example),
        "candidate": texts(translated),
        "tensors": example.tensors is not None,
    }
    path = results.folder / f"{NAME}.json"
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return path


def load(path: Path, unit: Unit) -> Mapping[str, Any]:
    """Read a saved failure. Raises `NoReplay`, `OSError`."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["version"] != VERSION:
            raise NoReplay(f"{path} is of version {document['version']}, this program reads {VERSION}")
    except (ValueError, KeyError, TypeError) as error:
        raise error if isinstance(error, NoReplay) else NoReplay(f"{path} is no saved failure: {error}") from error
    if document["unit"] != unit.id:
        raise NoReplay(f"{path} shows a failure of {document['unit']}, not of {unit.id}")
    return dict(document)


def replay(
    path: Path,
    unit: Unit,
    original: Path,
    candidate: Path,
    inventory: Inventory,
    sandbox: Sandbox,
    job_limits: Limits = Limits(),
    port: Mapping[str, Any] | None = None,
) -> Replayed:
    """Run a saved failure again on both sides. Raises `NoReplay`, `OriginalFailed` where either side does not get through, `OSError`."""
    document = load(path, unit)
    capture = str(document["how"])
    tensors = path.with_name(f"{NAME}-tensors.safetensors") if document["tensors"] else None
    examples = [Example(unit.id, tensors=tensors, **_texts(document[side])) for side in ("original", "candidate")]
    with tempfile.TemporaryDirectory(prefix="migrate-agent-replay-") as folder:
        expected = _expectations(document, path.with_name(f"{NAME}.safetensors"), Path(folder))
        arguments = (unit, examples[:1], examples[1:], candidate, original, inventory, sandbox, job_limits, lambda: expected, Path(folder))
        with Results(*arguments, seed=int(document["seed"]), port=port) as results:
            theirs, ours = captured(results, expected.scenarios[0], capture)
    return judged(capture, theirs, ours, bool(document["scenario"]["narrow"]))


def judged(capture: str, theirs: Sequence[Record], ours: Sequence[Record], narrow: bool) -> Replayed:
    """Errors by call, and the first that diverges."""
    pairs = matched(theirs, ours)
    calls = {
        id(their): Call(their.path, their.kind, _error(their.inputs, our.inputs), _error(their.outputs, our.outputs))
        for their, our in pairs
    }
    culprit = None
    for limit in tolerances.SAME_CALL["narrow" if capture == "native" and narrow else capture]:
        culprit = culprit or (find_backward(theirs, ours, limit) if capture == "gradients" else find(theirs, ours, limit))
    return Replayed(capture, tuple(calls.values()), calls.get(id(culprit)) if culprit else None)


def _error(theirs: Sequence[np.ndarray[Any, Any]], ours: Sequence[np.ndarray[Any, Any]]) -> float:
    """The largest relative RMS error; infinite where the arrays are not of one form."""
    if len(theirs) != len(ours) or any(pattern_problem(their, our) for their, our in zip(theirs, ours, strict=True)):
        return float("inf")
    errors = [0.0]
    for their, our in zip(theirs, ours, strict=True):
        finite = np.isfinite(their) if their.dtype.kind in "fc" else np.ones(their.shape, bool)
        their, our = (np.where(finite, value, 0).astype(np.complex128) for value in (their, our))
        errors.append(rms(np.abs(our - their)) / (rms(np.abs(their)) or 1.0))
    return max(errors)


def _texts(stored: Mapping[str, Any]) -> dict[str, Any]:
    return {**stored, "domain": tuple(stored["domain"]) if stored["domain"] else None}


def _expectations(document: Mapping[str, Any], file: Path, folder: Path) -> Expectations:
    stored, scenario = tensor_files.load(file), document["scenario"]
    for kind, name in (("input", f"inputs/{scenario['name']}"), ("state", f"states/{scenario['state']}")):
        tensor_files.save(
            folder / f"{name}.safetensors", {k.removeprefix(f"{kind}/"): v for k, v in stored.items() if k.startswith(f"{kind}/")}
        )
    called = Scenario.from_json({**scenario, "example": 0, "native": [], "noise": {}, "undecided": []})
    return Expectations([{"changes": {}, **document["described"], "index": 0}], [], [called], {}, folder)
