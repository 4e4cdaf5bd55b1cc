"""`migrate-agent check` over scripted services: exactly what depends on a change is verified again, and what it tells."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from migrate_agent.agent.commands.check import CheckOptions, check
from migrate_agent.agent.commands.check_report import commands
from migrate_agent.agent.config.errors import UsageError
from migrate_agent.agent.loop.cached_verdicts import TAKEN
from migrate_agent.agent.loop.candidate_tree import candidate_of
from migrate_agent.agent.loop.run import Options, start
from migrate_agent.agent.loop.verified_units import Present, load_verified, reached_where_verified
from migrate_agent.agent.runs.progress import Progress
from migrate_agent.tests.agent import scripted
from migrate_agent.tests.agent.repositories import git, module, repository
from migrate_agent.tools.scan import scan
from migrate_agent.tools.scan.walk import VERIFIED
from migrate_agent.tools.types import Evidence, Unit

HELPED = module("Gamma").replace("return self.fc(x)", "return half(self.fc(x))")
FILES = {
    "a.py": module("Alpha") + "\n\ndef unused(x):\n    return x\n",
    "b.py": f"from a import Alpha\n{module('Beta', needs='Alpha')}",
    "c.py": f"from helpers import half\n{HELPED}",
    "helpers.py": "def half(x):\n    return x / 2\n",
    "migrate.toml": '[[example]]\nmodule = "b.py:Beta"\ninit = "4"\ncall = "torch.ones(4)"\n',
}
ALL = ["a.py:Alpha", "b.py:Beta", "c.py:Gamma"]


@pytest.fixture(scope="module")
def merged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose migrated branch is checked out."""
    root = repository(tmp_path_factory.mktemp("check") / "repo", FILES)
    result = start(root, Options(), scripted.services(), Progress(), lambda context, state: "accept")
    assert result.exit_status == 0
    git(root, "checkout", "-q", result.branch)
    return root


@pytest.fixture
def repo(merged: Path, tmp_path: Path) -> Path:
    """A clone to change: all that `check` needs is committed."""
    git(tmp_path, "clone", "-q", str(merged), "clone")
    return tmp_path / "clone"


class Verifier:
    """The scripted verifier, which notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, *arguments: Any) -> Evidence:
        self.asked.append(arguments[0].id)
        return scripted.verify(*arguments)


def run(root: Path, asked: CheckOptions | None = None) -> tuple[int, list[str]]:
    """Exit status, and the units that were verified again."""
    verifier = Verifier()
    status = check(root, asked or CheckOptions(), scripted.services(verify=verifier), Progress())
    return status, verifier.asked


def change(root: Path, edits: Mapping[str, tuple[str, str]]) -> None:
    for path, (old, new) in edits.items():
        text = (root / path).read_text()
        assert old in text
        (root / path).write_text(text.replace(old, new, 1))


def test_each_unit_has_a_file_of_its_own_in_its_commit(merged: Path) -> None:
    written = git(merged, "ls-files", VERIFIED).splitlines()
    assert written == [f"{VERIFIED}/a.py/Alpha.json", f"{VERIFIED}/b.py/Beta.json", f"{VERIFIED}/c.py/Gamma.json"]
    for path, subject in zip(written, ("a.py:Alpha", "b.py:Beta", "c.py:Gamma"), strict=True):
        assert git(merged, "log", "--format=%s", "--", path) == f"Migrate {subject} to JAX"
    beta = json.loads((merged / written[1]).read_text())
    assert list(beta["original"]) == ["a.py:Alpha", "b.py:Beta"]
    assert list(beta["port"]) == ["b_jax.py:Beta"]
    assert beta["checks"] == {"static": 1, "numeric": 1}
    assert {"torch", "jax", "flax"} <= beta["versions"].keys()


def test_nothing_changed_runs_nothing(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(kind: str, device: str) -> Any:
        raise AssertionError("no sandbox is opened")

    assert check(repo, CheckOptions(), scripted.services(open_sandbox=refused), Progress()) == 0
    assert "3 verified units: 3 unchanged, 0 changed and match, 0 do not match" in capsys.readouterr().out


FAILS = ('"""A layer."""', '"""script: fail"""')


@pytest.mark.parametrize(
    ("edits", "status", "again"),
    [
        ({"a.py": ("return self.fc(x)", "return self.fc(x) * scale")}, 0, ALL[:2]),
        ({"b.py": ("self.inner = Alpha(width)", "self.inner = Alpha(2 * width)")}, 0, ALL[1:2]),
        ({"helpers.py": ("x / 2", "x / 3")}, 0, ALL[2:]),
        ({"b_jax.py": ("pass", "edited = True")}, 0, ALL[1:2]),
        ({"migrate.toml": ("torch.ones(4)", "torch.ones(5)")}, 0, ALL[:2]),
        ({"a.py": ("def unused(x):\n    return x", "def unused(x):\n    return 2 * x")}, 0, []),
        ({"a.py": ('"""A layer."""', '"""Documented."""')}, 0, []),
        ({"migrate.toml": ('init = "4"', 'init   =   "4"  # four')}, 0, []),
        ({"b_jax.py": ("pass", "pass  # looked at")}, 0, []),
        ({"c.py": ("import torch\n", "import torch\nimport math\n")}, 0, []),
    ],
)
def test_exactly_what_depends_on_a_change_is_verified_again(
    repo: Path, edits: Mapping[str, tuple[str, str]], status: int, again: list[str]
) -> None:
    change(repo, edits)
    assert run(repo) == (status, again)


def test_entries_that_another_file_puts_into_a_table_count(tmp_path: Path) -> None:
    files = {
        "tables.py": "KINDS = {}\n",
        "kinds.py": "from tables import KINDS\n\n\ndef half(x):\n    return x / 2\n\n\nKINDS['half'] = half\n",
        "d.py": f"import kinds\nfrom tables import KINDS\n{module('Delta')}".replace(
            "return self.fc(x)", "return KINDS['half'](self.fc(x))"
        ),
    }
    root = repository(tmp_path / "repo", files)
    result = start(root, Options(), scripted.services(), Progress(), lambda context, state: "accept")
    git(root, "checkout", "-q", result.branch)
    assert run(root)[1] == []
    change(root, {"kinds.py": ("x / 2", "x / 3")})
    assert run(root) == (0, ["d.py:Delta"])


def test_what_came_from_the_cache_is_told(repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def taken(*arguments: Any) -> Evidence:
        evidence = scripted.verify(*arguments)
        return replace(evidence, notes=(*evidence.notes, TAKEN)) if arguments[0].id == ALL[0] else evidence

    report = tmp_path / "report.json"
    assert check(repo, CheckOptions(everything=True, report=report), scripted.services(verify=taken), Progress()) == 0
    assert f"1 of them: {TAKEN}" in " ".join(capsys.readouterr().out.split())
    assert [TAKEN in unit["notes"] for unit in json.loads(report.read_text())["units"]] == [True, False, False]


def test_a_port_that_no_longer_matches_is_named(repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(repo, {"c.py": ("half(self.fc(x))", "-half(self.fc(x))")})
    change(repo, {"c.py": FAILS})
    report = tmp_path / "report.json"
    assert run(repo, CheckOptions(report=report)) == (1, ["c.py:Gamma"])
    out = capsys.readouterr().out
    assert "c.py:Gamma  failed  c.py:Gamma changed  numeric/forward_fp64: scripted fail" in " ".join(out.split("\n")).replace("   ", "  ")
    assert "3 verified units: 2 unchanged, 0 changed and match, 1 do not match" in out
    rows = {unit["name"]: unit for unit in json.loads(report.read_text())["units"]}
    assert (rows["Gamma"]["status"], rows["Gamma"]["matches"], rows["Gamma"]["changes"]) == ("failed", False, ["c.py:Gamma changed"])
    assert [rows[name]["status"] for name in ("Alpha", "Beta")] == ["unchanged", "unchanged"]


@pytest.mark.parametrize(
    ("edits", "reason"),
    [
        ({"c.py": ("class Gamma", "class Delta")}, "its original is gone: delete the port and .migrate/verified/c.py/Gamma.json"),
        ({"c.py": ("class Gamma(nn.Module)", "class Gamma(nn.Module")}, "c.py does not parse: line 6"),
        ({"c_jax.py": ("class Gamma", "class Delta")}, "its port is gone: c_jax.py defines no Gamma"),
        ({"c.py": ("half(self.fc(x))", "0"), "c_jax.py": ("pass", "x = 1")}, ""),
    ],
)
def test_what_cannot_be_verified_again_does_not_hold(
    repo: Path, edits: Mapping[str, tuple[str, str]], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    change(repo, edits)
    assert run(repo) == ((1, []) if reason else (0, ["c.py:Gamma"]))
    assert reason in capsys.readouterr().out


def test_an_update_is_written_and_holds(repo: Path) -> None:
    change(repo, {"helpers.py": ("x / 2", "x / 3")})
    assert run(repo, CheckOptions(update=True)) == (0, ["c.py:Gamma"])
    assert git(repo, "diff", "--stat", "--", ".migrate").splitlines()[-1].strip() == "1 file changed, 1 insertion(+), 1 deletion(-)"
    assert run(repo) == (0, [])


def test_what_does_not_match_is_not_updated(repo: Path) -> None:
    change(repo, {"c.py": ("half(self.fc(x))", "0")})
    change(repo, {"c.py": FAILS})
    assert run(repo, CheckOptions(update=True)) == (1, ["c.py:Gamma"])
    assert git(repo, "status", "--porcelain", ".migrate") == ""


def test_options(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(repo, CheckOptions(everything=True)) == (0, ALL)
    assert run(repo, CheckOptions(everything=True, modules=("b.py",))) == (0, ["b.py:Beta"])
    change(repo, {"helpers.py": ("x / 2", "x / 3")})
    assert run(repo, CheckOptions(listing=True)) == (1, [])
    assert "helpers.py:half changed" in capsys.readouterr().out
    assert run(repo, CheckOptions(modules=("a.py:Alpha",))) == (0, [])


def test_other_versions_are_told_and_count_where_asked(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = repo / VERIFIED / "a.py" / "Alpha.json"
    row = json.loads(path.read_text())
    now, row["versions"]["torch"] = row["versions"]["torch"], "1.0"
    path.write_text(json.dumps(row))
    assert run(repo) == (0, [])
    assert f"torch 1.0 → {now}" in capsys.readouterr().out
    assert run(repo, CheckOptions(versions=True)) == (0, ["a.py:Alpha"])


def test_an_adopted_package_of_another_version_is_a_change(repo: Path) -> None:
    path = repo / VERIFIED / "a.py" / "Alpha.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "adopted": {"layers": "1.0"}}))
    assert run(repo) == (0, ["a.py:Alpha"])


def test_verify_has_the_rest_of_the_mirror_at_hand(repo: Path) -> None:
    inventory = scan(repo)
    _, unit, files = candidate_of(inventory, inventory.unit("b.py:Beta"), "")
    assert unit.target == "b_jax.py"
    assert {"a_jax.py", "b_jax.py", "c_jax.py", "helpers.py"} == files.keys()


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        (lambda root: git(root, "rm", "-rqf", VERIFIED), "nothing here was verified yet"),
        (lambda root: (root / VERIFIED / "a.py" / "Alpha.json").write_text("{}"), "a.py/Alpha.json is not what migrate-agent wrote"),
        (
            lambda root: (root / VERIFIED / "a.py" / "Alpha.json").write_text("<<<<<<< HEAD"),
            "a.py/Alpha.json is not what migrate-agent wrote",
        ),
    ],
)
def test_what_cannot_be_read_is_told(repo: Path, prepare: Any, words: str) -> None:
    prepare(repo)
    with pytest.raises(UsageError, match=words):
        run(repo)


def test_annotations_are_escaped(repo: Path) -> None:
    unit = replace(load_verified(repo)[0], target="pkg,a:b/x_jax.py")
    row: Any = types.SimpleNamespace(then=unit, holds=False, reason="50 % of\nit")
    assert list(commands([row])) == [
        "::error file=pkg%2Ca%3Ab/x_jax.py,title=migrate-agent check::a.py:Alpha and its port no longer match: 50 %25 of%0Ait"
    ]


@pytest.mark.parametrize(("change_it", "known"), [(False, True), (True, False)])
def test_lines_of_a_function_ran_where_it_was_verified(tmp_path: Path, change_it: bool, known: bool) -> None:
    (tmp_path / "h.py").write_text(
        "import torch\n\ndef half(x: torch.Tensor, twice=False):\n    if twice:\n        return x\n    return x / 2\n"
    )
    port = "def half(x, twice=False):\n    if twice:\n        return x\n    return x / 2\n\ndef other(x):\n    return x\n"
    function = Unit("h.py", "half", "h_jax.py", "rewrite", kind="function")
    inventory = replace(scan(tmp_path), units=(function, Unit("h.py", "Net", "h_jax.py", "rewrite")))
    then = Present(inventory, (), {"h_jax.py": port}).of(function)
    now = Present(inventory, (), {"h_jax.py": port.replace("x / 2", "x / 3") if change_it else port})
    ran = reached_where_verified(now, [then], inventory.units[1])
    assert {key: len(digests) for key, digests in ran.items()} == ({"h_jax.py:half": 3} if known else {})
    assert reached_where_verified(now, [then], function) == {}
