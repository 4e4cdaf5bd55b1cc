"""The lines of the surface: each counts once, whichever units share it, and what another unit's calls ran is reached."""

from __future__ import annotations

import pytest

from migrate_agent.evals.bench.reach import counts, total
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
    rows = [{"units": 2, **counts([HELPER])}, {"units": 1, **counts([unit("Net", {}, {}, ("m.py:3 (Net.forward): x = 1",))])}]
    assert total(rows)["original"] == {"lines": 4, "reached": 2, "share": 0.5}
    assert (total(rows)["units"], total(rows)["violations"]) == (3, 1)
