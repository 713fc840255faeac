"""Mails about new tags: queues them for those who watch the repository, and writes the mail."""

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from hublet.core.database import Connection, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.queue import NewTask, add
from hublet.events import RepoContentUpdated
from hublet.notifications.mail import mail_queue, store
from hublet.notifications.mail.letters import MailContent, list_id, may_see
from hublet.notifications.mail.records import QueuedMail
from hublet.notifications.preferences.service import who_wants
from hublet.notifications.preferences.switches import PreferenceKey
from hublet.repos import service as repos
from hublet.repos import store as repo_rows
from hublet.repos.refs import service as refs

NOTIFY_OF_TAGS = "notifications.mail-tags"

# Users processed in one transaction.
BATCH = 500
# A mail names no more; who pushes a hundred tags at once pushes a history, not releases.
MOST_TAGS = 20
_TAG_PREFIX = "refs/tags/"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTags:
    """Tags that were created together, and the last user who was notified of them."""

    repo_id: str
    actor_id: str
    tags: Sequence[str]
    after: str = ""


def has_new_tags(event: RepoContentUpdated) -> bool:
    return bool(_new_tags(event))


async def queue_new_tags(conn: Connection, event: RepoContentUpdated) -> None:
    if created := _new_tags(event):
        new_tags = NewTags(repo_id=event.repo.id, actor_id=event.actor_id, tags=created[:MOST_TAGS])
        await _queue_page(conn, new_tags)


def _new_tags(event: RepoContentUpdated) -> list[str]:
    return [
        update.ref.removeprefix(_TAG_PREFIX)
        for update in event.updated_refs
        if update.ref.startswith(_TAG_PREFIX)
        and update.old_sha is None
        and update.new_sha is not None
    ]


async def notify_watchers(conn: Connection, new_tags: NewTags) -> None:
    """Queue mails to a page of those who watch the repository, except for the actor."""
    repo = await repo_rows.find(conn, new_tags.repo_id)
    if repo is None:
        return
    page = await store.list_watchers(
        conn, repo_id=repo.id, owner_id=repo.owner_id, after=new_tags.after, limit=BATCH
    )
    others = [user_id for user_id in page if user_id != new_tags.actor_id]
    seeing = await repos.who_may_see(conn, repos.snapshot(repo), others)
    wanting = await who_wants(conn, PreferenceKey.repo_release, seeing)
    await mail_queue.queue_tags_mail(conn, repo_id=repo.id, tags=new_tags.tags, user_ids=wanting)
    if len(page) == BATCH:
        await _queue_page(conn, replace(new_tags, after=page[-1]))


async def _queue_page(conn: Connection, new_tags: NewTags) -> None:
    await add(conn, NewTask(kind=NOTIFY_OF_TAGS, body=msgspec.json.encode(new_tags).decode()))


async def write_tags_mail(conn: Reader, mail: QueuedMail) -> MailContent | None:
    """Return the mail's content, the tags that still exist; None when none does, or it is hidden."""
    repo = await repo_rows.find(conn, mail.about)
    if repo is None or not await may_see(conn, repo, mail.user_id):
        return None
    tags = [
        tag
        for tag in mail.events
        if await refs.find_sha(conn, repo, f"refs/tags/{tag}") is not None
    ]
    if not tags:
        return None
    url = repo.url(conn.hub.settings.base_url)
    noun = "tag" if len(tags) == 1 else "tags"
    return MailContent(
        subject=f"[{repo.full_name}] New {noun} {', '.join(tags)}",
        template="tags",
        values={
            "repo": repo.full_name,
            "tags": [{"name": tag, "url": f"{url}/tree/{tag}"} for tag in tags],
        },
        why=f"You get this because you watch {repo.full_name}.",
        root=f"tags.{repo.id}",
        headers=list_id(conn.hub, repo),
    )
