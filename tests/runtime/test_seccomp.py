"""The filter of system calls, run here as the kernel would run it."""

import socket
import struct

import pytest

from hublet.runtime.seccomp import filter_for

ALLOWED, DENIED, KILLED = 0x7FFF0000, 0x00050001, 0x80000000
NO_FAMILY = 0x00050061
X86, ARM = 0xC000003E, 0xC00000B7


def verdict(program: bytes, *, arch: int, number: int, argument: int = 0) -> int:
    lines = list(struct.iter_unpack("HBBI", program))
    at = loaded = 0
    while True:
        code, true, false, operand = lines[at]
        at += 1
        if code == 0x20:
            loaded = {0: number, 4: arch, 16: argument}[operand]
        elif code == 0x06:
            return int(operand)
        elif code == 0x05:
            at += operand
        else:
            holds = loaded == operand if code == 0x15 else loaded >= operand
            at += true if holds else false


@pytest.mark.parametrize(
    ("machine", "arch", "number", "expected"),
    [
        pytest.param("x86_64", X86, 0, ALLOWED, id="read"),
        pytest.param("x86_64", X86, 59, ALLOWED, id="execve"),
        pytest.param("x86_64", X86, 103, DENIED, id="syslog, the first of the list"),
        pytest.param("x86_64", X86, 165, DENIED, id="mount"),
        pytest.param("x86_64", X86, 442, DENIED, id="mount_setattr, the last of the list"),
        pytest.param("x86_64", X86, 443, ALLOWED, id="the one after it"),
        pytest.param("x86_64", X86, 0x40000000, DENIED, id="read by its second name"),
        pytest.param("x86_64", ARM, 63, KILLED, id="calls of another machine"),
        pytest.param("aarch64", ARM, 63, ALLOWED, id="read on ARM"),
        pytest.param("aarch64", ARM, 40, DENIED, id="mount on ARM"),
        pytest.param("aarch64", ARM, 165, ALLOWED, id="what is mount elsewhere"),
    ],
)
def test_a_call_is_judged(machine: str, arch: int, number: int, expected: int) -> None:
    program = filter_for(machine)
    assert program is not None
    assert verdict(program, arch=arch, number=number) == expected


@pytest.mark.parametrize(
    ("machine", "arch", "number"),
    [
        pytest.param("x86_64", X86, 41, id="socket"),
        pytest.param("x86_64", X86, 53, id="socketpair"),
        pytest.param("aarch64", ARM, 198, id="socket on ARM"),
        pytest.param("aarch64", ARM, 199, id="socketpair on ARM"),
    ],
)
def test_a_socket_is_judged_by_its_family(machine: str, arch: int, number: int) -> None:
    program = filter_for(machine)
    assert program is not None
    allowed = [
        family
        for family in range(64)
        if verdict(program, arch=arch, number=number, argument=family) == ALLOWED
    ]
    assert allowed == [socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK]
    assert verdict(program, arch=arch, number=number, argument=socket.AF_PACKET) == NO_FAMILY


def test_a_socket_by_the_second_name_of_its_call_is_denied() -> None:
    program = filter_for("x86_64")
    assert program is not None
    number = 0x40000000 + 41
    assert verdict(program, arch=X86, number=number, argument=socket.AF_INET) == DENIED


def test_a_machine_that_is_not_known_has_no_filter() -> None:
    assert filter_for("riscv64") is None
