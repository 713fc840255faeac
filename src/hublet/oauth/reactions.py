"""Reactions of OAuth: events that end an access or expire a secret, and the daily tasks."""

from typing import Any

from hublet.accounts.records import OrganizationPlan
from hublet.core.database import Connection, Database
from hublet.core.outbox import reacts_in_transaction_to, reacts_to
from hublet.core.queue import handles_slowly
from hublet.events import (
    CredentialRevoked,
    CredentialsReported,
    MemberRemoved,
    OrganizationPlanChanged,
    RepoDeleted,
)
from hublet.oauth import pruning
from hublet.oauth import signing_keys as keys
from hublet.oauth.access import service as accesses
from hublet.oauth.access import store as access_store
from hublet.oauth.access.records import EndReason
from hublet.oauth.apps import client_secrets
from hublet.oauth.publishers import service as publishers


@reacts_in_transaction_to(CredentialRevoked)
async def end_access(conn: Connection, event: CredentialRevoked) -> None:
    """End the access of a credential that leaked: the other credentials of it are as unsafe.

    The owner is notified of the credential, so there is no second message about the access.
    """
    access_id = await access_store.find_id_of_token(conn, event.token_id)
    if access_id is not None:
        reason = EndReason.owner if event.reason == "owner" else EndReason.reported
        await accesses.end(conn, [access_id], reason)


@reacts_in_transaction_to(OrganizationPlanChanged)
async def end_exchanged(conn: Connection, event: OrganizationPlanChanged) -> None:
    """End accesses from token exchange, which is part of the Enterprise plans (interface 5.4)."""
    if not OrganizationPlan(event.plan).has_service_accounts:
        await accesses.end_exchanged(conn, event.organization_id)


@reacts_in_transaction_to(MemberRemoved)
async def end_exchanged_of_member(conn: Connection, event: MemberRemoved) -> None:
    """End the member's accesses from token exchange; they do not come back with the member."""
    await accesses.end_exchanged(conn, event.organization_id, user_id=event.user_id)


@reacts_in_transaction_to(RepoDeleted)
async def remove_publishers(conn: Connection, event: RepoDeleted) -> None:
    """Remove the trusted publishers of the repository, with the tokens that they have."""
    await publishers.remove_of_repo(conn, event.repo.id)


@reacts_in_transaction_to(MemberRemoved)
async def note_publishers_of_member(conn: Connection, event: MemberRemoved) -> None:
    """Tell the organization's administrators which trusted publishers the member leaves behind."""
    await publishers.note_departure(conn, event.organization_id, event.user_id)


@reacts_to(CredentialsReported)
async def expire_reported(conn: Connection, event: CredentialsReported) -> None:
    await client_secrets.expire_reported(conn, event.digests, address=event.address)


@handles_slowly(pruning.SWEEP_ACCESSES)
async def sweep_accesses(database: Database, _body: dict[str, Any]) -> None:
    await pruning.sweep_accesses(database)


@handles_slowly(keys.REPLACE)
async def replace_keys(database: Database, _body: dict[str, Any]) -> None:
    await keys.replace_keys(database)


@handles_slowly(pruning.PRUNE_APPS)
async def prune_apps(database: Database, _body: dict[str, Any]) -> None:
    await pruning.prune_apps(database)
