"""The agent's loop with a language model: success by number of attempts, and tokens per unit, for rules, model, and both.

The endpoint is the one that the environment names (`OPENAI_BASE_URL` or `OPENAI_API_KEY`, and `MIGRATE_AGENT_MODEL`). Where it names none, the tiny
model of `evals.model_server` is started: its figures prove the harness, and say nothing of what a model can do; the result file labels them so.
With a filter that says `zoo/`, the packages of the suite `zoo` are the cases, in place of the small modules.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from migrate_agent.evals.model_loop import model_server
from migrate_agent.evals.model_loop.loop_cases import CASES, HEAD
from migrate_agent.evals.suite import Group, Options, Outcome, Suite
from migrate_agent.evals.zoo_packages.packages import PackageError, load_packages
from migrate_agent.evals.zoo_packages.zoo_run import CLI, STATUS, commit_all, make_repository

MODES: Mapping[str, tuple[str, ...]] = {"rules": ("--no-llm",), "model": ("--no-rules",), "both": ()}
ZOO = "zoo/"
ATTEMPTS = 4
LABEL = "135 million parameters: proves the harness, says nothing of what a model can do"
TINY = '\n[model]\nstructured = "text"\ncontext_tokens = 2000\noutput_tokens = 160\ntimeout = 600\ntries = 1\n'
"""What the tiny model can take."""


class Endpoint(NamedTuple):
    """Where the model is, its name, and what is to be said of its figures."""

    url: str
    model: str
    label: str = ""


def groups(options: Options) -> Sequence[Group]:
    """Each case in each mode, `mode/case`."""
    names = [f"{ZOO}{package.name}" for package in load_packages()] if ZOO in options.filter else [case.name for case in CASES]
    return [(f"{mode}/{name}",) for name in names for mode in MODES if options.wanted(f"{mode}/{name}")]


def run(group: Group, options: Options) -> Iterator[Outcome]:
    """Migrate the case in its mode by the command line: one outcome a unit; `right` means `verified`."""
    for case in group:
        mode, _, name = case.partition("/")
        if mode == "rules":
            yield from _migrated(case, name, MODES[mode], None, options)
            continue
        lacking = "" if given() else model_server.missing()
        if lacking:
            yield Outcome(case, "excluded", f"no endpoint is named, and the tiny model is {lacking}")
            continue
        with endpoint() as model:
            yield from _migrated(case, name, MODES[mode], model, options)


def given() -> Endpoint | None:
    """The endpoint that the environment names."""
    name, url = os.environ.get("MIGRATE_AGENT_MODEL", ""), os.environ.get("OPENAI_BASE_URL", "")
    return Endpoint(url, name) if name and (url or os.environ.get("OPENAI_API_KEY")) else None


@contextmanager
def endpoint() -> Iterator[Endpoint]:
    """The endpoint that the environment names, else the tiny model while the block runs."""
    named = given()
    if named:
        yield named
        return
    with model_server.serving() as url:
        yield Endpoint(url, model_server.MODEL, LABEL)


def _migrated(case: str, name: str, flags: Sequence[str], model: Endpoint | None, options: Options) -> Iterator[Outcome]:
    with tempfile.TemporaryDirectory(prefix="migrate-agent-") as folder:
        root, report = Path(folder) / "case", Path(folder) / "report.json"
        try:
            _repository(root, name, bool(model and model.label))
        except PackageError as error:
            yield Outcome(case, "refused", f"not fetched: {error}")
            return
        model_options = (
            ("--model", model.model, *(("--base-url", model.url) if model.url else ()), "--max-attempts", str(ATTEMPTS)) if model else ()
        )
        command = [sys.executable, "-c", CLI, "run", "--yes", *flags, *model_options, "--sandbox", options.sandbox]
        process = subprocess.run([*command, "--repo", str(root), "--report", str(report)], capture_output=True, text=True, check=False)
        if not report.exists():
            last = process.stderr.strip().splitlines()[-1:] or [f"exit status {process.returncode}"]
            yield Outcome(case, "wrong", last[0][:300])
            return
        for unit in json.loads(report.read_text(encoding="utf-8"))["units"]:
            yield _outcome(case, unit, model)


def _outcome(case: str, unit: Mapping[str, Any], model: Endpoint | None) -> Outcome:
    details = {
        "mode": case.partition("/")[0],
        "verified": unit["status"] == "verified",
        "attempts": unit["attempts"],
        **{key: unit["llm"][key] for key in ("calls", "input_tokens", "output_tokens", "cost", "seconds")},
        "proposer": unit["proposer"],
        **({"model": model.model} if model else {}),
        **({"label": model.label} if model and model.label else {}),
    }
    status = STATUS[unit["status"]]
    return Outcome(f"{case}/{unit['name']}", "refused" if status == "wrong" else status, unit["reason"], details)


def _repository(root: Path, name: str, tiny: bool) -> None:
    """The case as a repository of one commit. Raises `PackageError`."""
    if name.startswith(ZOO):
        make_repository(next(package for package in load_packages() if package.name == name.removeprefix(ZOO)), root)
        return
    case = next(case for case in CASES if case.name == name)
    root.mkdir(parents=True)
    (root / "model.py").write_text(HEAD + case.source, encoding="utf-8")
    example = f'[[example]]\nmodule = "model.py:Unit"\ninit = "{case.init}"\ncall = "{case.call}"\n'
    (root / "migrate.toml").write_text(example + (TINY if tiny else ""), encoding="utf-8")
    commit_all(root)


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """By mode: units, those verified within 1, 2, … attempts, and tokens and calls per unit; and the label of figures that have one."""
    result: dict[str, Any] = {}
    for mode in MODES:
        rows = [outcome.details for outcome in outcomes if outcome.details.get("mode") == mode]
        if rows:
            result[mode] = _figures(rows)
    labels = {str(outcome.details["label"]) for outcome in outcomes if "label" in outcome.details}
    return {"modes": result, **({"label": "; ".join(sorted(labels))} if labels else {})}


def _figures(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    tokens = sum(row["input_tokens"] + row["output_tokens"] for row in rows)
    within = {str(most): sum(row["verified"] and row["attempts"] <= most for row in rows) for most in range(1, ATTEMPTS + 1)}
    return {
        "units": len(rows),
        "verified": sum(row["verified"] for row in rows),
        "verified_within_attempts": within,
        "calls_per_unit": round(sum(row["calls"] for row in rows) / len(rows), 2),
        "tokens_per_unit": round(tokens / len(rows)),
        "cost_per_unit": round(sum(row["cost"] for row in rows) / len(rows), 6),
    }


def report(outcomes: Sequence[Outcome]) -> Iterable[str]:
    """A line a mode, and the label."""
    result = summary(outcomes)
    for mode, row in result["modes"].items():
        within = ", ".join(f"≤{most}: {count}" for most, count in row["verified_within_attempts"].items())
        yield f"{mode}: {row['verified']} of {row['units']} verified (attempts {within}); {row['tokens_per_unit']} tokens a unit"
    if "label" in result:
        yield f"the model: {result['label']}"


def versions(outcomes: Iterable[Outcome]) -> dict[str, str]:
    """The frameworks, and the model that was asked."""
    models = {str(outcome.details["model"]) for outcome in outcomes if "model" in outcome.details}
    return {name: version(name) for name in ("torch", "jax", "flax")} | ({"model": ", ".join(sorted(models))} if models else {})


LOOP = Suite("loop", "Units by rules, by a model, and by both", "units", groups, run, 4 * 3600.0, versions, summary=summary, report=report)
