"""Repositories as they are: projects side by side, scripts, absent packages, roots that the layout does not show."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from migrate_agent.tests.agent.repositories import git, repository
from migrate_agent.tests.agent.test_end_to_end import migrate

EXAMPLE = """[[example]]
module = "{path}:{name}"
init = "{init}"
call = "{call}"
"""
ROWS = "torch.randn(2, 8)"
PROJECT = """import torch
from torch import nn

from utils import scaled

SCALE = {scale}


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        return {activation}(self.fc(x)) * SCALE


class Net(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.block = Block(width)
        self.norm = scaled(nn.{norm}(width))
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.norm(self.block(x)))
"""
UTILS = """from torch import nn


def scaled(layer):
    return nn.Sequential(layer, nn.{last}())
"""
TWO_PROJECTS = {
    "a/model.py": PROJECT.format(scale=2.0, activation="torch.relu", norm="LayerNorm"),
    "a/utils.py": UTILS.format(last="Identity"),
    "a/train.py": "from model import Net\n",
    "b/model.py": PROJECT.format(scale=0.5, activation="torch.tanh", norm="BatchNorm1d"),
    "b/utils.py": UTILS.format(last="Softsign"),
    "b/train.py": "from model import Net\n",
    "migrate.toml": "".join(EXAMPLE.format(path=f"{folder}/model.py", name="Net", init="8, 4", call=ROWS) for folder in "ab"),
}
SAME_NAME = {
    "op/__init__.py": "from .upfirdn2d import upfirdn2d\n",
    "op/upfirdn2d.py": """import torch.nn.functional as F


def upfirdn2d(x, kernel, up=1):
    x = F.interpolate(x, scale_factor=up, mode="nearest")
    weight = kernel.view(1, 1, *kernel.shape).repeat(x.shape[1], 1, 1, 1)
    return F.conv2d(x, weight, padding=kernel.shape[0] // 2, groups=x.shape[1])
""",
    "model.py": """import torch
from torch import nn

from op import upfirdn2d


class Blur(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("kernel", torch.ones(3, 3) / 9)

    def forward(self, x):
        return upfirdn2d(x, self.kernel, up=2)
""",
    "migrate.toml": EXAMPLE.format(path="model.py", name="Blur", init="", call="torch.randn(2, 3, 8, 8)"),
}
SCRIPT = {
    "train.py": """# Trains a small classifier.
import argparse

import torch
from torch import nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, required=True)
parser.add_argument("--width", type=int, default=8)
args = parser.parse_args()

open("touched", "w").close()
data = torch.load("nowhere.pt")
NEGATIVE_SLOPE = 0.2
device = torch.device("cuda")


def gate(x):
    return F.leaky_relu(x, NEGATIVE_SLOPE)


class Cell(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        return gate(self.fc(x))


class Net(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.cell = Cell(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return F.log_softmax(self.head(self.cell(x)), dim=1)


model = Net(args.width, 4).to(device)
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(args.epochs):
    for batch, target in data:
        optimizer.zero_grad()
        loss = F.nll_loss(model(batch), target)
        loss.backward()
        optimizer.step()
""",
    "migrate.toml": EXAMPLE.format(path="train.py", name="Net", init="8, 4", call=ROWS),
}
ABSENT = {
    "net.py": """import torch
import unheard_of.log as log
from torch import nn
from unheard_of.data import Loader, CLASSES
from helpers import widen

log.init(project="x")


class Net(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.fc = nn.Linear(width, widen(width))
        self.head = nn.Linear(widen(width), classes)

    def forward(self, x):
        return self.head(torch.sigmoid(self.fc(x)))


def fit(net, path):
    for batch in Loader(path, CLASSES):
        log.log({"loss": net(batch).sum().item()})
""",
    "helpers.py": """import unheard_of


def widen(width):
    return 2 * width


def plot(x):
    unheard_of.plot(x)
""",
    "migrate.toml": EXAMPLE.format(path="net.py", name="Net", init="8, 4", call=ROWS),
}
MIXED_ROOTS = {
    "pkg/layers.py": """import torch
from torch import nn


class Mix(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) / width**0.5)

    def forward(self, x):
        return x @ self.weight
""",
    "pkg/net.py": """from torch import nn

from pkg.layers import Mix


class Net(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.mix = Mix(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.mix(x))
""",
    "pkg/train.py": "from net import Net\n",
    "pkg/test.py": "from net import Net\nfrom layers import Mix\n",
    "evaluate.py": "from pkg.net import Net\n",
    "migrate.toml": EXAMPLE.format(path="pkg/net.py", name="Net", init="8, 4", call=ROWS),
}
SRC = {
    path.replace("pkg/", "src/models/"): text.replace("pkg.", "src.models.")
    for path, text in MIXED_ROOTS.items()
    if path in ("pkg/net.py", "pkg/layers.py")
}
SRC["migrate.toml"] = MIXED_ROOTS["migrate.toml"].replace("pkg/", "src/models/")
SRC["train.py"] = "from src.models.net import Net\n"
BELOW_SRC = {path.replace("pkg/", "src/pkg/"): text for path, text in MIXED_ROOTS.items() if path in ("pkg/net.py", "pkg/layers.py")}
BELOW_SRC["src/pkg/__init__.py"] = "from pkg.net import Net\n"
BELOW_SRC["migrate.toml"] = MIXED_ROOTS["migrate.toml"].replace("pkg/", "src/pkg/")
BESIDE = {
    "pkg/__init__.py": "",
    "pkg/layers.py": MIXED_ROOTS["pkg/layers.py"],
    "scripts/helper.py": "def double(x):\n    return 2 * x\n",
    "scripts/net.py": "import sys\n\nsys.path.append('.')\n\nfrom helper import double\n"
    + MIXED_ROOTS["pkg/net.py"].replace("self.head(", "double("),
    "migrate.toml": MIXED_ROOTS["migrate.toml"].replace("pkg/", "scripts/"),
}
TWO_NAMES = {
    "pkg/layers.py": MIXED_ROOTS["pkg/layers.py"],
    "pkg/util.py": "def double(x):\n    return 2 * x\n",
    "pkg/net.py": "from pkg.util import double\n"
    + MIXED_ROOTS["pkg/net.py"].replace("pkg.layers", "layers").replace("self.head(self", "double(self"),
    "pkg/train.py": "import layers\nfrom net import Net\n",
    "migrate.toml": MIXED_ROOTS["migrate.toml"],
}
ADDED = {
    "pkg/parts/layers.py": MIXED_ROOTS["pkg/layers.py"],
    "pkg/net.py": "import sys\n\nsys.path.append('parts')\n" + MIXED_ROOTS["pkg/net.py"].replace("pkg.layers", "layers"),
    "pkg/train.py": "from net import Net\nfrom parts.layers import Mix\n",
    "migrate.toml": MIXED_ROOTS["migrate.toml"],
}
INSERTED = {
    "lib/nets/layers.py": MIXED_ROOTS["pkg/layers.py"],
    "pkg/paths.py": "import os\nimport sys\n\nsys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'lib'))\n",
    "pkg/net.py": "import paths\n" + MIXED_ROOTS["pkg/net.py"].replace("pkg.layers", "nets.layers"),
    "migrate.toml": MIXED_ROOTS["migrate.toml"],
}


def verified(folder: Path, files: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Unit id → status, and mirror file → text, after a run on a repository of these files."""
    root, report = repository(folder / "repository", files), folder / "report.json"
    done = migrate("run", "--repo", str(root), "--yes", "--no-llm", "--sandbox", "process", "--report", str(report))
    document = json.loads(report.read_text())
    assert done.returncode in (0, 1), done.stderr
    names = git(root, "diff", "--name-only", f"HEAD...{document['branch']}", "--", "*.py").split()
    mirrors = {name: git(root, "show", f"{document['branch']}:{name}") for name in names}
    assert not [name for name, text in mirrors.items() if "was not exercised" in text], "the examples run every line"
    return {f"{unit['source']}:{unit['name']}": unit["status"] for unit in document["units"]}, mirrors


@pytest.mark.slow
def test_two_projects_with_files_of_the_same_names(tmp_path: Path) -> None:
    status, mirrors = verified(tmp_path, TWO_PROJECTS)
    assert status == dict.fromkeys(["a/model.py:Block", "a/model.py:Net", "b/model.py:Block", "b/model.py:Net"], "verified")
    assert "SCALE = 2.0" in mirrors["a/model_jax.py"] and "SCALE = 0.5" in mirrors["b/model_jax.py"]
    assert "soft_sign" in mirrors["b/utils_jax.py"] and "soft_sign" not in mirrors["a/utils_jax.py"]


@pytest.mark.slow
def test_a_module_and_its_function_of_one_name(tmp_path: Path) -> None:
    status, mirrors = verified(tmp_path, SAME_NAME)
    assert status == {"model.py:Blur": "verified"}
    assert "def upfirdn2d(" in mirrors["op_jax/upfirdn2d.py"] and "from .upfirdn2d import upfirdn2d" in mirrors["op_jax/__init__.py"]


@pytest.mark.slow
def test_a_script_that_trains_when_imported(tmp_path: Path) -> None:
    status, mirrors = verified(tmp_path, SCRIPT)
    assert status == {"train.py:Cell": "verified", "train.py:Net": "verified"}
    assert "NEGATIVE_SLOPE = 0.2" in mirrors["train_jax.py"]
    assert not [word for word in ("argparse", "optimizer", "data", "device", "touched") if word in mirrors["train_jax.py"]]


@pytest.mark.slow
def test_an_absent_package(tmp_path: Path) -> None:
    status, mirrors = verified(tmp_path, ABSENT)
    assert status == {"net.py:Net": "verified"}
    assert "unheard_of" not in mirrors["net_jax.py"] + mirrors["helpers_jax.py"]


@pytest.mark.ci
def test_a_package_below_src(tmp_path: Path) -> None:
    status, mirrors = verified(tmp_path, BELOW_SRC)
    assert status == {"src/pkg/layers.py:Mix": "verified", "src/pkg/net.py:Net": "verified"}
    assert "from pkg_jax.layers import Mix" in mirrors["src/pkg_jax/net.py"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("files", "mirror", "line"),
    [
        (MIXED_ROOTS, "pkg_jax/net.py", "from pkg_jax.layers import Mix"),
        (SRC, "src_jax/models/net.py", "from src_jax.models.layers import Mix"),
        (TWO_NAMES, "pkg/net_jax.py", "from util_jax import double"),
        (BESIDE, "scripts/net_jax.py", "from pkg_jax.layers import Mix"),
        (ADDED, "pkg/net_jax.py", "from parts_jax.layers import Mix"),
        (INSERTED, "pkg/net_jax.py", "from nets_jax.layers import Mix"),
    ],
)
def test_the_root_that_code_is_imported_from(tmp_path: Path, files: Mapping[str, str], mirror: str, line: str) -> None:
    status, mirrors = verified(tmp_path, files)
    assert set(status.values()) == {"verified"} and len(status) == 2
    assert line in mirrors[mirror]


PARTS = {
    "net.py": """import torch
from torch import nn


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x, sublayer):
        return x + sublayer(self.norm(x))


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)
        self.residual = Residual(width)

    def forward(self, x):
        return self.residual(x, self.fc)
""",
    "migrate.toml": EXAMPLE.format(path="net.py", name="Net", init="8", call=ROWS),
}


@pytest.mark.ci
def test_a_part_that_is_handed_a_module_is_judged_alone_too(tmp_path: Path) -> None:
    status, mirrors = verified(tmp_path, PARTS)
    assert status == {"net.py:Residual": "verified", "net.py:Net": "verified"}
    assert "return x + sublayer(self.norm(x))" in mirrors["net_jax.py"]
