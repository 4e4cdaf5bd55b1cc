"""The layout of the project: packages, one-way imports, what the wheel holds, and that docs/config.md shows the whole configuration."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from migrate_agent.agent.config.config import Config, load_config

ROOT = Path(__file__).parents[1]
PARTS = ("agent", "evals", "prompts", "sandbox", "tools")
TYPED = ("agent", "prompts", "sandbox", "tools")
"""What programs that import from here are checked against: each has a `py.typed`."""
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SETUPTOOLS = PYPROJECT["tool"]["setuptools"]

MAY_IMPORT = {
    "tools/types.py": (),
    "tools/extras.py": (),
    "tools/discovery.py": (),
    "tools/vendored": ("tools.vendored",),
    "tools/programs/vendored": ("tools.vendored", "tools.programs.vendored"),
    "tools": ("tools", "sandbox.base"),
    "sandbox": ("sandbox", "tools.types", "tools.extras"),
    "prompts": ("prompts",),
    "agent": ("agent", "tools", "sandbox", "prompts"),
    "evals": PARTS,
}
"""Where → what of ours may be imported there. The first row that fits counts."""

VENDORED_MAY_IMPORT = {"numpy", "jax", "flax", "einops", *sys.stdlib_module_names}
"""Vendored files are copied to users, who have these: einops where their source used its layers."""
TORCHAX_MAY_IMPORT = VENDORED_MAY_IMPORT | {"torch", "torchax"}
"""What runs originals has torch."""
PROGRAMS_MAY_IMPORT = VENDORED_MAY_IMPORT | {"optax", "etils", "orbax", "PIL"}
"""Those of training scripts have more; `etils` comes with orbax, and who read images by torchvision has Pillow."""


def sources(under: str = "") -> Iterator[Path]:
    """Our Python files below a folder, relative to the root."""
    for part in PARTS:
        for file in sorted((ROOT / part).rglob("*.py")):
            path = file.relative_to(ROOT)
            if path.as_posix().startswith(under):
                yield path


def shipped() -> Iterator[Path]:
    """Our Python files that the wheel has: the suites of `evals` measure a checkout, and stay there."""
    return (path for path in sources() if path.parts[0] != "evals")


def imported(text: str) -> set[str]:
    """Dotted names of all that a file imports: `from a import b` gives `a.b`, which may be a module or a name in one."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, "relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def forbidden(path: str, text: str) -> list[str]:
    """Imports of ours that this file must not have."""
    allowed = next(allowed for place, allowed in MAY_IMPORT.items() if path == place or path.startswith(f"{place}/"))
    ours = sorted(name.removeprefix("migrate_agent.") for name in imported(text) if name.startswith("migrate_agent."))
    return [name for name in ours if not any(name == part or name.startswith(f"{part}.") for part in allowed)]


def test_packages_are_the_folders_on_disk() -> None:
    folders = {path.parent for path in shipped()}
    assert [folder for folder in folders if not (ROOT / folder / "__init__.py").exists()] == []
    expected = ["migrate_agent", *(f"migrate_agent.{folder.as_posix().replace('/', '.')}" for folder in sorted(folders))]
    assert sorted(SETUPTOOLS["packages"]) == sorted(expected)


def test_root_is_no_package_itself() -> None:
    assert sorted(file.name for file in ROOT.glob("*.py")) == []
    assert os.readlink(ROOT / ".typing" / "migrate_agent") == ".."


def test_imports_go_one_way() -> None:
    found = {path.as_posix(): forbidden(path.as_posix(), (ROOT / path).read_text(encoding="utf-8")) for path in sources()}
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    ("path", "text", "names"),
    [
        ("tools/types.py", "from migrate_agent.tools import scan", ["tools.scan"]),
        ("tools/x.py", "def f():\n    import migrate_agent.sandbox.process", ["sandbox.process"]),
        ("tools/x.py", "from migrate_agent.sandbox.base import Sandbox", []),
        ("tools/x.py", "from migrate_agent import agent", ["agent"]),
        ("tools/vendored/x.py", "from migrate_agent.tools.types import Unit", ["tools.types.Unit"]),
        ("sandbox/x.py", "from migrate_agent.tools.types import Job", []),
        ("sandbox/x.py", "from migrate_agent.tools.verify import verify", ["tools.verify.verify"]),
        ("agent/x.py", "from migrate_agent.evals import suites\nfrom migrate_agent.tools import scan", ["evals.suites"]),
        ("evals/x.py", "from migrate_agent.agent import cli", []),
        ("tools/x.py", "import migrate_agent", []),  # the bare namespace: where we are installed
    ],
)
def test_forbidden_imports_are_seen(path: str, text: str, names: list[str]) -> None:
    assert forbidden(path, text) == names


def test_vendored_files_need_only_what_users_have() -> None:
    allowances = (
        ("tools/vendored/", VENDORED_MAY_IMPORT),
        ("tools/torchax/", TORCHAX_MAY_IMPORT),
        ("tools/programs/vendored/", PROGRAMS_MAY_IMPORT),
    )
    for folder, allowed in allowances:
        needs = {name.split(".")[0] for path in sources(folder) for name in imported((ROOT / path).read_text(encoding="utf-8"))}
        assert needs - {"migrate_agent"} <= allowed


@pytest.mark.parametrize("statement", [f"import {part}" for part in PARTS] + ["from tools.types import Unit", "from . import types"])
def test_ruff_refuses_a_second_copy(statement: str) -> None:
    ruff = shutil.which("ruff", path=f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}")
    assert ruff, "ruff is a dependency of the project"
    command = [ruff, "check", "--no-cache", "--select", "TID", "--stdin-filename", "agent/x.py", "-"]
    done = subprocess.run(command, cwd=ROOT, input=statement + "\n", capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert re.search(r"TID25[12]", done.stdout), done.stdout


def blocks(page: str, language: str) -> list[str]:
    """The fenced blocks of a page in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def test_page_shows_every_key_of_the_configuration(tmp_path: Path) -> None:
    (block,) = blocks("docs/config.md", "toml")
    (tmp_path / "migrate.toml").write_text(block, encoding="utf-8")
    config = load_config(tmp_path)
    (example,) = config.example
    tables: list[BaseModel] = [
        config,
        example,
        config.run,
        config.limits,
        config.verify,
        config.tpu,
        config.compare,
        config.model,
        config.budget,
        *config.price,
        *config.program,
    ]
    assert example.domain is not None
    assert [f"{type(table).__name__}.{name}" for table in tables for name in set(type(table).model_fields) - table.model_fields_set] == []
    assert config != Config()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the sdist, built from a copy of the tree with the clutter of a checkout in it."""
    tree, out = tmp_path_factory.mktemp("tree") / "checkout", tmp_path_factory.mktemp("dist")
    clutter = shutil.ignore_patterns(".git", ".venv", "__pycache__", "*.egg-info", ".*_cache", ".hypothesis", ".typing", "build", "dist")
    shutil.copytree(ROOT, tree, ignore=clutter)
    stray = tree / ".venv" / "lib" / "stray.py"
    stray.parent.mkdir(parents=True)
    stray.write_text("")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out)]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = out.glob("*.whl")
    return found


@pytest.mark.slow
def test_wheel_holds_our_files_and_no_others(wheel: Path) -> None:
    data = [
        file
        for package in ("agent/pages", "agent/pr", "prompts", "sandbox/image", "tools/assess")
        for file in (ROOT / package).glob("*")
        if file.is_file() and file.suffix not in (".py", ".typed")
    ]
    data += [ROOT / part / "py.typed" for part in TYPED]
    expected = {f"migrate_agent/{path.as_posix()}" for path in shipped()}
    expected |= {f"migrate_agent/{file.relative_to(ROOT).as_posix()}" for file in data}
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == expected


@pytest.mark.slow
def test_installed_wheel_answers(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(site), str(wheel)]
    subprocess.run(pip, check=True, capture_output=True)
    # -S: without the .pth files of the environment, so that an editable install of the checkout is not found instead
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), sysconfig.get_path("purelib")])}
    script = [sys.executable, "-S", str(site / "bin" / "migrate-agent"), "--help"]
    done = subprocess.run(script, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "scan" in done.stdout
