"""Rules of consents: the question to a person, the sealed ticket that its form carries and the decision
that comes back, the stored consent, the apps that have access, and how a person revokes it.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from datetime import timedelta

import msgspec

from hublet.accounts.users import store as users
from hublet.core.clock import micros
from hublet.core.database import Connection, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.ids import random_bytes
from hublet.core.sealing import KeyRing, SealBroken
from hublet.oauth.access import service as accesses
from hublet.oauth.access import store as access_store
from hublet.oauth.access.records import EndReason
from hublet.oauth.authorize import store
from hublet.oauth.authorize.records import (
    ConnectedAccess,
    Consent,
    ConsentQuestion,
    OrganizationChoice,
)
from hublet.oauth.errors import AccessNotFound, TicketInvalid
from hublet.oauth.records import Access, AppKind, OAuthApp, Permission
from hublet.oauth.redirect_uris import host_of, is_loopback
from hublet.oauth.scopes import reaches_inbox
from hublet.tokens.records import Scope, with_included

_UNVERIFIED = frozenset({AppKind.dynamic, AppKind.document})
TICKET_LIFE = timedelta(minutes=10)
# The hidden field that carries the ticket.
TICKET_FIELD = "ticket"


class Ticket(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    # The query of an authorization request, or the digest of a device code.
    subject: str
    # The app's revision that the page showed.
    revision: int
    expires_at: int


def new_ticket(*, subject: str, revision: int) -> Ticket:
    return Ticket(
        id=random_bytes(16).hex(),
        subject=subject,
        revision=revision,
        expires_at=micros() + TICKET_LIFE // timedelta(microseconds=1),
    )


def seal_ticket(keys: KeyRing, ticket: Ticket, *, purpose: str, session_id: str) -> str:
    sealed = keys.seal(msgspec.json.encode(ticket), context=_context(purpose, session_id))
    return urlsafe_b64encode(sealed).decode()


def unseal_ticket(keys: KeyRing, text: str, *, purpose: str, session_id: str) -> Ticket:
    try:
        sealed = urlsafe_b64decode(text.encode("ascii"))
        ticket = msgspec.json.decode(
            keys.open(sealed, context=_context(purpose, session_id)), type=Ticket
        )
    except (ValueError, SealBroken):
        raise TicketInvalid from None
    if ticket.expires_at < micros():
        raise TicketInvalid
    return ticket


def _context(purpose: str, session_id: str) -> str:
    return f"oauth ticket {purpose} {session_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsentDecision:
    ticket: Ticket
    # The organizations that the person selected; None when they denied.
    organization_ids: frozenset[str] | None


def read_decision(
    keys: KeyRing, fields: Iterable[tuple[str, str]], *, purpose: str, session_id: str
) -> ConsentDecision:
    """Read the decision from a form; everything but `allow` is a no."""
    pairs = list(fields)
    values = dict(pairs)
    ticket = unseal_ticket(
        keys, values.get(TICKET_FIELD, ""), purpose=purpose, session_id=session_id
    )
    chosen = frozenset(value for name, value in pairs if name == "organization")
    allowed = values.get("decision") == "allow"
    return ConsentDecision(ticket=ticket, organization_ids=chosen if allowed else None)


async def build_question(
    conn: Reader,
    app: OAuthApp,
    *,
    user_id: str,
    scopes: frozenset[Scope],
    organization_ids: frozenset[str] = frozenset(),
    known: Consent | None = None,
) -> ConsentQuestion:
    """Build the question to a person; `known` is what they agreed to before."""
    before = known if known is not None and known.revision == app.revision else None
    allowed = with_included(before.scopes) if before else frozenset()
    reached = before.organization_ids if before else frozenset()
    memberships = await users.memberships_of(conn, user_id=user_id)
    choices = tuple(
        OrganizationChoice(
            organization=each.organization,
            chosen=each.organization.id in organization_ids | reached,
            is_new=each.organization.id in organization_ids - reached and before is not None,
        )
        for each in memberships
    )
    return ConsentQuestion(
        app=app,
        host=_display_host(app),
        owner_name=None if app.owner_id is None else await store.find_user_name(conn, app.owner_id),
        is_unverified=app.kind in _UNVERIFIED,
        is_local=bool(app.redirect_uris) and all(map(is_loopback, app.redirect_uris)),
        new_scopes=_sort_scopes(scopes - allowed),
        known_scopes=_sort_scopes(scopes & allowed),
        reaches_inbox=reaches_inbox(app.client_id, scopes),
        choices=choices,
        left_out=len(organization_ids - {each.organization.id for each in memberships}),
    )


def _display_host(app: OAuthApp) -> str | None:
    """Return the host by which a person can judge the app."""
    if app.kind is AppKind.document:
        return host_of(app.client_id)
    return None if app.client_uri is None else host_of(app.client_uri)


def _sort_scopes(scopes: frozenset[Scope]) -> tuple[Scope, ...]:
    """Return the scopes in the order of the page, without those that another one includes."""
    included = {each for scope in scopes for each in with_included(frozenset({scope})) - {scope}}
    return tuple(scope for scope in Scope if scope in scopes - included)


async def own_organizations(
    conn: Reader, organization_ids: frozenset[str], *, user_id: str
) -> frozenset[str]:
    """Return those organizations that the person belongs to now."""
    memberships = await users.memberships_of(conn, user_id=user_id)
    return organization_ids & {each.organization.id for each in memberships}


async def save(conn: Connection, permission: Permission, *, revision: int) -> None:
    """Store a consent; scopes of an earlier one stay if the app is still the same."""
    before = await store.find_consent(conn, user_id=permission.user_id, app_id=permission.app_id)
    earlier = before.scopes if before and before.revision == revision else frozenset()
    await store.put_consent(
        conn,
        Permission(
            user_id=permission.user_id,
            app_id=permission.app_id,
            scopes=permission.scopes | earlier,
            organization_ids=permission.organization_ids,
        ),
        revision=revision,
    )


async def is_first_answer(conn: Connection, ticket: Ticket) -> bool:
    """Mark the question as answered; False when it was answered before."""
    return await store.mark_answered(conn, ticket.id, expires_at=ticket.expires_at)


async def list_connected(conn: Reader, *, user_id: str) -> list[ConnectedAccess]:
    """Return the accesses that a person's apps have, newest first."""
    active = await access_store.list_of(conn, user_id)
    apps = await store.list_app_summaries(conn, {each.permission.app_id for each in active})
    selected = frozenset[str]().union(*(each.permission.organization_ids for each in active))
    names = await store.list_organization_names(conn, selected)
    return [
        ConnectedAccess(
            access=each,
            app=apps[each.permission.app_id],
            organizations={
                organization_id: names[organization_id]
                for organization_id in sorted(each.permission.organization_ids & names.keys())
            },
        )
        for each in active
        # An app may be deleted between the statements.
        if each.permission.app_id in apps
    ]


async def revoke_access(conn: Connection, access_id: str, *, user_id: str) -> None:
    """End an access and forget the consent, so that the app has to ask again."""
    access = await access_store.find(conn, access_id)
    if access is None or access.ended_at is not None or access.permission.user_id != user_id:
        raise AccessNotFound(access_id)
    await _end_accesses(conn, [access], user_id=user_id)


async def revoke_all_access(conn: Connection, *, user_id: str) -> None:
    await _end_accesses(conn, await access_store.list_of(conn, user_id), user_id=user_id)
    await store.remove_all_consents(conn, user_id=user_id)


async def _end_accesses(conn: Connection, ended: list[Access], *, user_id: str) -> None:
    await accesses.end(conn, [each.id for each in ended], EndReason.owner)
    for app_id in {each.permission.app_id for each in ended}:
        await store.remove_consent(conn, user_id=user_id, app_id=app_id)
