"""Rules of git over HTTP: who may fetch and push, and the steps of a push."""

from pathlib import Path

import pygit2

from hublet.core.database import Database, Reader
from hublet.core.errors import NotAllowed, NotFound
from hublet.repos import service as repos
from hublet.repos.maintenance.errors import FolderGone
from hublet.repos.maintenance.service import with_refs_written
from hublet.repos.records import Repo, RepoAddress, Right
from hublet.repos.refs import store as refs
from hublet.repos.smart_http import commands, landing, receiving, rights, rules
from hublet.repos.smart_http.errors import BadPack, PushRefused
from hublet.repos.smart_http.landing import Pushing
from hublet.repos.smart_http.pkt_lines import PacketReader
from hublet.repos.smart_http.records import Outcome
from hublet.tokens.errors import GitTokenNeeded
from hublet.tokens.records import Caller


async def get(conn: Reader, caller: Caller | None, address: RepoAddress, right: Right) -> Repo:
    """Return the repository as elsewhere, but challenge whoever shows no token.

    Git asks its user for a password only then; "not found" would be the end of it.
    """
    try:
        return await repos.get(conn, caller, address, right)
    except (NotFound, NotAllowed):
        if caller is None:
            raise GitTokenNeeded from None
        raise


async def folder_to_fetch(database: Database, caller: Caller | None, address: RepoAddress) -> Path:
    """Return where git finds what the caller may read, its list of refs up to date."""
    async with database.read() as conn:
        repo = await get(conn, caller, address, Right.read)
    return await with_refs_written(database, repo.id)


async def offer(conn: Reader, caller: Caller | None, address: RepoAddress) -> bytes:
    """Return what a client hears before it pushes."""
    if caller is None:
        raise GitTokenNeeded
    repo = await rights.get_to_push(conn, caller, address)
    return commands.advertisement({ref.name: ref.sha for ref in await refs.list_of(conn, repo.id)})


async def receive(
    database: Database, caller: Caller | None, address: RepoAddress, packets: PacketReader
) -> bytes:
    """Take a push: check it, move the refs, and return what is told about each."""
    if caller is None:
        raise GitTokenNeeded
    async with database.read() as conn:
        repo = await rights.get_to_push(conn, caller, address)
    push = await commands.read_push(packets)
    if not push.commands:
        # Git asks like this whether it is let in, before it sends something large.
        return b""
    pushing = Pushing(caller=caller, address=address, push=push)
    try:
        async with database.read() as conn:
            await rights.check_refs(conn, caller, repo, push)
        return commands.report(push, await _take(database, repo, pushing, packets))
    except BadPack as error:
        outcomes = rules.refused(push, "nothing of the push could be used")
        return commands.report(push, outcomes, unpacked=str(error))
    except PushRefused as error:
        # The client listens only once it has sent everything.
        await receiving.swallow(packets)
        return commands.report(push, rules.refused(push, str(error)))


async def _take(
    database: Database, repo: Repo, pushing: Pushing, packets: PacketReader
) -> list[Outcome]:
    folder = await with_refs_written(database, repo.id)
    try:
        async with receiving.quarantined(folder) as objects:
            await receiving.unpack(folder, objects, packets)
            content = await landing.let_in(
                database, repo, pushing.push, folder=folder, objects=objects
            )
    except (OSError, pygit2.GitError):
        if folder.exists():
            raise
        raise FolderGone from None
    return await landing.move_refs(database, pushing, content)
