"""Notes on code that no example ran."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.tools.rewrite import compose
from migrate_agent.tools.rewrite.analysis.coverage import unexercised
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Draft, Observed, Span
from tests.tools.rewrite.snippets import snippet_workspace

SOURCE = """from torch import nn

class M(nn.Module):
    def forward(self, x, deep=False):
        y = x.sin()
        if deep:
            y = y.cos()
        elif x.ndim > 9:
            raise ValueError(x.shape)
        return y

    def other(self, x):
        return x.exp()
"""


def _observed(*lines: int) -> dict[str, dict[Span, Observed]]:
    return {"snippet.py": {Span(line, 8, line, 9): Observed(("tensor",)) for line in lines}}


def test_branches_and_methods_that_did_not_run_are_named(tmp_path: Path) -> None:
    space = snippet_workspace(tmp_path, SOURCE, _observed(5, 10))
    model = space.repo.files["snippet.py"].classes["M"]
    assert unexercised(model, space.observed_lines("snippet.py")) == [
        "snippet.py:7: this branch of M.forward is run by no example",
        "snippet.py:12: M.other is run by no example",
    ]


def test_nothing_is_said_where_nothing_was_observed(tmp_path: Path) -> None:
    space = snippet_workspace(tmp_path, SOURCE)
    assert unexercised(space.repo.files["snippet.py"].classes["M"], frozenset()) == []


TAIL = """import torch
import torch.distributed as dist

def mean(x: torch.Tensor):
    if x.ndim:
        return x
    dist.send(x, 1)
    x = x / dist.get_world_size()
    return x
"""


def test_what_follows_a_return_that_was_always_taken_becomes_a_stub(tmp_path: Path) -> None:
    result = snippet_workspace(tmp_path, TAIL, _observed(5, 6)).rewritten("snippet.py")
    assert not result.holes
    text = "".join(result.header.code_for_node(node) for nodes in result.body for node in nodes)
    assert text.count("raise NotImplementedError") == 1 and "world_size" not in text.partition("raise")[0]
    assert any("this part of mean was not exercised" in note for note in result.notes)


def test_holes_in_a_tail_that_ran_stay(tmp_path: Path) -> None:
    assert snippet_workspace(tmp_path, TAIL, _observed(5, 7, 8)).rewritten("snippet.py").holes


LOADED = """import torch
from torch.hub import load_state_dict_from_url

def load(model, path):
    if path is None:
        if model:
            weights = load_state_dict_from_url("a")
        else:
            raise ValueError(path)
    else:
        weights = torch.load(path)
    print(weights.keys())
    return model
"""


def test_what_follows_branches_that_all_end_is_never_reached(tmp_path: Path) -> None:
    result = snippet_workspace(tmp_path, LOADED, _observed(5, 6)).rewritten("snippet.py")
    text = "".join(result.header.code_for_node(node) for nodes in result.body for node in nodes)
    assert not result.holes and "keys" not in text and text.count("raise NotImplementedError") == 2


@pytest.mark.parametrize("line", [7, 11, 12])
def test_what_follows_branches_one_of_which_ran_stays(tmp_path: Path, line: int) -> None:
    result = snippet_workspace(tmp_path, LOADED, _observed(5, 6, line)).rewritten("snippet.py")
    assert "keys" in "".join(result.header.code_for_node(node) for nodes in result.body for node in nodes)


DRAWN = """import torch
from torch import nn

class M(nn.Module):
    def forward(self, x):
        return x.sin()

    def draw(self, layout):
        import {package}.graphs as graphs

        edges = [(0, 1)]
        return graphs.draw(edges, layout)
"""


@pytest.mark.parametrize(
    ("package", "lines", "stubs"), [("networkx", (6,), 1), ("networkx", (6, 11), 0), ("json", (6,), 0), ("networkx", (), 0)]
)
def test_what_imports_a_package_for_itself_and_did_not_run_is_left_out(
    package: str, lines: tuple[int, ...], stubs: int, tmp_path: Path
) -> None:
    result = snippet_workspace(tmp_path, DRAWN.format(package=package), _observed(*lines)).rewritten("snippet.py")
    text = "".join(result.header.code_for_node(node) for nodes in result.body for node in nodes)
    assert not result.holes
    assert text.count("it imports networkx for itself") == stubs
    assert ("edges" in text) is not bool(stubs)


UNDEFINED = """import torch
from torch import nn

class M(nn.Module):
    def forward(self, x: torch.Tensor, never=False):
        if never:
            return einsum("i,i", x, x)
        return x * 2
"""


def test_a_name_that_the_original_does_not_define_either_is_a_note(tmp_path: Path) -> None:
    draft = _composed(tmp_path, UNDEFINED)
    assert not draft.holes
    assert any("einsum is not defined in the original either" in note for note in draft.notes)


@pytest.mark.parametrize("line", ["from elsewhere import *", "import torch\n\ndef einsum(*args):\n    return torch.unheard_of(*args)"])
def test_a_name_that_something_may_define_is_not(tmp_path: Path, line: str) -> None:
    assert _composed(tmp_path, f"{line}\n{UNDEFINED}").holes


def _composed(folder: Path, text: str) -> Draft:
    (folder / "model.py").write_text(text)
    return compose(scan(folder), {}, ["model.py:M"])


MUTATING = """import torch

def fill(x: torch.Tensor):
    x.fill_(3.0)

def f(a: torch.Tensor):
    fill({argument})
    return a
"""


@pytest.mark.parametrize(
    ("argument", "statement"),
    [
        ("a", "a = fill(a)"),
        ("a[0]", "a = a.at[0].set(fill(a[0]))"),
        ("a.t()", "a = fill(a.T).T"),
        ("a * 2", "fill(a * 2)"),
        ("a.data", ""),
        ("a.reshape(-1)", ""),
        ("a[a > 0]", ""),
    ],
)
def test_a_view_that_a_helper_changes_takes_its_new_value_or_is_a_hole(tmp_path: Path, argument: str, statement: str) -> None:
    rewritten = snippet_workspace(tmp_path, MUTATING.format(argument=argument)).rewritten("snippet.py")
    assert len(rewritten.holes) == (not statement)
    assert statement in "".join(rewritten.header.code_for_node(node) for part in rewritten.body for node in part)


UNDEFINED = """from torch import nn

class M(nn.Module):
    def forward(self, x, fast=True):
        if fast:
            return x.sin()
        y = einsum(x)
        return y * 2
"""


def test_names_that_the_original_lacks_become_errors_where_nothing_ran(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(UNDEFINED)
    seen = {"m.py": {Span(6, 19, 6, 20): Observed(("tensor",))}}
    draft = compose(scan(tmp_path), seen, ["m.py:M"])
    assert not draft.holes and "einsum(" not in draft.files["m_jax.py"]
    assert "einsum is not defined in the original either" in draft.files["m_jax.py"].replace('"\n            "', "")


UNDEFINED_CONDITIONS = """from torch import nn

class M(nn.Module):
    def __init__(self, kind):
        self.kind = kind

    def forward(self, x, fast=True):
        if self.kind == "sin":
            x = x.sin()
        elif kind == "cos":
            x = x.cos()
        elif fast and kind:
            x = x.tan()
        if not fast:
            for i in xrange(3):
                x = x + i
        return x

if __name__ == "__main__":
    for kind in ["sin"]:
        M(kind)
"""


def test_conditions_and_loops_that_read_a_name_which_the_original_lacks_are_errors(tmp_path: Path) -> None:
    """What the main block alone binds is not there for whoever imports the file, and that block stays the script's."""
    (tmp_path / "m.py").write_text(UNDEFINED_CONDITIONS)
    draft = compose(scan(tmp_path), {"m.py": {Span(9, 16, 9, 17): Observed(("tensor",))}}, ["m.py:M"])
    text = draft.files["m_jax.py"]
    assert not draft.holes and "cos" not in text and "xrange(" not in text and "__main__" not in text
    assert 'else:\n            raise NotImplementedError("kind is not defined in the original either")' in text
    assert 'if not fast:\n            raise NotImplementedError("xrange is not defined in the original either")' in text
