"""Attempt in the care of its shim: start, output, deadline, end."""

import fcntl
import os
import select
import signal
import time
from typing import Any

from .child import NEWNET, become
from .log import Log
from .system import (
    call,
    descendants,
    kill,
    killed_for_memory,
    read,
    refused_processes,
    start_time,
    to_json,
    write,
)

CHUNK = 1 << 20
# What is left in a pipe after everything that could write to it was killed takes no time at all.
DRAIN_SECONDS = 2.0
STATUS, STOP = "status.json", "stop"
# A hub on another machine can write its wish down, but not ring.
LOOK_MILLIS = 2000
SUBREAPER = 36
SIGNALED = 128
BOOT = read("/proc/sys/kernel/random/boot_id").decode().strip()


class Attempt:
    """One attempt, from the start of its process until nothing of it is left."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec, self.folder = spec, spec["folder"]
        self.groups: list[str] = []
        self.main = self.inner = 0
        self.code: int | None = None
        self.kill_at = self.end_at = float("inf")
        self.look_at = 0.0
        self.told = b""
        pid = os.getpid()
        self.status: dict[str, Any] = {
            "phase": "pending",
            "pid": pid,
            "start": start_time(pid),
            "boot": BOOT,
            "main": 0,
            # Also those that are made only now: whoever clears up after a killed shim must know.
            "groups": [path for path, _ in spec["groups"]],
        }

    def now(self) -> int:
        return time.time_ns() // 1000 + int(self.spec["offset"])

    def say(self, **changes: Any) -> None:
        self.status |= changes
        path = f"{self.folder}/{STATUS}"
        fd = os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        os.write(fd, to_json(self.status).encode())
        os.close(fd)
        os.replace(f"{path}.new", path)  # noqa: PTH105 - pathlib is much to load.

    def say_at_last(self, **changes: Any) -> None:
        """Say how it ended, however long the disk is full."""
        while True:
            try:
                self.say(**changes)
            except FileNotFoundError:
                return  # Nobody wants to know any more.
            except OSError:
                time.sleep(1)
            else:
                return

    def forget(self) -> None:
        """Leave no trace of an attempt that could not begin, so that it can be ordered again."""
        self.free_groups()
        if self.main == 0 and self.status["phase"] == "pending":
            os.unlink(f"{self.folder}/{STATUS}")  # noqa: PTH108 - pathlib is much to load.

    def wants_stop(self) -> float | None:
        """Return the grace that a stop asks for; None: nobody asked."""
        try:
            return float(read(f"{self.folder}/{STOP}"))
        except ValueError:
            return None

    def start(self) -> None:
        self.log = Log(self.spec["log"], limit=self.spec["log_bytes"], offset=self.spec["offset"])
        moment, micros = divmod(self.now(), 1_000_000)
        hour = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment))
        self.log.add(f"===== Job started at {hour}.{micros // 1000:03}Z =====\n".encode())
        self.make_groups()
        if self.spec["adopt"]:
            call("prctl", SUBREAPER, 1, 0, 0, 0)
        self.output, output = os.pipe2(os.O_CLOEXEC)
        self.told_fd, told = os.pipe2(os.O_CLOEXEC)
        failed, failure = os.pipe2(os.O_CLOEXEC)
        try:
            fcntl.fcntl(output, fcntl.F_SETPIPE_SZ, CHUNK)
        except OSError:
            self.log.stamp = 0  # The user has too many pipes: a small one does as well.
        shim = os.getpid()
        self.enter_network()
        self.main = os.fork()
        if self.main == 0:
            become(self.spec, groups=self.groups, shim=shim, fds=(output, told, failure))
        for fd in (output, told, failure, self.spec["network"]):
            if fd >= 0:
                os.close(fd)
        self.end_at = time.monotonic() + self.spec["timeout"]
        self.say(phase="running", started_at=self.now(), main=self.main, groups=self.groups)
        self.failed = failed

    def enter_network(self) -> None:
        """Hold the job's own network for it, and keep that of its group there by being in it.

        Both are there only as long as somebody holds them: from now on that is not the hub.
        """
        for name in ("network", "switch"):
            path = self.spec[name]
            self.spec[name] = os.open(path, os.O_RDONLY | os.O_CLOEXEC) if path else -1
        if (switch := self.spec["switch"]) >= 0:
            call("setns", switch, NEWNET)
            os.close(switch)

    def hear_of_failure(self) -> None:
        """Wait until the process is the job, or says why it cannot be."""
        if reason := os.read(self.failed, 4096):
            self.status["reason"] = reason.decode()
        os.close(self.failed)

    def make_groups(self) -> None:
        for path, values in self.spec["groups"]:
            try:
                os.mkdir(path)  # noqa: PTH102 - pathlib is much to load.
            except FileExistsError:
                pass
            except OSError:
                continue
            self.groups.append(path)
            for name, value in values:
                write(f"{path}/{name}", value)

    def free_groups(self) -> None:
        for path in self.groups:
            for _ in range(10):
                try:
                    os.rmdir(path)  # noqa: PTH106 - pathlib is much to load.
                    break
                except OSError:
                    # What was killed is still on its way out.
                    time.sleep(0.002)

    def attend(self) -> None:
        """Carry output into the log until the process ended; end it when its time has come."""
        self.hear_of_failure()
        bell, ring = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        poll = select.poll()
        for fd in (bell, self.output, self.told_fd):
            poll.register(fd, select.POLLIN)
        # What was asked for, or ended, before the handlers were there.
        self.reap()
        self.obey()
        while self.code is None:
            for fd, _ in poll.poll(self.wait_millis()):
                if fd == bell:
                    os.read(bell, 4096)
                    self.reap()
                    self.obey()
                elif not self.carry(fd):
                    poll.unregister(fd)
            self.look_at_the_clock()
            self.look_for_a_wish()

    def wait_millis(self) -> float:
        nearest = min(self.kill_at, self.end_at) - time.monotonic()
        return min(max(nearest * 1000, 0) + 1, LOOK_MILLIS)

    def carry(self, fd: int) -> bool:
        data = os.read(fd, CHUNK)
        if fd == self.told_fd:
            self.told += data
            _, found, rest = self.told.partition(b'"child-pid": ')
            if found and not self.inner:
                digits = rest[: len(rest) - len(rest.lstrip(b"0123456789"))]
                self.inner = int(digits or 0)
        else:
            self.log.add(data)
        return bool(data)

    def reap(self) -> None:
        try:
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if found[0] == self.main:
                    self.code = os.waitstatus_to_exitcode(found[1])
        except ChildProcessError:
            return

    def obey(self) -> None:
        grace = self.wants_stop()
        if grace is None or self.code is not None:
            return
        if self.status.get("stopped"):
            # Somebody may have lost patience since.
            self.kill_at = min(self.kill_at, time.monotonic() + grace)
            return
        self.status["stopped"] = True
        self.end(grace)

    def look_at_the_clock(self) -> None:
        if time.monotonic() >= self.end_at:
            self.status["timed_out"] = True
            self.end(self.spec["grace"])
        if time.monotonic() >= self.kill_at:
            self.kill_at = time.monotonic() + 0.2
            self.kill_all()

    def look_for_a_wish(self) -> None:
        if time.monotonic() >= self.look_at:
            self.look_at = time.monotonic() + LOOK_MILLIS / 1000
            self.obey()

    def end(self, grace: float) -> None:
        """Ask the process and its group politely; `kill_at` is for what does not listen."""
        self.end_at = float("inf")
        self.kill_at = min(self.kill_at, time.monotonic() + grace)
        try:
            os.killpg(os.getpgid(self.inner or self.main), signal.SIGTERM)
        except (ProcessLookupError, PermissionError):
            return

    def kill_all(self) -> None:
        for path in self.groups:
            if write(f"{path}/cgroup.kill", "1"):
                continue
            for member in read(f"{path}/cgroup.procs").split():
                kill(int(member))
        for pid in descendants(os.getpid()):
            kill(pid)

    def finish(self) -> None:
        deadline = time.monotonic() + DRAIN_SECONDS
        poll = select.poll()
        poll.register(self.output, select.POLLIN)
        open_ = True
        while time.monotonic() < deadline and (open_ or descendants(os.getpid())):
            self.kill_all()
            self.reap()
            while open_ and poll.poll(10):
                open_ = self.carry(self.output)
        self.log.close()
        self.carry(self.told_fd)
        self.conclude()

    def conclude(self) -> None:
        code = self.code or 0
        if self.spec["sandboxed"]:
            code = self.code_inside(code)
        oom = any(killed_for_memory(path) for path in self.groups)
        if code != 0 and (limit := max(map(refused_processes, self.groups), default=0)):
            self.status.setdefault("reason", f"it wanted more than {limit} processes")
        self.free_groups()
        self.say_at_last(
            phase="exited",
            ended_at=self.now(),
            exit_code=128 - code if code < 0 else code,
            signal=-code if code < 0 else None,
            out_of_memory=oom and code != 0,
        )

    def code_inside(self, code: int) -> int:
        """Return how the process in the sandbox ended; bubblewrap tells its own end by the same."""
        if b'"exit-code"' in self.told or code <= 0:
            # As a shell does, it adds 128 to the signal that killed the process.
            return SIGNALED - code if SIGNALED < code <= SIGNALED + signal.SIGRTMAX else code
        words = self.log.last.removeprefix(b"bwrap: ").decode()
        if words.startswith("execvp "):
            program, _, why = words.removeprefix("execvp ").rpartition(": ")
            self.status["reason"] = f"{program} could not be started: {why}"
            return 127
        self.status["reason"] = f"The sandbox could not be set up: {words}"
        return code
