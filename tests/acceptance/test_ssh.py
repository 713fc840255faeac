"""Jobs entered with OpenSSH's own client, by hand and by `hf jobs ssh`."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from gateway.ssh.listening_jobs import a_port, listens
from patience import SOON_SECONDS
from processes import Place, Server, clean_environment, run_hublet, serving, wait_until
from runtime.networks.machines import needs_networks

pytestmark = pytest.mark.skipif(shutil.which("ssh") is None, reason="OpenSSH is not installed.")

HF = Path(__file__).parents[2] / ".venv" / "clients" / "2.4.0" / "bin" / "hf"
PYTHON = "/usr/bin/python3"
RUNNERS = [
    "process",
    pytest.param(
        "sandbox",
        marks=pytest.mark.skipif(
            shutil.which("bwrap") is None, reason="bubblewrap is not installed."
        ),
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody with a token and keys, on a machine where the domain of jobs leads to the hub."""

    hub: Server
    token: str
    folder: Path

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        with self.hub.client(self.token) as client:
            response = client.request(method, path, json=body)
        assert response.status_code == 200, response.text
        return response.json()

    def run(self, *command: str, **more: Any) -> Any:
        """Return a job with SSH as soon as it runs."""
        body = {"dockerImage": "ubuntu", "flavor": "cpu-basic", "command": command}
        job = self.ask("POST", "/api/jobs/ada", body | {"ssh": {"enabled": True}} | more)
        path = f"/api/jobs/ada/{job['id']}"
        wait_until(
            lambda: self.ask("GET", path)["status"]["stage"] == "RUNNING", seconds=SOON_SECONDS
        )
        return job

    def key(self, name: str) -> str:
        """Make a pair of keys; return the public one."""
        path = self.folder / name
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path))
        return path.with_suffix(".pub").read_text()

    def command(self, program: str, key: str, job: Any) -> list[str]:
        """Return the beginning of a command of OpenSSH's that goes to a job."""
        port = str(urlsplit(job["status"]["sshUrl"]).port)
        identity = ["-i", str(self.folder / key), "-F", str(self.config)]
        return [program, *identity, "-p" if program == "ssh" else "-P", port]

    @property
    def config(self) -> Path:
        path = self.folder / "config"
        path.write_text(
            "Host *\n"
            "  HostName 127.0.0.1\n"
            f"  UserKnownHostsFile {self.folder / 'known'}\n"
            "  StrictHostKeyChecking accept-new\n"
            "  IdentitiesOnly yes\n"
            "  BatchMode yes\n"
            "  LogLevel ERROR\n"
        )
        return path

    def ssh(self, job: Any, *words: str, key: str = "key", **more: Any) -> Any:
        flags = more.pop("flags", [])
        return _run(*self.command("ssh", key, job), *flags, _name(job), *words, **more)


def _run(*command: str, check: bool = True, **more: Any) -> subprocess.CompletedProcess[str]:
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=SOON_SECONDS, check=False, **more
    )
    assert not check or ended.returncode == 0, (command, ended.stderr)
    return ended


@contextmanager
def a_hub(place: Place, runner: str) -> Iterator[Person]:
    variables = {
        "HUBLET_JOBS_SSH_PORT": "0",
        "HUBLET_JOBS_RUNNER": runner,
        # So that two of them run at the same time on any machine.
        "HUBLET_JOBS_FLAVORS": "cpu-basic=0.5:256M",
    }
    with serving(place, "--test-mode", variables=variables) as hub:
        for command in (["user", "add", "ada"], ["token", "create", "ada"]):
            ended = run_hublet(*command, *place.flags, folder=place.folder)
            assert ended.returncode == 0, ended.stderr
        person = Person(hub=hub, token=ended.stdout.strip(), folder=place.folder)
        key = {"title": "laptop", "key": person.key("key")}
        person.ask("POST", "/api/settings/ssh-keys", key)
        person.key("stranger")
        try:
            yield person
        finally:
            _end_jobs(person)


def _end_jobs(person: Person) -> None:
    jobs = [job for job in person.ask("GET", "/api/jobs/ada") if _goes_on(job)]
    for job in jobs:
        person.ask("POST", f"/api/jobs/ada/{job['id']}/cancel")
    for job in jobs:
        path = f"/api/jobs/ada/{job['id']}"
        wait_until(partial(_is_over, person, path), seconds=SOON_SECONDS)


def _is_over(person: Person, path: str) -> bool:
    return not _goes_on(person.ask("GET", path))


def _goes_on(job: Any) -> bool:
    return job["status"]["stage"] in {"SCHEDULING", "RUNNING"}


@pytest.mark.parametrize("runner", RUNNERS)
def test_openssh_runs_commands_gets_a_terminal_and_copies_files(place: Place, runner: str) -> None:
    with a_hub(place, runner) as person:
        job = person.run("sleep", "300", environment={"COLOUR": "blue"})

        ended = person.ssh(job, "echo $COLOUR; cat; exit 7", input="typed\n", check=False)
        assert (ended.stdout, ended.returncode) == ("blue\ntyped\n", 7)

        terminal = person.ssh(job, "tty; test -t 0", flags=["-tt"])
        assert terminal.stdout.startswith("/dev/pts/")

        shell = person.ssh(job, flags=["-T"], input="echo $JOB_ID; exit 3\n", check=False)
        assert (shell.stdout, shell.returncode) == (f"{job['id']}\n", 3)

        refused = person.ssh(job, "true", key="stranger", check=False)
        where = f"{job['id']}@127.0.0.1"
        assert (refused.returncode, refused.stderr) == (
            255,
            f"{where}: Permission denied (publickey).\n",
        )

        _copies_both_ways(person, job)
        _brings_a_port_here(person, runner)
        _takes_a_port_there(person, job)


def _copies_both_ways(person: Person, job: Any) -> None:
    source, back = person.folder / "source", person.folder / "back"
    source.write_bytes(os.urandom(5_000_000))
    there = f"{_name(job)}:copy"
    _run(*person.command("scp", "key", job), "-p", str(source), there)
    _run(*person.command("scp", "key", job), there, str(back))
    assert back.read_bytes() == source.read_bytes()
    batch = "mkdir d\nrename copy d/copy\nsymlink d/copy link\nls -l d\nrm link\n"
    listed = _run(*person.command("sftp", "key", job), "-b", "-", _name(job), input=batch)
    assert "5000000" in listed.stdout


def _brings_a_port_here(person: Person, runner: str) -> None:
    port = a_port()
    # A sandbox sees the programs of this machine, but those of no home.
    python = sys.executable if runner == "process" else PYTHON
    job = person.run(*listens(port, python=python))
    _is_brought_here(person, job, f"localhost:{port}")


def _takes_a_port_there(person: Person, job: Any) -> None:
    connect = 'socket.create_connection(("127.0.0.1", int(sys.argv[1])))'
    script = f"{PYTHON} -c 'import socket, sys; print({connect}.recv(9).decode())'"
    with socket.create_server(("127.0.0.1", 0)) as mine, ThreadPoolExecutor(1) as thread:
        answering = thread.submit(_answer_once, mine)
        there, here = a_port(), mine.getsockname()[1]
        printed = person.ssh(job, f"{script} {there}", flags=["-R", f"{there}:127.0.0.1:{here}"])
        answering.result(SOON_SECONDS)
    assert printed.stdout == "from here\n"


def _answer_once(mine: socket.socket) -> None:
    mine.settimeout(SOON_SECONDS)
    with mine.accept()[0] as made:
        made.sendall(b"from here")


def _is_brought_here(person: Person, job: Any, there: str) -> None:
    with brought_here(person, job, there) as address:
        port = urlsplit(address).port
        wait_until(lambda: _echo(port) == b"you said hello", seconds=SOON_SECONDS)


@contextmanager
def brought_here(person: Person, job: Any, there: str) -> Iterator[str]:
    """Yield where a port beside a job is on this machine."""
    here = a_port()
    forward = ["-N", "-L", f"127.0.0.1:{here}:{there}"]
    command = [*person.command("ssh", "key", job), *forward, _name(job)]
    with subprocess.Popen(command) as tunnel:
        try:
            yield f"http://127.0.0.1:{here}"
        finally:
            tunnel.kill()


def _echo(port: int | None) -> bytes:
    """Say hello to a port of this machine; return what it says, nothing while nobody is there."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as made:
            made.sendall(b"hello")
            made.shutdown(socket.SHUT_WR)
            return made.recv(100)
    except OSError:
        return b""


@needs_networks
def test_a_port_of_another_in_the_network_group_is_brought_here(place: Place) -> None:
    network = {"group": "train", "aliases": ["leader"]}
    with a_hub(place, "sandbox") as person:
        person.run(*listens(8000, address="0.0.0.0", python=PYTHON), network=network)
        job = person.run("sleep", "300", network={"group": "train", "aliases": []})
        leader = person.ssh(job, "echo ${HUB_NETWORK_GROUP_PREFIX}leader").stdout.strip()

        _is_brought_here(person, job, f"{leader}:8000")


def test_the_public_command_enters_a_job_until_the_key_is_gone(place: Place) -> None:
    with a_hub(place, "process") as person:
        job = person.run("sleep", "300")

        command = [str(HF), "jobs", "ssh", job["id"], "-i", str(place.folder / "key")]
        ended = _run(
            *command,
            env=_with_a_domain(person),
            input="echo in $JOB_ID; exit 4\n",
            check=False,
        )
        assert ended.returncode == 4, ended.stderr
        assert ended.stdout.splitlines()[-1] == f"in {job['id']}"

        _is_shown_out(person, job)


def _with_a_domain(person: Person) -> dict[str, str]:
    """Return variables with which the client's `ssh` knows where the domain of jobs leads."""
    programs = person.folder / "programs"
    programs.mkdir()
    program = programs / "ssh"
    program.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {person.config} "$@"\n')
    program.chmod(0o755)
    variables = {
        "HF_ENDPOINT": person.hub.address,
        "HF_TOKEN": person.token,
        "HF_HOME": str(person.folder / "client"),
        "HF_HUB_DISABLE_UPDATE_CHECK": "1",
    }
    found = clean_environment(variables)
    return found | {"PATH": f"{programs}:{found['PATH']}"}


def _is_shown_out(person: Person, job: Any) -> None:
    command = [*person.command("ssh", "key", job), _name(job), "echo on; sleep 600"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as guest:
        assert guest.stdout is not None
        assert guest.stdout.readline() == b"on\n"
        [key] = person.ask("GET", "/api/settings/ssh-keys")
        person.ask("DELETE", f"/api/settings/ssh-keys/{key['id']}")
        assert guest.wait(SOON_SECONDS) == 255


def _name(job: Any) -> str:
    return f"{job['id']}@ssh.jobs.localhost"
