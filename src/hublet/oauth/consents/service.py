"""Rules of consent: what is asked, what is remembered, what is forgotten."""

from hublet.accounts.organizations import store as organizations
from hublet.core.database import Connection, Reader
from hublet.oauth.consents import store
from hublet.oauth.consents.records import Choice, Consent, IdleConsent, Question
from hublet.oauth.consents.tickets import Ticket
from hublet.oauth.permissions import reaches_inbox
from hublet.oauth.records import App, AppKind, Permission
from hublet.oauth.redirect_uris import host_of, is_loopback
from hublet.tokens.records import Scope, with_included

_UNVERIFIED = frozenset({AppKind.dynamic, AppKind.document})


async def find(conn: Reader, *, user_id: str, app_id: str) -> Consent | None:
    return await store.find(conn, user_id=user_id, app_id=app_id)


async def question(
    conn: Reader,
    app: App,
    *,
    user_id: str,
    scopes: frozenset[Scope],
    organization_ids: frozenset[str] = frozenset(),
    known: Consent | None = None,
) -> Question:
    """Put together what a person is asked; `known` is what they agreed to before."""
    before = known if known is not None and known.revision == app.revision else None
    allowed = with_included(before.scopes) if before else frozenset()
    reached = before.organization_ids if before else frozenset()
    memberships = await organizations.memberships_of(conn, user_id=user_id)
    choices = tuple(
        Choice(
            organization=each.organization,
            chosen=each.organization.id in organization_ids | reached,
            is_new=each.organization.id in organization_ids - reached and before is not None,
        )
        for each in memberships
    )
    return Question(
        app=app,
        host=_host(app),
        owner_name=None if app.owner_id is None else await store.name_of_user(conn, app.owner_id),
        is_unverified=app.kind in _UNVERIFIED,
        is_local=bool(app.redirect_uris) and all(map(is_loopback, app.redirect_uris)),
        new_scopes=_in_order(scopes - allowed),
        known_scopes=_in_order(scopes & allowed),
        reaches_inbox=reaches_inbox(app.client_id, scopes),
        choices=choices,
        left_out=len(organization_ids - {each.organization.id for each in memberships}),
    )


def _host(app: App) -> str | None:
    """Return the host that a person can judge an app by."""
    if app.kind is AppKind.document:
        return host_of(app.client_id)
    return None if app.client_uri is None else host_of(app.client_uri)


def _in_order(scopes: frozenset[Scope]) -> tuple[Scope, ...]:
    """Return scopes as a person reads them, without those that another one includes."""
    included = {each for scope in scopes for each in with_included(frozenset({scope})) - {scope}}
    return tuple(scope for scope in Scope if scope in scopes - included)


async def of_own(conn: Reader, organization_ids: frozenset[str], *, user_id: str) -> frozenset[str]:
    """Return those organizations that the person belongs to now."""
    memberships = await organizations.memberships_of(conn, user_id=user_id)
    return organization_ids & {each.organization.id for each in memberships}


async def remember(conn: Connection, permission: Permission, *, revision: int) -> None:
    """Remember what was agreed to, beside the scopes of before if the app is still the same."""
    before = await store.find(conn, user_id=permission.user_id, app_id=permission.app_id)
    kept = before.scopes if before and before.revision == revision else frozenset()
    await store.put(
        conn,
        Permission(
            user_id=permission.user_id,
            app_id=permission.app_id,
            scopes=permission.scopes | kept,
            organization_ids=permission.organization_ids,
        ),
        revision=revision,
    )


async def list_idle(conn: Reader, *, user_id: str) -> list[IdleConsent]:
    return await store.list_idle(conn, user_id=user_id)


async def forget(conn: Connection, *, user_id: str, app_id: str) -> None:
    await store.remove(conn, user_id=user_id, app_id=app_id)


async def forget_all(conn: Connection, *, user_id: str) -> None:
    await store.remove_all(conn, user_id=user_id)


async def is_first_answer(conn: Connection, ticket: Ticket) -> bool:
    """Note that the question was answered; what was answered before counts no second time."""
    return await store.add_answer(conn, ticket.id, expires_at=ticket.expires_at)
