"""What the other side lacks, has more, or has otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from migrate_agent.tools.manifest.manifest import Manifest


class Difference(NamedTuple):
    """One file that is not the same on both sides. `detail` is for people."""

    path: str
    kind: Literal["missing", "extra", "size", "content"]
    detail: str


def differences(before: Manifest, after: Manifest) -> Iterator[Difference]:
    """In the order of paths; files that the new side alone has come last."""
    there = {entry.path: entry for entry in after.entries}
    for entry in before.entries:
        other = there.pop(entry.path, None)
        if other is None:
            yield Difference(entry.path, "missing", "is not there")
        elif other.size != entry.size:
            yield Difference(entry.path, "size", f"has {other.size} bytes for {entry.size}")
        elif other.sha256 != entry.sha256:
            yield Difference(entry.path, "content", f"has SHA-256 {other.sha256[:12]}… for {entry.sha256[:12]}…")
    yield from (Difference(path, "extra", "is not in the manifest") for path in there)
