"""Rules of accesses: begin one, find its holder, end it with everything that was issued from it."""

from collections.abc import Sequence
from datetime import timedelta

from hublet.core.clock import now
from hublet.core.database import Connection, Reader
from hublet.core.ids import new_object_id
from hublet.core.outbox import publish_many
from hublet.events import AccessEnded
from hublet.oauth.access import store
from hublet.oauth.access.records import EndReason, Holder, Origin
from hublet.oauth.errors import invalid_grant
from hublet.oauth.records import Access, Permission, Via
from hublet.tokens import service as tokens

# However often it is refreshed, a person is asked again after this long.
MAX_ACCESS_LIFE = timedelta(days=90)


async def begin(
    conn: Connection,
    permission: Permission,
    via: Via,
    *,
    origin: Origin,
    life: timedelta = MAX_ACCESS_LIFE,
    access_id: str | None = None,
) -> Access:
    """Keep that a permission is in use; who has spent a code for it brings its id along."""
    at = now()
    access = Access(
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
    await store.add(conn, access)
    return access


async def list_of(conn: Reader, user_id: str) -> list[Access]:
    """Return what a person's apps have in use, newest first."""
    return await store.list_of(conn, user_id)


async def find(conn: Reader, access_id: str) -> Access | None:
    return await store.find(conn, access_id)


async def use(conn: Connection, access_id: str) -> bool:
    """Note that more is about to be issued from it; False when it has ended.

    Who ends it meanwhile waits for that, and so revokes all of it.
    """
    return await store.use(conn, access_id)


async def end(conn: Connection, access_ids: Sequence[str], reason: EndReason) -> None:
    """End these, with everything that was issued from them; doing it again changes nothing."""
    if not access_ids:
        return
    ended = await store.end(conn, access_ids, reason)
    await tokens.revoke_of_accesses(conn, access_ids)
    if reason is EndReason.reuse:
        # Somebody else may have had the credential, so its owner is told.
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
    """End all that an app has; before the app itself is deleted, or when it loses a privilege."""
    await end(conn, await store.list_ids_of_app(conn, app_id, vias=vias), reason)


async def end_exchanged(
    conn: Connection, organization_id: str, *, user_id: str | None = None
) -> None:
    """End what apps of an organization got by token exchange, for this member or for all."""
    ids = await store.list_exchanged_ids(conn, organization_id, user_id=user_id)
    await end(conn, ids, EndReason.lapsed)


async def get_holder(conn: Reader, permission: Permission) -> Holder:
    """Return the person, with those of the selected organizations they still belong to."""
    holder = await store.find_holder(
        conn, permission.user_id, organization_ids=permission.organization_ids
    )
    if holder is None:
        raise invalid_grant("The account that allowed this is disabled.")
    return holder
