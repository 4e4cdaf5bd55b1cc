"""The table of draws in `docs/evals.md`: first looks in order, with their commits, and the curve of both shares."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from migrate_agent.evals import records
from migrate_agent.evals.suites.draw import BARE, WITH_EXAMPLES, figures
from migrate_agent.evals.zoo_packages.draws import earlier

HEAD = (
    "| seed | packages | commits | classes verified, of those exercised | top-level models verified | no example given: classes exercised |\n"
    "|---|---|---|---|---|---|"
)


@dataclass(frozen=True)
class Share:
    """`part` of `whole`."""

    part: int
    whole: int

    @property
    def percent(self) -> float:
        """In percent; 0 of nothing."""
        return 100 * self.part / self.whole if self.whole else 0.0

    def __str__(self) -> str:
        return f"{self.part} of {self.whole} ({self.percent:.0f} %)"


@dataclass(frozen=True)
class FirstLook:
    """The figures of one draw at first look. `packages` counts those measured with examples, `seen` those of them that an earlier draw or the
    zoo has; `commits` are those that were measured."""

    seed: int
    packages: int
    seen: int
    commits: tuple[str, ...]
    classes: Share
    tops: Share
    reached: Share

    @property
    def row(self) -> str:
        """A row of the table."""
        return f"| {self.seed} | {self.packages}, {self.seen} of them seen before | {', '.join(self.commits)} | {self.classes} | {self.tops} | {self.reached} |"


def first_looks(folder: Path = records.FOLDER) -> list[FirstLook]:
    """The draws of which something was measured, by seed."""
    seeds = sorted(int(path.name) for path in (folder / "draw").glob("*") if path.name.isdecimal())
    return [_first_look(seed, list(_stored(folder / "draw" / str(seed)))) for seed in seeds]


def _stored(folder: Path) -> Iterator[Mapping[str, Any]]:
    for path in sorted(folder.rglob("*.json")):
        if not path.name.endswith(records.LATEST):
            yield json.loads(path.read_text(encoding="utf-8"))


def _first_look(seed: int, stored: Sequence[Mapping[str, Any]]) -> FirstLook:
    bare, given = ([content for content in stored if content["group"][0].endswith(f"/{kind}")] for kind in (BARE, WITH_EXAMPLES))
    counts, reached = _figures(given), _figures(bare)
    commits = tuple(dict.fromkeys(content["commit"] for content in stored))
    return FirstLook(
        seed,
        len(given),
        sum(bool(earlier(content["group"][0].split("/")[1], seed)) for content in given),
        commits,
        Share(counts["verified"], counts["exercised"]),
        Share(counts["top_verified"], counts["top"]),
        Share(reached["exercised"], reached["classes"]),
    )


def _figures(stored: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    return figures(records.outcome(row) for content in stored for row in content["cases"])


def draw_table(folder: Path = records.FOLDER) -> str:
    """The table and the curve as Markdown; nothing where no draw was measured."""
    looks = first_looks(folder)
    if not looks:
        return ""
    return "\n".join([HEAD, *(look.row for look in looks), "", *_curve(looks)])


def _curve(looks: Sequence[FirstLook]) -> list[str]:
    def line(values: Iterable[float]) -> str:
        return f"    line [{', '.join(f'{value:.0f}' for value in values)}]"

    seeds = ", ".join(str(look.seed) for look in looks)
    body = [
        '    title "First look: classes (first line) and top-level models (second line), percent"',
        f"    x-axis [{seeds}]",
        '    y-axis "verified, percent" 0 --> 100',
        line(look.classes.percent for look in looks),
        line(look.tops.percent for look in looks),
    ]
    return ["```mermaid", "xychart-beta", *body, "```"]
