"""Clone and fetch: git upload-pack as a subprocess, its output streamed, in a limited number."""

import asyncio
import re
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO

from hublet.core.logs import get_logger
from hublet.repos.errors import GitBusy, GitFailed, GitUnavailable
from hublet.repos.git.process import start_git
from hublet.repos.push.wire import FLUSH, packet

log = get_logger("git")

# A slot is held for as long as the client takes, so there are more of them than processors.
MOST_SLOTS = 32
PATIENCE_SECONDS = 20.0

_PIECE = 1 << 16
_PROTOCOL = re.compile(r"[a-z0-9=:.-]{1,100}")
_NEWEST = "version=2"


class GitSlots:
    """Slots for git processes that run at the same time."""

    def __init__(
        self, *, most: int = MOST_SLOTS, patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        self._free = asyncio.Semaphore(most)
        self._patience_seconds = patience_seconds

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """Hold a slot; GitBusy when none becomes free soon."""
        try:
            async with asyncio.timeout(self._patience_seconds):
                await self._free.acquire()
        except TimeoutError:
            raise GitBusy from None
        try:
            yield
        finally:
            self._free.release()


async def advertisement(folder: Path, protocol: str | None) -> bytes:
    """Return the ref advertisement that begins a fetch."""
    options = ("--stateless-rpc", "--http-backend-info-refs")
    try:
        async with start_git(
            folder,
            "upload-pack",
            *options,
            str(folder),
            stdin=DEVNULL,
            variables=_protocol_variables(protocol),
        ) as git:
            refs = await git.stdout.read()
            await git.end()
    except GitFailed as error:
        log.warning("git failed", folder=folder.name, error=str(error))
        raise GitUnavailable from None
    # The newest protocol does without the line that names the service.
    is_newest = protocol is not None and _NEWEST in protocol.split(":")
    return refs if is_newest else packet(b"# service=git-upload-pack\n") + FLUSH + refs


async def stream_pack(
    slots: GitSlots, folder: Path, request: IO[bytes], *, protocol: str | None
) -> AsyncGenerator[bytes]:
    """Yield git's response to a request; git ends with the generator."""
    command = ("upload-pack", "--stateless-rpc", str(folder))
    variables = _protocol_variables(protocol)
    with request:
        try:
            async with (
                slots.one(),
                start_git(folder, *command, stdin=request, variables=variables) as git,
            ):
                while piece := await git.stdout.read(_PIECE):
                    yield piece
                await git.end()
        except GitFailed as error:
            # Git has sent the error to the client, as far as it was the client's fault.
            log.warning("git failed", folder=folder.name, error=str(error))


def _protocol_variables(protocol: str | None) -> dict[str, str]:
    if protocol is None or not _PROTOCOL.fullmatch(protocol):
        return {}
    return {"GIT_PROTOCOL": protocol}
