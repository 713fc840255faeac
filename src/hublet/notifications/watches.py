"""Service of watches and mutes: changes what a user watches and mutes."""

from collections.abc import Iterable, Sequence

from hublet.community.threads import store as threads
from hublet.core.database import Connection, Reader
from hublet.notifications import watches_store
from hublet.notifications.errors import WatchListTooLong, WatchTargetNotFound
from hublet.notifications.records import MuteType, SubscriptionEntry, SubscriptionTarget

# A list is shown as a whole.
MOST_WATCHED = 10_000
MOST_MUTED = 10_000


async def watch(
    conn: Connection,
    *,
    user_id: str,
    delete: Sequence[SubscriptionTarget],
    add: Sequence[SubscriptionTarget],
) -> list[SubscriptionEntry]:
    """Change what a user watches, all of it or nothing; return what is watched then.

    Deleting what is not watched, or does not exist any more, is no error.
    """
    await _check_visible(conn, add, user_id=user_id)
    await watches_store.remove_watches(conn, delete, user_id=user_id)
    await watches_store.add_watches(conn, add, user_id=user_id)
    if add and await watches_store.count_watched(conn, user_id=user_id) > MOST_WATCHED:
        raise WatchListTooLong("watch", MOST_WATCHED)
    return await watches_store.list_watched(conn, user_id=user_id)


async def mute(
    conn: Connection,
    *,
    user_id: str,
    delete: Sequence[SubscriptionTarget],
    add: Sequence[SubscriptionTarget],
) -> list[SubscriptionEntry]:
    """Change what a user muted, by the same rules."""
    await _check_visible(conn, add, user_id=user_id)
    await watches_store.unmute_repos(conn, _ids(delete, MuteType.repo), user_id=user_id)
    await watches_store.mute_repos(conn, _ids(add, MuteType.repo), user_id=user_id)
    for targets, muted in ((delete, False), (add, True)):
        for thread_id in _ids(targets, MuteType.thread):
            await threads.set_muted(conn, thread_id, user_id=user_id, muted=muted)
    if add and await watches_store.count_muted(conn, user_id=user_id) > MOST_MUTED:
        raise WatchListTooLong("mute", MOST_MUTED)
    return await watches_store.list_muted(conn, user_id=user_id)


async def _check_visible(
    conn: Reader, targets: Sequence[SubscriptionTarget], *, user_id: str
) -> None:
    if not targets:
        return
    visible = await watches_store.find_visible(conn, {each.id for each in targets}, user_id=user_id)
    for place, target in enumerate(targets):
        if (target.type, target.id) not in visible:
            raise WatchTargetNotFound(place, target.type, target.id)


def _ids(targets: Iterable[SubscriptionTarget], type_: MuteType) -> list[str]:
    return list(dict.fromkeys(each.id for each in targets if each.type is type_))
