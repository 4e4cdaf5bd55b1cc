"""`weights` on a program: a checkpoint of the original, and its rewrite goes on from it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from migrate_agent.agent.cli import guarded
from migrate_agent.tests.agent.repositories import git
from migrate_agent.tests.tools.programs.scripts import HEAD, rewritten

TRAIN = (
    "import os\nimport sys\n"
    + HEAD
    + """
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
start = 0
if os.path.exists("last.pt"):
    state = torch.load("last.pt")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    scheduler.load_state_dict(state["scheduler"])
    torch.set_rng_state(state["rng"])
    start = state["step"]

for step in range(start, start + 4):
    index = torch.randint(0, len(inputs), (8,))
    loss = F.cross_entropy(model(inputs[index]), targets[index])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    print(f"step {step} loss {loss.item():.4f} lr {scheduler.get_last_lr()[0]:.5f}")

state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}
torch.save({**state, "rng": torch.get_rng_state(), "step": start + 4}, "last.pt")
"""
)


def printed(script: str, root: Path) -> list[str]:
    """What a script prints in a process of its own."""
    run = subprocess.run([sys.executable, script], cwd=root, env=os.environ, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


@pytest.mark.ci
def test_the_rewrite_goes_on_where_the_original_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Weights, moments, the schedule's place and the generator: the next lines are those that torch prints."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(TRAIN)
    printed("train.py", tmp_path)
    draft = rewritten(TRAIN, tmp_path)
    root = tmp_path / "repository"
    for path, text in draft.files.items():
        (root / path).write_text(text)
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        git(root, "-c", "user.name=t", "-c", "user.email=t@example.invalid", *arguments)
    printed("train.py", root)
    old = shutil.copy(root / "last.pt", tmp_path / "old.pt")
    expected = printed("train.py", root)
    (root / "last.pt").unlink()
    shutil.copy(old, root / "last.pt")
    arguments = [
        "weights",
        "train.py",
        str(root / "last.pt"),
        "--repo",
        str(root),
        "--output",
        str(tmp_path / "new"),
        "--sandbox",
        "process",
    ]
    assert guarded(arguments) == 0
    assert "for train_jax.py" in capfd.readouterr().out
    (root / "last.pt").unlink()
    shutil.move(tmp_path / "new", root / "last.pt")
    assert printed("train_jax.py", root) == expected
    assert guarded([*arguments[:2], str(root / "gone.pt"), *arguments[3:]]) == 2
    assert "gone.pt is no file" in capfd.readouterr().err
    assert guarded([*arguments, "--check"]) == 2
    assert "takes --output and --sandbox alone" in capfd.readouterr().err
