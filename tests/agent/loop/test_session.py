"""The session in a real terminal (pexpect): every key, in 80 columns and without colour, over scripted services and a scripted endpoint."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pexpect
import pytest

from migrate_agent.agent.loop.session import KEYS
from migrate_agent.evals.model_loop.scripted_endpoint import Move, endpoint
from migrate_agent.tests.agent.repositories import git, module, repository

pytestmark = pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")
"""pexpect forks and executes at once, so JAX's threads, where another test has started them in this process, cannot be in the way."""
DRIVER = Path(__file__).parents[1] / "driver.py"
PROMPT = "\r\nkey > "
EDITOR = """import pathlib, sys
file = pathlib.Path(sys.argv[1])
file.write_text(file.read_text().replace("pass", "by_hand = True"))
"""


@contextmanager
def terminal(root: Path, *arguments: str, **environment: str) -> Iterator[Any]:
    """The command line at a terminal of 80 columns without colour."""
    settings = {**os.environ, "TERM": "dumb", "NO_COLOR": "1", "COLUMNS": "80", "LINES": "40", **environment}
    child = pexpect.spawn(
        sys.executable,
        [str(DRIVER), "0", "0", *arguments, "--repo", str(root)],
        env=settings,
        dimensions=(40, 80),
        timeout=60,
        encoding="utf-8",
    )
    try:
        yield child
    finally:
        child.close(force=True)


def type_(child: Any, *keys: str) -> str:
    """Type each key at its prompt; gives all that was shown up to the last one's."""
    shown = ""
    for key in keys:
        child.expect_exact(PROMPT)
        shown += child.before
        child.sendline(key)
    return shown


def end(child: Any) -> tuple[int, str]:
    """Exit status, and what was shown last."""
    child.expect(pexpect.EOF)
    child.close()
    return child.exitstatus, child.before


def log(root: Path) -> list[str]:
    """Subjects of the commits on the branch."""
    return git(root, "log", "--format=%s", "--branches=migrate-agent/*").splitlines()


def answer(request: dict[str, Any], number: int) -> Move:
    """A right class for who says `mind the gap`, a wrong one else; and an answer to a question."""
    text = request["messages"][-1]["content"]
    if "asks a question" in text:
        return "Because **torch** does."
    return json.dumps(
        {"holes": [], "whole_class": f"class B:\n    {'repaired' if 'mind the gap' in text else 'wrong'} = {number}", "reason": "r"}
    )


@pytest.mark.slow
def test_every_key(tmp_path: Path) -> None:
    files = {"a.py": module("A"), "b.py": module("B", "script: fail"), "c.py": module("C"), "migrate.toml": "[budget]\nattempts = 2\n"}
    root = repository(tmp_path / "repo", files)
    editor = tmp_path / "editor.py"
    editor.write_text(EDITOR)
    with (
        endpoint(answer) as script,
        terminal(root, "run", "--model", "m", "--base-url", script.url, EDITOR=f"{sys.executable} {editor}") as child,
    ):
        shown = type_(child, "h", "d", "nonsense", "v", "e")
        for key in KEYS:
            assert key.name == "undo" or re.search(rf"^  {re.escape(key.key)}  {key.name} +\w", shown, flags=re.MULTILINE), key.name
        assert "class A(nn.Module)" in shown and "-class A(nn.Module):" in shown and "+class A:" in shown
        assert "'nonsense' is none of the keys" in shown and "forward_fp64" in shown
        assert "by_hand = True" in type_(child, "a"), "the edited text was verified again, and is shown"

        shown = type_(child, "?")
        assert "not verified: it can be edited, tried again or left" in shown and "a accept" not in child.before
        child.expect_exact("question > ")
        child.sendline("why?")
        assert "Because torch does." in re.sub(r"\*+", "", type_(child, "r"))
        child.expect_exact("hint for the model (empty: none) > ")
        child.sendline("mind the gap")
        assert "repaired = 2" in type_(child, "u"), "the hint reached the model"

        assert "by_hand = True" in type_(child, "a"), "back at the unit that was accepted"
        assert log(root) == ["first"] or "Migrate a.py:A to JAX" in log(root)
        shown = type_(child, "s")
        assert "b.py" in shown, "and on to the next again"
        assert "c.py" in type_(child, "q")
        status, shown = end(child)
    assert status == 1 and "paused: nothing is lost; go on with `migrate-agent resume" in shown
    with terminal(root, "resume") as child:
        type_(child, "")
        status, shown = end(child)
    assert (status, log(root)) == (1, ["Report the migration", "Migrate c.py:C to JAX", "Migrate a.py:A to JAX", "first"])
    assert "Traceback" not in shown
    assert git(root, "show", f"{branch(root)}:a_jax.py") == "class A:\n    by_hand = True"


def branch(root: Path) -> str:
    """Our branch."""
    return git(root, "for-each-ref", "--format=%(refname:short)", "refs/heads/migrate-agent")


@pytest.mark.slow
def test_nothing_needs_colour_or_more_than_80_columns(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"a.py": module("A", "A docstring that is long enough to be wrapped: " + "words " * 30)})
    with terminal(root, "run") as child:
        shown = type_(child, "d", "q")
        assert end(child)[0] == 1
    assert "\x1b[3" not in shown and "\x1b[9" not in shown, "no colour was asked for"
    assert max(len(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line)) for line in shown.replace("\r", "").splitlines()) <= 80


@pytest.mark.slow
@pytest.mark.parametrize(
    ("editor", "words"),
    [
        ("false", "left with status 1: nothing is taken over"),
        ("true", "nothing was changed"),
        ("no-such-editor", "cannot be run"),
        ("sh -c 'echo \"import os\" >> $0'", "the text cannot be used: it touches more than A"),
    ],
)
def test_an_edit_that_is_none(tmp_path: Path, editor: str, words: str) -> None:
    root = repository(tmp_path / "repo", {"a.py": module("A")})
    with terminal(root, "run", EDITOR=editor) as child:
        assert words in re.sub(r"\s+", " ", type_(child, "e", "a"))
        assert end(child)[0] == 0
    assert "pass" in git(root, "show", f"{branch(root)}:a_jax.py")
