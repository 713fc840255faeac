"""What an app gets from an access: an access token, and mostly a refresh token.

Values are drawn first and kept later: what depends on them can be written in one statement.
"""

from datetime import timedelta

from hublet.core.clock import now
from hublet.core.database import Connection
from hublet.core.hub import Hub
from hublet.core.light_dataclasses import dataclass
from hublet.oauth.access.records import Holder, Issued
from hublet.oauth.access.refreshes import store as refreshes
from hublet.oauth.permissions import grants_of, reaches_inbox
from hublet.oauth.records import Access, App
from hublet.tokens import service as tokens
from hublet.tokens.format import Kind
from hublet.tokens.records import Grants, Scope, Token

# A refresh token that nobody used for this long is of no use any more.
IDLE = timedelta(days=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """Tokens with their values, nothing of which is kept yet."""

    issued: Issued
    access_token: tuple[Token, str]
    refresh_token: tuple[Token, str]


async def issue(
    conn: Connection, app: App, access: Access, *, holder: Holder, scopes: frozenset[Scope]
) -> Issued:
    """Issue the first two tokens of an access."""
    drawn = draw(conn.hub, app, access, holder=holder, scopes=scopes)
    await keep(conn, drawn, access, generation=1)
    return drawn.issued


def draw(hub: Hub, app: App, access: Access, *, holder: Holder, scopes: frozenset[Scope]) -> Drawn:
    access_token, seconds = _access_token(hub, app, access, holder=holder, scopes=scopes)
    refresh_token = tokens.draw_for_app(
        hub,
        kind=Kind.refresh,
        user_id=holder.user_id,
        name=app.name,
        grants=Grants(),
        expires_at=min(now() + IDLE, access.expires_at),
        app_id=app.id,
        access_id=access.id,
    )
    issued = Issued(
        access_token=access_token[1],
        expires_in=seconds,
        scopes=scopes,
        refresh_token=refresh_token[1],
    )
    return Drawn(issued=issued, access_token=access_token, refresh_token=refresh_token)


async def keep(conn: Connection, drawn: Drawn, access: Access, *, generation: int) -> None:
    """A later generation of the refresh token replaces the one before."""
    await tokens.add_drawn(conn, [drawn.access_token, drawn.refresh_token])
    refresh_id = drawn.refresh_token[0].id
    await refreshes.add(conn, refresh_id, access_id=access.id, generation=generation)


async def issue_access_token(
    conn: Connection, app: App, access: Access, *, holder: Holder, scopes: frozenset[Scope]
) -> Issued:
    drawn, seconds = _access_token(conn.hub, app, access, holder=holder, scopes=scopes)
    await tokens.add_drawn(conn, [drawn])
    return Issued(access_token=drawn[1], expires_in=seconds, scopes=scopes)


def _access_token(
    hub: Hub, app: App, access: Access, *, holder: Holder, scopes: frozenset[Scope]
) -> tuple[tuple[Token, str], int]:
    """Return the token, and for how many seconds it lives."""
    at = now()
    life = min(timedelta(seconds=app.token_seconds), access.expires_at - at)
    grants = grants_of(
        scopes,
        user=(holder.user_id, holder.user_name),
        organizations=holder.organizations,
        inbox=reaches_inbox(app.client_id, scopes),
    )
    drawn = tokens.draw_for_app(
        hub,
        kind=Kind.oauth,
        user_id=holder.user_id,
        name=app.name,
        grants=grants,
        expires_at=at + life,
        app_id=app.id,
        access_id=access.id,
    )
    return drawn, int(life.total_seconds())
