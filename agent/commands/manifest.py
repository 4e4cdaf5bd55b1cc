"""`migrate-agent manifest`: hash data on one side, verify it on the other, and estimate the way."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from migrate_agent.agent.commands.options import Debug

if TYPE_CHECKING:
    from migrate_agent.tools.manifest.manifest import Manifest

SHOWN = 20
"""Differences that are printed; the report has all."""


class Content(StrEnum):
    """What the data is, since text shrinks more than images."""

    none = "none"
    text = "text"
    images = "images"


def manifest(
    address: Annotated[str, typer.Argument(metavar="PATH", help="A file, a folder, or an address of fsspec such as gs://bucket/data.")],
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the manifest here.", dir_okay=False)] = None,
    verify: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Compare PATH with this manifest of the other side.", dir_okay=False, exists=True)
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, metavar="N", help="Files that are hashed at the same time.")] = 4,
    mbps: Annotated[float, typer.Option(metavar="N", help="Megabits a second of one transfer, for the estimate.")] = 500,
    streams: Annotated[int, typer.Option(min=1, metavar="N", help="Transfers side by side, as far as the network has room.")] = 1,
    content: Annotated[Content, typer.Option(help="What the data is, if it is compressed on the way.")] = Content.none,
    egress_price: Annotated[float | None, typer.Option(min=0, metavar="X", help="Price of 10⁹ bytes that leave, of your provider.")] = None,
    report: Annotated[Path | None, typer.Option(metavar="FILE", help="With --verify: write the differences here as JSON.")] = None,
    debug: Debug = False,
) -> None:
    """Hash data sets and checkpoints, or verify them against the manifest of the other side. Run it again to go on after a stop."""
    from migrate_agent.agent.config.errors import UsageError
    from migrate_agent.tools.manifest.manifest import read, write
    from migrate_agent.tools.manifest.store import ManifestError

    if (output is None) == (verify is None):
        raise UsageError("say either --output FILE, to hash, or --verify FILE, to compare")
    if mbps <= 0:
        raise UsageError("--mbps must be more than 0")
    ours = output or verify
    assert ours is not None
    journal = ours.with_name(f".{ours.name}.{'hash' if output else 'verify'}.journal")
    try:
        before = read(verify) if verify else None
        current = _build(address, journal, jobs, ours)
    except ManifestError as error:
        raise UsageError(str(error)) from None
    if before is None:
        write(current, ours)
        print(f"{ours}: {len(current.entries)} files, {current.size} bytes")
        print(_estimate(current.size, mbps, streams, content.value, egress_price))
        status = 0
    else:
        status = _compare(before, current, report)
    journal.unlink(missing_ok=True)
    raise typer.Exit(status)


def _build(address: str, journal: Path, jobs: int, ours: Path) -> Manifest:
    from migrate_agent.agent.runs.progress import Progress
    from migrate_agent.tools.manifest.manifest import build
    from migrate_agent.tools.manifest.store import open_store

    progress = Progress()
    with progress.live():
        ignore = frozenset({ours.resolve(), journal.resolve()})
        return build(
            open_store(address), address, journal, jobs, ignore, lambda count, of: progress.stage(address, f"{count} of {of} files")
        )


def _estimate(size: int, mbps: float, streams: int, content: str, price: float | None) -> str:
    from migrate_agent.tools.manifest.transfer import duration, estimate

    transfer = estimate(size, mbps, streams, content, price)
    times = " to ".join(dict.fromkeys(duration(seconds) for seconds in transfer.seconds))
    line = f"transfer: {times} at {mbps:g} Mbit/s" + (f" in each of {streams} transfers" if streams > 1 else "")
    return line + (f"; {' to '.join(dict.fromkeys(f'{cost:.2f}' for cost in transfer.cost))} for what leaves" if transfer.cost else "")


def _compare(before: Manifest, current: Manifest, report: Path | None) -> int:
    from migrate_agent.agent.config.json_files import write
    from migrate_agent.tools.manifest.difference import differences

    rows = list(differences(before, current))
    for row in rows[:SHOWN]:
        print(f"{row.kind}: {row.path} {row.detail}")
    if len(rows) > SHOWN:
        print(f"and {len(rows) - SHOWN} more")
    if report is not None:
        write(
            report, {"version": 1, "address": current.address, "files": len(before.entries), "differences": [row._asdict() for row in rows]}
        )
    wrong = f"{len(rows)} files differ" if rows else "all are the same"
    print(f"{current.address} against {before.address}: {len(before.entries)} files, {before.size} bytes: {wrong}")
    return 1 if rows else 0
