"""Real processes of a hub: started, asked, stopped and killed by tests."""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2

from hublet.core.config import Settings, load

# Generous, because the machine is shared; nothing here is a measurement.
READY_SECONDS = 180.0
STOP_SECONDS = 180.0

# The public client gives up after ten seconds, which a busy machine may take.
_PATIENT_CLIENT = {"HF_HUB_ETAG_TIMEOUT": "60", "HF_HUB_DOWNLOAD_TIMEOUT": "60"}

HUBLET = (sys.executable, "-m", "hublet")

_PAUSE_SECONDS = 0.01
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What all processes of one hub share; the key ring lies in the data folder."""

    folder: Path
    database_url: str | None = None

    @property
    def data_dir(self) -> Path:
        return self.folder / "data"

    @property
    def flags(self) -> list[str]:
        url = [] if self.database_url is None else ["--database-url", self.database_url]
        return ["--data-dir", str(self.data_dir), *url]

    @property
    def settings(self) -> Settings:
        """Settings with which this process opens the same hub through the library."""
        given = {"database.data_dir": self.data_dir, "database.url": self.database_url}
        return load(given, environ={})


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process of a hub; what it writes is kept in two files."""

    popen: subprocess.Popen[bytes]
    stdout: Path
    stderr: Path

    def stop(self) -> None:
        """Ask it to stop, and insist that it ends well."""
        self.popen.send_signal(signal.SIGTERM)
        assert self.popen.wait(STOP_SECONDS) == 0, self.stderr.read_text()

    def kill(self) -> None:
        """End it as a power cut would: nothing of it runs any more when this returns."""
        self.popen.kill()
        self.popen.wait(STOP_SECONDS)

    def told(self) -> dict[str, str]:
        """Wait for the line of JSON that it prints when it is ready, and return it."""
        self._wait_until(lambda: self.stdout.read_text().endswith("\n"))
        told: dict[str, str] = json.loads(self.stdout.read_text())
        return told

    def wait_for(self, words: str) -> None:
        """Wait until these words stand on its standard error."""
        self._wait_until(lambda: words in self.stderr.read_text())

    def wait_for_output(self, words: str) -> None:
        """Wait until these words stand on its standard output."""
        self._wait_until(lambda: words in self.stdout.read_text())

    def _wait_until(self, is_so: Callable[[], bool]) -> None:
        wait_until(lambda: is_so() or self.popen.poll() is not None, seconds=READY_SECONDS)
        assert is_so(), self.stderr.read_text()


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    process: Process
    address: str
    # What only a first start tells.
    user: str | None
    password: str | None
    token: str | None

    def client(self, token: str | None = None) -> httpx2.Client:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        # Without kept connections: the server closes one that was idle for some seconds, and a
        # slow machine would ask over it in that moment.
        return httpx2.Client(
            base_url=self.address,
            headers=headers,
            timeout=READY_SECONDS,
            trust_env=False,
            limits=httpx2.Limits(max_keepalive_connections=0),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningWorker:
    process: Process
    name: str


def wait_until(is_so: Callable[[], bool], *, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, f"Waited {seconds} seconds in vain."
        time.sleep(_PAUSE_SECONDS)


def clean_environment(variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this process's variables without settings of a hub or a client of the developer's."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HUBLET_", "HF_"))}
    return kept | _PATIENT_CLIENT | dict(variables or {})


def run_hublet(
    *arguments: str, folder: Path, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end in this folder."""
    return subprocess.run(
        [*HUBLET, *arguments],
        cwd=folder,
        env=clean_environment(variables),
        capture_output=True,
        text=True,
        timeout=READY_SECONDS,
        check=False,
    )


@contextmanager
def started(
    place: Place,
    *arguments: str,
    variables: Mapping[str, str] | None = None,
    program: Sequence[str] = HUBLET,
) -> Iterator[Process]:
    """Start a command that runs until it is stopped; stop it at the end unless that was done."""
    output = place.folder / f"{arguments[0]}-{next(_numbers)}"
    stdout, stderr = output.with_suffix(".stdout"), output.with_suffix(".stderr")
    with stdout.open("wb") as out, stderr.open("wb") as err:
        popen = subprocess.Popen(
            [*program, *arguments, *place.flags],
            cwd=place.folder,
            env=clean_environment(variables),
            stdout=out,
            stderr=err,
        )
    process = Process(popen=popen, stdout=stdout, stderr=stderr)
    try:
        yield process
        if popen.poll() is None:
            process.stop()
        assert popen.returncode in {0, -signal.SIGKILL}, stderr.read_text()
    finally:
        # After a failure its exit code would only hide what went wrong.
        process.kill()


@contextmanager
def serving(
    place: Place,
    *flags: str,
    variables: Mapping[str, str] | None = None,
    program: Sequence[str] = HUBLET,
    alone: bool = False,
) -> Iterator[Server]:
    """Serve a hub: one process, or as many nodes behind a balancer as HUBLET_TEST_NODES says.

    `alone` is for tests whose subject is one process: its signals, sockets or children.
    """
    # Imported here, because it uses this module.
    from cluster import cluster, wanted_nodes, wanted_store  # noqa: PLC0415

    if not alone and place.database_url is not None and (nodes := wanted_nodes()) > 1:
        with cluster(
            place,
            *flags,
            nodes=nodes,
            store=wanted_store(place),
            variables=variables,
            program=program,
        ) as running:
            yield running.server
        return
    arguments = ("serve", "--port", "0", "--json", *flags)
    with started(place, *arguments, variables=variables, program=program) as process:
        told = process.told()
        if "firstAdministrator" in told:
            told |= json.loads(Path(told["firstAdministrator"]).read_text())
        yield Server(
            process=process,
            address=told["address"],
            user=told.get("user"),
            password=told.get("password"),
            token=told.get("token"),
        )


@contextmanager
def working(place: Place, *, variables: Mapping[str, str] | None = None) -> Iterator[RunningWorker]:
    """Run a worker beside a hub, with the store of its nodes where it has several."""
    from cluster import store_variables, wanted_nodes, wanted_store  # noqa: PLC0415 - as above

    if place.database_url is not None and wanted_nodes() > 1:
        variables = {**store_variables(wanted_store(place)), **(variables or {})}
    with started(place, "worker", "--json", variables=variables) as process:
        yield RunningWorker(process=process, name=process.told()["worker"])
