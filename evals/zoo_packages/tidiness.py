"""The static check over generated files: nothing of torch is left (`tools.leftovers`, the verifier's own check), and no name is unused (pyflakes)."""

from __future__ import annotations

import json
import shutil
import subprocess
import sysconfig
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from migrate_agent.tools.leftovers import Leftover, find

UNDEFINED = "F821"


def static_problems(files: Mapping[str, str], sources: Mapping[str, str] | None = None) -> list[str]:
    """The problems of these Python files (relative path → text), as `file:line: what`.

    `sources` maps a file's path to the text that it was rewritten from: what pyflakes finds there too (a variable that was never used) is the
    source's own, and stays.
    """
    findings = list(find(files))
    owned = Counter((finding.file, finding.what) for finding in _pyflakes(sources or {}))
    for finding in _pyflakes(files):
        if owned[finding.file, finding.what] > 0:
            owned[finding.file, finding.what] -= 1
        elif not finding.what.startswith(UNDEFINED):
            findings.append(finding)
    return [str(finding) for finding in sorted(findings)]


def _pyflakes(files: Mapping[str, str]) -> Iterator[Leftover]:
    """Ruff's F rules (undefined names are found by `find`). An `__init__.py` may import what it does not use."""
    ruff = shutil.which("ruff", path=sysconfig.get_path("scripts")) or shutil.which("ruff")
    if ruff is None:
        raise FileNotFoundError("ruff is not installed: pip install ruff")
    with tempfile.TemporaryDirectory(prefix="migrate-agent-") as folder:
        root = Path(folder).resolve()
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        command = [
            ruff,
            "check",
            "--no-cache",
            "--isolated",
            "--select",
            "F",
            "--per-file-ignores",
            "__init__.py:F401",
            "--output-format",
            "json",
        ]
        process = subprocess.run([*command, str(root)], capture_output=True, text=True, check=False)
        for row in json.loads(process.stdout or "[]"):
            yield Leftover(str(Path(row["filename"]).relative_to(root)), row["location"]["row"], f"{row['code']} {row['message']}")
