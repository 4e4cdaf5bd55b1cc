"""The lines of the surface: each counts once, whichever units share it, and what another unit's calls ran is reached."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.evals.bench.reach import counts, of_absent, total
from migrate_agent.tools.types import Reach, Surface, UnitReport


def unit(
    name: str, ran: dict[str, tuple[str, ...]], idle: dict[str, tuple[str, ...]], missed: tuple[str, ...] = ()
) -> tuple[UnitReport, Reach]:
    report = UnitReport("m.py", name, "m_jax.py", "verified", reach={"stubs": 1})
    port = [{key.replace("m.py", "m_jax.py"): digests for key, digests in row.items()} for row in (ran, idle)]
    return report, Reach(0, 0, 0, missed, port[0], (f"m_jax.py:{name}",), (), port[1], Surface(ran, idle, (f"m.py:{name}",)))


HELPER = unit("helper", {"m.py:helper": ("a", "b"), "m.py:Other": ("x",)}, {"m.py:helper": ("c", "d")})
NET = unit("Net", {"m.py:Net.forward": ("e",), "m.py:helper": ("c",)}, {})


@pytest.mark.parametrize(
    ("units", "lines", "reached", "unreached"),
    [([HELPER], 4, 2, {"m.py:helper": 2}), ([NET], 1, 1, {}), ([HELPER, NET], 5, 4, {"m.py:helper": 1}), ([], 0, 0, {})],
)
def test_lines_count_once(units: list[tuple[UnitReport, Reach]], lines: int, reached: int, unreached: dict[str, int]) -> None:
    row = counts(units)
    assert (row["original"]["lines"], row["original"]["reached"]) == (lines, reached) == (row["port"]["lines"], row["port"]["reached"])
    assert (row["unreached"], row["stubs"]) == (unreached, len(units))


def test_rows_are_summed_and_lines_that_neither_run_nor_refuse_are_told() -> None:
    rows = [
        {"units": 2, "lines_absent": 1, **counts([HELPER])},
        {"units": 1, "lines_absent": 0, **counts([unit("Net", {}, {}, ("m.py:3 (Net.forward): x = 1",))])},
    ]
    assert total(rows)["original"] == {"lines": 4, "reached": 2, "share": 0.5}
    assert (total(rows)["share_installed"], total(rows)["lines_absent"]) == (0.6667, 1)
    assert (total(rows)["units"], total(rows)["violations"]) == (3, 1)


PLOTS = """
class Wiring:
    def draw(self):
        import no_such_plots.lines as lines
        from no_such_graphs import Graph
        import json
        from . import near
        import other
        return lines

    def layers(self):
        return 1
"""


def test_functions_that_import_absent_packages_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(PLOTS)
    (tmp_path / "other.py").write_text("")
    row = {"original": {"lines": 10, "reached": 6}, "unreached": {"m.py:Wiring.draw": 3, "m.py:Wiring.layers": 1}}
    assert of_absent(row, tmp_path) == {
        "absent": {"m.py:Wiring.draw": ["no_such_graphs", "no_such_plots"]},
        "lines_absent": 3,
        "share_installed": 0.8571,
    }
