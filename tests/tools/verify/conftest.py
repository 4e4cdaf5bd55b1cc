"""One warm sandbox for all tests of the verifier."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrate_agent.sandbox.process import ProcessSandbox

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def sandbox() -> Iterator[ProcessSandbox]:
    """The process backend with its workers warm."""
    with ProcessSandbox() as opened:
        yield opened
