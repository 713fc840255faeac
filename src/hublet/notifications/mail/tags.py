"""New tags of a repository: who is told of them by mail."""

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from hublet.core.database import Connection
from hublet.core.light_dataclasses import dataclass
from hublet.core.queue import NewTask, add
from hublet.events import RepoContentUpdated
from hublet.notifications.mail import queueing, store
from hublet.notifications.preferences.keys import Key
from hublet.notifications.preferences.service import who_wants
from hublet.repos import service as repos
from hublet.repos import store as repo_rows

TELL = "notifications.mail-tags"

# Users looked at in one transaction.
BATCH = 500
# A mail names no more; who pushes a hundred tags at once pushes a history, not releases.
MOST = 20
_TAGS = "refs/tags/"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTags:
    """Tags that were created together, and how far the telling of them has come."""

    repo_id: str
    actor_id: str
    tags: Sequence[str]
    after: str = ""


async def begin(conn: Connection, event: RepoContentUpdated) -> None:
    created = [
        update.ref.removeprefix(_TAGS)
        for update in event.updated_refs
        if update.ref.startswith(_TAGS) and update.old_sha is None and update.new_sha is not None
    ]
    if created:
        news = NewTags(repo_id=event.repo.id, actor_id=event.actor_id, tags=created[:MOST])
        await _go_on(conn, news)


async def tell(conn: Connection, news: NewTags) -> None:
    """Have the next of those who watch it told; whoever made the tags knows of them."""
    repo = await repo_rows.find(conn, news.repo_id)
    if repo is None:
        return
    page = await store.list_watchers(
        conn, repo_id=repo.id, owner_id=repo.owner_id, after=news.after, limit=BATCH
    )
    others = [user_id for user_id in page if user_id != news.actor_id]
    seeing = await repos.who_may_see(conn, repos.snapshot(repo), others)
    wanting = await who_wants(conn, Key.repo_release, seeing)
    await queueing.mail_of_tags(conn, repo_id=repo.id, tags=news.tags, user_ids=wanting)
    if len(page) == BATCH:
        await _go_on(conn, replace(news, after=page[-1]))


async def _go_on(conn: Connection, news: NewTags) -> None:
    await add(conn, NewTask(kind=TELL, body=msgspec.json.encode(news).decode()))
