"""What a webhook is to watch: found by name once, kept by id, so that renames are followed."""

from collections.abc import Iterable, Sequence

from hublet.accounts import service as accounts
from hublet.accounts.errors import OrganizationNotFound, UserNotFound
from hublet.accounts.organizations import service as organizations
from hublet.core.database import Reader
from hublet.repos import service as repos
from hublet.repos.errors import RepoNotFound
from hublet.repos.records import Repo, RepoAddress, RepoType, Right
from hublet.webhooks.errors import WatchedIsPrivate, WatchedNotFound
from hublet.webhooks.owners import Owner
from hublet.webhooks.records import Watched, WatchedType
from hublet.webhooks.schemas import WatchedRequest


async def find_watched(
    conn: Reader, owner: Owner, asked: Sequence[WatchedRequest], *, before: Iterable[Watched] = ()
) -> tuple[Watched, ...]:
    """Return what is asked for, each once, in the order it is asked for.

    What was watched `before` may stay when it is gone or out of sight.
    """
    by_name = {(each.type, each.name.casefold()): each for each in before}
    looked_up: dict[tuple[WatchedType, str], Watched] = {}
    for place, item in enumerate(asked):
        key = item.type, item.name.casefold()
        if key in looked_up:
            continue
        watched = await _find(conn, owner, item, place) or by_name.get(key)
        if watched is None:
            raise WatchedNotFound(place, item.type, item.name)
        looked_up[key] = watched
    # Two names may still mean one thing: of today, and of before a rename.
    return tuple({each.target: each for each in looked_up.values()}.values())


async def _find(conn: Reader, owner: Owner, item: WatchedRequest, place: int) -> Watched | None:
    if item.type.is_account:
        return await _find_account(conn, item)
    repo = await _find_repo(conn, owner, item)
    if repo is None:
        return None
    if owner.is_organization and repo.is_private and repo.owner_id != owner.id:
        raise WatchedIsPrivate(place, item.type, item.name, organization=owner.name)
    return Watched(type=item.type, name=repo.full_name, target=repo.id, account_id=repo.owner_id)


async def _find_account(conn: Reader, item: WatchedRequest) -> Watched | None:
    try:
        account = await (
            organizations.get(conn, item.name)
            if item.type is WatchedType.org
            else accounts.get_visible_user(conn, item.name, to_administrator=False)
        )
    except (UserNotFound, OrganizationNotFound):
        return None
    return Watched(type=item.type, name=account.name, target=account.id, account_id=account.id)


async def _find_repo(conn: Reader, owner: Owner, item: WatchedRequest) -> Repo | None:
    namespace, _, name = item.name.partition("/")
    address = RepoAddress(type=RepoType(item.type), namespace=namespace, name=name)
    try:
        return await repos.get(conn, owner.caller, address, Right.see)
    except RepoNotFound:
        return None
