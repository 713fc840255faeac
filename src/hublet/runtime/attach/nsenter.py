"""nsenter: become a process of the job, in its namespaces and with no more rights than it has.

The order matters: inside the namespaces the control groups cannot be found, and without rights
nothing can be joined.
"""

import ctypes
import errno
import os
import resource
from typing import Any

from ..shim.system import call, read, start_time, write  # noqa: TID252 - see program.py.

_NAMESPACES = {
    "user": 0x10000000,
    "mnt": 0x00020000,
    "pid": 0x20000000,
    "net": 0x40000000,
    "ipc": 0x08000000,
    "uts": 0x04000000,
    "cgroup": 0x02000000,
}
# As /proc names them; prlimit on another process needs more rights.
_LIMITS = {
    b"Max core file size": resource.RLIMIT_CORE,
    b"Max data size": resource.RLIMIT_DATA,
    b"Max processes": resource.RLIMIT_NPROC,
    b"Max open files": resource.RLIMIT_NOFILE,
}
_DUMPABLE, _BOUNDING_DROP, _SECCOMP, _NO_NEW_PRIVILEGES = 4, 24, 22, 38
_FILTER_MODE = 2
_LAST_CAPABILITY = 63
# The third version of the call, with two words for each set.
_CAPABILITIES_VERSION = 0x20080522
_INSTRUCTION_BYTES = 8


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def join(order: dict[str, Any]) -> int:
    """Join the job; return a pidfd of its process. Only children are in its pid namespace."""
    pid = order["pid"]
    job = os.pidfd_open(pid)
    if start_time(pid) != order["start"]:
        raise ProcessLookupError(errno.ESRCH, "the job has ended")
    for group in order["groups"]:
        if not (write(f"{group}/tasks", "0") or write(f"{group}/cgroup.procs", "0")):
            raise OSError(errno.EPERM, f"{group} cannot be joined")
    _copy_limits(pid)
    # No process of the same user inside may read the memory of this one.
    _control(_DUMPABLE, 0)
    os.umask(0o022)
    if order["sandboxed"]:
        _join_namespaces(pid, job, order)
    return job


def _copy_limits(pid: int) -> None:
    for line in read(f"/proc/{pid}/limits").splitlines():
        if (number := _LIMITS.get(line[:25].strip())) is not None:
            soft, hard = (
                resource.RLIM_INFINITY if word == b"unlimited" else int(word)
                for word in line[25:].split()[:2]
            )
            resource.setrlimit(number, (soft, hard))


def _join_namespaces(pid: int, job: int, order: dict[str, Any]) -> None:
    order["user"] = _id_inside(pid, "uid_map", order["host_user"])
    order["group"] = _id_inside(pid, "gid_map", _group_of(pid))
    if os.geteuid() == 0:
        os.setgroups([])
    differing = [
        flag
        for name, flag in _NAMESPACES.items()
        if os.readlink(f"/proc/{pid}/ns/{name}") != os.readlink(f"/proc/self/ns/{name}")  # noqa: PTH115
    ]
    # All in one call, because the user namespace alone gives no right to join the others; and by
    # pidfd, because the pid may have been reused.
    call("setns", job, sum(differing))


def _group_of(pid: int) -> int:
    lines = read(f"/proc/{pid}/status").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(b"Gid:"))


def _id_inside(pid: int, table: str, number: int) -> int:
    """Map a user or group of this machine to its number inside."""
    for line in read(f"/proc/{pid}/{table}").splitlines():
        inside, outside, count = map(int, line.split())
        if outside <= number < outside + count:
            return inside + number - outside
    raise OSError(errno.EPERM, "the user of the job is not known inside")


def give_up_rights(order: dict[str, Any]) -> None:
    """Become the job's user, drop all capabilities for good, and set the job's seccomp filter."""
    for capability in range(_LAST_CAPABILITY + 1):
        try:
            _control(_BOUNDING_DROP, capability)
        except OSError:
            break  # The kernel knows no more of them.
    os.setresgid(order["group"], order["group"], order["group"])
    os.setresuid(order["user"], order["user"], order["user"])
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_VERSION, 0)
    nothing = (ctypes.c_uint32 * 6)()
    _system("capset", ctypes.byref(header), ctypes.byref(nothing))
    # Changing the user may have made the process dumpable again (fs.suid_dumpable).
    _control(_DUMPABLE, 0)
    _control(_NO_NEW_PRIVILEGES, 1)
    if order["filter"]:
        length = len(order["filter"]) // _INSTRUCTION_BYTES
        program = _Filter(length, order["filter"])
        _control(_SECCOMP, _FILTER_MODE, ctypes.addressof(program))


def _control(option: int, *values: int) -> None:
    words = [ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    _system("prctl", option, *words)


def _system(name: str, *arguments: Any) -> None:
    if ctypes.CDLL(None, use_errno=True)[name](*arguments) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
