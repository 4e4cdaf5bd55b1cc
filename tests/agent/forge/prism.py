"""The validating proxy in front of the stand-in, with GitHub's own description cut down to what is used."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from migrate_agent.agent.forge.operations import GITHUB
from migrate_agent.tests.agent.forge.describe import cut

INSTALLED = Path(os.environ.get("MIGRATE_AGENT_FORGES", "/var/tmp/migrate-agent-forges")) / "node_modules"
PRISM = INSTALLED / ".bin" / "prism"
DESCRIPTION = INSTALLED / "@octokit" / "openapi" / "generated" / "api.github.com.json"
REQUIRED = "prism" in os.environ.get("MIGRATE_AGENT_REQUIRE", "").split(",")


def description() -> Mapping[str, Any]:
    """GitHub's description of the operations that we use; empty where it is not installed and not required."""
    if not DESCRIPTION.exists():
        assert not REQUIRED, f"{DESCRIPTION} is required: .ci/forges.sh installs it"
        return {}
    return cut(json.loads(DESCRIPTION.read_text(encoding="utf-8")), GITHUB)


@contextmanager
def proxy(described: Mapping[str, Any], folder: Path, upstream: str) -> Iterator[str]:
    """A proxy that answers a request or an answer against the description with an error; "" where it is not installed and not required."""
    if not PRISM.exists():
        assert not REQUIRED, f"{PRISM} is required: .ci/forges.sh installs it"
        yield ""
        return
    document = folder / "github.json"
    document.write_text(json.dumps(described), encoding="utf-8")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(PRISM), "proxy", str(document), upstream, "--errors", "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            said += line
            if "listening" in line:
                break
        assert process.poll() is None, said
        # What it goes on to say is read, so that it never waits for a full pipe.
        drain = subprocess.Popen(["cat"], stdin=process.stdout, stdout=subprocess.DEVNULL)
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(30)
            drain.wait(30)
            process.stdout.close()
    finally:
        process.kill()
        process.wait(30)
