"""The filter of system calls, run here as the kernel would run it."""

import struct

import pytest

from hublet.runtime.seccomp import filter_for

ALLOWED, DENIED, KILLED = 0x7FFF0000, 0x00050001, 0x80000000
X86, ARM = 0xC000003E, 0xC00000B7


def verdict(program: bytes, *, arch: int, number: int) -> int:
    lines = list(struct.iter_unpack("HBBI", program))
    at = loaded = 0
    while True:
        code, true, false, operand = lines[at]
        at += 1
        if code == 0x20:
            loaded = {0: number, 4: arch}[operand]
        elif code == 0x06:
            return int(operand)
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


def test_a_machine_that_is_not_known_has_no_filter() -> None:
    assert filter_for("riscv64") is None
