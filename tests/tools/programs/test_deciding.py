"""Parts of conditions that decide nothing in a run, and loads that change nothing."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from migrate_agent.tools.programs.judge.compare import idle_parts
from migrate_agent.tools.programs.judge.deciding import conditions, deciding
from migrate_agent.tools.programs.judge.loads import Loads, reading

CASES: dict[str, tuple[str, list[list[Any]]]] = {
    "a last batch that is whole": ("for i in range(6):\n  if (i + 1) % 3 == 0 or i + 1 == 6:\n    x = i\n", [[2, "i + 1 == 6"]]),
    "a last batch that is not": ("for i in range(7):\n  if (i + 1) % 3 == 0 or i + 1 == 7:\n    x = i\n", []),
    "one inside of another, over lines": (
        "for é in (0, 1):\n  if é and (é > 5\n      or é > 0):\n    pass\n",
        [[2, "é > 5"], [2, "é > 5 or é > 0"]],
    ),
    "a part that nobody looks at": ("if [] and undefined:\n  pass\n", []),
    "a loop": ("left = 3\nwhile left and left < 9:\n  left -= 1\n", [[2, "left < 9"]]),
}


@pytest.mark.parametrize("name", CASES)
def test_parts_that_decide_nothing(name: str, tmp_path: Path) -> None:
    text, expected = CASES[name]
    script = tmp_path / "script.py"
    script.write_text(text)
    with deciding(script) as parts:
        exec(compile(script.read_text(), str(script), "exec"), {})
    assert script.read_text() == text
    assert [row[:2] for row in parts.undecided()] == expected


def test_loads_that_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a file alone: copies between modules are compared by what they compute."""
    monkeypatch.setattr(torch, "load", torch.load)
    monkeypatch.setattr(torch.nn.Module, "load_state_dict", torch.nn.Module.load_state_dict)
    script = tmp_path / "script.py"
    script.write_text(
        "torch.save(model.state_dict(), path)\nmodel.load_state_dict(model.state_dict())\nmodel.load_state_dict(torch.load(path))\n"
        "with torch.no_grad():\n  model.weight += 1\nmodel.load_state_dict(torch.load(path))\n"
    )
    loads = Loads(script)
    loads.install()
    names = {"torch": torch, "model": torch.nn.Linear(2, 2), "path": str(tmp_path / "last.pt")}
    exec(compile(script.read_text(), str(script), "exec"), names)
    assert loads.rows() == [[3, False], [6, True]]


def test_files_that_are_read(tmp_path: Path) -> None:
    (tmp_path / "given").write_text("x")
    with reading(tmp_path, frozenset({"given"})) as read:
        (tmp_path / "given").read_text()
        (tmp_path / "new").write_text("x")
        assert not read
        (tmp_path / "new").read_text()
    assert read == {"new"}


def ran(**trace: Any) -> Any:
    """A run with this trace."""
    return SimpleNamespace(trace={"undecided": [], "loads": [], "reads": [], "conditions": [], **trace})


@pytest.mark.parametrize(
    ("original", "candidate", "expected"),
    [
        ({"undecided": [[3, "a < b", "Lt a b"]]}, {"conditions": ["Lt a b", "c"]}, []),
        ({"undecided": [[3, "a < b", "Lt a b"]]}, {"conditions": ["c"]}, [(3, "`a < b`")]),
        ({"loads": [[5, False]]}, {"reads": []}, [(5, "what it loads")]),
        ({"loads": [[5, False]]}, {"reads": ["best/arrays"]}, []),
        ({"loads": [[5, True]]}, {"reads": []}, []),
    ],
)
def test_what_the_rewrite_has_not(original: dict[str, Any], candidate: dict[str, Any], expected: list[Any]) -> None:
    assert idle_parts([ran(**original)], [ran(**candidate)]) == expected


@pytest.mark.parametrize(
    ("original", "rewrite", "same"),
    [
        ("torch.isnan(loss)", "jnp.isnan(loss)", True),
        ("loss.item() > 1e4", "loss > 1e4", True),
        ("os.path.isfile(args.last)", "os.path.exists(args.last)", True),
        ("os.path.isfile(args.last)", "os.path.exists(args.best)", False),
        ("i + 1 == len(loader)", "i == len(loader)", False),
        ("step >= 1", "step > 1", False),
    ],
)
def test_what_a_condition_says_in_either_framework(original: str, rewrite: str, same: bool) -> None:
    one, other = (conditions(f"if {text}:\n  pass\n") for text in (original, rewrite))
    assert (one == other) == same
