"""Each operator of mutation changes what it is meant to change; ids are stable and texts are valid and different."""

from __future__ import annotations

import ast

import libcst as cst
import pytest

from migrate_agent.evals.mutation import corpus, mutants
from migrate_agent.evals.mutation.mutate import OPERATORS, mutations, replacements

CHANGES = {
    "constant": ("f(3)", "f(4)"),
    "axis": ("x.sum(-1)", "x.sum(-2)"),
    "comparison": ("a < b", "a <= b"),
    "arithmetic": ("a + b", "a - b"),
    "dropped-term": ("a + b", "a"),
    "swapped-arguments": ("jnp.where(a, b)", "jnp.where(b, a)"),
    "dropped-keyword": ("f(x, eps=y)", "f(x)"),
    "slice": ("x[a:b]", "x[a + 1:b]"),
    "swapped-function": ("jax.nn.relu(x)", "jax.nn.gelu(x)"),
    "dropped-call": ("jnp.tanh(x)", "x"),
    "stop-gradient": ("jax.lax.stop_gradient(x)", "x"),
    "condition": ("a if c else b", "a if not c else b"),
    "unpacking": ("q, k = f(x)", "k, q = f(x)"),
    "sign": ("-x", "x"),
}


@pytest.mark.parametrize("operator", CHANGES)
def test_operator(operator: str) -> None:
    before, after = CHANGES[operator]
    found = [mutation for mutation in mutations(before) if mutation.operator == operator]
    assert after in [mutation.source.strip() for mutation in found]


def test_updates_are_dropped() -> None:
    text = "class M:\n    def f(self, x):\n        self.n[...] += 1\n        x = x.at[0].set(1)\n        y = 2\n"
    dropped = [mutation for mutation in mutations(text) if mutation.operator == "dropped-statement"]
    assert [mutation.id for mutation in dropped] == ["M.f/dropped-statement-1", "M.f/dropped-statement-2"]
    assert set(CHANGES) | {"dropped-statement"} == set(OPERATORS)


def test_what_is_for_people_stays() -> None:
    assert mutations('"""Adds 1."""\nimport a as b\n\ndef f(x: int):\n    assert x\n    raise ValueError(-1)\n') == []


def test_texts_are_valid_and_ids_unique() -> None:
    original = corpus.FOLDER / "right" / "attention.py"
    found = mutations(original.read_text(encoding="utf-8"))
    assert len({mutation.id for mutation in found}) == len({mutation.source for mutation in found}) == len(found) > 50
    for mutation in found:
        ast.parse(mutation.source)


def test_there_are_thousands() -> None:
    ports = [name.removeprefix("port-") for name in mutants.subjects() if name.startswith("port-")]
    texts = [(corpus.FOLDER / "right" / f"{name}.py").read_text(encoding="utf-8") for name in ports]
    assert sum(len(replacements(cst.parse_module(text))) for text in texts) >= 2400  # a few of which are the same text


def test_an_argument_holds_for_its_change_only() -> None:
    mutation = mutations("x = 3")[0]
    rows = {"a": {"id": "a", "change": "3 → 4", "reason": "unused"}, "b": {"id": "b", "change": "3 → 5", "reason": "unused"}}
    assert (mutants.equivalence_reason(rows, "a", mutation), mutants.equivalence_reason(rows, "b", mutation)) == ("unused", "")


def test_argued_mutants_are_of_known_subjects_and_say_why() -> None:
    rows = mutants.equivalent_mutants()
    assert rows and {identifier.partition("/")[0] for identifier in rows} <= set(mutants.subjects())
    assert all(row["reason"].endswith(".") and " → " in row["change"] for row in rows.values())
    text = (corpus.FOLDER / "right" / "detach.py").read_text(encoding="utf-8")
    found = {f"port-detach/{mutation.id}": mutation for mutation in mutations(text)}
    argued = [identifier for identifier in rows if identifier.startswith("port-detach/")]
    assert argued and all(mutants.equivalence_reason(rows, identifier, found[identifier]) for identifier in argued)


def test_each_name_of_a_file_is_asked_about_by_the_unit_that_needs_least() -> None:
    text = """
import jax
WIDTH = 3
def half(x):
    return x / 2
def lost(x):
    return x
class Inner:
    def __call__(self, x):
        return half(x)
class Outer:
    def __init__(self):
        self.inner = Inner()
    def __call__(self, x):
        return scaled(self.inner(x))
def scaled(x):
    return half(x) * WIDTH
"""
    assert mutants.names_by_unit(text, ["Outer", "Inner"]) == {
        "Outer": (frozenset({"Outer", "scaled"}), frozenset({"Outer", "scaled", "Inner", "half"})),
        "Inner": (frozenset({"", "Inner", "half"}), frozenset({"Inner", "half"})),
    }
