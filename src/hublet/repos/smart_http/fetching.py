"""Clone and fetch: git's own work, fed with the request and read as it answers."""

import re
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import IO

from hublet.core.logs import get_logger
from hublet.repos.git.processes import GitFailed, running
from hublet.repos.smart_http.errors import GitStumbled
from hublet.repos.smart_http.pkt_lines import FLUSH, packet
from hublet.repos.smart_http.slots import Slots

log = get_logger("git")

_PIECE = 1 << 16
_PROTOCOL = re.compile(r"[a-z0-9=:.-]{1,100}")
_NEWEST = "version=2"


async def advertisement(folder: Path, protocol: str | None) -> bytes:
    """Return what a client hears before it fetches."""
    options = ("--stateless-rpc", "--http-backend-info-refs")
    try:
        async with running(
            folder, "upload-pack", *options, str(folder), stdin=DEVNULL, variables=_asked(protocol)
        ) as git:
            told = await git.stdout.read()
            await git.end()
    except GitFailed as error:
        log.warning("git failed", folder=folder.name, error=str(error))
        raise GitStumbled from None
    # The newest protocol does without the line that names the service.
    is_newest = protocol is not None and _NEWEST in protocol.split(":")
    return told if is_newest else packet(b"# service=git-upload-pack\n") + FLUSH + told


async def answer(
    slots: Slots, folder: Path, asked: IO[bytes], *, protocol: str | None
) -> AsyncGenerator[bytes]:
    """Yield git's answer to a request; git is ended when nobody wants the rest."""
    command = ("upload-pack", "--stateless-rpc", str(folder))
    variables = _asked(protocol)
    with asked:
        try:
            async with (
                slots.one(),
                running(folder, *command, stdin=asked, variables=variables) as git,
            ):
                while piece := await git.stdout.read(_PIECE):
                    yield piece
                await git.end()
        except GitFailed as error:
            # Git has told the client itself, as far as it was the client's fault.
            log.warning("git failed", folder=folder.name, error=str(error))


def _asked(protocol: str | None) -> dict[str, str]:
    if protocol is None or not _PROTOCOL.fullmatch(protocol):
        return {}
    return {"GIT_PROTOCOL": protocol}
