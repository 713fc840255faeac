"""Child processes: started, waited for, and ended by their id however a run ends."""

import fcntl
import http.client
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures import Spoiled

ROOT = Path(__file__).parent.parent
# Where the commands of this environment are.
COMMANDS = Path(sys.executable).parent

_READY_SECONDS = 60.0
_STOP_SECONDS = 15.0
_PAUSE_SECONDS = 0.002
# Below those that the system gives to whoever takes any.
_FIRST_PORT, _PORTS = 20_000, 12_000


def clean_environment(variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this process's variables without settings of a hub or a client of the developer's."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HUBLET_", "HF_"))}
    return kept | dict(variables or {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    process: subprocess.Popen[bytes]
    name: str
    output: Path

    @property
    def id(self) -> int:
        return self.process.pid

    def last_words(self) -> str:
        return (self.output.read_text(errors="replace").splitlines() or ["nothing"])[-1]


@contextmanager
def running(
    arguments: Sequence[str],
    *,
    output: Path,
    core: int | None = None,
    variables: Mapping[str, str] | None = None,
) -> Iterator[Child]:
    """Run a process until the body ends; what it writes goes to a file."""
    with output.open("ab") as file:
        process = subprocess.Popen(
            arguments,
            cwd=ROOT,
            env=clean_environment(variables),
            stdout=file,
            stderr=file,
        )
    try:
        if core is not None:
            os.sched_setaffinity(process.pid, {core})
        name = " ".join(Path(part).name for part in arguments[:3])
        yield Child(process=process, name=name, output=output)
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def free_port() -> int:
    """Return a port that nobody listens on, and that nobody on this machine is given soon again.

    It is for a program that is told its port before it listens: one of those that the system gives to
    whoever takes any may be taken meanwhile.
    """
    with (Path(tempfile.gettempdir()) / f"hublet-ports-{os.getuid()}").open("a+") as last:
        fcntl.flock(last, fcntl.LOCK_EX)
        last.seek(0)
        port = _next_free(int(last.read() or _FIRST_PORT))
        last.truncate(0)
        last.write(str(port))
    return port


def _next_free(port: int) -> int:
    for _ in range(_PORTS):
        port = _FIRST_PORT + (port + 1 - _FIRST_PORT) % _PORTS
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise OSError("No port is free.")


def wait_until_it_answers(
    child: Child, port: int, path: str, headers: Mapping[str, str] | None = None
) -> None:
    """Wait for the first good answer; a process that ended instead spoils the measurement."""
    deadline = time.monotonic() + _READY_SECONDS
    while not _answers(port, path, headers):
        if child.process.poll() is not None:
            raise Spoiled(f"{child.name} ended before it answered and said: {child.last_words()}")
        if time.monotonic() > deadline:
            raise Spoiled(f"{child.name} did not answer within {_READY_SECONDS:.0f} seconds.")
        time.sleep(_PAUSE_SECONDS)


def _answers(port: int, path: str, headers: Mapping[str, str] | None) -> bool:
    try:
        return fetch(port, path, headers)[0] == 200
    except (OSError, http.client.HTTPException):
        return False


def fetch(port: int, path: str, headers: Mapping[str, str] | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_READY_SECONDS)
    try:
        connection.request("GET", path, headers=dict(headers or {}))
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def _status_of(process_id: int) -> list[str]:
    # The name of the program may hold blanks; the fields are counted from its bracket.
    return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()


def hold(child: Child) -> None:
    """Send a process SIGSTOP, and return when it has reached it."""
    os.kill(child.id, signal.SIGSTOP)
    while child.process.poll() is None and _status_of(child.id)[0] != "T":
        time.sleep(_PAUSE_SECONDS)


def cpu_seconds(process_id: int) -> float:
    """Return the processor time that a process has taken so far, in all its threads."""
    fields = _status_of(process_id)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def megabytes_of(process_id: int) -> dict[str, float]:
    """Return the resident memory of a process: VmRSS now, VmHWM at the most so far."""
    status = Path(f"/proc/{process_id}/status").read_text()
    sizes = dict(line.split(":", 1) for line in status.splitlines())
    return {name: int(sizes[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM")}


def seconds_to_run(
    arguments: Sequence[str], *, variables: Mapping[str, str] | None = None
) -> float:
    """Run a command to its end; one that fails spoils the measurement."""
    start = time.perf_counter()
    done = subprocess.run(
        arguments,
        cwd=ROOT,
        env=clean_environment(variables),
        capture_output=True,
        timeout=_READY_SECONDS,
        check=False,
    )
    seconds = time.perf_counter() - start
    if done.returncode:
        raise Spoiled(f"{arguments} ended with {done.returncode}.")
    return seconds
