"""The system calls that a job may not make, whatever the backend: a seccomp filter that each job's process takes on before user code runs.

Denied (`EPERM`): tracing and reading other processes, mounts and namespaces, the clock, kernel modules and tracing, keys, io_uring, shared
memory and queues that would outlive the job, and signals or limits aimed at what watches over it. On the candidate's side also sockets of
any family but Unix, since it is arithmetic.
The filter cannot be taken off, and programs that the job starts inherit it.
Sources: seccomp(2), bpf(2), the kernel's `filter.h`, `arch/x86/entry/syscalls/syscall_64.tbl`, `asm-generic/unistd.h`.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple

PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
LOAD, JUMP_EQUAL, JUMP_GREATER_EQUAL, JUMP_SET, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, KILL, ERROR = 0x7FFF0000, 0x80000000, 0x00050000
NUMBER, ARCHITECTURE, ARGUMENT = 0, 4, 16
"""Offsets in `struct seccomp_data`; an argument has eight bytes, and the low half comes first on the machines below."""
X32 = 0x40000000
"""Calls numbered from here on are those of x32, a second way to the same calls."""

NEW_NAMESPACE = 0x7E020000
"""All of clone's CLONE_NEW… flags."""
UNIX = 1
OWNER_COMMANDS, OWNER_IOCTLS = (8, 15), (0x8901, 0x8902, 0x5412)
"""F_SETOWN(_EX), FIOSETOWN and SIOCSPGRP send signals on the job's behalf; TIOCSTI types into a terminal."""


class Machine(NamedTuple):
    """AUDIT_ARCH value, and call name → number."""

    audit: int
    calls: dict[str, int]


def _table(text: str) -> dict[str, int]:
    return {name: int(number) for name, number in (pair.split("=") for pair in text.split())}


_COMMON = """pidfd_send_signal=424 io_uring_setup=425 io_uring_enter=426 io_uring_register=427 open_tree=428 move_mount=429 fsopen=430
    fsconfig=431 fsmount=432 fspick=433 clone3=435 pidfd_getfd=438 process_madvise=440 mount_setattr=442 quotactl_fd=443"""
MACHINES = {
    "x86_64": Machine(
        0xC000003E,
        _table(
            _COMMON
            + """ shmget=29 socket=41 clone=56 semget=64 msgget=68 mq_open=240
            kill=62 fcntl=72 ioctl=16 ptrace=101 setpriority=141 sched_setparam=142 sched_setscheduler=144
            pivot_root=155 adjtimex=159 chroot=161 acct=163 settimeofday=164 mount=165 umount2=166 swapon=167 swapoff=168 reboot=169
            sethostname=170 setdomainname=171 iopl=172 ioperm=173 init_module=175 delete_module=176 quotactl=179 tkill=200
            sched_setaffinity=203 clock_settime=227 tgkill=234 kexec_load=246 add_key=248 request_key=249 keyctl=250 ioprio_set=251
            migrate_pages=256 unshare=272 move_pages=279 rt_sigqueueinfo=129 rt_tgsigqueueinfo=297 perf_event_open=298 fanotify_init=300
            prlimit64=302 name_to_handle_at=303 open_by_handle_at=304 clock_adjtime=305 setns=308 process_vm_readv=310
            process_vm_writev=311 kcmp=312 finit_module=313 sched_setattr=314 kexec_file_load=320 bpf=321 userfaultfd=323"""
        ),
    ),
    "aarch64": Machine(
        0xC00000B7,
        _table(
            _COMMON
            + """ mq_open=180 msgget=186 semget=190 shmget=194 socket=198 clone=220
            kill=129 fcntl=25 ioctl=29 ptrace=117 setpriority=140 sched_setparam=118 sched_setscheduler=119
            pivot_root=41 adjtimex=171 chroot=51 acct=89 settimeofday=170 mount=40 umount2=39 swapon=224 swapoff=225 reboot=142
            sethostname=161 setdomainname=162 init_module=105 delete_module=106 quotactl=60 tkill=130 sched_setaffinity=122
            clock_settime=112 tgkill=131 kexec_load=104 add_key=217 request_key=218 keyctl=219 ioprio_set=30 migrate_pages=238
            unshare=97 move_pages=239 rt_sigqueueinfo=138 rt_tgsigqueueinfo=240 perf_event_open=241 fanotify_init=262 prlimit64=261
            name_to_handle_at=264 open_by_handle_at=265 clock_adjtime=266 setns=268 process_vm_readv=270 process_vm_writev=271
            kcmp=272 finit_module=273 sched_setattr=274 kexec_file_load=294 bpf=280 userfaultfd=282"""
        ),
    ),
}
TARGETED = {
    **dict.fromkeys(
        "kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo prlimit64 sched_setparam sched_setscheduler sched_setaffinity sched_setattr "
        "migrate_pages move_pages".split(),
        0,
    ),
    **dict.fromkeys(("setpriority", "ioprio_set"), 1),
}
"""Calls that name a process → which argument does. Denied where it is one that watches over the job, or everybody (-1)."""
CONDITIONAL = {"clone", "clone3", "fcntl", "ioctl", "socket", *TARGETED}


class Step(NamedTuple):
    """One instruction of classic BPF; jumps count instructions to skip."""

    code: int
    yes: int
    no: int
    value: int


def _deny(number: int = errno.EPERM) -> Step:
    return Step(RETURN, 0, 0, ERROR | number)


def _when(number: int, body: Sequence[Step]) -> list[Step]:
    """The body for this call alone. It may end without a return, having loaded something else: the number is loaded again."""
    return [Step(JUMP_EQUAL, 0, len(body) + 1, number), *body, Step(LOAD, 0, 0, NUMBER)]


def _argument(index: int, values: Iterable[int]) -> list[Step]:
    """Deny where the low half of this argument is one of the values."""
    tests = [step for value in values for step in (Step(JUMP_EQUAL, 0, 1, value & 0xFFFFFFFF), _deny())]
    return [Step(LOAD, 0, 0, ARGUMENT + 8 * index), *tests]


def program(machine: Machine, protected: Iterable[int], sockets: bool) -> list[Step]:
    """The filter. `protected` are the process ids that the job may not touch; `sockets` says whether it may have others than Unix ones."""
    calls = machine.calls
    targets = sorted({-1} | {sign * pid for pid in protected for sign in (1, -1)})
    steps = [
        *(Step(LOAD, 0, 0, ARCHITECTURE), Step(JUMP_EQUAL, 1, 0, machine.audit), Step(RETURN, 0, 0, KILL)),
        *(Step(LOAD, 0, 0, NUMBER), Step(JUMP_GREATER_EQUAL, 0, 1, X32), _deny()),
        *_when(calls["clone3"], [_deny(errno.ENOSYS)]),  # its flags lie in memory; the C library then takes clone
        *_when(calls["clone"], [Step(LOAD, 0, 0, ARGUMENT), Step(JUMP_SET, 0, 1, NEW_NAMESPACE), _deny()]),
        *_when(calls["fcntl"], _argument(1, OWNER_COMMANDS)),
        *_when(calls["ioctl"], _argument(1, OWNER_IOCTLS)),
    ]
    if not sockets:
        steps += _when(calls["socket"], [Step(LOAD, 0, 0, ARGUMENT), Step(JUMP_EQUAL, 1, 0, UNIX), _deny(errno.EACCES)])
    for name, index in TARGETED.items():
        steps += _when(calls[name], _argument(index, targets))
    for name in sorted(calls.keys() - CONDITIONAL):
        steps += _when(calls[name], [_deny()])
    return [*steps, Step(RETURN, 0, 0, ALLOW)]


def apply(protected: Iterable[int], sockets: bool) -> bool:
    """Take the filter on, for this process and all that it starts. Needs `no_new_privs`. Returns False on machines without a table.

    Raises `OSError` where the kernel refuses it.
    """
    machine = MACHINES.get(platform.machine()) if sys.platform == "linux" else None
    if machine is None:
        return False
    steps = program(machine, protected, sockets)
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    header = struct.pack("@HP", len(steps), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.c_char_p(header), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_SECCOMP)")
    return True
