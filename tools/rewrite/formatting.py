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
    beside = Path(sys.executable).with_name("ruff")
    if beside.exists():
        return str(beside)
    from ruff.__main__ import find_ruff_bin

    return str(find_ruff_bin())


_done: dict[str, str] = {}


def format_python(files: Mapping[str, str]) -> dict[str, str]:
    """The files with imports sorted and code formatted; what does not parse comes back as it is."""
    todo = {path: text for path, text in files.items() if text.strip() and text not in _done}
    if todo:
        with tempfile.TemporaryDirectory() as folder:
            paths = {}
            for i, (path, text) in enumerate(todo.items()):
                paths[path] = Path(folder) / f"f{i}.py"
                paths[path].write_text(text)
            common = ["--isolated", "--no-cache", "--quiet", "--line-length", str(LINE_LENGTH), folder]
            subprocess.run([_ruff(), "check", "--select", "I", "--fix", "--exit-zero", *common], check=True, capture_output=True)
            subprocess.run([_ruff(), "format", *common], check=False, capture_output=True)
            for path, file in paths.items():
                _done[todo[path]] = file.read_text()
    return {path: _done.get(text, text) for path, text in files.items()}
