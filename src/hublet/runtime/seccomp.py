"""Seccomp filter: denies system calls and families of sockets that no job needs and that have been
exploited before.

Denied calls return EPERM, denied families EAFNOSUPPORT as on a machine that lacks them, so that
programs that only try them go on.
"""

import platform
import struct
from errno import EAFNOSUPPORT, EPERM
from functools import cache

# struct sock_filter: code, jump if true, jump if false, operand.
_LOAD, _GO, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x05, 0x15, 0x35, 0x06
_ALLOW, _DENY, _KILL = 0x7FFF0000, 0x00050000 | EPERM, 0x80000000
_NO_FAMILY = 0x00050000 | EAFNOSUPPORT
# The first argument has 64 bits; the kernel reads a family from the lower half.
_NUMBER_AT, _ARCH_AT, _FIRST_ARGUMENT_AT = 0, 4, 16
# x86-64 has a second number for each call, with this bit (the x32 ABI).
_X32 = 0x40000000

_ARCHES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
# The numbers on x86-64 and on aarch64; None: it does not exist there.
_CALLS: dict[str, tuple[int | None, int | None]] = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pivot_root": (155, 41),
    "quotactl": (179, 60),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "vhangup": (153, 58),
}
# `socket` and `socketpair`, whose first argument is a family.
_SOCKET_CALLS = ((41, 53), (198, 199))
# AF_UNIX, AF_INET, AF_INET6 and AF_NETLINK.
_FAMILIES = (1, 2, 10, 16)

_Line = tuple[int, int, int, int]


@cache
def filter_for(machine: str | None = None) -> bytes | None:
    """Return the BPF program; None on an architecture that is not in the table."""
    if (known := _ARCHES.get(machine or platform.machine())) is None:
        return None
    arch, column = known
    numbers = sorted(n for pair in _CALLS.values() if (n := pair[column]) is not None)
    lines: list[_Line] = [
        (_LOAD, 0, 0, _ARCH_AT),
        (_EQUAL, 1, 0, arch),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
        # x32 and each call of the list jump over the next line, which goes on, to the one that denies.
        (_AT_LEAST, len(numbers) + 1, 0, _X32),
    ]
    lines += [(_EQUAL, len(numbers) - at, 0, number) for at, number in enumerate(numbers)]
    lines += [(_GO, 0, 0, 1), (_RETURN, 0, 0, _DENY), *_family_check(*_SOCKET_CALLS[column])]
    return b"".join(struct.pack("HBBI", *line) for line in lines)


def _family_check(socket: int, socketpair: int) -> list[_Line]:
    """Allow every call but those that make a socket of another family."""
    count = len(_FAMILIES)
    return [
        (_EQUAL, 1, 0, socket),
        (_EQUAL, 0, count + 2, socketpair),
        (_LOAD, 0, 0, _FIRST_ARGUMENT_AT),
        *((_EQUAL, count - at, 0, family) for at, family in enumerate(_FAMILIES)),
        (_RETURN, 0, 0, _NO_FAMILY),
        (_RETURN, 0, 0, _ALLOW),
    ]
