"""What ends an access because of what happened elsewhere, and what forgets it in the end."""

from typing import Any

from hublet.accounts.records import Plan
from hublet.core.database import Connection, Database
from hublet.core.outbox import reacts_at_once_to
from hublet.core.queue import handles_slowly
from hublet.events import CredentialRevoked, MemberRemoved, OrganizationPlanChanged
from hublet.oauth.access import service, store, sweeping
from hublet.oauth.access.records import EndReason


@reacts_at_once_to(CredentialRevoked)
async def end_access(conn: Connection, event: CredentialRevoked) -> None:
    """Who lost one credential of an app has lost the others beside it: all of them end.

    The owner is told of the credential, so nobody is told of the access once more.
    """
    access_id = await store.find_id_of_token(conn, event.token_id)
    if access_id is not None:
        reason = EndReason.owner if event.reason == "owner" else EndReason.reported
        await service.end(conn, [access_id], reason)


@reacts_at_once_to(OrganizationPlanChanged)
async def end_exchanged(conn: Connection, event: OrganizationPlanChanged) -> None:
    """Interface 5.4: token exchange is part of the Enterprise plans."""
    if not Plan(event.plan).has_service_accounts:
        await service.end_exchanged(conn, event.organization_id)


@reacts_at_once_to(MemberRemoved)
async def end_exchanged_of_member(conn: Connection, event: MemberRemoved) -> None:
    """What an app got for a member does not come back when the member does."""
    await service.end_exchanged(conn, event.organization_id, user_id=event.user_id)


@handles_slowly(sweeping.SWEEP)
async def sweep_accesses(database: Database, _body: dict[str, Any]) -> None:
    await sweeping.sweep(database)
