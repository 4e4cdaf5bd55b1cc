"""Every file of the standard library, of torch and of transformers through the rewriter: it never falls over, and leaves alone what is no torch.

Nothing is run. A file is right where rewriting it ends, where what comes out parses, where a file without torch (or of JAX already) comes out
as it went in, and where a rewrite without holes is not changed by rewriting it again.
"""

from __future__ import annotations

import ast
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import libcst as cst

from migrate_agent.evals.suite import Group, Options, Outcome, Suite
from migrate_agent.evals.zoo_packages.packages import Source, cache_folder, fetch
from migrate_agent.tools.rewrite.assemble.workspace import Workspace
from migrate_agent.tools.rewrite.rules.engine import RULE_ERROR
from migrate_agent.tools.scan.exports import parse
from migrate_agent.tools.scan.walk import SourceError, read_source
from migrate_agent.tools.types import Inventory, SourceFile

GROUP = 40
TRANSFORMERS = Source(
    package="transformers",
    version="5.23.0",
    file="transformers-5.23.0-py3-none-any.whl",
    sha256="018e82fd07490ad5bb58414f65e31576033dc7f36bed10c574843f69b90991bf",
    copy=("**",),
)
FOREIGN = frozenset({"site-packages", "dist-packages", "__pycache__"})


@cache
def folders() -> Mapping[str, Path]:
    """Package → folder of its source. Fetches what is not installed. Raises `PackageError`."""
    import torch

    return {
        "stdlib": Path(sysconfig.get_paths()["stdlib"]),
        "torch": Path(torch.__file__).parent,
        "transformers": _unpacked(TRANSFORMERS) / "transformers",
    }


def _unpacked(source: Source) -> Path:
    target = cache_folder() / source.file.removesuffix(".whl")
    if not target.exists():
        archive = fetch(source, cache_folder())
        with tempfile.TemporaryDirectory(dir=cache_folder()) as scratch, zipfile.ZipFile(archive) as wheel:
            wheel.extractall(Path(scratch) / "files")
            (Path(scratch) / "files").rename(target)
    return target


def groups(options: Options) -> Sequence[Group]:
    """Some files of one package at a time."""
    chunks: list[Group] = []
    for package, folder in folders().items():
        paths = (path.relative_to(folder) for path in sorted(folder.rglob("*.py")))
        names = [f"{package}/{path.as_posix()}" for path in paths if not FOREIGN & set(path.parts)]
        chosen = [name for name in names if options.wanted(name)]
        chunks += [tuple(chosen[start : start + GROUP]) for start in range(0, len(chosen), GROUP)]
    return chunks


def run(group: Group, options: Options) -> Iterator[Outcome]:
    """Judge these files, each as if it were a repository of its own."""
    for name in group:
        package, _, path = name.partition("/")
        yield judge(name, folders()[package] / path)


def judge(name: str, path: Path) -> Outcome:
    """One file."""
    try:
        text = read_source(path)
        parse(text)
        before = cst.parse_module(text).code  # libcst drops the space in `except OSError :`
    except SourceError as error:
        return Outcome(name, "excluded", "no Python of this version", {"error": str(error)})
    except cst.ParserSyntaxError as error:
        return Outcome(name, "excluded", "libcst does not parse it", {"error": error.message})
    with tempfile.TemporaryDirectory() as folder:
        try:
            result, holes, uses_torch = rewritten(Path(folder), text)
            ast.parse(result)
            again = rewritten(Path(folder), result)[0] if not holes and uses_torch else result
        except Exception as error:
            return Outcome(name, "wrong", f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
    lines = {"lines": text.count("\n"), "holes": holes}
    if not uses_torch and result != before:
        return Outcome(name, "wrong", f"no torch, but changed: {_first_change(before, result)}", lines)
    if again != result:
        return Outcome(name, "wrong", f"changed when rewritten again: {_first_change(result, again)}", lines)
    return Outcome(name, "right", details=lines)


def rewritten(folder: Path, text: str) -> tuple[str, int, bool]:
    """The file after all rules, how many holes are left in it, and whether it uses torch. Raises `RuntimeError` where a rule raised."""
    (folder / "alone.py").write_text(text, encoding="utf-8")
    file = SourceFile("alone.py", "alone", "alone_jax.py", "alone_jax", True)
    space = Workspace(Inventory(folder, (file,), ()), {})
    result = space.rewritten("alone.py")
    if errors := [hole.reason for hole in result.holes if hole.code == RULE_ERROR]:
        raise RuntimeError(errors[0])
    module = result.header.with_changes(body=[statement for nodes in result.body for statement in nodes])
    return module.code, len(result.holes), space.repo.files["alone.py"].names_torch


def _first_change(before: str, after: str) -> str:
    pairs = zip(before.splitlines(), after.splitlines(), strict=False)
    return next((f"line {n}: {a.strip()!r} became {b.strip()!r}" for n, (a, b) in enumerate(pairs, 1) if a != b), "its length")[:300]


def report(outcomes: Sequence[Outcome]) -> Iterable[str]:
    """How much was read."""
    lines = sum(outcome.details.get("lines", 0) for outcome in outcomes)
    yield f"{lines} lines in {len(outcomes)} files; {sum(outcome.details.get('holes', 0) for outcome in outcomes)} holes"


SUITE = Suite(
    name="sources",
    title="Python files that the rewriter gets through (standard library, torch, transformers)",
    unit="files",
    groups=groups,
    run=run,
    seconds=120.0,
    versions=lambda outcomes: {TRANSFORMERS.package: TRANSFORMERS.version},
    report=report,
    brief=True,
    summary=lambda outcomes: {name: sum(outcome.details.get(name, 0) for outcome in outcomes) for name in ("lines", "holes")},
)
