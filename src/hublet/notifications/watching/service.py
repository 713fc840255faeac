"""Rules of watching and muting."""

from collections.abc import Iterable, Sequence

from hublet.community.threads import store as threads
from hublet.core.database import Connection, Reader
from hublet.notifications.watching import store
from hublet.notifications.watching.errors import ListTooLong, TargetNotFound
from hublet.notifications.watching.records import Entry, MuteType, Target

# A list is shown as a whole.
MOST_WATCHED = 10_000
MOST_MUTED = 10_000


async def watch(
    conn: Connection, *, user_id: str, delete: Sequence[Target], add: Sequence[Target]
) -> list[Entry]:
    """Change what a user watches, all of it or nothing; return what is watched then.

    What is to be deleted and was not watched, or is gone, is no mistake.
    """
    await _check(conn, add, user_id=user_id)
    await store.remove_watches(conn, delete, user_id=user_id)
    await store.add_watches(conn, add, user_id=user_id)
    if add and await store.count_watched(conn, user_id=user_id) > MOST_WATCHED:
        raise ListTooLong("watch", MOST_WATCHED)
    return await store.list_watched(conn, user_id=user_id)


async def mute(
    conn: Connection, *, user_id: str, delete: Sequence[Target], add: Sequence[Target]
) -> list[Entry]:
    """Change what a user muted, by the same rules."""
    await _check(conn, add, user_id=user_id)
    await store.unmute_repos(conn, _ids(delete, MuteType.repo), user_id=user_id)
    await store.mute_repos(conn, _ids(add, MuteType.repo), user_id=user_id)
    for targets, muted in ((delete, False), (add, True)):
        for thread_id in _ids(targets, MuteType.thread):
            await threads.set_muted(conn, thread_id, user_id=user_id, muted=muted)
    if add and await store.count_muted(conn, user_id=user_id) > MOST_MUTED:
        raise ListTooLong("mute", MOST_MUTED)
    return await store.list_muted(conn, user_id=user_id)


async def _check(conn: Reader, targets: Sequence[Target], *, user_id: str) -> None:
    if not targets:
        return
    visible = await store.find_visible(conn, {each.id for each in targets}, user_id=user_id)
    for place, target in enumerate(targets):
        if (target.type, target.id) not in visible:
            raise TargetNotFound(place, target.type, target.id)


def _ids(targets: Iterable[Target], type_: MuteType) -> list[str]:
    return list(dict.fromkeys(each.id for each in targets if each.type is type_))
