"""Child of the shim before it becomes the job: limits, namespaces, user, exec."""

import errno
import os
import resource
import signal
from typing import Any, NoReturn

from .system import call, write

PDEATHSIG = 1
NEWNS, REC, PRIVATE, BIND = 0x20000, 0x4000, 0x40000, 0x1000
NEWNET, NEWUSER = 0x40000000, 0x10000000
RDONLY, NOSUID, NODEV = 1, 2, 4
DETACH = 2
# Mount point in the mount namespace of this attempt; the folder of other processes is not touched.
STAGE = "/tmp"  # noqa: S108


def exec_job(
    spec: dict[str, Any], *, groups: list[str], shim: int, fds: tuple[int, int, int]
) -> NoReturn:
    """Execute the job in this process; write into the last of the pipes why it cannot be."""
    output, status_fd, failure = fds
    try:
        prepare(spec, groups=groups, shim=shim)
        argv, environment = argv_and_environment(spec, status_fd=status_fd)
        for number in (0, 1, 2):
            os.dup2(output if number else os.open(os.devnull, os.O_RDONLY), number)
        os.chdir(spec["cwd"])
        os.execvpe(argv[0], argv, environment)  # noqa: S606 - a job is what its owner asked for.
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        os.write(failure, f"{spec['argv'][0]} could not be started: {reason}".encode()[:4096])
    os._exit(127)


def prepare(spec: dict[str, Any], *, groups: list[str], shim: int) -> None:
    os.setsid()
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGHUP, signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for path in groups:
        # A process with one thread may join by `tasks`, which is faster in the kernel; version 2
        # has no such file.
        if not (write(f"{path}/tasks", "0") or write(f"{path}/cgroup.procs", "0")):
            raise OSError(errno.EPERM, f"it may not join {path}")
    for name, value in spec["rlimits"]:
        resource.setrlimit(getattr(resource, name), (value, value))
    enter_network_and_user(spec)
    if spec["adopt"]:
        # The kernel kills the job with its shim; the shim may have been killed before this call.
        call("prctl", PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != shim:
            os._exit(127)


def enter_network_and_user(spec: dict[str, Any]) -> None:
    """Join the job's network namespace, mount the image, then become the job's user."""
    if spec["network"] >= 0:
        call("setns", spec["network"], NEWNET)
    if spec["layers"]:
        mount_layers(spec["layers"], is_root=bool(spec["user"]))
    elif spec["user"]:
        enter_mount_namespace(is_root=True)
    if spec["user"]:
        detach_sys()
        stage_mounts(spec["stage"])
        drop_privileges(spec["user"])


def enter_mount_namespace(*, is_root: bool) -> None:
    """Enter a mount namespace; who is not root gets a user namespace too, with the same user."""
    user, group = os.geteuid(), os.getegid()
    call("unshare", NEWNS if is_root else NEWNS | NEWUSER)
    if not is_root:
        write("/proc/self/setgroups", "deny")
        write("/proc/self/uid_map", f"{user} {user} 1")
        write("/proc/self/gid_map", f"{group} {group} 1")
    call("mount", b"none", b"/", None, REC | PRIVATE, None)


def mount_layers(layers: list[str], *, is_root: bool) -> None:
    """Mount layers of an image as one folder that nobody can write to.

    They are given by the folder of the image, the names of the layers in it, one more layer that
    lies above them or nothing, and the mount point.
    """
    folder, names, above, target = layers
    enter_mount_namespace(is_root=is_root)
    # Short names from here on: the kernel takes only a page of options.
    os.chdir(folder)
    options = f"userxattr,lowerdir={names}"
    if above:
        fd = os.open(above, os.O_PATH | os.O_CLOEXEC)
        options = f"userxattr,lowerdir=/proc/self/fd/{fd}:{names}"
    flags = RDONLY | NOSUID | NODEV
    call("mount", b"overlay", os.fsencode(target), b"overlay", flags, options.encode())
    os.chdir("/")


def detach_sys() -> None:
    """Take /sys, with the control groups, out of the mount namespace of this attempt.

    No job sees it. bubblewrap reads the list of all mounts once for each that it adds, and what is
    mounted below /sys is often half of it.
    """
    try:
        call("umount2", b"/sys", DETACH)
    except OSError:
        return


def stage_mounts(sources: list[str]) -> None:
    """Bind folders below STAGE, for a user who may not traverse the folders above them."""
    # Opened before the tmpfs hides what lies below STAGE.
    opened = [os.open(source, os.O_PATH | os.O_CLOEXEC) for source in sources]
    call("mount", b"none", STAGE.encode(), b"tmpfs", 0, b"mode=755,size=64k")
    for number, fd in enumerate(opened):
        target = f"{STAGE}/{number}"
        if os.path.isdir(f"/proc/self/fd/{fd}"):  # noqa: PTH112 - pathlib is much to load.
            os.mkdir(target)  # noqa: PTH102
        else:
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY))
        call("mount", b"/proc/self/fd/%d" % fd, target.encode(), None, BIND | REC, None)
        os.close(fd)


def drop_privileges(user: int) -> None:
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def argv_and_environment(
    spec: dict[str, Any], *, status_fd: int
) -> tuple[list[str], dict[str, str]]:
    """Return what to execute, and its environment.

    The job can read the arguments of bubblewrap, and bubblewrap must not run with the job's
    environment (LD_PRELOAD would work outside of the sandbox): both go through a memory file.
    """
    if not spec["sandboxed"]:
        return spec["argv"], spec["environment"]
    options = spec["options"]
    for name, value in spec["environment"].items():
        options += ["--setenv", name, value]
    words = [spec["bubblewrap"], "--args", memory_file("\0".join(options).encode() + b"\0")]
    if spec["filter"]:
        words += ["--seccomp", memory_file(spec["filter"])]
    os.set_inheritable(status_fd, True)
    return [*words, "--json-status-fd", str(status_fd), "--", *spec["argv"]], {}


def memory_file(data: bytes) -> str:
    fd = os.memfd_create("hublet", 0)
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return str(fd)
