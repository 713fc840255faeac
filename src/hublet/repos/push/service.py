"""Git over HTTP: who may fetch and push, and the steps of a push."""

from dataclasses import replace
from pathlib import Path

import pygit2

from hublet.core.database import Database, Reader
from hublet.core.errors import NotAllowed, NotFound
from hublet.repos import service as repos
from hublet.repos.errors import BadPack, PushRefused, RepoFolderGone
from hublet.repos.maintenance import sync_packed_refs
from hublet.repos.packs.workspaces import open_workspace
from hublet.repos.push import apply, commands, ref_rules, unpack
from hublet.repos.push.apply import PushRequest
from hublet.repos.push.commands import CommandOutcome
from hublet.repos.push.wire import PacketReader
from hublet.repos.records import Repo, RepoAddress, Right
from hublet.repos.refs import store as ref_store
from hublet.tokens.errors import GitTokenNeeded
from hublet.tokens.records import Caller


async def get_or_challenge(
    conn: Reader, caller: Caller | None, address: RepoAddress, right: Right
) -> Repo:
    """Return the repository as `repos.service.get` does, but challenge a caller without a token.

    Git asks its user for a password only then; "not found" would be the end of it.
    """
    try:
        return await repos.get(conn, caller, address, right)
    except (NotFound, NotAllowed):
        if caller is None:
            raise GitTokenNeeded from None
        raise


async def prepare_fetch(database: Database, caller: Caller | None, address: RepoAddress) -> Path:
    """Return the folder of a repository that the caller may read, its packed-refs up to date."""
    async with database.read() as conn:
        repo = await get_or_challenge(conn, caller, address, Right.read)
    return await sync_packed_refs(database, repo.id)


async def advertise_refs(conn: Reader, caller: Caller | None, address: RepoAddress) -> bytes:
    """Return the ref advertisement that begins a push."""
    if caller is None:
        raise GitTokenNeeded
    repo = await apply.get_to_push(conn, caller, address)
    return commands.advertisement(
        {ref.name: ref.sha for ref in await ref_store.list_of(conn, repo.id)}
    )


async def receive(
    database: Database, caller: Caller | None, address: RepoAddress, packets: PacketReader
) -> bytes:
    """Receive a push: check it, move the refs, and return the status report."""
    if caller is None:
        raise GitTokenNeeded
    async with database.read() as conn:
        repo = await apply.get_to_push(conn, caller, address)
    push = await commands.read_push(packets)
    if not push.commands:
        # Git probes like this whether it is allowed to push, before it sends something large.
        return b""
    pushing = PushRequest(caller=caller, address=address, push=push)
    try:
        async with database.read() as conn:
            await apply.check_refs(conn, caller, repo, push)
        return commands.report(push, await _apply(database, repo, pushing, packets))
    except BadPack as error:
        outcomes = ref_rules.refuse_all(push, "nothing of the push could be used")
        return commands.report(push, outcomes, unpacked=str(error))
    except PushRefused as error:
        # The client listens only once it has sent everything.
        await unpack.drain(packets)
        return commands.report(push, ref_rules.refuse_all(push, str(error)))


async def _apply(
    database: Database, repo: Repo, pushing: PushRequest, packets: PacketReader
) -> list[CommandOutcome]:
    folder = await sync_packed_refs(database, repo.id)
    async with open_workspace(database, repo.id) as work:
        try:
            async with unpack.quarantine_objects(work.folder) as objects:
                await unpack.unpack(work.folder, objects, packets)
                content = await apply.accept_objects(
                    database, repo, pushing.push, folder=work.folder, objects=objects
                )
        except (OSError, pygit2.GitError):
            if folder.exists():
                raise
            raise RepoFolderGone from None
        content = replace(content, packs=await work.upload())
        return await apply.update_refs(database, pushing, content)
