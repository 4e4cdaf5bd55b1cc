"""`migrate-agent curves train.py`: trains a program and its rewrite from the same weights, and shows both loss curves and what they print."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from migrate_agent.agent.commands.opened_program import open_program
from migrate_agent.agent.commands.verify_program import working_copies
from migrate_agent.agent.config.errors import UsageError
from migrate_agent.agent.config.json_files import write_text
from migrate_agent.agent.loop.services import Services
from migrate_agent.agent.runs.loss_chart import loss_chart
from migrate_agent.agent.runs.progress import Progress, stdout
from migrate_agent.tools.programs.judge.curves import CurveError, Sides, run_both


def curves(
    root: Path,
    source: str,
    against: str,
    options: Sequence[str],
    logs: Path | None,
    sandbox_kind: str,
    services: Services,
    progress: Progress,
) -> int:
    """Print the curves, and write them to `logs`; gives 0 where both print the same lines, else 1. Raises `UsageError` where one does not run."""
    opened = open_program(root, source, services, against, options or None)
    program, target, config = opened.program, opened.target, opened.config
    with (
        tempfile.TemporaryDirectory(prefix="migrate-agent-") as scratch,
        closing(services.open_sandbox(sandbox_kind or config.run.sandbox, config.run.device)) as sandbox,
        progress.live(),
    ):
        original, candidate = working_copies(opened.root, program, Path(scratch))
        try:
            sides = run_both(
                program,
                original,
                candidate,
                target,
                sandbox,
                Path(scratch),
                config.limits.limits(),
                lambda text: progress.stage(source, text),
            )
        except CurveError as error:
            raise UsageError(str(error)) from None
    for side, losses in sides.losses.items() if logs else ():
        rows = (json.dumps({"step": step, "loss": loss}) for step, loss in enumerate(losses))
        write_text(Path(logs or "", f"{side}.jsonl"), "".join(f"{row}\n" for row in rows))
    return _tell(sides, source, target)


def _tell(sides: Sides, source: str, target: str) -> int:
    say = stdout().file.write
    losses = sides.losses
    for line in loss_chart(losses["torch"], losses["jax"]):
        say(f"{line}\n")
    ours, theirs = sides.rewrite.lines, sides.original.lines
    different = [(one, other) for one, other in zip(theirs, ours, strict=False) if one != other]
    say(f"\n{target} printed:\n" + "".join(f"  {line}\n" for line in ours))
    if different or len(ours) != len(theirs):
        one, other = different[0] if different else (f"{len(theirs)} lines", f"{len(ours)} lines")
        say(f"\n{source} printed other lines, first: {one!r}, in JAX {other!r}\n")
        return 1
    say(f"\n{source} printed the same {len(theirs)} lines\n")
    return 0
