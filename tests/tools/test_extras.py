"""Which extra is installed, the line that says how to install it, and that pyproject.toml names the same extras."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from migrate_agent.tools import extras

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_extras_are_those_of_the_project() -> None:
    of_users = PROJECT["optional-dependencies"].keys() - {"all", "dev", "docs"}
    assert extras.MODULES.keys() == of_users


def test_no_package_of_an_extra_is_in_the_base_installation() -> None:
    base = set(PROJECT["dependencies"])
    assert [extra for extra in extras.MODULES if base & set(PROJECT["optional-dependencies"][extra])] == []


@pytest.mark.parametrize("extra", ["docker", "forges", "model"])
def test_development_tools_bring_the_extra(extra: str) -> None:
    assert extras.installed(extra)


@pytest.mark.parametrize(
    "modules",
    [("no_such_package_here",), ("json", "no_such_package_here"), ("no_such_package_here.inside",), ("json.no_such_module",)],
)
def test_extra_is_missing_where_one_of_its_modules_is(monkeypatch: pytest.MonkeyPatch, modules: tuple[str, ...]) -> None:
    monkeypatch.setitem(extras.MODULES, "invented", modules)
    assert not extras.installed("invented")


def test_folder_of_the_same_name_is_no_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "only_a_folder").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(extras.MODULES, "invented", ("only_a_folder",))
    assert not extras.installed("invented")


def test_line_says_what_to_install() -> None:
    line = "migrate-agent[docker] is needed for --sandbox docker: pip install 'migrate-agent[docker]'"
    assert extras.advice("docker", "--sandbox docker") == line
    assert extras.advice("docker", "--sandbox docker", "use another") == f"{line}, or use another"
