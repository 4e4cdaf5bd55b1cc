"""`migrate-agent assess`: what it prints, the report, and a page whose links lead somewhere."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from migrate_agent.agent.cli import guarded

SOURCE = """
import torch
from torch import nn


class Leaf(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(x)


class Window(nn.Module):
    def forward(self, x):
        return torch.as_strided(x, (2, 2), (1, 1))


class Top(nn.Module):
    def __init__(self):
        super().__init__()
        self.leaf = Leaf()

    def forward(self, x):
        x[0:2].add_(1)
        index = x.nonzero()
        self.table["a"].add_(1)
        return self.leaf(x)[index], x.sum().item()


def train(model, data):
    torch.distributed.init_process_group("nccl")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in data:
        model(x).sum().backward()
        optimizer.step()
"""


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    root = tmp_path / "<repo>"
    root.mkdir()
    (root / "model.py").write_text(SOURCE)
    return root


def test_report_has_units_hours_and_lines_of_risks(repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(["assess", "--repo", str(repo), "--report", f"{tmp_path}/r.json", "--hours", "1,2,4"]) == 0
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["strategies"] == {"rewrite": 2, "substitute": 0, "redesign": 1, "keep": 0}
    assert 0 <= report["rules"]["low"] <= report["rules"]["likely"] <= report["rules"]["high"] <= 2
    assert report["person_hours"]["likely"] == pytest.approx(2 * (report["open_units"]["likely"] + len(report["sites"])))
    lines = {(risk["kind"], SOURCE.splitlines()[risk["line"] - 1].strip()) for risk in report["risks"]}
    assert {
        ("mutable views", "x[0:2].add_(1)"),
        ("data-dependent shapes", "index = x.nonzero()"),
        ("values on the host", "return self.leaf(x)[index], x.sum().item()"),
        ("distributed code", 'torch.distributed.init_process_group("nccl")'),
        ("mutable views", "return torch.as_strided(x, (2, 2), (1, 1))"),
    } <= lines
    assert ("mutable views", 'self.table["a"].add_(1)') not in lines
    assert [phase["name"] for phase in report["phases"]] == ["Development", "Test", "Staging", "Cut-over", "Decommission"]
    assert "assumption" not in capsys.readouterr().out


def test_page_stands_alone_and_its_links_lead_somewhere(repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(["assess", "--repo", str(repo), "--html", f"{tmp_path}/page.html"]) == 0
    assert "an assumption" in capsys.readouterr().out
    page = (tmp_path / "page.html").read_text()
    links, anchors = set(re.findall(r'href="#([^"]+)"', page)), set(re.findall(r'<tr id="([^"]+)"', page))
    assert links == anchors and len(anchors) == 3
    assert 'class="edge"' in page and "&lt;repo&gt;" in page and "<repo>" not in page
    assert not re.search(r'src=|href="(?!#|https://)|<link|@import', page)  # a link may be followed, and nothing is loaded
    assert "torch inside JAX (torchax)" in page and "Facts as of" in page


def test_training_time_by_the_users_price(repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--parameters", "7e9", "--tokens", "1e12", "--topology", "v5e:16x16", "--topology", "h100:8", "--chip-price", "v5e=2"]
    files = ["--report", f"{tmp_path}/r.json", "--html", f"{tmp_path}/page.html"]
    assert guarded(["assess", "--repo", str(repo), *options, *files]) == 0
    first, second = capsys.readouterr().out.splitlines()[-2:]
    assert first.startswith("v5e:16x16: 578 hours") and "cost 296," in first and "cost" not in second
    assert [row["topology"] for row in json.loads((tmp_path / "r.json").read_text())["training"]] == ["v5e:16x16", "h100:8"]
    assert "v5e:16x16: 578 hours" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--parameters", "7e9", "--topology", "v5e:2x2"], "needs both of"),
        (["--topology", "h100:8"], "goes with --measure"),
        (["--steps", "5"], "say what --measure"),
        (["--parameters", "7e9", "--tokens", "1e12", "--topology", "v9:1"], "GPU:COUNT with one of a100"),
        (["--parameters", "7e9", "--tokens", "1e12", "--topology", "v5e:2x2", "--chip-price", "two"], "write CHIP=X"),
    ],
)
def test_wrong_training_options_are_one_line(options: list[str], reason: str, repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(["assess", "--repo", str(repo), *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert reason in line


@pytest.mark.parametrize("hours", ["1,2", "3,2,1", "a,b,c"])
def test_wrong_hours_are_one_line(hours: str, repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(["assess", "--repo", str(repo), "--hours", hours]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.ci
def test_a_measured_step_beside_its_price(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """GPUs alone, so that no TPU compiler is asked."""
    (tmp_path / "net.py").write_text(
        "import torch\n\n\nclass Net(torch.nn.Module):\n    def __init__(self, width):\n        super().__init__()\n"
        "        self.line = torch.nn.Linear(width, width)\n\n    def forward(self, x):\n        return self.line(x).relu()\n"
    )
    (tmp_path / "migrate.toml").write_text('[[example]]\nmodule = "net.py:Net"\ninit = "64"\ncall = "torch.randn(8, 64)"\n')
    for command in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "net"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    options = ["--measure", "net.py:Net", "--steps", "1e9", "--topology", "h100:2", "--topology", "l4", "--chip-price", "l4=1"]
    assert guarded(["assess", "--repo", str(tmp_path), *options, "--sandbox", "process", "--report", f"{tmp_path}/r.json"]) == 0
    first, second = json.loads((tmp_path / "r.json").read_text())["measured"]
    product = 2 * 8 * 64 * 64
    # Forward, the gradient of the weight, and a step of AdamW; the input needs no gradient.
    assert 2 * product <= 2 * first["flops"] <= 4 * product and first["fits"] and first["cost"] is None
    assert second["flops"] == 2 * first["flops"] and second["cost"]["likely"] == pytest.approx(second["hours"]["likely"])
    assert "fastest of those that fit: h100:2" in capsys.readouterr().out
