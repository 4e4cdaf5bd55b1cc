"""The stand-ins for forges, GitHub's behind the validating proxy: one for all tests of a process, since the proxy takes seconds to start."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from migrate_agent.tests.agent.forge import gitlab_standin
from migrate_agent.tests.agent.forge.prism import description, proxy
from migrate_agent.tests.agent.forge.standin import StandIn

CANARY = "ghp_canaryXcanaryYcanaryZ0123456789abcd"
"""The token of all tests, which is found nowhere afterwards."""


@pytest.fixture(scope="session")
def github(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandIn]:
    """The stand-in; a test begins with `reset`."""
    described = description()
    made = StandIn(tmp_path_factory.mktemp("server"), CANARY, described)
    try:
        with proxy(described, tmp_path_factory.mktemp("prism"), made.upstream) as address:
            made.proxy = address
            yield made
    finally:
        made.close()
    # Whatever any test of this process left behind: logs, traces, configurations, repositories, evidence.
    found = subprocess.run(["grep", "-rlaF", CANARY, str(tmp_path_factory.getbasetemp())], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (1, ""), found.stdout + found.stderr


@pytest.fixture(scope="session")
def gitlab() -> Iterator[gitlab_standin.StandIn]:
    """The stand-in for GitLab; a test begins with `reset`."""
    made = gitlab_standin.StandIn()
    yield made
    made.server.shutdown()
    made.server.server_close()
