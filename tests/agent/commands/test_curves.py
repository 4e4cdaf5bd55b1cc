"""`curves` on a small script and its rewrite, in real processes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from migrate_agent.agent.cli import guarded
from migrate_agent.tests.agent.repositories import git
from migrate_agent.tests.tools.programs.scripts import TRAIN, rewritten


@pytest.mark.slow
def test_both_sides_print_the_same_from_the_same_weights(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """And a rewrite that learns otherwise is told by the first line that differs."""
    for path, text in rewritten(TRAIN, tmp_path).files.items():
        (tmp_path / "repository" / path).write_text(text)
    root = tmp_path / "own"
    shutil.move(tmp_path / "repository", root)
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        git(root, "-c", "user.name=t", "-c", "user.email=t@example.invalid", *arguments)
    capfd.readouterr()
    assert guarded(["curves", "train.py", "--repo", str(root), "--sandbox", "process", "--logs", str(tmp_path / "logs")]) == 0
    out = capfd.readouterr().out
    assert out.splitlines()[0].split() == ["step", "torch", "jax", "difference"]
    assert "train.py printed the same 3 lines" in out
    logs = [str(tmp_path / "logs" / f"{side}.jsonl") for side in ("torch", "jax")]
    assert guarded(["compare", *logs, "--repo", str(root), "--points", "1"]) == 0
    text = (root / "train_jax.py").read_text()
    (root / "train_jax.py").write_text(text.replace("optax.adam(1e-2", "optax.adam(1e-1"))
    assert guarded(["curves", "train.py", "--repo", str(root), "--sandbox", "process"]) == 1
    assert "train.py printed other lines, first: 'step 2" in capfd.readouterr().out
