"""The whole of issue and merge on a real repository: `python -m migrate_agent.tests.agent.pr.whole [--example examples/vision] [--again] [--body FILE]`.

A copy of the example in a temporary repository, the stand-in for GitHub before it (behind the validating proxy, where `.ci/forges.sh` installed
it), and real processes of the command line over real git and HTTP: `run --pr --yes`, once more, the lowest request merged, once more.
What is run again is `migrate-agent pr --yes`; with `--again` it is all of `run --pr --yes`, which verifies each unit again. Prints what happened
as Markdown; exit status 1 where anything is not as it should be.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from migrate_agent.tests.agent.forge.prism import description, proxy
from migrate_agent.tests.agent.forge.standin import StandIn
from migrate_agent.tests.agent.pr import story
from migrate_agent.tests.agent.repositories import git

ROOT = Path(__file__).parents[3]
TOKEN = "ghp_standinXstandinYstandinZ0123456789ab"
RUN = ("run", "--pr", "--yes", "--no-llm", "--sandbox", "process")
PR = ("pr", "--yes")


@contextmanager
def served(folder: Path) -> Iterator[StandIn]:
    """The stand-in, behind the proxy where that is installed."""
    described = description()
    forge = StandIn(folder / "server", TOKEN, described)
    try:
        with proxy(described, folder, forge.upstream) as address:
            forge.proxy = address
            yield forge
    finally:
        forge.close()


def copied(example: Path, seconds: int, root: Path, forge: StandIn) -> None:
    """The example as a repository of its own whose main branch is on the forge. `seconds` is what one job may take, 0 for what the example says."""
    shutil.copytree(example, root, ignore=shutil.ignore_patterns("__pycache__"))
    if seconds:
        with (root / "migrate.toml").open("a", encoding="utf-8") as stream:
            stream.write(f"\n[limits]\nseconds = {seconds}\n")
    git(root, "init", "-q", "-b", "main")
    git(root, "config", "user.name", "Rita")
    git(root, "config", "user.email", "rita@example.invalid")
    git(root, "add", ".")
    git(root, "commit", "-qm", "The models")
    git(root, "remote", "add", "origin", forge.clone_url)
    git(root, "push", "-q", str(forge.bare), "main")


def cloned(repository: Path, root: Path, forge: StandIn) -> None:
    """A repository with a finished run in it, for a second look at the requests alone."""
    shutil.copytree(repository, root, symlinks=True)
    git(root, "remote", "add", "origin", forge.clone_url)
    git(root, "push", "-q", str(forge.bare), "main")


def command(root: Path, forge: StandIn, arguments: Sequence[str]) -> int:
    """The exit status of one process of the command line; what it says goes to our stderr."""
    code = "from migrate_agent.agent.cli import main; main()"
    named = {"GITHUB_TOKEN": TOKEN, "GITHUB_SERVER_URL": forge.base, "GITHUB_API_URL": forge.base, "JAX_PLATFORMS": "cpu"}
    line = [sys.executable, "-c", code, *arguments, "--repo", str(root)]
    return subprocess.run(line, check=False, env=os.environ | named, stdout=sys.stderr, stderr=sys.stderr).returncode


def told(forge: StandIn) -> Iterator[str]:
    """The open requests as a table."""
    yield "| request | goes into | checks | status | files in its diff |"
    yield "|---|---|---|---|---|"
    names = {pull["head"]: f"#{pull['number']}" for pull in forge.pulls}
    for pull in story.opened(forge):
        sheet, status = story.sheet(forge, pull), forge.statuses[forge.head(pull["head"])][-1]
        code = [f"`{path}`" for path in story.changed(forge, pull) if not path.startswith(".migrate/")]
        into = names.get(pull["base"], f"`{pull['base']}`")
        state = f"{status['state']}: {status['description']}"
        yield f"| #{pull['number']} `{sheet.unit}` | {into} | {sheet.passed}/{len(sheet.verdicts)} | {state} | {', '.join(code)} + evidence |"


def main() -> int:
    """Do it, and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--example", type=Path, default=ROOT / "examples" / "vision", help="a folder with migrate.toml")
    parser.add_argument("--finished", type=Path, help="a repository with a finished run, in the place of a copy of the example and its run")
    parser.add_argument("--seconds", type=int, default=0, help="what one job may take, on a machine with much else to do")
    parser.add_argument("--again", action="store_true", help="run all again, verification too, where else the requests alone are")
    parser.add_argument("--body", type=Path, help="write the text of the request that has most notes to this file")
    parser.add_argument("--keep", type=Path, help="copy the repository with the finished run to this folder")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="migrate-agent-whole-") as scratch, served(Path(scratch)) as forge:
        return tell(asked, Path(scratch) / "repo", forge)


def tell(asked: argparse.Namespace, root: Path, forge: StandIn) -> int:
    """All steps."""
    (cloned(asked.finished, root, forge) if asked.finished else copied(asked.example, asked.seconds, root, forge))
    again = RUN if asked.again else PR
    wrong: list[str] = []

    def step(name: str, arguments: Sequence[str], quiet: bool) -> None:
        started, status = time.monotonic(), [0]
        seen = story.effect(forge, lambda: status.insert(0, command(root, forge, arguments)))
        print(f"\n**{name}.** `migrate-agent {' '.join(arguments)}`: {seen} ({time.monotonic() - started:.0f} s)\n", flush=True)
        wrong.extend([*story.problems(forge), *([f"{name}: not quiet"] * (quiet and not seen.quiet))])
        wrong.extend([f"{name}: exit status {status[0]}"] * bool(status[0]))
        if not quiet:
            print("\n".join(told(forge)), flush=True)

    step("First", PR if asked.finished else RUN, quiet=False)
    if asked.keep:
        shutil.copytree(root, asked.keep, symlinks=True)
    if asked.body:
        text = max((pull["body"] for pull in forge.pulls), key=lambda body: body.count("\n- "))
        asked.body.write_text(text.replace(forge.base, "https://github.com"), encoding="utf-8")
    step("Again, nothing changed", again, quiet=True)
    lowest = story.opened(forge)[0]
    print(f"\n#{lowest['number']} is merged: main is at {forge.merge(lowest['number'])[:12]}")
    step("Again, the lowest merged", again, quiet=False)
    step("Again, nothing changed", again, quiet=True)
    passed = "checked by GitHub's description" if forge.proxy else "not checked: no proxy is installed"
    print(f"\n{len(forge.pulls)} requests; {len(forge.violations)} violations of the interface ({passed}); {len(wrong)} problems")
    print("\n".join([*wrong, *forge.violations]))
    return 1 if wrong or forge.violations else 0


if __name__ == "__main__":
    sys.exit(main())
