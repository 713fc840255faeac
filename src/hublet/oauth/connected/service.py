"""What a person's apps have access to, and taking it back."""

from hublet.core.database import Connection, Reader
from hublet.oauth.access import service as accesses
from hublet.oauth.access.records import EndReason
from hublet.oauth.connected import store
from hublet.oauth.connected.errors import AccessNotFound
from hublet.oauth.connected.records import ConnectedAccess
from hublet.oauth.consents import service as consents
from hublet.oauth.records import Access


async def list_of(conn: Reader, *, user_id: str) -> list[ConnectedAccess]:
    """Return what is in use, newest first."""
    found = await accesses.list_of(conn, user_id)
    apps = await store.apps_of(conn, {each.permission.app_id for each in found})
    chosen = frozenset[str]().union(*(each.permission.organization_ids for each in found))
    names = await store.names_of_organizations(conn, chosen)
    return [
        ConnectedAccess(
            access=each,
            app=apps[each.permission.app_id],
            organizations={
                organization_id: names[organization_id]
                for organization_id in sorted(each.permission.organization_ids & names.keys())
            },
        )
        for each in found
        # Between the statements an app may have gone.
        if each.permission.app_id in apps
    ]


async def revoke(conn: Connection, access_id: str, *, user_id: str) -> None:
    """End an access; the app has to ask again, also where it was allowed before."""
    access = await accesses.find(conn, access_id)
    if access is None or access.ended_at is not None or access.permission.user_id != user_id:
        raise AccessNotFound(access_id)
    await _end(conn, [access], user_id=user_id)


async def revoke_all(conn: Connection, *, user_id: str) -> None:
    await _end(conn, await accesses.list_of(conn, user_id), user_id=user_id)
    await consents.forget_all(conn, user_id=user_id)


async def _end(conn: Connection, ended: list[Access], *, user_id: str) -> None:
    await accesses.end(conn, [each.id for each in ended], EndReason.owner)
    for app_id in {each.permission.app_id for each in ended}:
        await consents.forget(conn, user_id=user_id, app_id=app_id)
