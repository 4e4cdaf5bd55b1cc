"""What nets cost on TPUs: `python -m migrate_agent.evals.bench.tpu [--filter TEXT] [--zoo N] [--docs docs/tpu.md]`. Needs the extra `tpu`.

Each case is asked with `migrate-agent tpu` on a copy of its repository, for all topologies at once; rows go to `evals/results/bench/tpu.json` as they
come. A table of all rows is printed, and the rows of the examples go into the page between its two marks. What is there already is not asked again, unless `--again`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from migrate_agent.agent.tpu.tables import power, seconds, size
from migrate_agent.evals import records
from migrate_agent.evals.zoo_packages.packages import PackageError, load_packages
from migrate_agent.tools.portable.ahead import PROGRAMS

TOPOLOGIES = ("v5e:1x1", "v5e:4x4", "v6e:1x1", "v6e:4x4", "tpu7x:1x1x1", "tpu7x:4x4x1")
OUTPUT = records.FOLDER / "bench" / "tpu.json"
EXAMPLES = Path(__file__).parents[2] / "examples"
MARKS = ("<!-- table -->", "<!-- end of the table -->")
GIT = ("git", "-c", "user.name=bench", "-c", "user.email=bench@example.invalid", "-c", "commit.gpgsign=false")
BATCH = 64
ZOO_BATCH = 2
"""For each chip: tpu7x has two devices. Compilation takes longer with the batch of a device, since small programs are unrolled."""
TRIES = 3
"""So many units of a package are asked about, until one is written by the rules and compiles."""
SECONDS = 3600.0
NO_END = "no end after"


@dataclass(frozen=True)
class Case:
    """One unit of a repository at one size. `repository` is a folder of `examples/`, or the name of a package of the zoo."""

    repository: str
    unit: str
    init: str = ""
    call: str = ""
    batch: int = BATCH
    """Of all chips; of each of them in the zoo."""
    size: str = ""
    zoo: bool = False

    @property
    def name(self) -> str:
        """In the table."""
        return f"{self.repository}/{self.unit}{f' ({self.size})' if self.size else ''}"


CASES = (
    Case("gpt", "model.py:GPT"),
    Case("vision", "vision/resnet.py:ResNet"),
    Case("vision", "vision/vit.py:VisionTransformer"),
    Case(
        "gpt",
        "model.py:GPT",
        "GPTConfig(n_layer=12, n_head=12, n_embd=768, vocab_size=50304, block_size=1024)",
        "torch.randint(0, 50304, (2, 1024))",
        32,
        "124M",
    ),
)
"""The examples as they stand, and GPT-2's smallest."""


def zoo_cases(count: int) -> Iterator[tuple[Case, ...]]:
    """The units of each package's examples, packages by name; as many packages as asked for."""
    for package in load_packages()[:count]:
        units = dict.fromkeys(str(example["module"]) for example in package.examples)
        yield tuple(Case(package.name, unit, batch=ZOO_BATCH, zoo=True) for unit in units)


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask about what is lacking, and write the rows; 1 where something gave none."""
    options = _parser().parse_args(arguments)
    topologies = options.topology or TOPOLOGIES
    rows: list[dict[str, Any]] = [] if options.again or not options.output.exists() else json.loads(options.output.read_text())["rows"]
    bare = False
    for choice in (*((case,) for case in CASES), *zoo_cases(options.zoo)):
        chosen = [case for case in choice if options.filter in case.name][:TRIES]
        bare |= bool(chosen) and not any(_filled(case, topologies, rows, options) for case in _until_too_long(chosen, rows))
    text = "\n".join(table(rows))
    print(text)
    if options.docs:
        options.docs.write_text(between(options.docs.read_text(encoding="utf-8"), "\n".join(table(for_page(rows)))), encoding="utf-8")
    return 1 if bare else 0


def _until_too_long(chosen: Sequence[Case], rows: Sequence[Mapping[str, Any]]) -> Iterator[Case]:
    """The cases, until one took too long: others of its package are as large."""
    for case in chosen:
        yield case
        if any(row["case"] == case.name and row.get("error", "").startswith(NO_END) for row in rows):
            return


def _filled(case: Case, topologies: Sequence[str], rows: list[dict[str, Any]], options: argparse.Namespace) -> bool:
    """Whether the case has figures; what is lacking is asked about and written first. A case that gave none before is not asked again."""
    measured = {(row["topology"], row.get("program")) for row in rows if row["case"] == case.name}
    programs = [] if any(row["case"] == case.name and row.get("error") for row in rows) else options.program or PROGRAMS
    lacking = {program: [name for name in topologies if (name, program) not in measured] for program in programs}
    for missing in dict.fromkeys(tuple(names) for names in lacking.values() if names):
        rows += asked(case, missing, [program for program in lacking if tuple(lacking[program]) == missing], options.seconds)
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(document(rows), indent=1) + "\n", encoding="utf-8")
    return any(row["case"] == case.name and not row.get("error") and not row["refused"] for row in rows)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Memory, FLOPs, bytes and collectives of nets on TPUs, by the TPU compiler.")
    parser.add_argument("--filter", default="", metavar="TEXT", help="only cases with this text in their name")
    parser.add_argument("--topology", action="append", metavar="CHIP:SHAPE", help=f"only these (default: {', '.join(TOPOLOGIES)})")
    parser.add_argument("--program", action="append", choices=PROGRAMS, help="only this one (default: both)")
    parser.add_argument("--zoo", type=int, default=0, metavar="N", help="the first example of this many packages of the zoo, too")
    parser.add_argument("--again", action="store_true", help="ask again about what is there already")
    parser.add_argument("--docs", type=Path, metavar="FILE", help="write the table into this page")
    parser.add_argument("--seconds", type=float, default=SECONDS, metavar="N", help="for one unit, all topologies together")
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="FILE", help=f"where the rows go (default: {OUTPUT})")
    return parser


def asked(case: Case, topologies: Sequence[str], programs: Sequence[str], limit: float) -> list[dict[str, Any]]:
    """The rows of one case; one with `error`, for no topology, where there is none."""
    print(f"{case.name} {' '.join(topologies)} {' '.join(programs)} …", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix="migrate-agent-") as folder:
        root, report = Path(folder) / "repository", Path(folder) / "report.json"
        try:
            _lay_out(case, root)
            error = _run(case, topologies, programs, root, report, limit)
        except PackageError as reason:
            error = str(reason)
        if not report.exists():
            return [{"case": case.name, "topology": "", "error": error[:300]}]
        costs = json.loads(report.read_text(encoding="utf-8"))["costs"]
    return [{"case": case.name, **{key: cost[key] for key in KEPT}} for cost in costs]


def _run(case: Case, topologies: Sequence[str], programs: Sequence[str], root: Path, report: Path, limit: float) -> str:
    """Write the report; the last line that the command said, which is the reason where there is no report."""
    batch = ["--batch", str(case.batch), *(["--each-chip"] if case.zoo else [])]
    command = ["tpu", case.unit, "--repo", str(root), *batch, "--sandbox", "process", "--report", str(report)]
    texts = [*(["--init", case.init] if case.init else []), *(["--call", case.call] if case.call else [])]
    arguments = [text for name in topologies for text in ("--topology", name)]
    arguments += [text for program in programs for text in ("--program", program)]
    try:
        process = subprocess.run(
            [sys.executable, "-m", "migrate_agent.agent.cli", *command, *texts, *arguments],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "JAX_PLATFORMS": "cpu"},
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        return f"{NO_END} {limit:.0f} s"
    return (process.stderr.strip().splitlines() or ["no reason given"])[-1]


KEPT = (
    "topology",
    "program",
    "batch",
    "devices",
    "peak",
    "hbm",
    "flops",
    "bytes",
    "bound",
    "bound_by",
    "collectives",
    "padding",
    "refused",
)


def _lay_out(case: Case, root: Path) -> None:
    """The repository with a commit."""
    if case.zoo:
        from migrate_agent.evals.suites.zoo import packages
        from migrate_agent.evals.zoo_packages.zoo_run import make_repository

        make_repository(packages()[case.repository], root)
        return
    shutil.copytree(EXAMPLES / case.repository, root, ignore=shutil.ignore_patterns(".git", "__pycache__"))
    for command in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "bench"]):
        subprocess.run([*GIT, *command], cwd=root, check=True)


def document(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What is stored."""
    from importlib.metadata import version

    versions = {name: version(name) for name in ("jax", "libtpu", "flax")}
    return {"benchmark": "tpu", "date": records.today(), "commit": records.commit(), "versions": versions, "rows": list(rows)}


def for_page(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows that a reader of the page needs: all of the examples; of the zoo's units those without figures, with the reason."""
    examples = {case.name for case in CASES}
    return [row for row in rows if row["case"] in examples or "error" in row or row["refused"]]


def table(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The rows as Markdown, those of one case together; figures of one device."""
    first = {str(row["case"]): index for index, row in reversed(list(enumerate(rows)))}
    order = {name: index for index, name in enumerate(TOPOLOGIES)}
    yield "| unit | topology | program | batch | HBM peak | of | FLOPs | bytes | bound | collectives | padding |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for row in sorted(rows, key=lambda row: (first[row["case"]], order.get(row["topology"], len(order)), row.get("program", ""))):
        head = f"| {row['case']} | {row['topology']} |"
        if "error" in row:
            yield f"{head} | | not asked: {row['error']} | | | | | | |"
        elif row["refused"]:
            yield f"{head} {row['program']} | {row['batch']} | refused ({row['refused']['kind']}) at {row['refused']['line']} | | | | | | |"
        else:
            moved = (
                ", ".join(f"{collective['count']} {collective['kind']} {size(collective['bytes'])}" for collective in row["collectives"])
                or "none"
            )
            figures = (size(row["peak"]), size(row["hbm"]), power(row["flops"]), size(row["bytes"]))
            bound = f"≥ {seconds(row['bound'])} ({row['bound_by']})"
            yield f"{head} {row['program']} | {row['batch']} | {' | '.join(figures)} | {bound} | {moved} | {row['padding']:.0%} |"


def between(page: str, text: str, marks: tuple[str, str] = MARKS) -> str:
    """The page with the text between its two marks. Raises `ValueError` where it has none."""
    before, first, rest = page.partition(marks[0])
    _, last, after = rest.partition(marks[1])
    if not (first and last):
        raise ValueError(f"the page lacks {marks[0]} and {marks[1]}")
    return f"{before}{first}\n{text}\n{last}{after}"


if __name__ == "__main__":
    sys.exit(main())
