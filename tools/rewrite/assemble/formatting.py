"""Formats generated files as ruff would: imports sorted, lines wrapped."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

LINE_LENGTH = 100


@cache
def _ruff() -> str:
    # In a virtual environment that was not activated ruff is not on PATH.
    beside = Path(sys.executable).with_name("ruff")
    if beside.exists():
        return str(beside)
    from ruff.__main__ import find_ruff_bin

    return str(find_ruff_bin())


_done: dict[tuple[bool, str], str] = {}


def format_python(files: Mapping[str, str]) -> dict[str, str]:
    """The files with imports sorted and code formatted; what does not parse comes back as it is.

    An `__init__.py` keeps the order of its imports, which those that import from each other rely
    on.
    """
    # Results are cached by text: most files of a run are formatted again unchanged.
    keys = {path: (path.rpartition("/")[2] == "__init__.py", text) for path, text in files.items()}
    todo = {key for key in keys.values() if key[1].strip() and key not in _done}
    if todo:
        with tempfile.TemporaryDirectory() as folder:
            paths = {key: Path(folder) / f"f{i}.py" for i, key in enumerate(sorted(todo))}
            for (_, text), path in paths.items():
                path.write_text(text)
            # Isolated, so that the configuration of the user's repository does not change what is
            # generated.
            common = ["--isolated", "--no-cache", "--quiet", "--line-length", str(LINE_LENGTH)]
            if sortable := [str(path) for (fixed, _), path in paths.items() if not fixed]:
                subprocess.run(
                    [_ruff(), "check", "--select", "I", "--fix", "--exit-zero", *common, *sortable], check=True, capture_output=True
                )
            subprocess.run([_ruff(), "format", *common, folder], check=False, capture_output=True)
            for key, path in paths.items():
                _done[key] = path.read_text()
    return {path: _done.get(keys[path], text) for path, text in files.items()}
