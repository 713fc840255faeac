"""Credentials of ada for tests: of every role, with few scopes, for one owner, of an app."""

from collections.abc import Iterable
from datetime import timedelta

from hublet.core.clock import now
from hublet.core.database import Database
from hublet.core.ids import new_object_id
from hublet.tokens import service as tokens
from hublet.tokens.format import TokenKind
from hublet.tokens.records import Grants, Scope, ScopedGrant, TokenRole
from people import Headers, a_user, sign_in

FULL = "a full token"
READ = "a token that reads"
WEBHOOKS = "the scope webhooks"
JOBS = "the scope jobs"
NO_REPOS = "the scopes webhooks and jobs"
ALL_NEEDED = "every scope that is needed"
OF_ORGANIZATION = "every scope, for the organization"
OF_APP = "an app's token, for the user"

_NEEDED = frozenset({Scope.webhooks, Scope.jobs, Scope.read_repos})
_SCOPES = {
    WEBHOOKS: frozenset({Scope.webhooks}),
    JOBS: frozenset({Scope.jobs}),
    NO_REPOS: frozenset({Scope.webhooks, Scope.jobs}),
    ALL_NEEDED: _NEEDED,
}


async def credential(database: Database, name: str, *, organization_id: str) -> Headers:
    """Return the headers of a request by ada with the credential of this name."""
    if name in _SCOPES:
        return await sign_in(database, "ada", scopes=sorted(_SCOPES[name]))
    if name == OF_ORGANIZATION:
        return await _for_owner(database, organization_id, "org")
    if name == OF_APP:
        return await _of_app(database)
    return await sign_in(database, "ada", role=TokenRole.read if name == READ else TokenRole.write)


def _scoped(entity_id: str, entity_type: str, scopes: Iterable[Scope] = _NEEDED) -> Grants:
    grant = ScopedGrant(
        entity_id=entity_id, entity_type=entity_type, entity_name="x", scopes=frozenset(scopes)
    )
    return Grants(scoped=(grant,))


async def _for_owner(database: Database, owner_id: str, owner_type: str) -> Headers:
    user = await a_user(database, "ada")
    async with database.transaction() as conn:
        _, value = await tokens.issue(
            conn,
            user_id=user.id,
            name="narrow",
            role=TokenRole.fine_grained,
            grants=_scoped(owner_id, owner_type),
        )
    return {"Authorization": f"Bearer {value}"}


async def _of_app(database: Database) -> Headers:
    user = await a_user(database, "ada")
    async with database.transaction() as conn:
        issued = tokens.new_app_token(
            conn.hub,
            kind=TokenKind.oauth,
            user_id=user.id,
            name="an app",
            grants=_scoped(user.id, "user"),
            expires_at=now() + timedelta(hours=8),
            app_id=new_object_id(),
            access_id=new_object_id(),
        )
        await tokens.add_tokens(conn, [issued])
    return {"Authorization": f"Bearer {issued[1]}"}
