"""Fills a template of this folder."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from migrate_agent.agent.pages.curves import chart
from migrate_agent.agent.pages.graph import anchor, graph
from migrate_agent.tools.compare.finding import percent


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"percent": lambda value: "" if value is None else percent(value), "figure": _figure}
    environment.filters |= {"hour": hour, "hours": lambda value: hour(value.likely)}
    environment.globals |= {"chart": chart, "graph": graph, "anchor": anchor}
    return environment


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.5g}"


def hour(value: float) -> str:
    """Hours for people; small ones in minutes."""
    return f"{value:.0f} h" if value >= 3 else f"{value:.1f} h" if value >= 1 else f"{60 * value:.0f} min"


def render(template: str, **values: Any) -> str:
    """The page. All values are escaped; a name that the template misses is an error."""
    return _environment().get_template(template).render(**values)
