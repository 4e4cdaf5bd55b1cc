"""The figures of the report: what the calls of all verified units reached."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from migrate_agent.agent.config.json_files import write
from migrate_agent.agent.loop.unreached import all_figures
from migrate_agent.tools.types import Draft, Evidence, Reach
from migrate_agent.tools.verify.evidence.counted_file import counted_file

TEXT = """def helper(x, double, cut):
    if double:
        x = x * 2
    if cut:
        raise NotImplementedError("this part of helper was not exercised")
    return x


def net(x):
    return helper(x, True, False)
"""


def digests(*lines: int) -> tuple[str, ...]:
    file = counted_file(TEXT)
    rows = file.digests_of([number for number, place in enumerate(file.places) if place.line in lines])
    return tuple(digest for row in rows.values() for digest in row)


def test_lines_that_another_unit_reaches_are_reached(tmp_path: Path) -> None:
    """`helper` was verified without its branch, which the calls of `net` run: the last draft has no stub there."""
    helper = Reach(5, 3, 2, (), {"m_jax.py:helper": digests(2, 4, 6)}, ("m_jax.py:helper",), (), {"m_jax.py:helper": digests(3, 5)})
    net = Reach(1, 1, 0, (), {"m_jax.py:net": digests(10), "m_jax.py:helper": digests(2, 3, 4, 6)}, ("m_jax.py:net",))
    names = ("helper", "net")
    for name, reach in zip(names, (helper, net), strict=True):
        write(tmp_path / name / "evidence.json", Evidence(f"m.py:{name}", (), reach=reach))
        write(tmp_path / name / "draft.json", Draft({"m_jax.py": TEXT}))
    context: Any = SimpleNamespace(
        plan=SimpleNamespace(order=tuple(f"m.py:{name}" for name in names)),
        accepted=lambda position: tuple(f"m.py:{name}" for name in names[:position]),
        unit_folder=lambda position: tmp_path / names[position],
        config=SimpleNamespace(run=SimpleNamespace(keep_unreached=False)),
    )
    assert all_figures(context, 2) == {
        "m.py:helper": {"lines": 5, "reached": 4, "stubs": 1},
        "m.py:net": {"lines": 1, "reached": 1, "stubs": 0},
    }
    assert all_figures(context, 1)["m.py:helper"]["reached"] == 3
