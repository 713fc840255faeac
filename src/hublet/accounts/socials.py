"""Social handles: names of users and organizations in other networks."""

import re
from collections.abc import Mapping

from hublet.accounts.errors import InvalidSocialHandle
from hublet.accounts.organizations import audit_store as audit
from hublet.accounts.records import Actor, Organization
from hublet.accounts.settings import store
from hublet.core.database import Connection, Reader

# Of each network: its name for people, what a handle looks like, and where it leads to.
NETWORKS = {
    "twitter": ("X (Twitter)", r"[A-Za-z0-9_]{1,15}", "https://x.com/"),
    "github": ("GitHub", r"[A-Za-z0-9](?:-?[A-Za-z0-9]){0,38}", "https://github.com/"),
    "linkedin": ("LinkedIn", r"(?:(?:in|company)/)?[\w-]{1,100}", "https://www.linkedin.com/"),
    "bluesky": (
        "Bluesky",
        r"[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})+",
        "https://bsky.app/profile/",
    ),
}
OF_USERS = tuple(NETWORKS)
# The public service knows no Bluesky handle of an organization.
OF_ORGANIZATIONS = ("twitter", "github", "linkedin")


def link_of(network: str, handle: str, *, is_organization: bool = False) -> str:
    """Return the address of somebody's page in another network."""
    if network == "linkedin" and "/" not in handle:
        handle = f"{'company' if is_organization else 'in'}/{handle}"
    return NETWORKS[network][2] + handle


async def get(conn: Reader, account_id: str) -> dict[str, str]:
    """Return the handles that an account has given, by the name of the network."""
    return await store.list_social_handles(conn, account_id)


async def set_of_user(conn: Connection, user_id: str, handles: Mapping[str, str]) -> None:
    """Set handles; one that is not named stays, an empty one is removed."""
    await _set(conn, user_id, handles)


async def set_of_organization(
    conn: Connection, actor: Actor, organization: Organization, handles: Mapping[str, str]
) -> None:
    before = await get(conn, organization.id)
    await _set(conn, organization.id, handles)
    if (after := await get(conn, organization.id)) != before:
        await audit.record(
            conn, organization.id, actor, "organization.update", target=organization.name,
            details={"socialHandles": after},
        )  # fmt: skip


async def _set(conn: Connection, account_id: str, handles: Mapping[str, str]) -> None:
    for network, text in handles.items():
        handle = text.strip().removeprefix("@")
        title, pattern, _ = NETWORKS[network]
        if handle and re.fullmatch(pattern, handle, re.ASCII) is None:
            raise InvalidSocialHandle(
                f"{network}: {text!r} is not a name at {title}; give the name, not the address."
            )
        await store.set_social_handle(conn, account_id, network=network, handle=handle)
