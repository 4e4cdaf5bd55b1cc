"""Each suite runs on a tiny part of itself, in processes of its own, as the command line runs it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from migrate_agent.evals import runner
from migrate_agent.evals.zoo_packages.packages import PackageError, cache_folder, fetch, load_packages

pytestmark = pytest.mark.slow


def run(suite: str, only: str, folder: Path, **more: Any) -> tuple[int, dict[str, object]]:
    """Exit status, and case → status."""
    options = {"jobs": 2, "samples": "2", "quick": False, "sandbox": "auto", "resume": False, **more}
    status = runner.command(suite, only, output=folder, **options)
    result = json.loads((folder / f"{suite}.part.json").read_text(encoding="utf-8"))
    return status, {case["case"]: case["status"] for case in result["cases"]}


def test_ops(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("ops", "clamp_min,__rsub__,to_sparse", tmp_path) == (0, {"clamp_min": "right", "__rsub__": "right", "to_sparse": "excluded"})
    assert "2 of 2 (100.0 %) operators right" in capsys.readouterr().out


def test_modules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("modules", "Softshrink,GLU", tmp_path)[1].items() >= {"Softshrink": "right", "GLU": "right"}.items()
    assert "classes right" in capsys.readouterr().out


def test_zoo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (package,) = (package for package in load_packages() if package.name == "mlp-mixer-pytorch")
    try:
        for source in package.sources:
            fetch(source, cache_folder())
    except PackageError as error:
        pytest.skip(f"the package index is not reached: {error}")
    status, cases = run("zoo", package.name, tmp_path, quick=True)
    assert (status, Counter(cases.values())) == (0, Counter(right=4, tidy=1))
    assert "module classes right" in capsys.readouterr().out
