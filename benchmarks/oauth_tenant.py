"""Apps of a hub, and what people have allowed them: codes, refresh tokens and access tokens."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.hubs import opened
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import OPERATOR, OrganizationPlan, User
from hublet.accounts.users import service as accounts
from hublet.core.clock import now
from hublet.core.config import Settings
from hublet.core.database import Connection, Database
from hublet.core.ids import new_object_id
from hublet.oauth import signing_keys as keys
from hublet.oauth.access import service as accesses
from hublet.oauth.access.issuance import issue_tokens
from hublet.oauth.access.records import Holder, IssuedTokens, Origin
from hublet.oauth.apps import client_secrets as secrets
from hublet.oauth.apps import store as apps
from hublet.oauth.authorize import codes
from hublet.oauth.authorize.codes import challenge_of
from hublet.oauth.authorize.records import NewAuthorizationCode
from hublet.oauth.records import AppKind, OAuthApp, Permission, Via
from hublet.tokens.records import Scope

EMAIL = "ada@hub.test"
REDIRECT_URI = "http://localhost:49282/callback"
VERIFIER = "v" * 43
CHALLENGE = challenge_of(VERIFIER)
_SCOPES = frozenset({Scope.openid, Scope.read_repos})


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """A person, and apps with a secret that are bound to an organization of theirs."""

    user: User
    apps: tuple[OAuthApp, ...]
    # What each of them writes into its header.
    credentials: tuple[str, ...]


def basic(client_id: str, secret: str) -> str:
    return b64encode(f"{client_id}:{secret}".encode()).decode()


async def create_tenant(settings: Settings, *, apps_count: int) -> Tenant:
    async with opened(settings) as database:
        # The first signature needs a key, and making one takes a second.
        await keys.get_signing_key(database)
        return await _create_tenant(database, apps_count=apps_count)


async def _create_tenant(database: Database, *, apps_count: int) -> Tenant:
    async with database.transaction() as conn:
        user = await accounts.create_user(conn, "ada", email=EMAIL)
        place = await organizations.create(
            conn, OPERATOR, "engines", plan=OrganizationPlan.enterprise, owner=user
        )
        made = [await _app(conn, place.id) for _ in range(apps_count)]
    return Tenant(
        user=user,
        apps=tuple(app for app, _ in made),
        credentials=tuple(basic(app.client_id, secret) for app, secret in made),
    )


async def _app(conn: Connection, organization_id: str) -> tuple[OAuthApp, str]:
    at = now()
    app = OAuthApp(
        id=new_object_id(),
        client_id=new_object_id(),
        kind=AppKind.registered,
        organization_id=organization_id,
        name="Engine",
        redirect_uris=(REDIRECT_URI,),
        scopes=_SCOPES,
        token_exchange=True,
        token_seconds=28_800,
        confidential=True,
        created_at=at,
        updated_at=at,
    )
    await apps.add(conn, app)
    _, secret = await secrets.issue(conn, app.id)
    return app, secret


async def new_codes(
    settings: Settings, tenant: Tenant, *, count: int, scopes: Sequence[Scope]
) -> list[str]:
    code = NewAuthorizationCode(
        permission=_permission(tenant, scopes),
        redirect_uri=REDIRECT_URI,
        challenge=CHALLENGE,
        authenticated_at=now(),
    )
    async with opened(settings) as database, database.transaction() as conn:
        return [await codes.issue(conn, code) for _ in range(count)]


async def new_tokens(
    settings: Settings, tenant: Tenant, *, count: int, scopes: Sequence[Scope]
) -> list[IssuedTokens]:
    permission = _permission(tenant, scopes)
    holder = Holder(user_id=tenant.user.id, user_name=tenant.user.name, organizations={})
    async with opened(settings) as database, database.transaction() as conn:
        return [
            await issue_tokens(
                conn,
                tenant.apps[0],
                await accesses.begin(conn, permission, Via.code, origin=Origin()),
                holder=holder,
                scopes=permission.scopes,
            )
            for _ in range(count)
        ]


def _permission(tenant: Tenant, scopes: Sequence[Scope]) -> Permission:
    return Permission(user_id=tenant.user.id, app_id=tenant.apps[0].id, scopes=frozenset(scopes))
