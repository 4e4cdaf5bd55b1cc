"""The cache of verdicts: what a key depends on, and which entries are believed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from migrate_agent.agent.config.config import CacheTable, Config
from migrate_agent.agent.loop.cached_verdicts import ADDRESS, TAKEN, cache_of, key_of, through
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Evidence, Example, Verdict
from migrate_agent.tools.verdict_cache import Folder, Remote, Store, VerdictCache, verifier_version

SOURCE = """
import torch
import helpers
from sizes import WIDTH

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.line = torch.nn.Linear(WIDTH, 2)

    def forward(self, x):
        return self.line(x)

class Other(torch.nn.Module):
    def forward(self, x):
        return x
"""
FILES = {"net.py": SOURCE, "sizes.py": "WIDTH = 3\n", "helpers.py": "import torch\n", "table.json": "{}", "README.md": "A net.\n"}
PORT = "from flax import nnx\n\n\nclass Net(nnx.Module):\n    def __call__(self, x):\n        return x\n"
EXAMPLE = Example("net.py:Net", "", "torch.randn(2, 3)")
VERIFIED = Evidence("net.py:Net", (Verdict("numeric", "forward_fp64", "pass", 1e-15, 1e-11),), seconds=9.0, notes=("a note",))


def key(folder: Path, files: dict[str, str], port: str = PORT, example: Example = EXAMPLE, seed: int = 0, beside: str = "") -> str:
    original, candidate = folder / "original", folder / "candidate"
    for root, texts in ((original, files), (candidate, {"net_jax.py": port, "blocks_jax.py": beside})):
        root.mkdir(parents=True)
        for path, text in texts.items():
            (root / path).write_text(text)
    inventory = scan(original)
    return key_of(inventory.unit("net.py:Net"), [example], [example], (original, candidate), inventory, {"seed": seed})


@pytest.mark.parametrize(
    ("change", "same"),
    [
        (lambda folder: key(folder, {**FILES, "net.py": SOURCE.replace("        return x", "        return 2 * x")}), True),
        (lambda folder: key(folder, {**FILES, "net.py": "# A comment.\n" + SOURCE, "README.md": "The net.\n"}), True),
        (lambda folder: key(folder, FILES, f"# A comment.\n{PORT}"), True),
        (lambda folder: key(folder, FILES, beside="WIDTH = 3\n"), True),
        (lambda folder: key(folder, {**FILES, "net.py": SOURCE.replace("WIDTH, 2", "WIDTH, 4")}), False),
        (lambda folder: key(folder, {**FILES, "sizes.py": "WIDTH = 4\n"}), False),
        (lambda folder: key(folder, {**FILES, "helpers.py": "import torch\ntorch.set_default_dtype(torch.float64)\n"}), False),
        (lambda folder: key(folder, {**FILES, "table.json": "[]"}), False),
        (lambda folder: key(folder, FILES, f"import torch\n{PORT}"), False),
        (lambda folder: key(folder, FILES, example=replace(EXAMPLE, call="torch.randn(4, 3)")), False),
        (lambda folder: key(folder, FILES, example=replace(EXAMPLE, train=False)), False),
        (lambda folder: key(folder, FILES, seed=1), False),
    ],
)
def test_a_key_follows_what_the_evidence_depends_on(change: Callable[[Path], str], same: bool, tmp_path: Path) -> None:
    assert (change(tmp_path / "new") == key(tmp_path / "old", FILES)) is same


@pytest.mark.parametrize("line", ["from blocks_jax import Block\n", "import blocks_jax\n", "from blocks_jax import *\n"])
def test_a_key_follows_the_files_that_the_port_imports(line: str, tmp_path: Path) -> None:
    one, other = (key(tmp_path / text, FILES, line + PORT, beside=f"def Block():\n    return {text}\n") for text in ("1", "2"))
    assert one != other


@pytest.mark.parametrize("remote", [False, True])
def test_verified_evidence_is_taken_with_a_note(remote: bool, tmp_path: Path) -> None:
    store: Store = Remote(f"memory://{tmp_path.name}") if remote else Folder(tmp_path / "verdicts")
    assert through(VerdictCache(store, "v1"), "k", lambda: VERIFIED) == VERIFIED
    taken = through(VerdictCache(store, "v1"), "k", lambda: pytest.fail("verified again"))
    assert taken.verdicts == VERIFIED.verdicts and taken.notes == ("a note", TAKEN) and taken.seconds < VERIFIED.seconds


class Away:
    """A file system whose server does not answer, told by an error that is no `OSError`."""

    def __getattr__(self, name: str) -> Any:
        class EndpointConnectionError(Exception):
            pass

        def call(*args: Any, **options: Any) -> Any:
            raise EndpointConnectionError("no server at this address")

        return call


def test_a_cache_that_cannot_be_reached_costs_the_verification_alone(tmp_path: Path) -> None:
    store = Remote(f"memory://{tmp_path.name}")
    store.system = Away()
    evidence = through(VerdictCache(store, "v1"), "k", lambda: VERIFIED)
    assert evidence.verdicts == VERIFIED.verdicts and "was not written: EndpointConnectionError" in evidence.notes[-1]


@pytest.mark.parametrize("status", ["fail", "unverified"])
def test_what_is_not_verified_is_tried_again(status: str, tmp_path: Path) -> None:
    cache = VerdictCache(Folder(tmp_path), "v1")
    other = replace(VERIFIED, verdicts=(*VERIFIED.verdicts, Verdict("numeric", "buffers", status)))  # type: ignore[arg-type]
    assert through(cache, "k", lambda: other) == other and cache.get("k") is None


def _edit(path: Path) -> None:
    entry = json.loads(path.read_text())
    path.write_text(json.dumps({**entry, "body": entry["body"].replace("1e-15", "1e-16")}))


@pytest.mark.parametrize(
    ("reader", "spoil"),
    [
        (("v2", b""), None),
        (("v1", b"secret"), None),
        (("v1", b""), _edit),
        (("v1", b""), lambda path: path.write_text("{")),
        (("v1", b""), lambda path: path.write_text("[1]")),
    ],
)
def test_entries_of_others_are_not_believed(reader: tuple[str, bytes], spoil: Callable[[Path], None] | None, tmp_path: Path) -> None:
    through(VerdictCache(Folder(tmp_path), "v1"), "k", lambda: VERIFIED)
    (path,) = tmp_path.rglob("k.json")
    if spoil is not None:
        spoil(path)
    assert VerdictCache(Folder(tmp_path), *reader).get("k") is None


def test_an_entry_under_another_key_is_not_believed(tmp_path: Path) -> None:
    cache = VerdictCache(Folder(tmp_path), "v1")
    through(cache, "k", lambda: VERIFIED)
    (path,) = tmp_path.rglob("k.json")
    path.rename(path.with_name("kk.json"))
    assert cache.get("kk") is None


def test_the_environment_comes_before_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = Config(cache=CacheTable(address=f"{tmp_path}/a"))
    assert cache_of(Config()) is None
    cache = cache_of(config)
    assert (
        cache is not None and isinstance(cache.store, Folder) and cache.store.root == tmp_path / "a" and cache.version == verifier_version()
    )
    monkeypatch.setenv(ADDRESS, f"{tmp_path}/b")
    again = cache_of(config)
    assert again is not None and isinstance(again.store, Folder) and again.store.root == tmp_path / "b"
