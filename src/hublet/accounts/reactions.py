"""Reactions of accounts: revoked credentials enter the audit log of each organization."""

from hublet.accounts.organizations import audit_store
from hublet.accounts.records import Actor
from hublet.accounts.users import store as users
from hublet.core.database import Connection
from hublet.core.outbox import reacts_to
from hublet.events import CredentialRevoked

_ANONYMOUS = "anonymous"


@reacts_to(CredentialRevoked)
async def record_revocation(conn: Connection, event: CredentialRevoked) -> None:
    """A member's lost credential concerns every organization it could reach."""
    if event.reason == "organization":
        # Its line was written with the revocation and names who did it.
        return
    actor = await _actor(conn, event)
    for membership in await users.memberships_of(conn, user_id=event.user_id):
        await audit_store.record(
            conn, membership.organization.id, actor, "credential.revoke", target=event.name,
            details={"token_id": event.token_id, "hint": event.hint, "reason": event.reason},
        )  # fmt: skip


async def _actor(conn: Connection, event: CredentialRevoked) -> Actor:
    owner = await users.find(conn, event.user_id) if event.reason == "owner" else None
    if owner is not None:
        return Actor(id=owner.id, name=owner.name, address=event.address)
    name = _ANONYMOUS if event.reason == "reported" else event.reason
    return Actor(id=None, name=name, address=event.address)
