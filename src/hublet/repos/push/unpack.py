"""Unpacking of a push: git checks and indexes its objects in quarantine."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from hublet.repos.errors import BadPack, GitFailed
from hublet.repos.git import quarantine
from hublet.repos.git.process import start_git
from hublet.repos.push import wire
from hublet.repos.push.wire import PacketReader

# Git holds small files and their history; five gigabytes are a great many of them.
LARGEST_PACK = 5 << 30

# Of a refused push: a client reads the reason only when it has sent everything.
LARGEST_DRAINED = 256 << 20

# A pack says in its first twelve bytes how many objects follow.
_HEADER = 12
_EMPTY = b"\0\0\0\0"
# Faults of very old git versions, which do no harm; repositories with them are still around.
_IGNORED_FAULTS = "badTimezone=ignore,missingSpaceBeforeDate=ignore,zeroPaddedFilemode=ignore"


@asynccontextmanager
async def quarantine_objects(folder: Path) -> AsyncIterator[Path]:
    """Create a quarantine folder for the objects of a push; remove it in the end."""
    objects = await asyncio.to_thread(quarantine.create, folder)
    try:
        yield objects
    finally:
        await asyncio.shield(asyncio.to_thread(quarantine.remove, objects))


async def unpack(folder: Path, objects: Path, packets: PacketReader) -> None:
    """Let git check and index the pack that follows; raise BadPack when it is invalid."""
    header = await packets.peek(_HEADER)
    if not header or header[-len(_EMPTY) :] == _EMPTY:
        await drain(packets)
        return
    try:
        await _index(folder, objects, packets)
    except GitFailed as error:
        # The client listens only once it has sent everything.
        await drain(packets)
        raise BadPack(_summarize(str(error))) from None


async def _index(folder: Path, objects: Path, packets: PacketReader) -> None:
    arguments = (
        *("index-pack", "--stdin", "--fix-thin", f"--strict={_IGNORED_FAULTS}"),
        f"--max-input-size={LARGEST_PACK}",
    )
    variables = quarantine.variables(folder, objects)
    async with start_git(folder, *arguments, variables=variables) as git:
        try:
            async for piece in packets.rest():
                git.stdin.write(piece)
                await git.stdin.drain()
            git.stdin.close()
        except (BrokenPipeError, ConnectionResetError):
            # Git ended early; its exit status says why.
            pass
        await git.stdout.read()
        await git.end()


async def drain(packets: PacketReader) -> None:
    """Read and discard the rest of the body; raise RequestTooLarge when it is too long."""
    async for _ in wire.limit_size(packets.rest(), largest=LARGEST_DRAINED):
        pass


def _summarize(complaints: str) -> str:
    """Return git's first complaint, without its prefixes."""
    lines = [line for line in complaints.splitlines() if "/" not in line]
    first = next(iter(lines), "it is not a valid pack")
    for word in ("fatal: ", "error: "):
        first = first.removeprefix(word)
    return f"git refused the objects of this push: {first}"
