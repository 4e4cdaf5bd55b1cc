"""Hashing, going on after a stop, and what counts as different; the transfer times of the migration guide."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

from migrate_agent.agent.cli import guarded
from migrate_agent.tools.manifest.manifest import build
from migrate_agent.tools.manifest.store import LocalStore, ManifestError, open_store
from migrate_agent.tools.manifest.transfer import duration, estimate

FILES = {"a.bin": b"a" * 3_000_000, "sub/b.bin": b"bee", "sub/empty": b""}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    root = tmp_path / "data"
    for name, content in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return root


class CountingStore(LocalStore):
    """Notes what is read, and fails at one file."""

    def __init__(self, root: Path, broken: str = "") -> None:
        super().__init__(root)
        self.broken, self.read_paths = broken, list[str]()

    def open(self, path: str) -> IO[bytes]:
        if path == self.broken:
            raise OSError(5, "Input/output error")
        self.read_paths.append(path)
        return super().open(path)


def test_digests_are_sha256(data: Path, tmp_path: Path) -> None:
    manifest = build(LocalStore(data), str(data), tmp_path / "journal", 2)
    assert {entry.path: entry.sha256 for entry in manifest.entries} == {
        name: hashlib.sha256(text).hexdigest() for name, text in FILES.items()
    }
    assert manifest.size == sum(map(len, FILES.values()))


def test_goes_on_where_it_was_stopped(data: Path, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    with pytest.raises(ManifestError, match=r"sub/empty: cannot be read: Input/output error"):
        build(CountingStore(data, "sub/empty"), str(data), journal, 1)
    journal.write_text(journal.read_text() + '["half')
    (data / "sub/b.bin").write_bytes(b"other")
    store = CountingStore(data)
    manifest = build(store, str(data), journal, 1)
    assert "a.bin" not in store.read_paths and "sub/b.bin" in store.read_paths
    assert manifest.entries[1].sha256 == hashlib.sha256(b"other").hexdigest()


def test_fsspec_addresses(tmp_path: Path) -> None:
    import fsspec

    system = fsspec.filesystem("memory")
    for name, content in FILES.items():
        system.pipe(f"/bucket/{name}", content)
    manifest = build(open_store("memory://bucket"), "memory://bucket", tmp_path / "journal", 2)
    assert [(entry.path, entry.size) for entry in manifest.entries] == [(name, len(text)) for name, text in FILES.items()]
    with pytest.raises(ManifestError, match="holds no file"):
        build(open_store("memory://nothing"), "memory://nothing", tmp_path / "other", 2)
    with pytest.raises(ManifestError, match="nosuch"):
        open_store("nosuch://x")


def remove(root: Path) -> None:
    (root / "sub/b.bin").unlink()


def flip(root: Path) -> None:
    (root / "a.bin").write_bytes(b"a" * 2_999_999 + b"b")


def cut(root: Path) -> None:
    (root / "a.bin").write_bytes(b"a")


def add(root: Path) -> None:
    (root / "c.bin").write_bytes(b"c")


def nothing(root: Path) -> None:
    assert root.exists()


@pytest.mark.parametrize(("change", "kind"), [(remove, "missing"), (flip, "content"), (cut, "size"), (add, "extra"), (nothing, "")])
def test_the_other_side_is_verified(
    change: Callable[[Path], None], kind: str, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = data / "manifest.json"  # inside of what is hashed: it is not its own part
    assert guarded(["manifest", str(data), "--output", str(file)]) == 0
    change(data)
    assert guarded(["manifest", str(data), "--verify", str(file), "--report", f"{tmp_path}/r.json"]) == (1 if kind else 0)
    assert [row["kind"] for row in json.loads((tmp_path / "r.json").read_text())["differences"]] == ([kind] if kind else [])
    assert capsys.readouterr().out.splitlines()[-1].endswith("1 files differ" if kind else "all are the same")
    assert sorted(path.name for path in data.iterdir() if path.name.startswith(".")) == []


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["no/such", "--output", "m.json"], "no such file or folder"),
        (["."], "say either --output FILE"),
        ([".", "--verify", "bad.json"], "is no manifest"),
        ([".", "--output", "m.json", "--mbps", "0"], "--mbps must be more than 0"),
    ],
)
def test_wrong_usage_is_one_line(
    options: list[str], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.json").write_text("[]")
    assert guarded(["manifest", *options]) == 2
    assert reason in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "m.json").exists()


@pytest.mark.parametrize(("size", "text"), [(1e12, "4.4 hours"), (1e14, "18.5 days"), (1e15, "185.2 days"), (1e6, "0.0 seconds")])
def test_transfer_times(size: float, text: str) -> None:
    """1 TB at 500 Mbit/s is 4.5 hours, 100 TB are 19 days, and 1 PB is 190 days, as the guide rounds them."""
    assert duration(estimate(int(size), 500).seconds[1]) == text


def test_compression_streams_and_price() -> None:
    transfer = estimate(10**12, 500, streams=10, content="text", price=0.05)
    assert transfer.seconds == pytest.approx((800, 1120))
    assert transfer.cost == pytest.approx((25, 35))
