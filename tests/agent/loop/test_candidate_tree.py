"""The tree that a rewrite is judged in, wherever the rewrite lies. No rewrite runs here; `test_end_to_end` judges one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from migrate_agent.agent.config.errors import UsageError
from migrate_agent.agent.loop.candidate_tree import candidate_of
from migrate_agent.tests.agent.repositories import repository, write
from migrate_agent.tools.scan import scan

MODEL = "from torch import nn\n\n\nclass Net(nn.Module):\n    def forward(self, x):\n        return x\n"
PORT = "class Net: ...\n"


def laid_out(tmp_path: Path, files: Mapping[str, str], against: str, original: str = "model.py") -> tuple[str, str, dict[str, str]]:
    """Target, its module and the tree; of `files`, those below `repo` are the repository's."""
    write(tmp_path, files)
    repo = repository(tmp_path / "repo", {original: MODEL, "plain.py": "k = 1\n"})
    inventory = scan(repo)
    found, unit, tree = candidate_of(inventory, inventory.unit(f"{original}:Net"), against.replace("TMP", str(tmp_path)))
    source = next(file for file in found.files if file.path == original)
    assert source.target == unit.target
    return unit.target, source.target_module, tree


@pytest.mark.parametrize(
    ("files", "against", "target", "module", "beside"),
    [
        ({"repo/ports/net.py": PORT}, "ports/net.py", "ports/net.py", "ports.net", ()),
        ({"repo/ports/net.py": PORT}, "./ports/../ports/net.py", "ports/net.py", "ports.net", ()),
        ({"repo/ports/net.py": PORT}, "TMP/repo/ports/net.py", "ports/net.py", "ports.net", ()),
        ({"repo/ports/net.py": f"import below\n{PORT}", "repo/ports/below.py": ""}, "ports/net.py", "net.py", "net", ("below.py",)),
        (
            {"repo/ports/net.py": f"import ports.below\n{PORT}", "repo/ports/below.py": ""},
            "ports/net.py",
            "ports/net.py",
            "ports.net",
            ("ports/below.py",),
        ),
        ({"repo/.work/net.py": f"import below\n{PORT}", "repo/.work/below.py": ""}, ".work/net.py", "net.py", "net", ("below.py",)),
        ({"out/net.py": f"import below\n{PORT}", "out/below.py": "", "out/other.py": ""}, "TMP/out/net.py", "net.py", "net", ("below.py",)),
        ({"out/net.py": PORT}, "../out/net.py", "net.py", "net", ()),
        ({"out/model.py": PORT}, "TMP/out/model.py", "model.py", "model", ()),
        ({"out/net.v2.py": f"import below\n{PORT}", "out/below.py": ""}, "TMP/out/net.v2.py", "net_v2.py", "net_v2", ("below.py",)),
        (
            {"out/a/b/net.py": f"from ..below import k\n{PORT}", "out/a/below.py": "", "out/a/__init__.py": "", "out/a/b/__init__.py": ""},
            "TMP/out/a/b/net.py",
            "a/b/net.py",
            "a.b.net",
            ("a/__init__.py", "a/b/__init__.py", "a/below.py"),
        ),
        ({"repo/net.py": f"from model import Net as Theirs\n{PORT}"}, "net.py", "net.py", "net", ()),
    ],
)
def test_where_a_rewrite_is_laid_out(
    tmp_path: Path, files: Mapping[str, str], against: str, target: str, module: str, beside: tuple[str, ...]
) -> None:
    found, named, tree = laid_out(tmp_path, files, against)
    assert (found, named) == (target, module)
    committed = {path.removeprefix("repo/") for path in files if path.startswith("repo/")}
    assert {target, "plain.py", *beside} <= set(tree) <= {target, "plain.py", *beside, *committed}
    assert tree[target].endswith(PORT)


@pytest.mark.parametrize(("imported", "target"), [("below", "src/net.py"), ("ports.below", "src/ports/net.py")])
def test_a_rewrite_beside_the_import_root_is_laid_out_below_it(tmp_path: Path, imported: str, target: str) -> None:
    files = {"repo/ports/net.py": f"import {imported}\n{PORT}", "repo/ports/below.py": "", "repo/src/pkg/__init__.py": ""}
    found, module, tree = laid_out(tmp_path, files, "ports/net.py", "src/pkg/model.py")
    assert (found, f"src/{module.replace('.', '/')}.py") == (target, target)
    assert f"src/{imported.replace('.', '/')}.py" in tree


def test_a_path_that_the_repository_lacks_is_looked_for_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path / "mine")
    assert laid_out(tmp_path, {"mine/net.py": PORT}, "net.py")[0] == "net.py"


@pytest.mark.parametrize(
    ("against", "words"),
    [
        ("ports", "ports is a folder: name the file in it that holds the rewrite of model.py:Net"),
        ("ports/net.py:Other", "ports/net.py defines no Other"),
        ("nowhere.py", "nowhere.py is not there: write the rewrite of model.py:Net"),
        ("ports/latin.py", "ports/latin.py is not UTF-8"),
    ],
)
def test_what_is_not_there_is_said(tmp_path: Path, against: str, words: str) -> None:
    (tmp_path / "repo" / "ports").mkdir(parents=True)
    (tmp_path / "repo" / "ports" / "latin.py").write_bytes("# é".encode("latin-1"))
    with pytest.raises(UsageError, match=words):
        laid_out(tmp_path, {"repo/ports/net.py": PORT}, against)
