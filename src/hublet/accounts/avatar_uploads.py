"""Avatar uploads: validation of uploaded images, and the drawn default without one."""

from hublet.accounts.avatars import MAX_AVATAR_BYTES, default_avatar, sniff_image
from hublet.accounts.errors import AccountNotFound, ImageTooLarge, NotAnImage
from hublet.accounts.organizations import audit_store as audit
from hublet.accounts.records import Actor, AvatarImage, Organization
from hublet.accounts.users import store
from hublet.core.database import Connection, Reader
from hublet.core.outbox import publish
from hublet.events import OrganizationUpdated, UserUpdated

DEFAULT_MEDIA_TYPE = "image/svg+xml"


async def get(conn: Reader, account_id: str) -> AvatarImage:
    """Return the uploaded picture of a user or an organization, or the one drawn for it."""
    account = await store.find_avatar(conn, account_id)
    if account is None:
        raise AccountNotFound(account_id)
    drawn = AvatarImage(
        media_type=DEFAULT_MEDIA_TYPE, content=default_avatar(account_id, account.name)
    )
    return account.upload or drawn


async def set_of_user(conn: Connection, user_id: str, content: bytes) -> None:
    await store.set_avatar(conn, user_id, _validate(content))
    await publish(conn, UserUpdated(user_id=user_id))


async def remove_of_user(conn: Connection, user_id: str) -> None:
    if await store.remove_avatar(conn, user_id):
        await publish(conn, UserUpdated(user_id=user_id))


async def set_of_organization(
    conn: Connection, actor: Actor, organization: Organization, content: bytes
) -> None:
    await store.set_avatar(conn, organization.id, _validate(content))
    await _record_change(conn, actor, organization, change="set")


async def remove_of_organization(
    conn: Connection, actor: Actor, organization: Organization
) -> None:
    if await store.remove_avatar(conn, organization.id):
        await _record_change(conn, actor, organization, change="removed")


def _validate(content: bytes) -> AvatarImage:
    if len(content) > MAX_AVATAR_BYTES:
        raise ImageTooLarge(MAX_AVATAR_BYTES)
    media_type = sniff_image(content)
    if media_type is None:
        raise NotAnImage
    return AvatarImage(media_type=media_type, content=content)


async def _record_change(
    conn: Connection, actor: Actor, organization: Organization, *, change: str
) -> None:
    await audit.record(
        conn, organization.id, actor, "organization.update", target=organization.name,
        details={"picture": change},
    )  # fmt: skip
    await publish(conn, OrganizationUpdated(organization_id=organization.id))
