"""Service of watches and mutes: changes what a user watches and mutes."""

from collections.abc import Iterable, Sequence
from contextlib import suppress

from hublet.accounts.errors import OrganizationNotFound, UserNotFound
from hublet.accounts.organizations import service as organizations
from hublet.accounts.users import service as users
from hublet.community.threads import store as threads
from hublet.core.database import Connection, Reader
from hublet.notifications import watches_store
from hublet.notifications.errors import (
    WatchListTooLong,
    WatchNameNotFound,
    WatchTargetNotFound,
)
from hublet.notifications.records import (
    MuteType,
    SubscriptionEntry,
    SubscriptionTarget,
    WatchType,
)
from hublet.repos import service as repos
from hublet.repos.errors import RepoNotFound
from hublet.repos.records import RepoAddress, RepoType, Right
from hublet.tokens.records import Caller

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


async def find_by_name(conn: Reader, caller: Caller, name: str) -> SubscriptionTarget:
    """Return what a name stands for: `ada`, `ada/engine`, or `datasets/ada/numbers`.

    Of repositories that differ only in their type, the first in the order of types.
    """
    *folder, owner, repo_name = ["", *name.split("/")]
    if not owner:
        return await _find_account(conn, repo_name)
    named = "/".join(folder).strip("/")
    for type_ in RepoType:
        if named in {"", type_.plural}:
            with suppress(RepoNotFound):
                address = RepoAddress(type=type_, namespace=owner, name=repo_name)
                repo = await repos.get(conn, caller, address, Right.see)
                return SubscriptionTarget(type=WatchType.repo, id=repo.id)
    raise WatchNameNotFound(name)


async def _find_account(conn: Reader, name: str) -> SubscriptionTarget:
    with suppress(UserNotFound):
        user = await users.get_visible_user(conn, name, to_administrator=False)
        return SubscriptionTarget(type=WatchType.user, id=user.id)
    with suppress(OrganizationNotFound):
        organization = await organizations.get(conn, name)
        return SubscriptionTarget(type=WatchType.org, id=organization.id)
    raise WatchNameNotFound(name)


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
