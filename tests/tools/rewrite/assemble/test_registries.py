"""Tables that files of the repository fill by decorators: the mirror imports the files whose entries the examples used."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from migrate_agent.sandbox import open_sandbox
from migrate_agent.tools.record import record
from migrate_agent.tools.rewrite import compose
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Draft, Example
from tests.tools.rewrite.migrating import Migrated, compare, migrated

TABLES = """
HEADS = {}


class Registry:
    def __init__(self):
        self.items = {}

    def register(self, name=None):
        def wrap(cls):
            self.items[name or cls.__name__] = cls
            return cls

        return wrap

    def build(self, cfg, **kwargs):
        cfg = dict(cfg)
        return self.items[cfg.pop("type")](**cfg, **kwargs)


BLOCKS = Registry()


def head(function):
    HEADS[function.__name__] = function
    return function
"""
BLOCKS = """
import torch
from torch import nn

from build import build_block
from tables import BLOCKS, head


@BLOCKS.register("mlp")
class Mlp(nn.Module):
    def __init__(self, dim, ratio=2):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, dim * ratio), nn.ReLU(), nn.Linear(dim * ratio, dim))

    def forward(self, x):
        return x + self.net(x)


@BLOCKS.register()
class Twice(nn.Module):
    def __init__(self, dim, inner):
        super().__init__()
        self.inner = build_block(inner, dim)

    def forward(self, x):
        return self.inner(self.inner(x))


@BLOCKS.register("unused")
class Unused(nn.Module):
    def forward(self, x):
        return torch.distributed.send(x, 1)


@head
def linear(dim, size):
    return nn.Linear(dim, size)
"""
BUILD = """
from tables import BLOCKS


def build_block(cfg, dim):
    return BLOCKS.build(cfg, dim=dim)
"""
NET = """
import blocks
from build import build_block
from tables import HEADS
from torch import nn


class Net(nn.Module):
    def __init__(self, cfgs, dim, size):
        super().__init__()
        self.layers = nn.ModuleList([build_block(cfg, dim) for cfg in cfgs])
        self.head = HEADS["linear"](dim, size)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)
"""
FILES = {"tables": TABLES, "blocks": BLOCKS, "build": BUILD, "net": NET}
CALLS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    **{name: {} for name in ("tables", "blocks", "build")},
    "net": {"Net": ("[{'type': 'mlp', 'ratio': 3}, {'type': 'Twice', 'inner': {'type': 'mlp'}}], 4, 3", "torch.randn(2, 4)")},
}


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Migrated]:
    folder = tmp_path_factory.mktemp("registries")
    for name, text in FILES.items():
        (folder / f"{name}.py").write_text(text)
    with migrated(folder, CALLS, folder, style="plain") as work:
        yield work


@pytest.fixture(scope="module")
def draft(work: Migrated) -> Draft:
    return work.draft


def test_the_entries_are_as_torchs(work: Migrated) -> None:
    assert not work.draft.holes
    compare(work, "net", "Net")


def test_what_reads_the_table_imports_what_fills_it(draft: Draft) -> None:
    assert "import blocks_jax  # noqa: F401 (for what it registers)\n" in draft.files["net_jax.py"]
    # `blocks` itself imports `build`, which must be whole before that.
    assert draft.files["build_jax.py"].endswith("\n\nimport blocks_jax  # noqa: E402, F401 (for what it registers)\n")
    assert "blocks_jax" not in draft.files["tables_jax.py"], "the function that fills the table does not read it"


def test_what_no_example_ran_is_entered_as_a_stub(draft: Draft) -> None:
    _, _, entry = draft.files["blocks_jax.py"].partition('@BLOCKS.register("unused")\n')
    assert entry.startswith("class Unused(nnx.Module):")
    assert "Unused is not migrated: no example runs it" in entry


PACKAGE = {
    "nets/__init__.py": "from .tables import make, register\nfrom . import blocks, net\n",
    "nets/tables.py": "models = {}\n\n\ndef register(name):\n    def enter(cls):\n        models[name] = cls\n        return cls\n\n    return enter\n\n\n"
    "def make(name, dim):\n    return models[name](dim)\n",
    "nets/blocks.py": "from torch import nn\n\nfrom nets import register\n\n\n@register('mlp')\nclass Mlp(nn.Module):\n    def __init__(self, dim):\n"
    "        super().__init__()\n        self.f = nn.Linear(dim, dim)\n\n    def forward(self, x):\n        return self.f(x)\n",
    "nets/net.py": "from torch import nn\n\nimport nets\n\n\nclass Net(nn.Module):\n    def __init__(self, dim):\n        super().__init__()\n"
    "        self.f = nets.make('mlp', dim)\n\n    def forward(self, x):\n        return self.f(x)\n",
}


def test_a_package_imports_at_its_end_what_fills_its_table(tmp_path: Path) -> None:
    """What fills it imports from the package."""
    for name, text in PACKAGE.items():
        (tmp_path / "repository" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "repository" / name).write_text(text)
    inventory, example = scan(tmp_path / "repository"), Example("nets/net.py:Net", "4", "torch.randn(2, 4)")
    with open_sandbox("process", warn=lambda text: None) as sandbox:  # type: ignore[attr-defined]
        recording = record(inventory, [example], sandbox, tmp_path / "recording")
    files = compose(inventory, recording.observations, [example.unit], examples=recording.examples).files
    for name, text in files.items():
        (tmp_path / "mirror" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "mirror" / name).write_text(text)
    assert files["nets_jax/__init__.py"].endswith("import nets_jax.blocks  # noqa: E402, F401 (for what it registers)\n")
    program = "import jax, nets_jax.net; from flax import nnx; print(nets_jax.net.Net(4, rngs=nnx.Rngs(0))(jax.numpy.ones((2, 4))).shape)"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path / "mirror", capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "(2, 4)", done.stderr
