"""Rules of credentials: issuing, checking and revoking them."""

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec
from pydantic import MISSING

from hublet.accounts.names import name_key
from hublet.accounts.users import store as users
from hublet.core import queue
from hublet.core.clock import now
from hublet.core.database import Connection, Reader
from hublet.core.database.engine import CREDENTIALS_CHANNEL
from hublet.core.hub import Hub
from hublet.core.ids import new_object_id
from hublet.core.outbox import publish, publish_many
from hublet.core.sealing import KeyRing
from hublet.events import CredentialCreated, CredentialRevoked, CredentialsReported
from hublet.tokens import repo_tokens, store
from hublet.tokens.errors import (
    InvalidToken,
    InvalidTokenRequest,
    TokenExists,
    TokenNotFound,
    UnknownValue,
)
from hublet.tokens.format import TokenKind, hint, is_importable, new_credential
from hublet.tokens.records import Caller, Grants, ScopedGrant, TokenRecord, TokenRole
from hublet.tokens.schemas import CreateOwnToken, ScopesOfOwner

_DIGEST = "token"
REVOKE_TASK = "credentials.revoke"


async def issue(  # noqa: PLR0913 - a credential has as many properties, all named by the caller
    conn: Connection,
    *,
    user_id: str,
    name: str,
    role: TokenRole,
    grants: Grants | None = None,
    expires_at: datetime | None = None,
    value: str | None = None,
    kind: TokenKind = TokenKind.access,
) -> tuple[TokenRecord, str]:
    """Issue a credential, or import a given value; return it with its value, this once."""
    if (role is TokenRole.fine_grained) != (grants is not None):
        raise InvalidTokenRequest("Scopes belong to fine-grained tokens, and those need some.")
    if expires_at is not None and expires_at <= now():
        raise InvalidTokenRequest("expiresAt must lie in the future.")
    if value is not None and not is_importable(value):
        raise InvalidTokenRequest("A given value must have 8 to 200 printable ASCII characters.")
    value = value or new_credential(conn.hub.settings.tokens.prefix, kind)
    token = TokenRecord(
        id=new_object_id(),
        kind=kind,
        user_id=user_id,
        name=name,
        role=role,
        grants=grants or Grants(),
        hint=hint(value),
        created_at=now(),
        expires_at=expires_at,
    )
    if not await store.add(conn, token, conn.hub.keys.digest(_DIGEST, value).hex()):
        raise TokenExists
    await publish(conn, CredentialCreated(token_id=token.id, user_id=user_id, name=name))
    return token, value


async def issue_own(
    conn: Connection, *, user_id: str, request: CreateOwnToken
) -> tuple[TokenRecord, str]:
    """Issue what a user asks for; return it with its value, this once."""
    grants = None
    if request.scopes is not MISSING or request.scoped is not MISSING:
        grants = Grants(
            everywhere=frozenset() if request.scopes is MISSING else frozenset(request.scopes),
            scoped=()
            if request.scoped is MISSING
            else await _scoped_grants(conn, user_id, request.scoped),
        )
    return await issue(
        conn,
        user_id=user_id,
        name=request.name,
        role=TokenRole(request.role),
        grants=grants,
        expires_at=None if request.expiresAt is MISSING else request.expiresAt,
    )


async def _scoped_grants(
    conn: Reader, user_id: str, requested: Sequence[ScopesOfOwner]
) -> tuple[ScopedGrant, ...]:
    """Return grants for what one owner has: the user, or an organization they are a member of."""
    user = await users.find(conn, user_id)
    owners = {} if user is None else {name_key(user.name): (user.id, "user", user.name)}
    for membership in await users.memberships_of(conn, user_id=user_id):
        organization = membership.organization
        owners[name_key(organization.name)] = (organization.id, "org", organization.name)
    grants: dict[str, ScopedGrant] = {}
    for index, each in enumerate(requested):
        if name_key(each.owner) not in owners:
            raise InvalidTokenRequest(
                f"scoped[{index}].owner: {each.owner} is neither you nor an organization of yours."
            )
        entity_id, entity_type, entity_name = owners[name_key(each.owner)]
        grants[entity_id] = ScopedGrant(
            entity_id=entity_id,
            entity_type=entity_type,
            entity_name=entity_name,
            scopes=frozenset(each.scopes),
        )
    return tuple(grants.values())


async def issue_to_publisher(
    conn: Connection, *, publisher_id: str, name: str, grant: ScopedGrant, expires_at: datetime
) -> str:
    """Issue what a trusted publisher holds for one repository; return its value, this once."""
    value = new_credential(conn.hub.settings.tokens.prefix, TokenKind.publisher)
    token = TokenRecord(
        id=new_object_id(),
        kind=TokenKind.publisher,
        user_id=publisher_id,
        name=name,
        role=TokenRole.fine_grained,
        grants=Grants(scoped=(grant,)),
        hint=hint(value),
        created_at=now(),
        expires_at=expires_at,
    )
    await add_tokens(conn, [(token, value)])
    return value


def new_app_token(  # noqa: PLR0913 - as above
    hub: Hub,
    *,
    kind: TokenKind,
    user_id: str,
    name: str,
    grants: Grants,
    expires_at: datetime,
    app_id: str,
    access_id: str,
    organization_id: str | None = None,
    resource: str | None = None,
) -> tuple[TokenRecord, str]:
    """Make what an app holds for a user, with its value; nothing is kept of it before `add_tokens`.

    No event tells of it: what people allowed an app does, and apps ask anew every few hours.
    """
    value = new_credential(hub.settings.tokens.prefix, kind)
    token = TokenRecord(
        id=new_object_id(),
        kind=kind,
        user_id=user_id,
        name=name,
        role=TokenRole.fine_grained,
        grants=grants,
        hint=hint(value),
        created_at=now(),
        expires_at=expires_at,
        app_id=app_id,
        access_id=access_id,
        organization_id=organization_id,
        resource=resource,
    )
    return token, value


async def add_tokens(conn: Connection, drawn: Iterable[tuple[TokenRecord, str]]) -> None:
    """Keep credentials that were just made; of their values only digests."""
    digest = conn.hub.keys.digest
    await store.add_new(conn, [(token, digest(_DIGEST, value).hex()) for token, value in drawn])


async def find_by_value(conn: Reader, value: str) -> TokenRecord | None:
    """Return what has this value, of any kind, whether or not it still works."""
    return await store.find_by_digests(conn, digests_of(conn.hub.keys, value))


async def revoke_of_accesses(conn: Connection, access_ids: Sequence[str]) -> None:
    """Revoke everything that was issued from these accesses."""
    await store.revoke_of_accesses(conn, access_ids)
    conn.wake(CREDENTIALS_CHANNEL)


async def find_caller(conn: Reader, value: str) -> Caller | None:
    caller = await repo_tokens.find_caller(conn, value)
    return caller or await store.find_caller(conn, digests_of(conn.hub.keys, value))


async def check_still_reaches(conn: Reader, caller: Caller, owner_id: str) -> None:
    """Refuse a caller whose credential ended, or was cut off from this owner, since its request began.

    What takes long asks this in the transaction that makes the result visible, as it asks for rights
    again. Whether the time of a credential is up counts at the beginning only.
    """
    if not await store.still_reaches(conn, caller.token, owner_id):
        raise InvalidToken


def digests_of(keys: KeyRing, value: str) -> list[str]:
    """Return the digest under each key of the ring, so that keys can be rotated."""
    return [digest.hex() for digest in keys.digests(_DIGEST, value)]


async def revoke(conn: Connection, *, token_id: str, user_id: str, reason: str) -> None:
    """Revoke a user's token for good; doing it again changes nothing."""
    token = await store.find(conn, token_id, user_id=user_id)
    if token is None:
        raise TokenNotFound(token_id)
    if await store.revoke(conn, token_id):
        await _publish_revocations(conn, [token], reason=reason)


async def revoke_of_user(
    conn: Connection, user_id: str, *, reason: str, organization_id: str | None = None
) -> None:
    """Revoke all credentials of a user, or those that were given for this organization."""
    revoked = await store.revoke_of_user(conn, user_id, organization_id=organization_id)
    await _publish_revocations(conn, revoked, reason=reason)


async def revoke_by_value(conn: Connection, value: str, *, reason: str) -> TokenRecord:
    """Revoke the token that has this value, of any user and whether or not it still works."""
    revoked = await store.revoke_by_digests(conn, digests_of(conn.hub.keys, value))
    if not revoked:
        raise UnknownValue
    await _publish_revocations(conn, revoked, reason=reason)
    return revoked[0]


class ReportedCredentials(msgspec.Struct, frozen=True):
    """What waits in the queue: digests only, never the values."""

    digests: list[str]
    address: str


async def report(conn: Connection, values: Sequence[str], *, address: str) -> None:
    """Queue the revocation of leaked credentials.

    The work is the same whatever the values are: whether one exists is not looked up here,
    so neither the answer nor its time can tell.
    """
    digests = [
        digest for value in dict.fromkeys(values) for digest in digests_of(conn.hub.keys, value)
    ]
    body = msgspec.json.encode(ReportedCredentials(digests=digests, address=address)).decode()
    await queue.add(conn, queue.NewTask(kind=REVOKE_TASK, body=body, urgent=True))


async def revoke_reported(conn: Connection, reported: ReportedCredentials) -> None:
    tokens = await store.revoke_by_digests(conn, reported.digests)
    await _publish_revocations(conn, tokens, reason="reported", address=reported.address)
    await publish(
        conn,
        CredentialsReported(digests=tuple(reported.digests), address=reported.address),
    )


async def _publish_revocations(
    conn: Connection, tokens: Sequence[TokenRecord], *, reason: str, address: str | None = None
) -> None:
    conn.wake(CREDENTIALS_CHANNEL)
    await publish_many(
        conn,
        [
            CredentialRevoked(
                token_id=token.id,
                user_id=token.user_id,
                name=token.name,
                hint=token.hint,
                reason=reason,
                address=address,
            )
            for token in tokens
        ],
    )
