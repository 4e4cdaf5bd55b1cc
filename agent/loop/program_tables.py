"""Writes a `[[program]]` table for a command that was recorded."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path

from migrate_agent.agent.config.config import CONFIG_FILE, PYPROJECT_FILE, load_config
from migrate_agent.agent.loop.programs import configured_programs
from migrate_agent.tools.programs.profile import profile
from migrate_agent.tools.programs.program import NoProgramError, parse_command


def note_program(root: Path, command: Sequence[str]) -> str:
    """Add a table to `migrate.toml` where the command runs a training script that has none; gives a line that says so, else ""."""
    try:
        words = parse_command(command, root)
    except (NoProgramError, ValueError):
        return ""
    config = load_config(root)
    if any(program.source == words[0] for program in configured_programs(config, root)):
        return ""
    if profile(words[0], (root / words[0]).read_text(errors="replace")) is None:
        return ""
    table = f"[[program]]\nrun = {json.dumps(shlex.join(['python', *words]))}\n"
    path = root / CONFIG_FILE
    if not path.exists() and (root / PYPROJECT_FILE).exists() and "[tool.migrate-agent" in (root / PYPROJECT_FILE).read_text():
        return f"to migrate {words[0]} as a program, add to {PYPROJECT_FILE}: [[tool.migrate-agent.program]] run = …"
    before = path.read_text() if path.exists() else ""
    path.write_text(f"{before.rstrip()}\n\n{table}" if before.strip() else table)
    return f"{words[0]} is a program now: a table [[program]] was added to {CONFIG_FILE}"
