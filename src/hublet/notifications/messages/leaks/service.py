"""Rules of leaked credentials: found in what anybody may read, told to their owner."""

import asyncio

from hublet.core.database import Connection, Database
from hublet.core.outbox import publish
from hublet.events import SecretDetected
from hublet.notifications.messages.leaks.records import Finding, Search
from hublet.notifications.messages.leaks.searching import search
from hublet.repos import service as repos
from hublet.repos import store as repo_rows
from hublet.repos.git import folders
from hublet.repos.records import Repo
from hublet.tokens import service as tokens


async def look(database: Database, wanted: Search) -> None:
    """Look through new commits of a public repository, and tell of each credential that works."""
    async with database.read() as conn:
        repo = await repo_rows.find(conn, wanted.repo_id)
    if repo is None or repo.is_private:
        return
    settings = database.hub.settings
    folder = folders.folder_of(settings.database.data_dir, repo.id)
    found = await asyncio.to_thread(search, folder, wanted, prefix=settings.tokens.prefix)
    if found:
        async with database.transaction() as conn:
            for finding in found:
                await _publish(conn, repo, finding)


async def _publish(conn: Connection, repo: Repo, finding: Finding) -> None:
    caller = await tokens.find_caller(conn, finding.value)
    if caller is None:
        return
    await publish(
        conn,
        SecretDetected(
            user_id=caller.user_id,
            token_id=caller.token.id,
            name=caller.token.name,
            hint=caller.token.hint,
            repo=repos.snapshot(repo),
            path=finding.path,
            commit=finding.commit,
        ),
    )
