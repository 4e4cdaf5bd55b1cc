"""Others beside us: every class of `module_db`, units of the zoo, and small cases, under one judgement in one process, in one run.

A case is right where forward, gradients and state agree with torch in float64 under `jax.jit`. Ours and theirs see the same inputs.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from migrate_agent.evals.comparisons.peer_cases import EXAMPLES, FILE, SOURCE
from migrate_agent.evals.comparisons.peers import NOT_COMPARED, NOT_IMPORTED, PEERS, Built, Judgement, Mode, Peer, import_error, judge, use
from migrate_agent.evals.operators.module_source import Sample
from migrate_agent.evals.suite import Group, Options, Outcome, Suite
from migrate_agent.evals.suites import modules, zoo
from migrate_agent.evals.zoo_packages.zoo_quick import Migrated, migrate, outcome
from migrate_agent.evals.zoo_packages.zoo_run import commit_all, make_repository
from migrate_agent.tools.harness.torch_side.precision import exact
from migrate_agent.tools.types import Example, Unit

PACKAGES = (
    "conformer",
    "denoising-diffusion-pytorch",
    "egnn-pytorch",
    "encodec",
    "g-mlp-pytorch",
    "mlp-mixer-pytorch",
    "nystrom-attention",
    "perceiver-pytorch",
    "pytorch-tcn",
    "siren-pytorch",
    "timesformer-pytorch",
)
"""Packages of the zoo of which the units are tried: audio, diffusion, graph, MLPs, transformers, convolution over time, video."""
SAMPLES = 4
"""Samples of a class of `module_db`: two while training, two in evaluation mode."""
GROUP = 4
IMPORTS, CASES = "imports", "cases"


def groups(options: Options) -> Sequence[Group]:
    """`imports`, `cases`, `zoo/<package>`, and a few of `modules/<class>` at a time."""
    classes = [f"modules/{name}" for name in modules.entries()]
    chosen = [name for name in classes if options.wanted(name)]
    single = [(name,) for name in (IMPORTS, CASES, *(f"zoo/{name}" for name in PACKAGES)) if options.wanted(name)]
    return [*single, *(tuple(chosen[start : start + GROUP]) for start in range(0, len(chosen), GROUP))]


def run(group: Group, options: Options) -> Iterator[Outcome]:
    """Judge ours and the peers; an outcome's status is ours, its `peers` are theirs."""
    if group == (IMPORTS,):
        yield from _imports()
        return
    use()
    part, _, name = group[0].partition("/")
    with tempfile.TemporaryDirectory(prefix="migrate-agent-") as folder:
        if part == "modules":
            yield from _modules(tuple(case.partition("/")[2] for case in group), options)
        elif part == "zoo":
            yield from _units(_package(name, Path(folder)), "zoo")
        else:
            yield from _units(_cases(Path(folder)), CASES)


def _imports() -> Iterator[Outcome]:
    """What is not compared, and why; each in a case of its own, out of scope."""
    for source in NOT_IMPORTED:
        error = import_error(source)
        yield Outcome(f"{IMPORTS}/{source.package} {source.version}", "excluded", error or "can be imported after all: add it to `PEERS`")
    for name, reason in NOT_COMPARED.items():
        yield Outcome(f"{IMPORTS}/{name}", "excluded", reason)


def _package(name: str, folder: Path) -> Migrated:
    package = zoo.packages()[name]
    make_repository(package, folder / "repository")
    return migrate(name, folder / "repository", package.examples, folder)


def _cases(folder: Path) -> Migrated:
    root = folder / "repository"
    root.mkdir()
    (root / FILE).write_text(SOURCE, encoding="utf-8")
    commit_all(root)
    return migrate(CASES, root, EXAMPLES, folder)


def _units(migrated: Migrated, part: str) -> Iterator[Outcome]:
    for unit in migrated.units:
        if migrated.examples(unit):
            ours = outcome(migrated, unit)
            theirs = {peer.name: _unit(peer, migrated, unit) for peer in PEERS}
            yield _both(replace(ours, details={}), ours.case if part == CASES else f"zoo/{ours.case}", theirs)


def _unit(peer: Peer, migrated: Migrated, unit: Unit) -> Judgement:
    """All examples of the unit; the first that fails decides."""

    return _first_failure(peer, [partial(_built, migrated, unit, example) for example in migrated.examples(unit)], exact)


def _built(migrated: Migrated, unit: Unit, example: Example) -> Built:
    return Built(*migrated.original(unit, example))


def _modules(names: Group, options: Options) -> Iterator[Outcome]:
    limit = SAMPLES if options.samples is None else min(SAMPLES, options.samples)
    problems, chosen = modules.select(names, replace(options, samples=limit))
    modules.judge(chosen, problems)
    for name in names:
        own = [sample for owner, sample in chosen if owner == name]
        builds = [partial(_build, sample) for sample in own]
        ours = modules.outcome(name, problems[name], len(own))
        yield _both(ours, f"modules/{name}", {peer.name: _first_failure(peer, builds) for peer in PEERS})


def _build(sample: Sample) -> Built:
    return Built(*modules.original(sample), {}, modules.CONSTANT.get(sample.module, ()))


def _first_failure(peer: Peer, builds: Iterable[Callable[[], Built]], mode: Mode = nullcontext) -> Judgement:
    """How the peer does on all of these: right, or what is wrong with the first that is not."""
    judgements = (judge(peer, build, mode) for build in builds)
    return next((judgement for judgement in judgements if judgement.kind != "right"), Judgement("right"))


def _both(ours: Outcome, case: str, theirs: Mapping[str, Judgement]) -> Outcome:
    details = {"peers": {name: asdict(judgement) for name, judgement in theirs.items()}}
    return replace(ours, case=case, details=details)


def rates(outcomes: Iterable[Outcome]) -> dict[str, dict[str, list[int]]]:
    """Part → tool → right, and of how many."""
    table: dict[str, dict[str, list[int]]] = {}
    for item in outcomes:
        if "peers" not in item.details:
            continue
        row = table.setdefault(item.case.partition("/")[0], {})
        right = {
            "migrate-agent": item.status == "right",
            **{name: judgement["kind"] == "right" for name, judgement in item.details["peers"].items()},
        }
        for name, is_right in right.items():
            counts = row.setdefault(name, [0, 0])
            counts[0] += is_right
            counts[1] += 1
    return table


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Rates by part and tool, and the peers' failures by kind."""
    kinds: dict[str, Counter[str]] = {}
    for item in outcomes:
        for name, judgement in item.details.get("peers", {}).items():
            kinds.setdefault(name, Counter())[judgement["kind"]] += 1
    failures = {name: {kind: number for kind, number in counts.most_common() if kind != "right"} for name, counts in kinds.items()}
    return {"rates": rates(outcomes), "failures": failures}


def report(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Rates beside each other, and why the peers fail."""
    yield ""
    for part, row in rates(outcomes).items():
        yield f"{part}: " + ", ".join(f"{name} {right} of {total}" for name, (right, total) in row.items())
    for name, counts in summary(outcomes)["failures"].items():
        yield f"{name} fails: " + ", ".join(f"{kind} {number}" for kind, number in counts.items())


def versions(outcomes: object) -> dict[str, str]:
    """What the suite was measured on."""
    return {**{name: version(name) for name in ("torch", "jax", "flax", "numpy")}, **{peer.name: peer.version for peer in PEERS}}


PEERS_SUITE = Suite("peers", "Beside others", "cases", groups, run, 3600.0, versions, kept=True, summary=summary, report=report)
