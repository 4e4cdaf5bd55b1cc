"""Seconds of one step, forward and backward, beside torch: `python -m migrate_agent.evals.bench.step [--filter TEXT] [--compile] …`.

Each package of the zoo is migrated in a process of its own. Of each of its examples the original and the rewrite, with the same parameters, run in
float32, in evaluation mode and on one thread: torch eager, torch under `torch.compile` (with `--compile [N]`, the first N of each package; it needs a
C++ compiler, and a minute for each), and the rewrite under `jax.jit`. The repetitions alternate between them, and the fastest counts: what is slower
was disturbed. What is not equal to torch is not timed. Examples of the zoo are small, so much of a step is the cost of calling; only ratios within one run mean anything.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from migrate_agent.evals import records

ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "OMP_NUM_THREADS": "1",
    "PYTHONWARNINGS": "ignore",
    "PYTHONHASHSEED": "0",
}
OUTPUT = records.FOLDER / "bench" / "step.json"
OUTLIER = 1.25
"""A unit whose rewrite takes this many times as long as torch is listed with what its program does most."""
TOLERANCE = 1e-3
TELLING = ("while", "convolution", "fft", "sort", "custom-call", "scatter", "gather", "reduce-window", "dot")
"""Operations of XLA that may explain a slow program."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the summary, and store the rows; 1 where nothing could be measured."""
    options = _parser().parse_args(arguments)
    if options.package:
        print(json.dumps(list(_package(options.package, options.units, options.repeat, options.compile))))
        return 0
    from migrate_agent.evals.suites.zoo import packages

    rows: list[dict[str, Any]] = []
    for name in sorted(packages()):
        if any(part in name for part in options.filter.split(",")):
            rows += _in_process(name, options)
            options.output.parent.mkdir(parents=True, exist_ok=True)
            options.output.write_text(json.dumps(document(rows, _command(options)), indent=1) + "\n", encoding="utf-8")
    print("\n".join(lines(rows)))
    return 0 if any("ratio" in row for row in rows) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Step time of rewrites under jax.jit beside torch.")
    parser.add_argument("--filter", default="", metavar="TEXT[,TEXT]", help="only packages with one of these texts in their name")
    parser.add_argument("--units", type=int, default=1000, metavar="N", help="of each package, only the first N of its examples")
    parser.add_argument("--repeat", type=int, default=20, metavar="N", help="steps of each, of which the fastest counts (default: 20)")
    parser.add_argument(
        "--compile", type=int, nargs="?", const=1000, default=0, metavar="N", help="torch.compile too, for the first N of each"
    )
    parser.add_argument("--seconds", type=float, default=3600.0, metavar="S", help="what a package may take at most (default: 3600)")
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="FILE", help=f"where the rows go (default: {OUTPUT})")
    parser.add_argument("--package", default="", help=argparse.SUPPRESS)
    return parser


def _command(options: argparse.Namespace) -> str:
    """What gives such rows again."""
    parser = _parser()
    changed = {name: value for name, value in vars(options).items() if value != parser.get_default(name) and name != "output"}
    return " ".join(["python", "-m", __spec__.name, *(f"--{name} {value}" for name, value in changed.items())])


def _in_process(name: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", __spec__.name, "--package", name, "--units", str(options.units), "--repeat", str(options.repeat)]
    print(f"{name} …", file=sys.stderr, flush=True)
    try:
        process = subprocess.run(
            [*command, "--compile", str(options.compile)],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, **ENVIRONMENT},
            timeout=options.seconds,
        )
    except subprocess.TimeoutExpired:
        return [{"unit": name, "skipped": f"no end after {options.seconds:.0f} s"}]
    except subprocess.CalledProcessError as error:
        return [{"unit": name, "skipped": (error.stderr.strip().splitlines() or ["no reason given"])[-1][:300]}]
    rows: list[dict[str, Any]] = json.loads(process.stdout.splitlines()[-1])
    return rows


def _package(name: str, units: int, repeat: int, compiled: int) -> Iterator[dict[str, Any]]:
    from migrate_agent.evals.suites.zoo import packages
    from migrate_agent.evals.zoo_packages.packages import PackageError
    from migrate_agent.evals.zoo_packages.zoo_quick import migrate
    from migrate_agent.evals.zoo_packages.zoo_run import make_repository

    # The last line of standard output is the result, and packages print when they are imported.
    stdout, sys.stdout = sys.stdout, sys.stderr
    package = packages()[name]
    with tempfile.TemporaryDirectory(prefix="migrate-agent-") as folder:
        try:
            make_repository(package, Path(folder) / "repository")
            migrated = migrate(name, Path(folder) / "repository", package.examples, Path(folder), double=False)
            units_wanted = [row["module"] for row in package.examples[:units]]
            counts: Counter[str] = Counter()
            for unit in sorted((unit for unit in migrated.units if unit.id in units_wanted), key=lambda unit: units_wanted.index(unit.id)):
                for example in migrated.examples(unit)[: units_wanted.count(unit.id)]:
                    counts[unit.id] += 1
                    row = _measure(migrated, unit, example, repeat, sum(counts.values()) <= compiled)
                    yield {"unit": f"{name}/{unit.id}", "example": counts[unit.id], **row}
        except PackageError as error:
            yield {"unit": name, "skipped": f"not fetched: {error}"}
    sys.stdout = stdout


def _measure(migrated: Any, unit: Any, example: Any, repeat: int, with_compile: bool) -> dict[str, Any]:
    """The row of one example: seconds of each, and the ratios; or why it was not timed."""
    import torch

    from migrate_agent.evals.bench import steps

    try:
        original = migrated.original(unit, example)
        ours = steps.jax_step(original, migrated.rewrite(unit, example))
        eager = steps.torch_step(original, original.module)
        if (error := steps.difference(eager, ours.run)) > TOLERANCE:
            return {"skipped": f"off by {error:.1e} of the largest value"}
        programs: dict[str, Callable[[], Any]] = {"eager": eager, "jit": ours.run}
    except Exception as error:
        return {"skipped": f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"}
    row: dict[str, Any] = {}
    if with_compile:
        # Programs of earlier examples count against dynamo's limit, beyond which it runs eagerly.
        torch.compiler.reset()
        try:
            programs["compiled"] = steps.torch_step(original, torch.compile(original.module))
            programs["compiled"]()
        except Exception as error:
            programs.pop("compiled", None)
            row["not_compiled"] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    seconds = fastest(programs, repeat)
    row |= {"seconds": {name: float(f"{value:.3g}") for name, value in seconds.items()}, "ratio": seconds["jit"] / seconds["eager"]}
    if "compiled" in seconds:
        row["ratio_compiled"] = seconds["jit"] / seconds["compiled"]
    if row["ratio"] > OUTLIER:
        row["operations"] = operations(ours.text())
    return row


def fastest(programs: Mapping[str, Callable[[], Any]], repeat: int) -> dict[str, float]:
    """The least seconds of each, over repetitions that alternate; the first two of each do not count."""
    best = dict.fromkeys(programs, math.inf)
    for number in range(repeat + 2):
        for name, program in programs.items():
            start = time.perf_counter()
            program()
            seconds = time.perf_counter() - start
            if number >= 2:
                best[name] = min(best[name], seconds)
    return best


def operations(text: str) -> dict[str, int]:
    """How often the telling operations stand in a compiled program, in XLA's text."""
    counts = Counter(re.findall(r"= \S+ ([a-z-]+)\(", text))
    return {name: counts[name] for name in TELLING if counts[name]}


def mean(ratios: Iterable[float]) -> float:
    """The geometric mean; NaN of none."""
    logs = [math.log(ratio) for ratio in ratios]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def document(rows: Sequence[Mapping[str, Any]], command: str = "") -> dict[str, Any]:
    """What is stored: means, outliers and all rows."""
    eager = [row["ratio"] for row in rows if "ratio" in row]
    compiled = [row["ratio_compiled"] for row in rows if "ratio_compiled" in row]
    return {
        "benchmark": "step",
        "command": command,
        "date": records.today(),
        "commit": records.commit(),
        "versions": _versions(),
        "timed": len(eager),
        "not_timed": len(rows) - len(eager),
        "jit_over_eager": _rounded(mean(eager)),
        "timed_with_compile": len(compiled),
        "jit_over_compiled": _rounded(mean(compiled)),
        "outliers": [row for row in rows if row.get("ratio", 0.0) > OUTLIER],
        "rows": list(rows),
    }


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    return {name: version(name) for name in ("torch", "jax", "flax")}


def _rounded(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 3)


def lines(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What is printed."""
    whole = document(rows)
    for row in rows:
        if "skipped" in row:
            yield f"not timed: {row['unit']}: {row['skipped']}"
    for row in whole["outliers"]:
        yield f"slower than torch: {row['unit']}: {row['ratio']:.2f} times; {row.get('operations', {})}"
    yield f"jax.jit over torch eager: {whole['jit_over_eager']} (geometric mean of {whole['timed']} examples; below 1 is faster)"
    yield f"jax.jit over torch.compile: {whole['jit_over_compiled']} (of {whole['timed_with_compile']})"


if __name__ == "__main__":
    sys.exit(main())
