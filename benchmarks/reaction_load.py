"""What follows an event in a worker of its own: its reactions, and a notification for each watcher."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace

from benchmarks.database_costs import Costs, measured_costs
from benchmarks.discussions import Discussion, add_users, create_discussion, watch
from benchmarks.figures import Spoiled
from benchmarks.nodes import Cluster
from benchmarks.process_trees import cpu_seconds_of_tree
from hublet.core import outbox
from hublet.core.database import Database
from hublet.core.ids import new_object_id
from hublet.core.outbox import publish
from hublet.events import CommentCreated

# As many as make a mail of several events rare, as it is.
_DISCUSSIONS = 200
_EVENTS_PER_COMMIT = 20
_LONGEST_SECONDS = 180.0


async def create_discussions(database: Database, *, watchers: int) -> list[Discussion]:
    """Return discussions in repositories that so many watch."""
    name = f"of-{watchers}"
    (owner_id,) = await add_users(database, f"ada-{name}", 1)
    users = await add_users(database, f"watcher-{name}", watchers) if watchers else []
    talks = []
    for number in range(_DISCUSSIONS):
        talk = await create_discussion(database, owner_id, number)
        if users:
            await watch(database, users, repo_id=talk.repo_id)
        talks.append(talk)
    return talks


async def react(
    database: Database, cluster: Cluster, talks: Sequence[Discussion], *, events: int, worker: int
) -> tuple[float, Costs]:
    """Publish events and wait for all that follows; return what it cost the worker and the database."""
    before = cpu_seconds_of_tree(worker)
    with measured_costs(cluster.site.database_url) as costs:
        for done in range(0, events, _EVENTS_PER_COMMIT):
            async with database.transaction() as conn:
                for number in range(done, min(events, done + _EVENTS_PER_COMMIT)):
                    await publish(conn, _next_comment(talks[number % len(talks)]))
        await _all_done(database)
    return cpu_seconds_of_tree(worker) - before, costs()


def _next_comment(talk: Discussion) -> CommentCreated:
    # Who was notified of a comment is not notified of it again.
    comment = replace(talk.event.comment, id=new_object_id())
    return replace(talk.event, comment=comment)


async def _all_done(database: Database) -> None:
    deadline = time.monotonic() + _LONGEST_SECONDS
    while await _count_open(database):
        if time.monotonic() > deadline:
            raise Spoiled(f"Reactions were not done within {_LONGEST_SECONDS:.0f} seconds.")
        await asyncio.sleep(0.05)


async def _count_open(database: Database) -> int:
    async with database.read() as conn:
        # In this order: what leaves the outbox in between is a task by then.
        events = await outbox.count_waiting(conn)
        reactions: int = await conn.fetch_value(
            "SELECT count(*) FROM tasks WHERE kind LIKE 'reaction:%'"
        )
    return events + reactions
