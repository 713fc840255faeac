"""Reactions of community: pushed commits are added to the history of their pull request."""

import asyncio
from collections.abc import Iterator
from datetime import datetime

import msgspec

from hublet.community.discussions import comparison, pull_requests, service, store
from hublet.community.discussions.records import number_of
from hublet.community.threads.service import ThreadContext
from hublet.core import queue
from hublet.core.clock import now
from hublet.core.database import Connection, Database, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.outbox import reacts_to
from hublet.core.queue import NewTask, handles_slowly
from hublet.events import RepoContentUpdated, RepoSnapshot
from hublet.repos.service import open_folder

NOTE_COMMITS = "discussions.note-commits"


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequestPush:
    """A push to a pull request."""

    repo: RepoSnapshot
    number: int
    old_sha: str
    new_sha: str
    actor_id: str
    # Pushes are handled concurrently; this keeps them in order.
    at: datetime


def _moves_pull_request(event: RepoContentUpdated) -> bool:
    return any(number_of(update.ref) is not None for update in event.updated_refs)


@reacts_to(RepoContentUpdated, when=_moves_pull_request)
async def queue_pushed_commits(conn: Connection, event: RepoContentUpdated) -> None:
    # Which commits are new only git knows, and git does not run inside a transaction.
    bodies = [msgspec.json.encode(push).decode() for push in _pushes(event)]
    await queue.add_many(conn, [NewTask(kind=NOTE_COMMITS, body=body) for body in bodies])


def _pushes(event: RepoContentUpdated) -> Iterator[PullRequestPush]:
    for update in event.updated_refs:
        number = number_of(update.ref)
        # The first commit of a pull request is recorded when the request is opened.
        if number is not None and update.old_sha is not None and update.new_sha is not None:
            yield PullRequestPush(
                repo=event.repo,
                number=number,
                old_sha=update.old_sha,
                new_sha=update.new_sha,
                actor_id=event.actor_id,
                at=now(),
            )


@handles_slowly(NOTE_COMMITS, reads=PullRequestPush)
async def note_commits(database: Database, push: PullRequestPush) -> None:
    async with database.read() as conn:
        if await store.find(conn, push.repo.id, push.number) is None:
            return
    folder = await open_folder(database, push.repo.id)
    commits = await asyncio.to_thread(
        comparison.new_commits, folder, old=push.old_sha, new=push.new_sha
    )
    context = ThreadContext(may_read=_nobody_may_read, repo=push.repo)
    async with database.transaction() as conn:
        await service.lock(conn, push.repo.id, push.number)
        thread = await store.find(conn, push.repo.id, push.number)
        if thread is not None:
            await pull_requests.add_commits(
                conn, thread, context, commits, actor_id=push.actor_id, at=push.at
            )


async def _nobody_may_read(_conn: Reader, _user_id: str) -> bool:
    # Never called: commits do not mention users.
    return False
