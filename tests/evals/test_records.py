"""Packages as they are pinned, results as they are stored, and the scoreboard made of them."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from migrate_agent.evals import records, scoreboard
from migrate_agent.evals.bench.sizes import SIZES
from migrate_agent.evals.suite import Options, Outcome, Suite, load_suite, suite_names
from migrate_agent.evals.worker import decode, encode
from migrate_agent.evals.zoo_packages.packages import ZOO, Package, PackageError, Source, lay_out, load_packages

FILES = {"pkg/__init__.py": "from pkg.a import *\n", "pkg/a.py": "x = 1\n", "pkg/sub/b.py": "y = 2\n", "pkg/data.txt": "no Python"}
OUTCOMES = [Outcome("a", "right"), Outcome("b", "wrong", "off"), Outcome("c", "refused", "hole"), Outcome("d", "excluded", "sparse")]


def archive(folder: Path, name: str) -> Source:
    """A distribution of the files above."""
    path = folder / name
    if path.suffix == ".whl":
        with zipfile.ZipFile(path, "w") as wheel:
            for file, text in FILES.items():
                wheel.writestr(file, text)
    else:
        with tarfile.open(path, "w:gz") as tar:
            for file, text in FILES.items():
                entry = tarfile.TarInfo(f"pkg-1.0/{file}")
                entry.size = len(text)
                tar.addfile(entry, io.BytesIO(text.encode()))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    root = "" if path.suffix == ".whl" else "pkg-1.0"
    return Source("pkg", "1.0", name, digest, ("pkg/*.py",), root, {"pkg/__init__.py": ""})


@pytest.mark.parametrize("name", ["pkg-1.0-py3-none-any.whl", "pkg-1.0.tar.gz"])
def test_package_is_laid_out(name: str, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    lay_out(Package("pkg", "", (archive(tmp_path / "cache", name),), ()), tmp_path / "repository", tmp_path / "cache")
    files = {path.relative_to(tmp_path / "repository").as_posix() for path in (tmp_path / "repository").rglob("*.*")}
    assert files == {"pkg/__init__.py", "pkg/a.py"}
    assert (tmp_path / "repository" / "pkg" / "__init__.py").read_text() == ""


def test_files_can_be_laid_out_below_a_folder(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    source = replace(archive(tmp_path / "cache", "pkg-1.0-py3-none-any.whl"), below="net", write={})
    lay_out(Package("pkg", "", (source,), ()), tmp_path / "repository", tmp_path / "cache")
    assert (tmp_path / "repository" / "net" / "pkg" / "a.py").is_file()


def test_other_bytes_than_pinned_are_refused(tmp_path: Path) -> None:
    source = archive(tmp_path, "pkg-1.0-py3-none-any.whl")
    (tmp_path / source.file).write_bytes(b"something else")
    with pytest.raises(PackageError, match=f"pinned is {source.sha256}"):
        lay_out(Package("pkg", "", (source,), ()), tmp_path / "repository", tmp_path)


@pytest.mark.parametrize(("folder", "least"), [(ZOO, 12), (SIZES, 7)])
def test_pinned_packages_are_complete(folder: Path, least: int) -> None:
    found = load_packages(folder)
    assert len(found) >= least
    for package in found:
        assert package.family and package.examples
        for source in package.sources:
            assert source.version in source.file
            assert len(source.sha256) == 64
        for example in package.examples:
            assert example.keys() >= {"module", "init", "call"}


def test_suites_are_found() -> None:
    assert {"modules", "ops", "peers", "zoo"} <= set(suite_names())
    assert [load_suite(name).name for name in ("modules", "peers")] == ["modules", "peers"]
    with pytest.raises(KeyError):
        load_suite("nothing")


@pytest.mark.parametrize(
    ("right", "wrong", "excluded", "text"),
    [
        (2, 1, 5, "2 of 3 (66.6 %)"),
        (999, 1, 0, "999 of 1000 (99.9 %)"),
        (9999, 1, 0, "9999 of 10000 (99.9 %)"),
        (0, 0, 1, "0 of 0 (0.0 %)"),
    ],
)
def test_rate_is_rounded_down(right: int, wrong: int, excluded: int, text: str) -> None:
    assert records.rate({"right": right, "wrong": wrong, "refused": 0, "excluded": excluded, "untidy": 7}) == text


@pytest.mark.parametrize(
    ("options", "name"), [(Options(), "ops.json"), (Options(filter="x"), "ops.part.json"), (Options(quick=True), "ops.part.json")]
)
def test_a_part_never_stands_for_the_whole(options: Options, name: str, tmp_path: Path) -> None:
    document = records.document(suite(), options, OUTCOMES, 1.0, {"torch": "2", "jax": "0", "flax": "0"})
    assert records.write(document, tmp_path).name == name
    assert (document["in_scope"], document["counts"]["right"]) == (3, 1)


def test_a_brief_suite_lists_what_is_not_right() -> None:
    document = records.document(replace(suite(), brief=True), Options(), OUTCOMES, 1.0, {})
    assert document["counts"]["right"] == 1
    assert [case["status"] for case in document["cases"]] == ["wrong", "refused", "excluded"]


def test_scoreboard(tmp_path: Path) -> None:
    records.write(records.document(suite(), Options(), OUTCOMES, 1.0, {"torch": "2.13", "jax": "0.10", "flax": "0.12"}), tmp_path)
    page = tmp_path / "evals.md"
    page.write_text(f"before\n{scoreboard.BEGIN}\nold\n{scoreboard.END}\nafter\n", encoding="utf-8")
    assert scoreboard.main(page, tmp_path) == 0
    text = page.read_text(encoding="utf-8")
    assert "| The ops | 1 of 3 (33.3 %) | 1 | 1 | 1 |" in text
    assert "sparse (1)" in text
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text
    with pytest.raises(ValueError, match="markers"):
        scoreboard.insert("no markers", "")


def test_scoreboard_shows_peers_and_speed(tmp_path: Path) -> None:
    rates = {"modules": {"migrate-agent": [9, 10], "torch2jax": [2, 10]}, "zoo": {"migrate-agent": [3, 3], "torch2jax": [0, 3]}}
    peers = {
        **records.document(suite(), Options(), [Outcome("imports/other 1", "excluded", "no")], 1.0, {"torch": "2", "torch2jax": "0.1"}),
        "suite": "peers",
        "summary": {"rates": rates, "failures": {"torch2jax": {"raises": 11}}},
        "missing": ["cases"],
    }
    times = {"jit_over_eager": 0.5, "timed": 7, "timed_with_compile": 2, "jit_over_compiled": 0.9, "command": "python -m step"}
    rows = {"outliers": [{"unit": "a/b.py:C", "ratio": 1.5}], "date": "2026-01-01", "versions": {"torch": "2"}}
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "step.json").write_text(json.dumps({**times, **rows}), encoding="utf-8")
    records.write(peers, tmp_path)
    text = scoreboard.board(tmp_path)
    assert "| right, of the same cases | migrate-agent | torch2jax 0.1 |" in text
    assert "| classes of `module_db` | 9 of 10 | 2 of 10 |" in text
    assert "torch2jax fails by: raises 11" in text and "not compared: other 1: no" in text and "not measured yet: cases" in text
    assert "eager's: 0.5, the geometric mean of 7 examples" in text and "a/b.py:C (1.5 times)" in text


def test_page_shows_the_stored_results() -> None:
    root = Path(__file__).parents[2]
    page = (root / scoreboard.PAGE).read_text(encoding="utf-8")
    folder = root / records.FOLDER
    assert not scoreboard.load(folder) or scoreboard.insert(page, scoreboard.board(folder)) == page


def test_outcomes_travel_as_lines() -> None:
    outcome = Outcome("a", "wrong", "line\nbreak", {"calls": 3})
    assert "\n" not in encode(outcome)
    assert decode(encode(outcome)) == outcome


def suite() -> Suite:
    return Suite("ops", "The ops", "operators", lambda options: [], lambda group, options: iter(()))
