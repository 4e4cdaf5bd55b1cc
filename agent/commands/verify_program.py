"""`migrate-agent verify train.py`: the judge of programs alone, on a rewrite that lies in the working tree."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from rich.markup import escape

from migrate_agent.agent.commands.opened_program import open_program
from migrate_agent.agent.commands.verify import VerifyOptions
from migrate_agent.agent.config.errors import UsageError
from migrate_agent.agent.config.json_files import plain, write, write_text
from migrate_agent.agent.loop.report import VERSION, totals, verdict_row
from migrate_agent.agent.loop.services import Services
from migrate_agent.agent.runs.progress import Progress, coloured, stdout
from migrate_agent.agent.runs.tables import verdict_table
from migrate_agent.agent.runs.verify_page import page
from migrate_agent.tools.programs.judge.curves import loss_curves
from migrate_agent.tools.programs.judge.judge import Judge, ProgramFailedError
from migrate_agent.tools.programs.migrate import lay_out
from migrate_agent.tools.programs.program import Program, bound_run, stage
from migrate_agent.tools.programs.rewrite.program_files import ProgramFiles
from migrate_agent.tools.programs.shortened import difference, shortened
from migrate_agent.tools.types import Evidence, UnitReport


def is_program(module: str) -> bool:
    """Whether what `verify` is given names a whole file."""
    return module.endswith(".py")


def verify_program(root: Path, source: str, options: VerifyOptions, services: Services, progress: Progress) -> int:
    """Print the verdicts; gives 0 where the program is verified, else 1. Raises `UsageError` where there is nothing to judge."""
    opened = open_program(root, source, services, options.against)
    program, target, config = opened.program, opened.target, opened.config
    with (
        tempfile.TemporaryDirectory(prefix="migrate-agent-") as scratch,
        closing(services.open_sandbox(options.sandbox or config.run.sandbox, config.run.device)) as sandbox,
        progress.live(),
    ):
        beside = ProgramFiles(opened.inventory, source).beside()

        def judged(one: Program) -> Evidence:
            original, candidate = working_copies(opened.root, one, Path(scratch))
            tell = lambda text: progress.stage(source, text)  # noqa: E731
            judge = Judge(one, original, sandbox, Path(scratch) / "runs", config.limits.limits(), tell, beside)
            if not bound_run(candidate / target, one):
                raise ProgramFailedError(f"{target} does not have the numbers of rounds of {source} where that has them", too_long=True)
            return judge.judge(candidate, target)

        try:
            evidence = _in_time(program, opened.root, judged, config.limits.seconds)
        except ProgramFailedError as error:
            raise UsageError(str(error)) from None
        if options.page is not None:
            write_text(options.page, page(evidence, target, {"curves": {"training": loss_curves(Path(scratch) / "runs")}}))
    _tell(evidence, source, target, options, root)
    return 0 if evidence.status == "verified" else 1


def _in_time(program: Program, root: Path, judged: Callable[[Program], Evidence], seconds: float) -> Evidence:
    """The evidence on a program, from fewer rounds of its loops where it takes more than its time. Raises `ProgramFailedError`."""
    try:
        return judged(program)
    except ProgramFailedError as error:
        shorter = shortened(program, (root / program.source).read_text(encoding="utf-8-sig")) if error.too_long else None
        if shorter is None:
            raise
        evidence = judged(shorter)
        note = f"judged with {difference(shorter, program)}: the whole run takes longer than {seconds:g} s"
        return replace(evidence, notes=(note, *evidence.notes))


def working_copies(root: Path, program: Program, folder: Path) -> tuple[Path, Path]:
    """Copies of what the original may read, and of that with the Python files of the working tree: for the original and for a rewrite."""
    original = stage(root, program, folder / "original")
    files = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8-sig") for path in _python_files(root)}
    return original, lay_out(original, files, folder / "candidate")


def _python_files(root: Path) -> list[Path]:
    # The rewrite may lie beside the original without being tracked yet.
    return [path for path in root.rglob("*.py") if not any(part.startswith(".") for part in path.relative_to(root).parts)]


def _tell(evidence: Evidence, source: str, target: str, options: VerifyOptions, root: Path) -> None:
    out = stdout()
    out.print(verdict_table(evidence.verdicts))
    for note in evidence.notes:
        out.print(escape(note))
    out.print(f"{escape(source)} against {escape(target)}: {coloured(evidence.status)}")
    if options.report is not None:
        row = UnitReport(
            source, "", target, evidence.status, "human", 1, verdicts=evidence.verdicts, seconds=evidence.seconds, kind="program"
        )
        unit_row = {**plain(row), "verdicts": [verdict_row(v) for v in evidence.verdicts]}
        base = {"version": VERSION, "repo": str(root.resolve()), "base": "", "branch": "", "totals": totals([row]), "units": [unit_row]}
        write(options.report, base)
