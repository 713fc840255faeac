"""Rules of accesses: begin one, find its holder, end it with everything that was issued from it."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from hublet.core.clock import now
from hublet.core.database import Connection, Reader
from hublet.core.ids import new_object_id
from hublet.core.outbox import publish_many
from hublet.events import AccessEnded
from hublet.oauth.access import store
from hublet.oauth.access.records import EndReason, Holder, Origin
from hublet.oauth.errors import OAuthError, invalid_grant
from hublet.oauth.records import Access, Permission, Via
from hublet.tokens import service as tokens

# A person is asked again after this long, however often the access is refreshed.
MAX_ACCESS_LIFE = timedelta(days=90)


def new_access(
    permission: Permission,
    via: Via,
    *,
    origin: Origin,
    life: timedelta = MAX_ACCESS_LIFE,
    access_id: str | None = None,
) -> Access:
    """Make an access for a permission; `access_id` is the id that a code was marked with."""
    at = now()
    return Access(
        id=access_id or new_object_id(),
        permission=permission,
        via=via,
        session_id=origin.session_id,
        authenticated_at=origin.authenticated_at,
        address=origin.address,
        agent=origin.agent,
        created_at=at,
        last_used_at=at,
        expires_at=at + life,
    )


async def begin(
    conn: Connection,
    permission: Permission,
    via: Via,
    *,
    origin: Origin,
    access_id: str | None = None,
) -> Access:
    """Store a new access for a permission."""
    access = new_access(permission, via, origin=origin, access_id=access_id)
    await store.add(conn, [access])
    return access


async def end(conn: Connection, access_ids: Sequence[str], reason: EndReason) -> None:
    """End accesses and revoke all of their tokens; doing it again changes nothing."""
    if not access_ids:
        return
    ended = await store.end(conn, access_ids, reason)
    await tokens.revoke_of_accesses(conn, access_ids)
    if reason is EndReason.reuse:
        # A thief may have the credential, so its owner is notified.
        await publish_many(
            conn,
            [
                AccessEnded(user_id=user_id, app_id=app_id, app_name=app_name, reason=reason)
                for user_id, app_id, app_name in ended
            ],
        )


async def end_of_app(
    conn: Connection, app_id: str, reason: EndReason, *, vias: Sequence[Via] = tuple(Via)
) -> None:
    """End the accesses of an app: before it is deleted, or when it loses a privilege."""
    await end(conn, await store.list_ids_of_app(conn, app_id, vias=vias), reason)


async def end_exchanged(
    conn: Connection, organization_id: str, *, user_id: str | None = None
) -> None:
    """End accesses of an organization's apps from token exchange, for one member or for all."""
    ids = await store.list_exchanged_ids(conn, organization_id, user_id=user_id)
    await end(conn, ids, EndReason.lapsed)


async def list_holders(
    conn: Reader, permissions: Sequence[Permission]
) -> list[Holder | OAuthError]:
    """Return for each permission the person, with the selected organizations that they still belong to.

    It is an error in their place when the account is disabled.
    """
    persons = await store.list_holders(
        conn,
        {each.user_id for each in permissions},
        organization_ids=frozenset[str]().union(*(each.organization_ids for each in permissions)),
    )
    return [_holder_of(each, persons.get(each.user_id)) for each in permissions]


def _holder_of(permission: Permission, person: Holder | None) -> Holder | OAuthError:
    if person is None:
        return invalid_grant("The account that allowed this is disabled.")
    selected = {
        organization_id: name
        for organization_id, name in person.organizations.items()
        if organization_id in permission.organization_ids
    }
    return replace(person, organizations=selected)


async def get_holder(conn: Reader, permission: Permission) -> Holder:
    """Return the person with the selected organizations that they still belong to."""
    (holder,) = await list_holders(conn, [permission])
    if isinstance(holder, OAuthError):
        raise holder
    return holder
