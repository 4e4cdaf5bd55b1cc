"""Draws of packages: how they are pinned and laid out, which classes are top-level models, and that a first look stays."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from migrate_agent.agent.config.errors import UsageError
from migrate_agent.evals import records
from migrate_agent.evals.draw_board import draw_table
from migrate_agent.evals.suite import Options, Outcome
from migrate_agent.evals.suites import draw
from migrate_agent.evals.suites.draw import DRAW, figures
from migrate_agent.evals.zoo_packages import draws
from migrate_agent.evals.zoo_packages.draws import lay_out_texts, load_draw, pin
from migrate_agent.evals.zoo_packages.top_level import top_level
from migrate_agent.tools.scan import scan

WHEEL = "toy_net-1.0-py3-none-any.whl"
MODEL = """
import torch.nn as nn

class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

class Base(nn.Module):
    def helper(self): ...

class Net(Base):
    def __init__(self):
        super().__init__()
        self.part = build()

def build():
    return Part()

def loss(x):
    return nn.functional.relu(x).mean()
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of downloads, with the wheel of a package in it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "cache" / "migrate-agent" / "zoo"
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / WHEEL, "w") as wheel:
        wheel.writestr("toy_net/model.py", MODEL)
        wheel.writestr("toy_net/weights.bin", b"\0")
        wheel.writestr("toy_net-1.0.dist-info/METADATA", "Name: toy-net\nVersion: 1.0\n\n# Toy net\n")
    return folder


def pinned(tmp_path: Path) -> Path:
    record = tmp_path / "draw.json"
    record.write_text(
        json.dumps({"seed": 7, "population": 9, "drawn": [{"name": "toy-net", "wheel": WHEEL}], "passed_over": {"x": "no wheel"}})
    )
    pin(record, tmp_path / "draws")
    return tmp_path / "draws"


def test_a_draw_is_pinned_and_laid_out_with_its_readme(cache: Path, tmp_path: Path) -> None:
    drawn = load_draw(7, pinned(tmp_path))
    (package,) = drawn.packages
    assert (drawn.population, package.name, package.versions) == (9, "toy-net", {"toy-net": "1.0"})
    lay_out_texts(package, tmp_path / "repository")
    written = sorted(
        path.relative_to(tmp_path / "repository").as_posix() for path in (tmp_path / "repository").rglob("*") if path.is_file()
    )
    assert written == ["README.md", "toy_net/model.py"]
    assert "# Toy net" in (tmp_path / "repository/README.md").read_text()


def test_data_are_laid_out_where_the_pin_names_them(cache: Path, tmp_path: Path) -> None:
    file = pinned(tmp_path) / "7" / "toy-net.toml"
    rows = 'copy = ["**", "toy_net/*.bin"]\nwrite = { "toy_net/version.py" = "VERSION = 1\\n" }\n'
    file.write_text(file.read_text().replace('copy = ["**"]\n', rows))
    lay_out_texts(load_draw(7, tmp_path / "draws").packages[0], tmp_path / "repository")
    assert (tmp_path / "repository/toy_net/weights.bin").read_bytes() == b"\0"
    assert (tmp_path / "repository/toy_net/version.py").read_text() == "VERSION = 1\n"
    assert (tmp_path / "repository/toy_net/model.py").read_text() == MODEL


def test_pinning_again_keeps_the_examples(cache: Path, tmp_path: Path) -> None:
    file = pinned(tmp_path) / "7" / "toy-net.toml"
    file.write_text(file.read_text() + '\n[[example]]\nmodule = "toy_net/model.py:Net"\ninit = ""\ncall = ""\n')
    (package,) = load_draw(7, pinned(tmp_path)).packages
    assert [row["module"] for row in package.examples] == ["toy_net/model.py:Net"]


def test_a_package_of_many_classes_is_measured_by_its_sample(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = pinned(tmp_path) / "7" / "toy-net.toml"
    file.write_text('sample = ["toy_net/model.py:Net"]\n' + file.read_text())
    monkeypatch.setattr(draw, "load_draw", lambda seed: load_draw(seed, tmp_path / "draws"))
    monkeypatch.setattr(draw, "migrate", lambda repository, report, sandbox, units: (None, " ".join(units)))
    (row,) = DRAW.run(("7/toy-net/bare",), Options(seed=7))
    assert row.reason == "the run gave no report: toy_net/model.py:Net"


def test_a_seed_that_was_not_drawn_is_named() -> None:
    with pytest.raises(UsageError, match="nothing was drawn by seed 99999"):
        load_draw(99999)


def test_top_level_models_are_those_that_no_other_class_constructs(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    assert top_level(scan(tmp_path)) == {"model.py:Base", "model.py:Net"}  # Part is built by a helper; Base is inherited from, not built


def test_every_drawn_package_loads_and_is_known_by_its_seed() -> None:
    for seed in draws.seeds():
        assert load_draw(seed).packages, seed
    first = draws.seeds()[0]
    assert draws.earlier(load_draw(first).packages[0].name, first) in ([], ["zoo"])


def outcome(kind: str, unit: str, status: str, **details: object) -> Outcome:
    return Outcome(f"101/linformer/{kind}/{unit}", status, "", {"top": False, "exercised": True, "cause": "", "seconds": 1.0, **details})  # type: ignore[arg-type]


def test_figures_leave_out_what_nobody_can_exercise() -> None:
    rows = [
        outcome("examples", "a.py:A", "right", top=True),
        outcome("examples", "a.py:B", "refused"),
        outcome("examples", "a.py:C", "excluded", exercised=False, cause="no_example"),
        outcome("examples", "a.py:D", "excluded", impossible=True, top=True),
    ]
    assert figures(rows) == {"classes": 3, "exercised": 2, "verified": 1, "top": 1, "top_verified": 1}


@pytest.mark.parametrize(("kind", "exercised"), [("bare", 0), ("examples", 1)])
def test_a_guessed_example_that_does_not_run_exercises_nothing(kind: str, exercised: int) -> None:
    assert figures([outcome(kind, "a.py:A", "refused", cause="example_failed")])["exercised"] == exercised


def test_a_first_look_is_never_overwritten(tmp_path: Path) -> None:
    group = ("101/linformer/examples",)
    for status in ("refused", "right"):
        records.store_group(DRAW, group, [outcome("examples", "a.py:A", status, top=True)], 1.0, tmp_path)
    assert "| 0 of 1 (0 %) | 0 of 1 (0 %) |" in draw_table(tmp_path)
    assert records.stored_groups(DRAW, tmp_path)[group]["cases"][0]["status"] == "right"


def test_groups_are_packages_without_and_with_examples() -> None:
    names = [name for (name,) in DRAW.groups(Options(seed=101))]
    assert names[:2] == ["101/linformer/bare", "101/linformer/examples"]
