"""The few Linux system calls that Python has no name for. Each does nothing on other systems.

Sources: prctl(2), capset(2), capabilities(7).
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP = 1, 4, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 36, 38, 47, 4
CAP_DAC_READ_SEARCH, CAP_LAST = 2, 40
CAPABILITY_VERSION_3 = 0x20080522


def _prctl(option: int, argument: int, *, required: bool = True) -> None:
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(argument), 0, 0, 0) != 0 and required:
        raise OSError(ctypes.get_errno(), f"prctl({option})")


def die_with_parent(number: signal.Signals = signal.SIGKILL) -> None:
    """Have the kernel send this signal to this process when the thread that started it ends."""
    _prctl(PR_SET_PDEATHSIG, number)


def adopt_orphans() -> None:
    """Become the parent of all descendants whose own parent ends, so that a daemon cannot get away."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def set_traceable(allowed: bool) -> None:
    """Whether other processes of the same user may attach to this one or read its memory."""
    _prctl(PR_SET_DUMPABLE, int(allowed))


def drop_privileges() -> None:
    """Give up for good: set-user-id programs, and (as root) all capabilities but reading files."""
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    if sys.platform != "linux" or os.geteuid() != 0:
        return
    keep = 1 << CAP_DAC_READ_SEARCH
    for capability in range(CAP_LAST + 1):
        if not keep >> capability & 1:
            _prctl(PR_CAPBSET_DROP, capability, required=False)  # refused where it was not held in the first place
    _prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, required=False)
    _capset(keep)


def _capset(keep: int) -> None:
    """Reduce the capabilities held to those of `keep` (a bit set) that are held already."""
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    sets = (ctypes.c_uint32 * 6)()
    if libc.capget(header, sets) != 0:
        raise OSError(ctypes.get_errno(), "capget")
    reduced = [sets[0] & keep, sets[1] & keep, 0, 0, 0, 0]  # (effective, permitted, inheritable) × (low, high)
    if libc.capset(header, (ctypes.c_uint32 * 6)(*reduced)) != 0:
        raise OSError(ctypes.get_errno(), "capset")
