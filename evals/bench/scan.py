"""Time and peak memory of `scan` over a source tree: `python -m migrate_agent.evals.bench.scan PATH… [--repeat N]`.

The tree to beat is the source of `transformers` (`pip install --no-deps --target DIR transformers`): within 60 s and 1 GB on two cores.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from migrate_agent.evals.bench.measure import arguments, repeat, report
from migrate_agent.tools.scan import scan


def measured(root: Path) -> dict[str, Any]:
    """What is timed: one scan. Gives counts of what it found, so that a fast scan of nothing shows."""
    inventory = scan(root)
    return {
        "files": len(inventory.files),
        "files_with_torch": sum(file.uses_torch for file in inventory.files),
        "files_not_parsed": sum(bool(file.error) for file in inventory.files),
        "units": dict(Counter(unit.strategy for unit in inventory.units)),
        "findings": len(inventory.findings),
    }


def main() -> None:
    """Measure each tree, and print JSON."""
    options = arguments("Time and peak memory of scan over source trees.")
    report("scan", [repeat(f"{__spec__.name}:measured", path, options.repeat) for path in options.paths])


if __name__ == "__main__":
    main()
