"""Stubs take the place of what did not run, and of nothing else."""

from __future__ import annotations

import textwrap

from migrate_agent.tools.verify.evidence.counted_file import counted_file
from migrate_agent.tools.verify.evidence.stubs import KEPT, stubbed


def ran(text: str, lines: set[int]) -> dict[str, frozenset[str]]:
    """What `Reach.ran` is where the statements that begin in these lines ran."""
    file = counted_file(text)
    numbers = [number for number, place in enumerate(file.places) if place.line in lines]
    return {f"m.py:{owner}": digests for owner, digests in file.digests_of(numbers).items()}


def after(text: str, lines: set[int], *, keep: bool = False) -> str:
    """The file with stubs."""
    files = {"m.py": textwrap.dedent(text).lstrip()}
    return stubbed(files, ["m.py:f", "m.py:M"], ran(files["m.py"], lines), keep=keep).get("m.py", files["m.py"])


BRANCHES = """
    def f(x, kind):
        if kind == "a":
            return x
        elif kind == "b":
            y = x + 1
            return y
        with kind:
            x = -x
        return x
"""


def test_what_ran_stays() -> None:
    assert after(BRANCHES, {2, 3, 4, 5, 6, 7, 8, 9}) == textwrap.dedent(BRANCHES).lstrip()


def test_what_follows_a_return_that_was_always_taken_goes() -> None:
    text = " ".join(after(BRANCHES, {2, 3}).split())
    assert text.count("raise NotImplementedError(") == 2 and text.count("return") == 1
    assert "else: raise NotImplementedError( \"this part of f was not exercised: add an [[example]] for which `kind == 'a'` does" in text


def test_a_branch_says_when_it_would_run() -> None:
    text = after(BRANCHES, {2, 3, 4, 7, 8, 9})
    assert "this part of f was not exercised: add an [[example]] for which `kind == 'b'` holds" in " ".join(text.split())
    assert "y = x + 1" not in text and "x = -x" in text


def test_a_method_says_who_calls_it_and_keeps_its_docstring() -> None:
    text = after(
        '''
        class M:
            def run(self):
                """Runs."""
                for x in self.parts:
                    print(x)
                return 3

            def __repr__(self):
                return "M"
        ''',
        set(),
    )
    assert 'raise NotImplementedError("M.run was not exercised: add an [[example]] that calls run")' in text
    assert '"""Runs."""' in text and 'return "M"' in text and "for x" not in text


def test_refusals_and_other_definitions_stay() -> None:
    text = "def f(x):\n    if x:\n        y = repr(x)\n        raise ValueError(y)\n    return x\n\n\ndef g(x):\n    return x\n"
    assert after(text, {2, 5}) == text


def test_a_generator_stays_one() -> None:
    text = "def f(x):\n    if x:\n        yield x\n    return\n"
    assert after(text, {2, 4}) == text
    assert "yield" not in after(text, set())


def test_equal_statements_are_told_apart() -> None:
    text = "def f(x):\n    if x:\n        x = -x\n    else:\n        x = -x\n    return x\n"
    assert after(text, {2, 5, 6}).splitlines()[2].strip().startswith("raise NotImplementedError")
    assert after(text, {2, 3, 6}).splitlines()[2].strip() == "x = -x"


def test_a_function_in_what_did_not_run_goes_with_it() -> None:
    text = "def f(x):\n    if x:\n        y = 1\n\n        def g():\n            return y\n\n        return g\n    return x\n"
    assert after(text, {2, 9}).count("raise") == 1 and "def g" not in after(text, {2, 9})


def test_imports_of_what_went_go() -> None:
    text = "import math\nfrom os import path, sep\n\n\ndef f(x):\n    if x:\n        return math.pi, path\n    return sep\n"
    assert after(text, {6, 8}).startswith("from os import sep\n\n\ndef f(x):\n    if x:\n        raise")
    assert after(text, {6, 7, 8}) == text


def test_what_is_kept_has_a_comment() -> None:
    text = after(BRANCHES, {2, 3, 4, 7, 8, 9}, keep=True)
    assert f'    elif kind == "b":\n        {KEPT}\n        y = x + 1\n' in text
