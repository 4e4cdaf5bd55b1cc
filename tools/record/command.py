"""Recording while the user's own command runs: `migrate-agent record --repo . -- python train.py --steps 1`."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from migrate_agent.tools.record.inject import VARIABLE
from migrate_agent.tools.record.session import plan
from migrate_agent.tools.record.store import merge_recordings, read_json, save_recording
from migrate_agent.tools.types import Inventory, Recording

MAX_BYTES = 64 * 2**20
SAVE_SECONDS = 2.0
COMMAND = "command"
"""Key in `Recording.errors` for errors of the command as a whole."""

SITECUSTOMIZE = '''\
"""Starts the recording of migrate-agent in this process, then runs the `sitecustomize` that would have run without it."""
import importlib.machinery
import importlib.util
import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))


def _record():
    try:
        from migrate_agent.tools.record.inject import start

        start()
    except Exception as error:
        print(f"migrate-agent: this process is not recorded: {type(error).__name__}: {error}", file=sys.stderr)


def _run_the_other():
    places = [place for place in sys.path if os.path.abspath(place or ".") != _here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", places)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


_record()
_run_the_other()
'''


def record_command(
    inventory: Inventory, command: Sequence[str], folder: Path, max_bytes: int = MAX_BYTES, save_seconds: float = SAVE_SECONDS
) -> Recording:
    """Run the command in the repository, watched, and store the recording under `folder`.

    It runs as the user would run it: same environment, terminal and rights (this is not a sandbox). Python processes that it starts are
    watched too. The error of a command that fails or records nothing is in `errors["command"]`; what was recorded until then stays.
    Raises `FileNotFoundError` where the program does not exist and `ValueError` for an empty command.
    """
    if not command:
        raise ValueError("no command to record: put it after `--`, as in `migrate-agent record -- python train.py`")
    # A process that the command left behind may still write there: not under `folder`, and no reason to fail.
    with tempfile.TemporaryDirectory(prefix="migrate-agent-record-", ignore_cleanup_errors=True) as scratch:
        parts, inject = Path(scratch) / "parts", Path(scratch) / "inject"
        environment = _prepare(inventory, parts, inject, max_bytes, save_seconds)
        status = subprocess.run(list(command), cwd=inventory.root, env=environment, check=False).returncode
        recording = merge_recordings(read_json(path) for path in sorted(parts.glob("*.json")))
        return save_recording(replace(recording, errors={**recording.errors, **_problem(status, recording)}), folder)


def _prepare(inventory: Inventory, parts: Path, inject: Path, max_bytes: int, save_seconds: float) -> dict[str, str]:
    """Write the plan and the injected folder; gives the command's environment."""
    import migrate_agent

    parts.mkdir()
    inject.mkdir()
    (inject / "sitecustomize.py").write_text(SITECUSTOMIZE)
    # The command may run in an environment of its own, where we are not installed.
    (inject / "migrate_agent").symlink_to(Path(next(iter(migrate_agent.__path__))).resolve(), target_is_directory=True)
    content = {"root": str(inventory.root.resolve()), "output": str(parts), "max_bytes": max_bytes, "interval": save_seconds}
    (inject / "plan.json").write_text(json.dumps({**plan(inventory), **content}))
    before = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([str(inject), *([before] if before else [])])
    return {**os.environ, "PYTHONPATH": path, VARIABLE: str(inject / "plan.json")}


def _problem(status: int, recording: Recording) -> dict[str, str]:
    if status != 0:
        ending = f"ended with exit status {status}" if status > 0 else f"was killed by signal {-status}"
        return {COMMAND: f"the command {ending}"}
    if not recording.observations and not recording.examples:
        return {COMMAND: "the command ran, but used no file of the repository in a Python process that could be watched"}
    return {}
