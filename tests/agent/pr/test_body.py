"""The text of a request."""

from __future__ import annotations

from migrate_agent.agent.pr.body import Links, body, closeness, cut_to, stages
from migrate_agent.agent.pr.sheet import Sheet, from_text, to_text
from migrate_agent.tests.agent.pr.picture import page
from migrate_agent.tests.agent.pr.sheets import sheet
from migrate_agent.tools.types import Verdict

QUANTITIES = {"peak_bytes": 12.0 * 2**20, "hbm_bytes": 2.0**34, "flops": 3.5e9, "moved_bytes": 2e6}
TPU = {f"tpu/v5e:1x1/forward/{name}": value for name, value in QUANTITIES.items()}
LINKS = Links("https://f/source", "https://f/target", "https://f/evidence")


def text(*sheets: Sheet, below: str = "", limit: int = 65_536) -> str:
    """The body."""
    return body(sheets, below, {each.unit: LINKS for each in sheets}, ["migrate-agent verify model.py:Net"], limit)


def test_the_verdict_is_seen_first() -> None:
    lines = text(sheet(), below="{{request:pr/low}}").splitlines()
    assert lines[0].startswith("**Verified: 4 of 4 checks passed.** Written by deterministic rules alone")
    table = [line for line in lines[:12] if line.startswith("|")]
    assert table == [
        "| stage | passed | closest to its limit | measured | limit |",
        "|---|---|---|---|---|",
        "| static | 1/1 |  |  |  |",
        "| numeric | 3/3 | gradients_inputs | 9.5e-11 | 1e-10 |",
    ]
    assert "Stands on {{request:pr/low}}" in "\n".join(lines[:6])


def test_a_browser_shows_the_verdict_before_all_else() -> None:
    shown = page(text(sheet()))
    assert shown.index("4 of 4 checks passed") < shown.index("<table>") < shown.index("<pre>") < shown.index("<details>")
    assert "<td>gradients_inputs</td>" in shown and "Migrate model.py:Net to JAX" in shown


def test_everything_of_the_unit_is_told() -> None:
    told = text(
        sheet(
            notes=("model.py:3: Net.f is run by no example",),
            figures={**TPU, "peak": 1.0},
            weights=(("fc.weight", "fc.kernel", "(8, 4)", "(1, 0)"),),
        )
    )
    for part in (
        "run by no example",
        "`8, act='a\\|b'`",
        "x: float32 (4, 8)",
        "fc.kernel",
        "(1, 0)",
        "| v5e:1x1 | forward | 12 MiB | 16 GiB | 3.5e+09 | 2e+06 |",
        "migrate-agent verify",
        "https://f/evidence",
        "5 leaves compared",
    ):
        assert part in told.replace("\\_", "_"), part
    assert "| peak |" not in told


def test_several_units_are_named_in_the_tables() -> None:
    told = text(sheet("a.py:A"), sheet("b.py:B"))
    assert "8 of 8 checks" in told and "| `a.py:A` | static |" in told and "| `B` | numeric | initialisation |" in told


def test_what_others_wrote_neither_breaks_the_text_nor_calls_anybody() -> None:
    told = text(sheet(notes=("x | y @everyone <img src=x> [a](b) `c`\n# head",)))
    line = next(line for line in told.splitlines() if "everyone" in line)
    assert "@everyone" not in line and "<img" not in line.replace("\\<", "") and "\\# head" in line and "\\|" in line


def test_a_short_limit_leaves_parts_out_from_the_last() -> None:
    many = tuple(Verdict("numeric", f"check{number}", "pass", 1e-12, 1e-11, "x" * 200) for number in range(100))
    whole, short = text(sheet(verdicts=many)), text(sheet(verdicts=many), limit=8_000)
    assert len(whole) > 20_000 > 8_000 >= len(short)
    assert short.startswith("**Verified: 100 of 100") and "Left out" in short and "verdicts" in short.splitlines()[-1]
    assert "What was exercised" in short
    assert len(cut_to("a" * 500, 300)) <= 300


def test_closeness() -> None:
    assert closeness(Verdict("s", "c", "pass", 1.0, 4.0)) == 0.25
    assert closeness(Verdict("s", "c", "pass", 0.5, 0.1)) == 0.2  # a limit from below
    assert closeness(Verdict("s", "c", "pass")) is None
    assert closeness(Verdict("s", "c", "pass", 0.0, 0.0)) is None
    assert [row.stage for row in stages(sheet())] == ["static", "numeric"]


def test_a_sheet_survives_as_text() -> None:
    one = sheet(notes=("é",), weights=(("a", "b", "c", "d"),))
    assert from_text(to_text(one)) == one
    assert from_text('{"version": 99}') is None and from_text("[]") is None and from_text("nonsense") is None
    assert one.says_the_same(sheet(notes=("é",), weights=(("a", "b", "c", "d"),), figures={"x": 1.0}))
    assert not one.says_the_same(sheet(notes=("é",), weights=(("a", "b", "c", "d"),), port="other"))
