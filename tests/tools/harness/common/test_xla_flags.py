"""Flags of XLA are set where this jaxlib has them: it ends a process that sets another."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from migrate_agent.tools.harness.common.xla_flags import EMITTERS, KERNEL_LIBRARY, LEVEL, SPLITS, known, library

VALUES = {
    KERNEL_LIBRARY: library(),
    LEVEL: "0",
    EMITTERS: "false",
    SPLITS: "1",
    "xla_cpu_use_xla_runtime": "true",
    "xla_cpu_no_such_flag": "1",
}


@pytest.mark.parametrize("name", VALUES)
def test_what_is_known_is_what_xla_takes(name: str) -> None:
    """A flag that was taken out still stands among the reserved names of XLA's options, as `xla_cpu_use_xla_runtime` does."""
    environment = {**os.environ, "XLA_FLAGS": f"--{name}={VALUES[name]}", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", "import jax; jax.devices()"]
    assert (subprocess.run(command, env=environment, capture_output=True).returncode == 0) == known(name)
