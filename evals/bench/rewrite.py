"""Source lines rewritten a second: `python -m migrate_agent.evals.bench.rewrite PATH… [--repeat N]`.

All units of a repository are composed at once, on one core, from what static inference knows (no observations). The rate
counts the lines of the files that came out, and CPU time: that of the composition, less that of parsing the same files
(with `ast` and libcst), measured apart.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import libcst

from migrate_agent.evals.bench.measure import arguments, cpu_seconds, repeat, report
from migrate_agent.tools.rewrite import compose
from migrate_agent.tools.scan import scan


def measured(root: Path) -> dict[str, Any]:
    """One composition of all units of the repository. Raises `ValueError` where it has none to rewrite."""
    inventory = scan(root)
    units = [unit.id for unit in inventory.units if unit.strategy == "rewrite"]
    if not units:
        raise ValueError(f"no unit to rewrite in {root}")
    start = cpu_seconds()
    draft = compose(inventory, {}, units)
    compose_seconds = cpu_seconds() - start
    texts = [(root / file.path).read_text(encoding="utf-8") for file in inventory.files if file.target in draft.files]
    parse_seconds = _parse(texts)
    lines = sum(text.count("\n") for text in texts)
    return {
        "units": len(units),
        "files": len(texts),
        "lines": lines,
        "holes": len(draft.holes),
        "compose_cpu_seconds": compose_seconds,
        "parse_cpu_seconds": parse_seconds,
        "lines_per_second": lines / (compose_seconds - parse_seconds),
        "lines_per_second_with_parsing": lines / compose_seconds,
    }


def _parse(texts: Iterable[str]) -> float:
    start = cpu_seconds()
    for text in texts:
        ast.parse(text)
        libcst.parse_module(text)
    return cpu_seconds() - start


def main() -> None:
    """Measure each repository, and print JSON."""
    options = arguments("Source lines rewritten a second.")
    report("rewrite", [repeat(f"{__spec__.name}:measured", path, options.repeat) for path in options.paths])


if __name__ == "__main__":
    main()
