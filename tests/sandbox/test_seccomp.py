"""The filter itself, run by a small interpreter of its instructions; that the kernel obeys it is shown by the hostile programs."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from migrate_agent.sandbox.seccomp import (
    ALLOW,
    ARCHITECTURE,
    ARGUMENT,
    CONDITIONAL,
    ERROR,
    JUMP_EQUAL,
    JUMP_GREATER_EQUAL,
    JUMP_SET,
    KILL,
    LOAD,
    MACHINES,
    NUMBER,
    RETURN,
    program,
)

KEEPER, OTHER = 41, 97
TESTS: dict[int, Callable[[int, int], bool]] = {
    JUMP_EQUAL: lambda held, value: held == value,
    JUMP_GREATER_EQUAL: lambda held, value: held >= value,
    JUMP_SET: lambda held, value: bool(held & value),
}


def answer(machine: str, call: str | int, *arguments: int, sockets: bool = True, audit: int = 0) -> int:
    """What the filter returns for this call."""
    about = MACHINES[machine]
    number = about.calls.get(call, 0) if isinstance(call, str) else call
    memory = {NUMBER: number, ARCHITECTURE: audit or about.audit}
    memory |= {ARGUMENT + 8 * index: value & 0xFFFFFFFF for index, value in enumerate((*arguments, 0, 0, 0))}
    held, at, steps = 0, 0, program(about, [1, KEEPER], sockets)
    while steps[at].code != RETURN:
        step = steps[at]
        if step.code == LOAD:
            held = memory[step.value]
            at += 1
        else:
            at += 1 + (step.yes if TESTS[step.code](held, step.value) else step.no)
    return steps[at].value


DENIED = ERROR | errno.EPERM


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("call", "arguments", "expected"),
    [
        (100_000, (), ALLOW),
        ("ptrace", (), DENIED),
        ("mount", (), DENIED),
        ("clone3", (), ERROR | errno.ENOSYS),
        ("clone", (0x01200011,), ALLOW),
        ("clone", (0x10000011,), DENIED),
        ("kill", (OTHER, 9), ALLOW),
        ("kill", (KEEPER, 0), DENIED),
        ("kill", (-KEEPER, 9), DENIED),
        ("kill", (-1, 9), DENIED),
        ("kill", (0, 9), ALLOW),
        ("tgkill", (KEEPER, KEEPER, 9), DENIED),
        ("prlimit64", (0, 7), ALLOW),
        ("prlimit64", (KEEPER, 7), DENIED),
        ("setpriority", (0, KEEPER), DENIED),
        ("setpriority", (0, OTHER), ALLOW),
        ("fcntl", (3, 3), ALLOW),
        ("fcntl", (3, 8), DENIED),
        ("ioctl", (0, 0x5401), ALLOW),
        ("ioctl", (0, 0x5412), DENIED),
        ("socket", (2,), ALLOW),
    ],
)
def test_filter(machine: str, call: str | int, arguments: tuple[int, ...], expected: int) -> None:
    assert answer(machine, call, *arguments) == expected


@pytest.mark.parametrize(
    ("family", "expected"), [(1, ALLOW), (2, ERROR | errno.EACCES), (10, ERROR | errno.EACCES), (16, ERROR | errno.EACCES)]
)
def test_the_candidate_has_only_unix_sockets(family: int, expected: int) -> None:
    assert answer("x86_64", "socket", family, sockets=False) == expected


def test_other_ways_to_the_same_calls_are_closed() -> None:
    assert answer("x86_64", "kill", audit=0x40000003) == KILL, "the calls of 32-bit programs"
    assert answer("x86_64", 0x40000000 | 101) == DENIED, "those of x32"


@pytest.mark.parametrize("machine", MACHINES)
def test_tables(machine: str) -> None:
    calls = MACHINES[machine].calls
    assert calls.keys() >= CONDITIONAL
    assert len(set(calls.values())) == len(calls), "two names with one number"
    assert calls.keys() - MACHINES["x86_64"].calls.keys() == set()
    assert all(0 <= jump < 256 for step in program(MACHINES[machine], [1, KEEPER], False) for jump in (step.yes, step.no))
