"""Which modules are a job's own, whose draws on the host are noticed."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from migrate_agent.tools.harness.common import host_random


@pytest.mark.parametrize(
    ("prefix", "own"),
    [
        ("elsewhere", {"mine", "installed", "beside"}),
        ("repository/.venv", {"mine", "beside"}),  # the environment lies in the repository
        (".", {"mine", "installed", "beside"}),  # the repository lies in the environment
    ],
)
def test_what_is_installed_in_the_repository_is_not_its_own(
    prefix: str, own: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "repository"
    files = {"mine": "m.py", "installed": ".venv/lib/i.py", "beside": ".venv_of_mine/b.py"}
    for name, file in files.items():
        module = types.ModuleType(f"host_random_{name}")
        module.__file__ = str(root / file)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(sys, "path", [str(root), *sys.path])
    monkeypatch.setattr(sys, "prefix", str((tmp_path / prefix).resolve()))
    host_random._imported_from.cache_clear()
    names = {module.__name__.removeprefix("host_random_") for module in host_random._own_modules()}
    host_random._imported_from.cache_clear()
    assert names == own
