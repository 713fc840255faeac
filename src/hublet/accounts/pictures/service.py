"""Rules of pictures: what may be uploaded, and what everybody has without an upload."""

from hublet.accounts.audit import service as audit
from hublet.accounts.avatars import MAX_AVATAR_BYTES, default_avatar, sniff_image
from hublet.accounts.pictures import store
from hublet.accounts.pictures.errors import AccountNotFound, NotAPicture, PictureTooLarge
from hublet.accounts.pictures.records import Picture
from hublet.accounts.records import Actor, Organization
from hublet.core.database import Connection, Reader
from hublet.core.outbox import publish
from hublet.events import OrganizationUpdated, UserUpdated

DRAWN = "image/svg+xml"


async def get(conn: Reader, account_id: str) -> Picture:
    """Return the uploaded picture of a user or an organization, or the one drawn for it."""
    portrayed = await store.find(conn, account_id)
    if portrayed is None:
        raise AccountNotFound(account_id)
    drawn = Picture(media_type=DRAWN, content=default_avatar(account_id, portrayed.name))
    return portrayed.upload or drawn


async def set_of_user(conn: Connection, user_id: str, content: bytes) -> None:
    await store.put(conn, user_id, _checked(content))
    await publish(conn, UserUpdated(user_id=user_id))


async def remove_of_user(conn: Connection, user_id: str) -> None:
    if await store.remove(conn, user_id):
        await publish(conn, UserUpdated(user_id=user_id))


async def set_of_organization(
    conn: Connection, actor: Actor, organization: Organization, content: bytes
) -> None:
    await store.put(conn, organization.id, _checked(content))
    await _tell(conn, actor, organization, change="set")


async def remove_of_organization(
    conn: Connection, actor: Actor, organization: Organization
) -> None:
    if await store.remove(conn, organization.id):
        await _tell(conn, actor, organization, change="removed")


def _checked(content: bytes) -> Picture:
    if len(content) > MAX_AVATAR_BYTES:
        raise PictureTooLarge(MAX_AVATAR_BYTES)
    media_type = sniff_image(content)
    if media_type is None:
        raise NotAPicture
    return Picture(media_type=media_type, content=content)


async def _tell(conn: Connection, actor: Actor, organization: Organization, *, change: str) -> None:
    await audit.record(
        conn, organization.id, actor, "organization.update", target=organization.name,
        details={"picture": change},
    )  # fmt: skip
    await publish(conn, OrganizationUpdated(organization_id=organization.id))
