"""A Docker engine that the tests start for themselves, with one image that needs no network."""

import os
import shutil
import signal
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from patience import SOON_SECONDS
from processes import wait_until

# What names an engine that runs already; it has to know the image.
VARIABLE = "HUBLET_TEST_DOCKER"
IMAGE = os.environ.get("HUBLET_TEST_DOCKER_IMAGE", "busybox")

_START_SECONDS = _STOP_SECONDS = SOON_SECONDS


@contextmanager
def running_engine() -> Iterator[str]:
    """Yield the address of an engine; skip the test with the reason where there can be none."""
    if given := os.environ.get(VARIABLE):
        yield given
        return
    if reason := _why_not():
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="hublet-docker-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        with _started(folder) as address:
            _import_image(folder, address)
            _check(address)
            yield address


def _why_not() -> str | None:
    if os.geteuid() != 0:
        return f"Only root can start a Docker engine, and {VARIABLE} names none."
    for program in ("dockerd", "docker", "busybox"):
        if shutil.which(program) is None:
            return f"{program} is missing, and {VARIABLE} names no engine."
    return None


@contextmanager
def _started(folder: Path) -> Iterator[str]:
    socket, log = folder / "engine.sock", folder / "log"
    address = f"unix://{socket}"
    options = {
        "--host": address,
        "--data-root": folder / "data",
        "--exec-root": folder / "exec",
        "--pidfile": folder / "pid",
        "--storage-driver": "vfs",
        # It must not touch this machine's network beyond the networks that tests ask for.
        "--iptables": "false",
        "--bridge": "none",
    }
    with log.open("wb") as output:
        engine = subprocess.Popen(
            ["dockerd", *(f"{name}={value}" for name, value in options.items())],
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_until(lambda: engine.poll() is not None or _answers(address), seconds=_START_SECONDS)
        if engine.poll() is not None:
            last = log.read_text(errors="replace").strip().splitlines()[-1:]
            pytest.skip(f"A Docker engine cannot start here: {' '.join(last)}")
        yield address
    finally:
        if engine.poll() is None:
            engine.send_signal(signal.SIGTERM)
        engine.wait(_STOP_SECONDS)


def _answers(address: str) -> bool:
    return _docker(address, "version").returncode == 0


def _check(address: str) -> None:
    """Skip the test on a machine whose engine starts, and cannot run what we want of it."""
    for command in (
        ["network", "create", "tried"],
        ["run", "--rm", "--network", "tried", "--memory", "64m", "--cpus", "1", IMAGE, "true"],
        ["network", "rm", "tried"],
    ):
        tried = _docker(address, *command)
        if tried.returncode != 0 or "not support" in tried.stderr:
            pytest.skip(f"A Docker engine cannot run containers here: {tried.stderr.strip()}")


def _docker(address: str, *command: str) -> subprocess.CompletedProcess[str]:
    line = ["docker", "--host", address, *command]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def _import_image(folder: Path, address: str) -> None:
    """Make an image of the machine's busybox, under all its names."""
    busybox = shutil.which("busybox") or ""
    applets = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True)
    path = folder / "image.tar"
    with tarfile.open(path, "w") as archive:
        archive.add(os.path.realpath(busybox), "bin/busybox")
        for name in set(applets.stdout.split()) - {"busybox"}:
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            archive.addfile(link)
        for name in ("tmp", "etc"):
            made = tarfile.TarInfo(name)
            made.type, made.mode = tarfile.DIRTYPE, 0o777
            archive.addfile(made)
    imported = _docker(address, "import", str(path), IMAGE)
    assert imported.returncode == 0, imported.stderr
