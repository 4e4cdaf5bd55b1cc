"""Runs the checks in order and collects their verdicts. Everything here happens outside the sandbox."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.types import Evidence, Example, Inventory, Limits, Unit, Verdict
from migrate_agent.tools.verify.check import NEW_PROCESS, Check, load_checks
from migrate_agent.tools.verify.localise import first_divergence
from migrate_agent.tools.verify.results import CandidateFailed, Expectations, OriginalFailed, Results, expectations, texts

LOCALISED = ("forward_fp64", "training_fp64", "shapes_fp64", "edges_fp64")
MALFORMED = (KeyError, IndexError, TypeError, ValueError, AttributeError)
"""What a check may run into where the candidate's process wrote a result of another form."""
_KEPT: dict[str, Expectations] = {}


@dataclass(frozen=True)
class Options:
    """How a verification is run; nothing here touches what is judged.

    `stop` ends after the first stage with a failure. `localise` looks for the first submodule that diverges (two more jobs, on failure only).
    """

    limits: Limits = Limits()
    stop: bool = True
    localise: bool = True


def verify(
    unit: Unit,
    examples: Sequence[Example],
    translated: Sequence[Example],
    original: Path,
    candidate: Path,
    inventory: Inventory,
    sandbox: Sandbox,
    folder: Path,
    options: Options = Options(),
    progress: Callable[[str], None] = lambda stage: None,
) -> Evidence:
    """Find out whether the candidate's unit is equivalent to the original's.

    `original` and `candidate` are roots of the two trees; `translated[i]` is `examples[i]` in the mirror's names. `folder` receives what the
    candidate is given. `progress` is called with the name of each stage. Never raises for what either side's code does.
    """
    started = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    unit_examples = list(examples)

    def expect() -> Expectations:
        progress("original")
        return _expected(unit, unit_examples, original, inventory, sandbox, folder, options.limits)

    results = Results(unit, unit_examples, list(translated), candidate, original, inventory, sandbox, options.limits, expect)
    verdicts = list(_verdicts(results, options, progress))
    return Evidence(unit.id, tuple(verdicts), time.monotonic() - started)


def _verdicts(results: Results, options: Options, progress: Callable[[str], None]) -> list[Verdict]:
    verdicts: list[Verdict] = []
    stage = ""
    for check in load_checks():
        if check.stage != stage and not check.early:
            if options.stop and any(verdict.status == "fail" for verdict in verdicts):
                break
            stage = check.stage
            progress(stage)
        failed = any(verdict.status == "fail" for verdict in verdicts)
        if failed and options.stop and check.cost >= NEW_PROCESS:
            continue
        try:
            verdict = check.judge(results)
        except OriginalFailed as error:
            return [*verdicts, Verdict(check.stage, check.name, "unverified", detail=str(error))]
        except CandidateFailed as error:
            return [*verdicts, Verdict(check.stage, check.name, "fail", detail=str(error))]
        except MALFORMED as error:
            verdict = Verdict(check.stage, check.name, "unverified", detail=f"could not judge: {type(error).__name__}: {error}"[:300])
        if verdict is None:
            continue
        verdicts.append(_located(results, check, verdict) if options.localise and not failed else verdict)
        if verdict.status == "fail" and (check.early or check.cost == 0) and options.stop:
            break
    return verdicts


def _located(results: Results, check: Check, verdict: Verdict) -> Verdict:
    """The verdict of a failed comparison of outputs, with the submodule that diverges first."""
    if verdict.status != "fail" or check.name not in LOCALISED:
        return verdict
    scenario = next((item for item in results.expected.scenarios if verdict.detail.startswith(item.name)), None)
    place = first_divergence(results, scenario) if scenario else ""
    return replace(verdict, detail=f"{place}; {verdict.detail}") if place else verdict


def _expected(
    unit: Unit, examples: Sequence[Example], original: Path, inventory: Inventory, sandbox: Sandbox, folder: Path, limits: Limits
) -> Expectations:
    """The original's results, kept in memory for further attempts on the same unit with the same sources and examples."""
    key = _digest(unit, examples, original, inventory, folder)
    found = _KEPT.get(key)
    if found is None or not found.given.is_dir():
        _KEPT.clear()
        found = _KEPT[key] = expectations(unit, examples, original, inventory, sandbox, folder, limits)
    return found


def _digest(unit: Unit, examples: Sequence[Example], original: Path, inventory: Inventory, folder: Path) -> str:
    digest = hashlib.sha256(json.dumps([unit.id, str(folder), [texts(example) for example in examples]]).encode())
    for path in [original / file.path for file in inventory.files] + [example.tensors for example in examples if example.tensors]:
        digest.update(path.read_bytes() if path.is_file() else b"-")
    return digest.hexdigest()
