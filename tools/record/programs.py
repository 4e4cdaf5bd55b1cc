"""Runs pieces of code, tests and scripts of a repository in the sandbox, watched: what they build and call becomes examples."""

from __future__ import annotations

import os
import re
import runpy
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.record.guessing.trials.trial import time_limit
from migrate_agent.tools.record.new_memory import Filling
from migrate_agent.tools.record.session import Session, Writer, plan
from migrate_agent.tools.record.snippets import Snippet
from migrate_agent.tools.record.store import NAME, merge_recordings, read_json, save_recording, write_json
from migrate_agent.tools.removed_names import restore
from migrate_agent.tools.scan.visible import source_file
from migrate_agent.tools.types import Inventory, Job, Limits, Recording, SourceFile

MAX_BYTES = 64 * 2**20
SNIPPET_SECONDS = 10.0
FILE_SECONDS = 60.0
ENTRY = "migrate_agent.tools.record.programs:"
MANY = 8
"""Pieces that run in one process: where it dies, these are lost."""


def run_snippets(inventory: Inventory, pieces: Sequence[Snippet], sandbox: Sandbox, folder: Path, limits: Limits) -> Recording:
    """What pieces of code show, by the error of none of them. The recording lies under `folder`."""
    groups = [pieces[at : at + MANY] for at in range(0, len(pieces), MANY)]
    rows = [{"snippets": [asdict(piece) for piece in group], **_importing(inventory, group)} for group in groups]
    parts = [_run(inventory, "record_snippets", row, sandbox, limits) for row in rows]
    return save_recording(merge_recordings(_moved(part, folder / str(at)) for at, part in enumerate(parts)), folder)


def explored_files(inventory: Inventory) -> tuple[str, ...]:
    """The tests and scripts that `run_files` would run: files of tests, and those with a `__main__` block."""
    paths = [file.path for file in inventory.files if not (file.error or file.adopted)]
    tests = [path for path in paths if re.search(r"(^|/)(test_[^/]*|[^/]*_test)\.py$", path)]
    scripts = [path for path in paths if path not in tests and "__main__" in (inventory.root / path).read_text(errors="replace")]
    return (*tests, *scripts)


def run_files(inventory: Inventory, paths: Sequence[str], sandbox: Sandbox, folder: Path, limits: Limits) -> Recording:
    """What tests and scripts show, each in a job of its own that ends after a minute."""
    bounded = replace(limits, seconds=FILE_SECONDS + 30)
    rows = [{"path": path, "parts": {}, "roots": _roots_of(source_file(inventory.files, path))} for path in paths]
    parts = [_run(inventory, "record_file", row, sandbox, bounded) for row in rows]
    return save_recording(merge_recordings(_moved(part, folder / str(at)) for at, part in enumerate(parts)), folder)


def _importing(inventory: Inventory, pieces: Sequence[Snippet]) -> dict[str, Any]:
    """What the units that the pieces name need: `parts` of each file, so that a script among them is imported without the rest of it, and `roots`."""
    from migrate_agent.tools.import_closure import first_roots, merged_parts, needed_parts  # here alone: see `session.plan`

    words = {word for piece in pieces for word in re.findall(r"\w+", piece.code)}
    named = [unit for unit in inventory.units if unit.name.rpartition(".")[2] in words]
    roots = dict.fromkeys(root for unit in named for root in first_roots(inventory, unit, ()))
    return {"parts": merged_parts([needed_parts(inventory, unit, ()) for unit in named]), "roots": list(roots)}


def _roots_of(file: SourceFile) -> list[str]:
    """The folders that a program has on its path before those of other files, where it needs any."""
    return [*file.leading_roots, file.import_root, *file.added_roots] if file.added_roots else []


Part = tuple[Recording, Any]


def _run(inventory: Inventory, entry: str, more: Mapping[str, Any], sandbox: Sandbox, limits: Limits) -> Part:
    arguments = {**plan(inventory), "max_bytes": MAX_BYTES, "check_seconds": limits.seconds / 4, **more}
    run = sandbox.run(Job("original", ENTRY + entry, inventory.root, arguments, {}, limits))
    try:
        # The job ran the user's code, so its files may be anything.
        return (read_json(run.output / NAME) if run.status == "ok" else Recording()), (sandbox, run)
    except (OSError, ValueError):
        return Recording(), (sandbox, run)


def _moved(part: Part, folder: Path) -> Recording:
    """The recording, copied out of the job's folder, without its errors: what a piece failed at is no fault of a unit."""
    recording, (sandbox, run) = part
    try:
        return replace(save_recording(recording, folder), errors={}, inside={})
    finally:
        sandbox.release(run)


@contextmanager
def _ended_by_nothing(session: Session) -> Iterator[None]:
    """Whatever a program of the user raises, `SystemExit` included, ends it alone."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        session.forget_outside(error)


def record_snippets(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """Run the statements of each piece. One that fails is left out, and the rest goes on."""
    import ast

    from migrate_agent.tools.harness.common.example_text import import_module
    from migrate_agent.tools.record.worker import start_session

    session = start_session(arguments)
    done: set[int] = set()
    for piece in arguments["snippets"]:
        # The piece with its own sizes only where the one with smaller sizes failed.
        if piece["number"] in done:
            continue
        namespace: dict[str, Any] = {"__name__": "snippet"}
        failed = False
        with _ended_by_nothing(session), time_limit(SNIPPET_SECONDS):
            import torch

            namespace |= {**(vars(import_module(piece["module"])) if piece["module"] else {}), "torch": torch, "__name__": "snippet"}
            for statement in ast.parse(piece["code"]).body:
                try:
                    exec(compile(ast.fix_missing_locations(ast.Module([Filling().visit(statement)], [])), "<snippet>", "exec"), namespace)
                except TimeoutError:
                    raise
                except Exception as error:
                    session.forget_outside(error)
                    failed = True
            if not failed:
                done.add(piece["number"])
    return _finish(session, arguments, output)


def record_file(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """Run a file of tests by pytest, or a script as `python FILE` would."""
    from migrate_agent.tools.record.worker import start_session

    session = start_session(arguments)
    root = session.root
    path = next(Path(real) for real, relative in session.paths.items() if relative == arguments["path"])
    sys.argv = [str(path)]
    restore()
    with _ended_by_nothing(session), time_limit(FILE_SECONDS):
        os.chdir(root if root.is_dir() else path.parent)
        if path.name.startswith("test_") or path.stem.endswith("_test"):
            import pytest

            pytest.main(["-q", "-p", "no:cacheprovider", str(path)])
        else:
            runpy.run_path(str(path), run_name="__main__")
    return _finish(session, arguments, output)


def _finish(session: Session, arguments: Mapping[str, Any], output: Path) -> dict[str, Any]:
    import time

    from migrate_agent.tools.record.worker import check_examples

    session.capture.active = False
    recorded = Writer(output).recording(session, {})
    examples, _ = check_examples(session, recorded, time.monotonic() + arguments["check_seconds"])
    write_json(replace(recorded, examples=examples, observations=session.recorder.table(), errors={}), output / NAME)
    return {}
