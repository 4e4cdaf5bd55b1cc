"""What of the host a sandbox is shown, read-only: the system's libraries and the Python environment of this process."""

from __future__ import annotations

import glob
import importlib.util
import os
import site
import stat
import sys
from collections.abc import Iterable
from pathlib import Path

SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d"),
    *("/etc/alternatives", "/etc/localtime"),
)
"""What programs and libraries of the system need; nothing else of the root is shown."""
CPUS = "/sys/devices/system/cpu/possible"
"""How many CPUs there are: the TPU compiler's allocator aborts where it cannot read this."""
OURS = Path(__file__).parents[1]
PARTS = ("sandbox", "tools")
"""The folders of ours that a worker needs."""

GPUS = ("/dev/nvidia[0-9]*", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset")
"""The device nodes of NVIDIA's driver; its libraries lie with the system's."""


def gpus() -> list[str]:
    """The device nodes of the accelerators that this machine has."""
    return sorted(path for pattern in GPUS for path in glob.glob(pattern) if stat.S_ISCHR(os.stat(path).st_mode))


def python() -> list[str]:
    """The Python environment of this process: interpreter, standard library, packages, and what a worker needs of us."""
    packages = [*site.getsitepackages(), site.getusersitepackages()]
    folders = [sys.prefix, sys.base_prefix, *packages, *(str(OURS / part) for part in PARTS)]
    return [text for folder in folders for text in (os.path.realpath(folder), folder)]


def packages(names: Iterable[str]) -> list[str]:
    """The folders of these top-level packages, found without importing them."""
    specs = [importlib.util.find_spec(name) for name in sorted(names)]
    return [folder for spec in specs if spec for folder in spec.submodule_search_locations or ()]
