"""A read-only view of a folder in which root's files seem to belong to somebody else (an idmapped mount, Linux 5.12 and later).

A container that does not run as root could not read what only root may read, such as a repository cloned by root with a private umask.
Sources: open_tree(2), mount_setattr(2), move_mount(2), user_namespaces(7).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 428, 429, 442
AT_FDCWD, AT_EMPTY_PATH, AT_RECURSIVE = -100, 0x1000, 0x8000
OPEN_TREE_CLONE, MOVE_MOUNT_F_EMPTY_PATH = 1, 4
READ_ONLY, NO_SET_USER_ID, NO_DEVICES, ID_MAP = 1, 2, 4, 0x100000
PRIVATE = 1 << 18
DETACH = 2
WAITS = "import ctypes, sys; print(ctypes.CDLL(None).unshare(0x10000000), flush=True); sys.stdin.read()"
"""A process in a new user namespace."""


@contextlib.contextmanager
def shown(source: Path, target: Path, user: int) -> Iterator[Path]:
    """Mount `source` at the empty folder `target`, read-only, root's files as those of `user`. Gives where to read it: `source` where the
    kernel or the file system cannot do that. To be used by root; the mount is gone at the end, but for those who took a copy of it.
    """
    try:
        _mount(source, target, user)
    except OSError:
        yield source
        return
    try:
        yield target
    finally:
        unmount(target)


def unmount(target: Path) -> None:
    """Take the mount at `target` away, if there is one."""
    ctypes.CDLL(None).umount2(os.fsencode(target), DETACH)


def _mount(source: Path, target: Path, user: int) -> None:
    with _mapping(user) as namespace:
        tree = _call(OPEN_TREE, AT_FDCWD, os.fsencode(source), OPEN_TREE_CLONE | os.O_CLOEXEC | AT_RECURSIVE)
        try:
            flags = READ_ONLY | NO_SET_USER_ID | NO_DEVICES | ID_MAP
            attributes = struct.pack("=QQQQ", flags, 0, PRIVATE, namespace)
            _call(MOUNT_SETATTR, tree, b"", AT_EMPTY_PATH | AT_RECURSIVE, attributes, len(attributes))
            _call(MOVE_MOUNT, tree, b"", AT_FDCWD, os.fsencode(target), MOVE_MOUNT_F_EMPTY_PATH)
        finally:
            os.close(tree)


@contextlib.contextmanager
def _mapping(user: int) -> Iterator[int]:
    """A descriptor of a user namespace that says: root is `user`, and the users below that are themselves."""
    command = [sys.executable, "-I", "-S", "-c", WAITS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        if process.stdout.readline() != b"0\n":
            raise OSError("no user namespaces")
        for name in ("uid_map", "gid_map"):
            Path(f"/proc/{process.pid}/{name}").write_text(f"0 {user} 1\n1 1 {user - 1}\n", encoding="ascii")
        descriptor = os.open(f"/proc/{process.pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
        process.stdin.close()
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _call(number: int, *arguments: int | bytes) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    converted = [ctypes.c_long(argument) if isinstance(argument, int) else ctypes.c_char_p(argument) for argument in arguments]
    result = int(libc.syscall(ctypes.c_long(number), *converted))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
