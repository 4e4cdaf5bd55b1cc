"""`migrate-agent weights train.py`: a training checkpoint of the original as one that its rewrite goes on from."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from rich.markup import escape

from migrate_agent.agent.commands.opened_program import open_program
from migrate_agent.agent.commands.verify_program import working_copies
from migrate_agent.agent.commands.weights import WeightsOptions
from migrate_agent.agent.config.errors import UsageError
from migrate_agent.agent.loop.services import Services
from migrate_agent.agent.runs.progress import Progress, stdout
from migrate_agent.tools.checkpoint.files import CheckpointError
from migrate_agent.tools.programs.port_checkpoint import port_checkpoint


def weights_of_program(
    root: Path,
    source: str,
    checkpoint: Path,
    options: Sequence[str],
    settings: WeightsOptions,
    services: Services,
    progress: Progress,
) -> int:
    """Write the checkpoint for the rewrite; gives 0. Raises `UsageError` where that cannot be done."""
    if settings != WeightsOptions(output=settings.output, sandbox=settings.sandbox):
        raise UsageError("of a program, weights takes --output and --sandbox alone, and its own options after --")
    opened = open_program(root, source, services, options=options)
    if not checkpoint.is_file():
        raise UsageError(f"{checkpoint} is no file")
    result = settings.output or checkpoint.with_name(f"{checkpoint.stem}_jax")
    if result.exists() and not (result / "arrays").is_dir():
        raise UsageError(f"--output {result} is there, and no checkpoint of a rewrite")
    config = opened.config
    safe = closing(services.open_sandbox(settings.sandbox or config.run.sandbox, config.run.device))
    with tempfile.TemporaryDirectory(prefix="migrate-agent-") as scratch, safe as sandbox, progress.live():
        roots = working_copies(opened.root, opened.program, Path(scratch))
        for folder in roots:
            _lay_beside(checkpoint, opened.root, folder)
        try:
            port_checkpoint(
                opened.program,
                roots,
                opened.target,
                checkpoint,
                result,
                sandbox,
                Path(scratch),
                config.limits.limits(),
                lambda text: progress.stage(source, text),
            )
        except CheckpointError as error:
            raise UsageError(str(error)) from None
    stdout().print(f"written: {escape(str(result))}, for {escape(opened.target)} with the same options", soft_wrap=True)
    return 0


def _lay_beside(checkpoint: Path, root: Path, copy: Path) -> None:
    """Put the checkpoint where the program looks for it, in a copy of its repository."""
    path = checkpoint.absolute()
    target = copy / (path.relative_to(root.absolute()) if path.is_relative_to(root.absolute()) else path.name)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, target)
