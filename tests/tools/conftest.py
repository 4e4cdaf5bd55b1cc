"""One warm sandbox for all tests of a process that run a verifier."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from migrate_agent.sandbox.process import ProcessSandbox


@pytest.fixture(scope="session")
def sandbox() -> Iterator[ProcessSandbox]:
    """The process backend with its workers warm."""
    with ProcessSandbox() as opened:
        yield opened
