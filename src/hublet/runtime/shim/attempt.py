"""Attempt as its shim runs it: start, output into the log, deadline, end."""

import fcntl
import os
import select
import signal
import time
from typing import Any

from .child import NEWNET, exec_job
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
# After every writer was killed, the rest of a pipe is read at once; this only bounds the wait.
DRAIN_SECONDS = 2.0
STATUS_FILE, STOP_FILE = "status.json", "stop"
# A hub on another machine can write the stop file, but not send a signal.
STOP_POLL_MILLIS = 2000
SUBREAPER = 36
SIGNALED = 128
BOOT = read("/proc/sys/kernel/random/boot_id").decode().strip()


class ShimAttempt:
    """One attempt, from the start of its process until nothing of it is left."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec, self.folder = spec, spec["folder"]
        self.groups: list[str] = []
        self.main = self.inner = 0
        self.code: int | None = None
        self.kill_at = self.end_at = float("inf")
        self.next_stop_poll = 0.0
        self.bwrap_status = b""
        pid = os.getpid()
        self.status: dict[str, Any] = {
            "phase": "pending",
            "pid": pid,
            "start": start_time(pid),
            "boot": BOOT,
            "main": 0,
            # Also those that do not exist yet: who cleans up after a killed shim must know them.
            "groups": [path for path, _ in spec["groups"]],
        }

    def now(self) -> int:
        return time.time_ns() // 1000 + int(self.spec["offset"])

    def write_status(self, **changes: Any) -> None:
        self.status |= changes
        path = f"{self.folder}/{STATUS_FILE}"
        fd = os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        os.write(fd, to_json(self.status).encode())
        os.close(fd)
        os.replace(f"{path}.new", path)  # noqa: PTH105 - pathlib is much to load.

    def write_final_status(self, **changes: Any) -> None:
        """Write how it ended; retry as long as the disk is full."""
        while True:
            try:
                self.write_status(**changes)
            except FileNotFoundError:
                return  # The folder was removed: nobody reads the status any more.
            except OSError:
                time.sleep(1)
            else:
                return

    def discard(self) -> None:
        """Remove the groups and status of an attempt that could not start, so it can be ordered again."""
        self.free_groups()
        if self.main == 0 and self.status["phase"] == "pending":
            os.unlink(f"{self.folder}/{STATUS_FILE}")  # noqa: PTH108 - pathlib is much to load.

    def requested_grace(self) -> float | None:
        """Return the grace in seconds of a stop request; None: there is none."""
        try:
            return float(read(f"{self.folder}/{STOP_FILE}"))
        except ValueError:
            return None

    def start(self) -> None:
        self.log = Log(self.spec["log"], limit=self.spec["log_bytes"], offset=self.spec["offset"])
        moment, micros = divmod(self.now(), 1_000_000)
        hour = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment))
        self.log.add(f"===== Job started at {hour}.{micros // 1000:03}Z =====\n".encode())
        if self.spec["notice"]:
            self.log.add(f"{self.spec['notice']}\n".encode())
        self.make_groups()
        if self.spec["adopt"]:
            call("prctl", SUBREAPER, 1, 0, 0, 0)
        self.output, output = os.pipe2(os.O_CLOEXEC)
        self.bwrap_status_fd, bwrap_status = os.pipe2(os.O_CLOEXEC)
        failed, failure = os.pipe2(os.O_CLOEXEC)
        try:
            fcntl.fcntl(output, fcntl.F_SETPIPE_SZ, CHUNK)
        except OSError:
            self.log.stamp = 0  # The user has too many pipes: a small one works as well.
        shim = os.getpid()
        self.enter_network()
        self.main = os.fork()
        if self.main == 0:
            exec_job(self.spec, groups=self.groups, shim=shim, fds=(output, bwrap_status, failure))
        for fd in (output, bwrap_status, failure, self.spec["network"]):
            if fd >= 0:
                os.close(fd)
        self.end_at = time.monotonic() + self.spec["timeout"]
        self.write_status(
            phase="running", started_at=self.now(), main=self.main, groups=self.groups
        )
        self.failed = failed

    def enter_network(self) -> None:
        """Open the job's network, and join the switch of its group.

        Namespaces end with the last process or descriptor in them: from now on those are the shim's.
        """
        for name in ("network", "switch"):
            path = self.spec[name]
            self.spec[name] = os.open(path, os.O_RDONLY | os.O_CLOEXEC) if path else -1
        if (switch := self.spec["switch"]) >= 0:
            call("setns", switch, NEWNET)
            os.close(switch)

    def read_start_failure(self) -> None:
        """Wait until the child has executed the job; keep the reason if it could not."""
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
                    # Killed processes have not been reaped yet.
                    time.sleep(0.002)

    def supervise(self) -> None:
        """Copy output into the log until the process ends; stop it on request or at its deadline."""
        self.read_start_failure()
        wake_fd, signal_fd = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(signal_fd, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        poll = select.poll()
        for fd in (wake_fd, self.output, self.bwrap_status_fd):
            poll.register(fd, select.POLLIN)
        # A stop request or an exit may have come before the handlers were set.
        self.reap()
        self.apply_stop_request()
        while self.code is None:
            for fd, _ in poll.poll(self.wait_millis()):
                if fd == wake_fd:
                    os.read(wake_fd, 4096)
                    self.reap()
                    self.apply_stop_request()
                elif not self.forward(fd):
                    poll.unregister(fd)
            self.check_deadlines()
            self.poll_stop_request()

    def wait_millis(self) -> float:
        nearest = min(self.kill_at, self.end_at) - time.monotonic()
        return min(max(nearest * 1000, 0) + 1, STOP_POLL_MILLIS)

    def forward(self, fd: int) -> bool:
        """Read a pipe once: output goes into the log; return False at its end."""
        data = os.read(fd, CHUNK)
        if fd == self.bwrap_status_fd:
            self.bwrap_status += data
            _, found, rest = self.bwrap_status.partition(b'"child-pid": ')
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

    def apply_stop_request(self) -> None:
        grace = self.requested_grace()
        if grace is None or self.code is not None:
            return
        if self.status.get("stopped"):
            # A later request may have a shorter grace.
            self.kill_at = min(self.kill_at, time.monotonic() + grace)
            return
        self.status["stopped"] = True
        self.terminate(grace)

    def check_deadlines(self) -> None:
        if time.monotonic() >= self.end_at:
            self.status["timed_out"] = True
            self.terminate(self.spec["grace"])
        if time.monotonic() >= self.kill_at:
            self.kill_at = time.monotonic() + 0.2
            self.kill_all()

    def poll_stop_request(self) -> None:
        if time.monotonic() >= self.next_stop_poll:
            self.next_stop_poll = time.monotonic() + STOP_POLL_MILLIS / 1000
            self.apply_stop_request()

    def terminate(self, grace: float) -> None:
        """Send SIGTERM to the process group; everything left at `kill_at` is killed."""
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
        """Kill what is left, drain the output, and write the final status."""
        deadline = time.monotonic() + DRAIN_SECONDS
        poll = select.poll()
        poll.register(self.output, select.POLLIN)
        is_open = True
        while time.monotonic() < deadline and (is_open or descendants(os.getpid())):
            self.kill_all()
            self.reap()
            while is_open and poll.poll(10):
                is_open = self.forward(self.output)
        self.log.close()
        self.forward(self.bwrap_status_fd)
        self.report_exit()

    def report_exit(self) -> None:
        code = self.code or 0
        if self.spec["sandboxed"]:
            code = self.code_inside(code)
        oom = any(killed_for_memory(path) for path in self.groups)
        if code != 0 and (limit := max(map(refused_processes, self.groups), default=0)):
            self.status.setdefault("reason", f"it wanted more than {limit} processes")
        self.free_groups()
        self.write_final_status(
            phase="exited",
            ended_at=self.now(),
            exit_code=128 - code if code < 0 else code,
            signal=-code if code < 0 else None,
            out_of_memory=oom and code != 0,
        )

    def code_inside(self, code: int) -> int:
        """Return the exit code of the process in the sandbox, as distinct from bubblewrap's own."""
        if b'"exit-code"' in self.bwrap_status or code <= 0:
            # Like a shell, bubblewrap adds 128 to the signal that killed the process.
            return SIGNALED - code if SIGNALED < code <= SIGNALED + signal.SIGRTMAX else code
        words = self.log.last.removeprefix(b"bwrap: ").decode()
        if words.startswith("execvp "):
            program, _, why = words.removeprefix("execvp ").rpartition(": ")
            self.status["reason"] = f"{program} could not be started: {why}"
            return 127
        self.status["reason"] = f"The sandbox could not be set up: {words}"
        return code
