"""`python -O` drops assertions; the verdicts stay, since none of them hangs on one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from migrate_agent.sandbox.process import ProcessSandbox
from migrate_agent.tests.tools.verify.harness import check_pair
from migrate_agent.tests.tools.verify.test_robust import SMALL

WRONG = ("return 2 * x", "return 3 * x")


def outcomes(folder: Path) -> dict[str, list[list[str]]]:
    """Stage, check and outcome of each verdict on a right and a wrong candidate."""
    texts = {"right": SMALL.candidate(), "wrong": SMALL.candidate().replace(*WRONG)}
    rows: dict[str, list[list[str]]] = {}
    for label, text in texts.items():
        with ProcessSandbox() as sandbox:
            evidence = check_pair(SMALL, text, sandbox, folder / label)
        rows[label] = [[verdict.stage, verdict.check, verdict.status] for verdict in evidence.verdicts]
    return rows


def main(folder: str) -> None:
    """Print the outcomes, and whether this Python keeps assertions."""
    print(json.dumps({"assertions": __debug__, "outcomes": outcomes(Path(folder))}))


@pytest.mark.ci
def test_verdicts_without_assertions(tmp_path: Path) -> None:
    program = f"from {__name__} import main; main({str(tmp_path / 'optimised')!r})"
    run = subprocess.run([sys.executable, "-O", "-c", program], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    optimised = json.loads(run.stdout.splitlines()[-1])
    assert not optimised["assertions"]
    assert optimised["outcomes"] == outcomes(tmp_path / "usual")
    assert {row[2] for row in optimised["outcomes"]["right"]} == {"pass"}
    assert ["numeric", "forward_fp64", "fail"] in optimised["outcomes"]["wrong"]
    assert ["spec", "candidate_runs", "pass"] in optimised["outcomes"]["right"]
