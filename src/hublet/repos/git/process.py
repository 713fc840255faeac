"""Git subprocess: run without the configuration of the hub's user, and ended in any case."""

import asyncio
import os
import shutil
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import IO

from hublet.core.dataclasses import dataclass
from hublet.repos.errors import GitFailed, GitMissing

# A git process that runs longer is killed, however slow the client is.
LONGEST_SECONDS = 3600

_MOST_STDERR = 4000
_SETTINGS = (
    # The folder may belong to another user than the one the hub runs as, as in a container.
    *("-c", "safe.directory=*"),
    *("-c", "gc.auto=0"),
    # Clones that fetch files when they need them, with the old protocol as with the newest.
    *("-c", "uploadpack.allowFilter=true"),
    *("-c", "uploadpack.allowAnySHA1InWant=true"),
)


@cache
def program() -> str:
    found = shutil.which("git")
    if found is None:
        raise GitMissing
    return found


def command(folder: Path, *arguments: str) -> list[str]:
    return [program(), *_SETTINGS, f"--git-dir={folder}", *arguments]


def clean_environment(variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the whole environment of a git process, with these variables."""
    return {
        "PATH": os.defpath,
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
    } | dict(variables or {})


@dataclass(frozen=True, slots=True, kw_only=True)
class GitProcess:
    process: Process
    complaints: IO[bytes]

    @property
    def stdin(self) -> asyncio.StreamWriter:
        assert self.process.stdin is not None  # noqa: S101 - asked for by whoever writes
        return self.process.stdin

    @property
    def stdout(self) -> asyncio.StreamReader:
        assert self.process.stdout is not None  # noqa: S101 - it is always a pipe
        return self.process.stdout

    async def end(self) -> None:
        """Wait for the exit, and raise GitFailed unless the status is 0."""
        if await self.process.wait() != 0:
            self.complaints.seek(0)
            raise GitFailed(self.complaints.read(_MOST_STDERR).decode(errors="replace").strip())


@asynccontextmanager
async def start_git(
    folder: Path,
    *arguments: str,
    stdin: int | IO[bytes] = PIPE,
    variables: Mapping[str, str] | None = None,
) -> AsyncIterator[GitProcess]:
    """Start git in a bare repository; it is ended when the block is left, whatever the reason."""
    with tempfile.TemporaryFile() as complaints:
        try:
            process = await asyncio.create_subprocess_exec(
                *command(folder, *arguments),
                stdin=stdin,
                stdout=PIPE,
                stderr=complaints,
                env=clean_environment(variables),
                # Not where the hub was started: git must find nothing there.
                cwd=folder,
            )
        except FileNotFoundError:
            raise GitFailed("The repository was removed a moment ago.") from None
        limit = asyncio.get_running_loop().call_later(LONGEST_SECONDS, _kill, process)
        try:
            yield GitProcess(process=process, complaints=complaints)
        finally:
            limit.cancel()
            # This task may be cancelled again and again; the one that ends git is not.
            await asyncio.shield(asyncio.create_task(_end(process)))


async def run_git(folder: Path, *arguments: str) -> None:
    """Run git to its end; raise GitFailed unless the status is 0."""
    async with start_git(folder, *arguments, stdin=asyncio.subprocess.DEVNULL) as git:
        await git.stdout.read()
        await git.end()


async def _end(process: Process) -> None:
    _kill(process)
    if process.stdin is not None:
        process.stdin.close()
    # Its pipes are read empty, else they would stay open.
    await process.communicate()


def _kill(process: Process) -> None:
    if process.returncode is None:
        process.kill()
