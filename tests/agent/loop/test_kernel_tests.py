"""The test that comes with the hole of a kernel, and the loop that judges by it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from migrate_agent.agent.cluster.workers import LocalWorkers
from migrate_agent.agent.config.config import Config
from migrate_agent.agent.loop.judging import Bench, verify_draft
from migrate_agent.agent.loop.kernel_tests import with_tests
from migrate_agent.sandbox import open_sandbox
from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.harness.common import tensor_files
from migrate_agent.tools.rewrite.assemble.workspace import Workspace
from migrate_agent.tools.types import Draft, Evidence, Inventory, KernelCall, Recording, SourceFile, Unit, Verdict

SOURCE = """\
import torch
from torch.utils.cpp_extension import load

ext = load(name="ext", sources=["twice.cpp"])


def twice(x):
    return ext.twice(x)


class Net(torch.nn.Module):
    def forward(self, x):
        return twice(x)
"""
UNIT = Unit("model.py", "Net", "model_jax.py", "rewrite")
FILE = SourceFile("model.py", "model", "model_jax.py", "model_jax", True)
RIGHT, WRONG = "def twice(x):\n    return 2 * x\n", "def twice(x):\n    return x * x\n"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """One for all."""
    opened = open_sandbox("process", warn=lambda text: None)
    yield opened
    opened.close()


def drafted(folder: Path, errors: dict[str, str] | None = None, **changes: Any) -> tuple[Draft, Inventory, KernelCall]:
    """The rules' holes in the source, and a call that was recorded elsewhere."""
    original = folder / "original"
    original.mkdir()
    (original / "model.py").write_text(SOURCE)
    inventory = Inventory(original, (FILE,), (UNIT,))
    tensor_files.save(folder / "twice.safetensors", {"in/0": np.ones((2, 3), np.float32), "out/0": np.full((2, 3), 2, np.float32)})
    tree = {"tuple": [{"list": [{"leaf": 0}]}, {"dict": []}]}
    call = replace(KernelCall("model.py", "twice", tree, {"leaf": 0}, (), folder / "twice.safetensors"), **changes)
    holes = tuple(hole for hole in Workspace(inventory, {}).rewritten("model.py").holes if hole.code == "custom-kernel")
    return (
        with_tests(Draft({}, holes), Recording(kernel_calls=(call,), errors=errors or {}), inventory, original, folder / "tests", folder),
        inventory,
        call,
    )


@pytest.mark.parametrize(("text", "status"), [(RIGHT, 0), (WRONG, 1)])
def test_the_hole_names_a_test_that_can_be_run(tmp_path: Path, text: str, status: int) -> None:
    draft, *_ = drafted(tmp_path)
    (hole,) = draft.holes
    said, _, path = hole.reason.rpartition(": ")
    assert said.endswith("; 1 recorded call (F32 [2, 3] -> F32 [2, 3]) judge what is written here")
    (tmp_path / "model_jax.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", path]
    ran = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(tmp_path), "JAX_PLATFORMS": "cpu"}
    )
    assert ran.returncode == status, ran.stdout
    filled = with_tests(
        Draft({"model_jax.py": text}),
        Recording(),
        Inventory(tmp_path / "original", (FILE,), (UNIT,)),
        tmp_path,
        tmp_path / "tests",
        tmp_path,
    )
    assert not filled.holes and Path(tmp_path / path).is_file(), "it stays when the hole is filled"


def test_what_a_kernel_changes_in_place_is_said(tmp_path: Path) -> None:
    draft, *_ = drafted(tmp_path, changed=("x",))
    assert draft.holes[0].reason.endswith("it changes x in place, so that its recorded calls are no test")
    assert not (tmp_path / "tests").exists()


def test_holes_without_a_recording_stay(tmp_path: Path) -> None:
    draft, *_ = drafted(tmp_path, name="other")
    assert draft.holes[0].reason.endswith("as twice(x)")


def test_why_nothing_was_recorded_is_said(tmp_path: Path) -> None:
    draft, *_ = drafted(tmp_path, {"model.py:twice": "it draws random numbers"}, name="other")
    assert draft.holes[0].reason.endswith("as twice(x); no call of it was recorded: it draws random numbers")


@pytest.mark.parametrize(("text", "checks"), [(RIGHT, ["other pass", "recorded_kernels pass"]), (WRONG, ["recorded_kernels fail"])])
def test_a_filled_hole_is_judged_by_the_recording_first(tmp_path: Path, sandbox: Sandbox, text: str, checks: list[str]) -> None:
    _, inventory, call = drafted(tmp_path)

    def verify(*arguments: Any) -> Evidence:
        return Evidence(UNIT.id, (Verdict("numeric", "other", "pass"),))

    context: Any = SimpleNamespace(
        recording=Recording(kernel_calls=(call,)),
        inventory=inventory,
        sandbox=sandbox,
        original=inventory.root,
        config=Config(),
        services=SimpleNamespace(verify=verify),
        workers=LocalWorkers(Bench(cast(Any, SimpleNamespace(verify=verify)), sandbox)),
    )
    evidence = verify_draft(context, UNIT, Draft({"model_jax.py": text}), tmp_path / "unit", lambda stage: None)
    assert [f"{verdict.check} {verdict.status}" for verdict in evidence.verdicts] == checks
