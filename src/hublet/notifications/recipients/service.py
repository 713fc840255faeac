"""Service that notifies those who watch, take part or were mentioned, a page of users at a time."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import replace

import msgspec

from hublet.core import queue
from hublet.core.database import Connection, Reader
from hublet.notifications.inbox import service as inbox
from hublet.notifications.mail.mail_queue import queue_thread_mail
from hublet.notifications.preferences.service import who_wants
from hublet.notifications.preferences.switches import PreferenceKey
from hublet.notifications.recipients import store
from hublet.notifications.recipients.records import ThreadActivity, ThreadSubject, channel_keys
from hublet.notifications.records import Involvement
from hublet.repos import service as repos

NOTIFY = "notifications.tell"

# So many users are looked at in one task; the next ones are left to the next task.
BATCH = 200


async def lock_fan_out(conn: Connection) -> None:
    """Let no other worker change many inboxes until the end.

    A transaction of the worker holds the inboxes of several tasks, so two of them could wait for
    each other. And what is taken out of inboxes must not be put in by somebody who looked before.
    """
    await conn.lock("fan-out")


async def record_participation(conn: Connection, thread_id: str, actor_id: str) -> None:
    """Who acts in a thread takes part in it, also where the thread is in the inbox already."""
    await lock_fan_out(conn)
    await inbox.involve(conn, thread_id, actor_id, Involvement.participating)


async def notify(conn: Connection, news: ThreadActivity) -> None:
    """Tell a page of users, and leave the rest to the next task; who acted is never told."""
    await lock_fan_out(conn)
    subject = await store.find_subject(conn, news.thread_id)
    if subject is None:
        return
    page = await store.list_candidates(conn, subject, after=news.after, limit=BATCH)
    await _notify(conn, subject, news, page)
    if len(page) == BATCH:
        rest = replace(news, after=max(page))
        body = msgspec.json.encode(rest).decode()
        await queue.add(conn, queue.NewTask(kind=NOTIFY, body=body))
        # On SQLite nothing above lets go of the event loop, and a batch may hold many pages.
        await asyncio.sleep(0)


async def notify_mentioned(
    conn: Connection, news: ThreadActivity, user_ids: Collection[str]
) -> None:
    """Tell only those whom a changed text mentions anew; they are few."""
    if not user_ids:
        return
    await lock_fan_out(conn)
    subject = await store.find_subject(conn, news.thread_id)
    if subject is not None:
        await _notify(conn, subject, news, dict.fromkeys(user_ids, Involvement.mentioned))


async def _notify(
    conn: Connection,
    subject: ThreadSubject,
    news: ThreadActivity,
    candidates: Mapping[str, Involvement],
) -> None:
    others = {user: has for user, has in candidates.items() if user != news.actor_id}
    hearing = await _eligible_recipients(conn, subject, others)
    in_inbox, by_mail = await _wanted_channels(conn, subject, hearing)
    recipients = {user: hearing[user] for user in in_inbox}
    # A mail is dropped when the item was read meanwhile, so the item comes first.
    if recipients:
        await inbox.deliver(conn, subject.item(news.event_id), recipients)
    if by_mail:
        await queue_thread_mail(
            conn, thread_id=subject.thread_id, event_id=news.event_id, recipients=by_mail
        )


async def _eligible_recipients(
    conn: Reader, subject: ThreadSubject, candidates: Mapping[str, Involvement]
) -> dict[str, Involvement]:
    """Leave out who may not see it, and who muted the thread, or merely watches a muted repo."""
    listeners = await store.list_unmuted(conn, subject, candidates)
    hearing = {
        user: candidates[user]
        for user, muted_repo in listeners.items()
        if not (muted_repo and candidates[user] is Involvement.watched)
    }
    if subject.repo is None:
        return hearing
    seen_by = await repos.who_may_see(conn, subject.repo, hearing)
    return {user: has for user, has in hearing.items() if user in seen_by}


async def _wanted_channels(
    conn: Reader, subject: ThreadSubject, hearing: Mapping[str, Involvement]
) -> tuple[dict[str, PreferenceKey], dict[str, PreferenceKey]]:
    """Return who wants it in the inbox and who by mail, each with the switch that says so."""
    in_inbox: dict[str, PreferenceKey] = {}
    by_mail: dict[str, PreferenceKey] = {}
    for involvement in Involvement:
        users = [user for user, has in hearing.items() if has is involvement]
        if users:
            choice = channel_keys(subject.kind, involvement)
            in_inbox |= dict.fromkeys(await who_wants(conn, choice.inbox, users), choice.inbox)
            by_mail |= dict.fromkeys(await who_wants(conn, choice.mail, users), choice.mail)
    return in_inbox, by_mail
