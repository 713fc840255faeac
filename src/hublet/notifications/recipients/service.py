"""Service of recipients: notifies those who watch, take part or were mentioned, page by page."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import replace

import msgspec

from hublet.core import queue
from hublet.core.database import Connection, Reader
from hublet.notifications.inbox import service as inbox
from hublet.notifications.mail.mail_queue import queue_thread_mail
from hublet.notifications.preferences.service import list_choices
from hublet.notifications.preferences.switches import PreferenceKey
from hublet.notifications.recipients import store
from hublet.notifications.recipients.records import ThreadActivity, ThreadSubject, channel_keys
from hublet.notifications.records import Involvement
from hublet.repos import service as repos

NOTIFY = "notifications.tell"

# So many users are processed in one task; the next ones are left to the next task.
BATCH = 200


async def lock_fan_out(conn: Connection) -> None:
    """Lock changes of many inboxes until the transaction ends.

    A transaction of the worker locks the inboxes of several tasks, so two of them could wait for
    each other. And what is removed from inboxes must not be added by a task that read before.
    """
    await conn.lock("fan-out")


async def record_participation(conn: Connection, thread_id: str, actor_id: str) -> None:
    """Raise the involvement of who acts in a thread, where the thread is in the inbox already."""
    await lock_fan_out(conn)
    await inbox.involve(conn, thread_id, actor_id, Involvement.participating)


async def notify(conn: Connection, activity: ThreadActivity) -> None:
    """Notify a page of users, and leave the rest to the next task; the actor is never notified."""
    await lock_fan_out(conn)
    subject = await store.find_subject(conn, activity.thread_id)
    if subject is None:
        return
    page = await store.list_candidates(conn, subject, after=activity.after, limit=BATCH)
    await _notify(conn, subject, activity, page)
    if len(page) == BATCH:
        rest = replace(activity, after=max(page))
        body = msgspec.json.encode(rest).decode()
        await queue.add(conn, queue.NewTask(kind=NOTIFY, body=body))
        # On SQLite nothing above yields to the event loop, and a batch may hold many pages.
        await asyncio.sleep(0)


async def notify_mentioned(
    conn: Connection, activity: ThreadActivity, user_ids: Collection[str]
) -> None:
    """Notify only those whom a changed text newly mentions; they are few."""
    if not user_ids:
        return
    await lock_fan_out(conn)
    subject = await store.find_subject(conn, activity.thread_id)
    if subject is not None:
        await _notify(conn, subject, activity, dict.fromkeys(user_ids, Involvement.mentioned))


async def _notify(
    conn: Connection,
    subject: ThreadSubject,
    activity: ThreadActivity,
    candidates: Mapping[str, Involvement],
) -> None:
    others = {
        user: involvement for user, involvement in candidates.items() if user != activity.actor_id
    }
    if not others:
        return
    eligible = await _eligible_recipients(conn, subject, others)
    in_inbox, by_mail = await _wanted_channels(conn, subject, eligible)
    recipients = {user: eligible[user] for user in in_inbox}
    # A mail is dropped when the item was read meanwhile, so the item comes first.
    if recipients:
        await inbox.deliver(conn, subject.item(activity.event_id), recipients)
    if by_mail:
        await queue_thread_mail(
            conn, thread_id=subject.thread_id, event_id=activity.event_id, recipients=by_mail
        )


async def _eligible_recipients(
    conn: Reader, subject: ThreadSubject, candidates: Mapping[str, Involvement]
) -> dict[str, Involvement]:
    """Leave out who may not see it, muted the thread, or merely watches a muted repository."""
    unmuted = await store.list_unmuted(conn, subject, candidates)
    eligible = {
        user: candidates[user]
        for user, muted_repo in unmuted.items()
        if not (muted_repo and candidates[user] is Involvement.watched)
    }
    if subject.repo is None:
        return eligible
    seen_by = await repos.who_may_see(conn, subject.repo, eligible)
    return {user: involvement for user, involvement in eligible.items() if user in seen_by}


async def _wanted_channels(
    conn: Reader, subject: ThreadSubject, eligible: Mapping[str, Involvement]
) -> tuple[dict[str, PreferenceKey], dict[str, PreferenceKey]]:
    """Return who wants it in the inbox and who by mail, each with the deciding preference."""
    in_inbox: dict[str, PreferenceKey] = {}
    by_mail: dict[str, PreferenceKey] = {}
    chosen = await list_choices(conn, eligible)
    for user, involvement in eligible.items():
        keys = channel_keys(subject.kind, involvement)
        if chosen[user].wants(keys.inbox):
            in_inbox[user] = keys.inbox
        if chosen[user].wants(keys.mail):
            by_mail[user] = keys.mail
    return in_inbox, by_mail
