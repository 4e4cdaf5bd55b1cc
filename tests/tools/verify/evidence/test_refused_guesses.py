"""Methods that only guesses call become stubs where the port refuses one of these calls, and nothing else runs their lines."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from migrate_agent.tools.types import Example
from migrate_agent.tools.verify.evidence.counted_file import counted_file
from migrate_agent.tools.verify.evidence.refused_guesses import refused_guesses

PATH = "net_jax.py"
PORT = """class Net:
    def __call__(self, x):
        return self.inner(x)

    def inner(self, x):
        return x

    def outer(self, x):
        return -x

    @property
    def kept(self):
        return 1

    @kept.setter
    def kept(self, value):
        self.held = value
"""
LINES = {"": 3, "inner": 6, "outer": 9, "kept": 13, "kept=": 17}
"""Method → the line that its call runs."""


def results(called: list[tuple[str, str, bool]], origin: str = "inference", unreached: str = "stub", before: tuple[str, ...] = ()) -> Any:
    """Results of scenarios: names of the methods that come first ("-": none) and then, and whether it raised. `before`: what ran for other units."""
    file = counted_file(PORT)
    methods = list(LINES)
    examples = [Example("net.py:Net", "", "", method=method, origin=cast(Any, origin if method else "config")) for method in methods]

    def numbers(*names: str) -> frozenset[int]:
        lines = {LINES[name] for name in names if name != "-"} | ({LINES["inner"]} if "" in names else set())
        return frozenset(number for number, place in enumerate(file.places) if place.line in lines)

    scenarios = [
        SimpleNamespace(name=f"s{number}", example=methods.index(then), prior=-1 if first == "-" else methods.index(first))
        for number, (first, then, _) in enumerate(called)
    ]
    reach = {f"s{number}": sorted(numbers(first, then)) for number, (first, then, _) in enumerate(called)}
    ran = {"sets": [{PATH: row} for row in reach.values()], "of": {name: number for number, name in enumerate(reach)}}
    answered = {"scenarios": {f"s{number}": {"error": "x"} if raised else {} for number, (*_, raised) in enumerate(called)}, "reach": ran}
    digests = {f"{PATH}:{owner}": row for owner, row in file.digests_of(numbers(*before)).items()}
    return SimpleNamespace(
        unreached=unreached,
        examples=examples,
        expected=SimpleNamespace(scenarios=scenarios, examples=[{"index": index} for index in range(len(methods))]),
        of=lambda kind: SimpleNamespace(result=answered),
        sources=[SimpleNamespace(path=PATH, text=PORT, error="")],
        reached_before=digests,
    )


USUAL = ("-", "", False)


@pytest.mark.parametrize(
    ("called", "more", "expected"),
    [
        ([USUAL, ("-", "outer", False), ("-", "outer", True)], {}, {"outer"}),
        ([USUAL, ("-", "outer", False), ("outer", "", True)], {}, {"outer"}),  # what comes after it fails
        ([USUAL, ("-", "outer", False), ("outer", "", False), ("-", "outer", True)], {}, {"outer"}),
        ([USUAL, ("-", "outer", False)], {}, set()),
        ([USUAL, ("-", "inner", False), ("-", "inner", True)], {}, set()),  # the module's own call runs its lines
        ([USUAL, ("-", "outer", False), ("-", "outer", True)], {"before": ("outer",)}, set()),  # another unit ran its lines
        ([USUAL, ("-", "outer", True)], {"origin": "config"}, set()),  # a user asks for it
        ([USUAL, ("-", "outer", True)], {"unreached": ""}, set()),  # its text stays
        ([USUAL, ("-", "kept", False), ("-", "kept=", True)], {}, {"kept="}),  # the property is read by another function
        ([USUAL, ("-", "kept=", False), ("-", "kept", True)], {}, {"kept"}),
    ],
)
def test_guesses_that_are_refused(called: list[tuple[str, str, bool]], more: dict[str, Any], expected: set[str]) -> None:
    assert refused_guesses(results(called, **more)) == expected
