"""The static check over generated files: no undefined, unused or torch name (ruff's pyflakes rules, and a look at every import and name)."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sysconfig
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

UNDEFINED = "F821"
TORCH = ("torch", "torchvision", "torchaudio", "torchax")


class Finding(NamedTuple):
    """One problem in a file."""

    file: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}"


def static_problems(files: Mapping[str, str], sources: Mapping[str, str] | None = None) -> list[str]:
    """The problems of these Python files (relative path → text), as `file:line: what`.

    `sources` maps a file's path to the text that it was rewritten from: what pyflakes finds there too (a variable that was never used) is the
    source's own, and stays.
    """
    findings = [Finding(name, line, message) for name, text in files.items() for line, message in _torch_names(text)]
    owned = Counter((finding.file, finding.what) for finding in _pyflakes(sources or {}))
    for finding in _pyflakes(files):
        if owned[finding.file, finding.what] > 0 and not finding.what.startswith(UNDEFINED):
            owned[finding.file, finding.what] -= 1
        else:
            findings.append(finding)
    return [str(finding) for finding in sorted(findings)]


def _torch_names(text: str) -> Iterator[tuple[int, str]]:
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        yield error.lineno or 0, f"does not parse: {error.msg}"
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in TORCH:
            yield node.lineno, f"{node.id} is left"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in TORCH:
            yield node.lineno, f"imports {node.module}"
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, f"imports {alias.name}") for alias in node.names if alias.name.partition(".")[0] in TORCH)


def _pyflakes(files: Mapping[str, str]) -> Iterator[Finding]:
    """Ruff's F rules. An `__init__.py` may import what it does not use."""
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
            yield Finding(str(Path(row["filename"]).relative_to(root)), row["location"]["row"], f"{row['code']} {row['message']}")
