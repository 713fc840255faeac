"""HTTP for the secrets of apps."""

from datetime import timedelta

from fastapi import Request

from hublet.core.http import Conn, Router
from hublet.core.schema import Done
from hublet.oauth.apps.schemas import CreatedSecret, CreateSecret, Secret
from hublet.oauth.apps.secrets import service
from hublet.tokens.auth import AccountOwner, actor_of

router = Router(prefix="/api/settings/oauth-apps/{client_id}/secrets", tags=["oauth"])

_DEFAULTS = CreateSecret()


@router.post("", responses={409: {"description": "Too many secrets still work."}})
async def create_oauth_secret(
    request: Request,
    conn: Conn,
    caller: AccountOwner,
    client_id: str,
    body: CreateSecret = _DEFAULTS,
) -> CreatedSecret:
    """Give an app a new secret; the answer is the only one that shows its value.

    Secrets that it has work on for `overlapSeconds`, a day unless said otherwise. From now on
    the app must show a secret wherever it asks for tokens.
    """
    overlap = timedelta(seconds=body.overlapSeconds)
    actor = actor_of(request, caller)
    secret, value = await service.create(conn, actor, client_id, overlap=overlap)
    return CreatedSecret(secret=Secret.of(secret), value=value)


@router.delete("")
async def delete_oauth_secrets(
    request: Request, conn: Conn, caller: AccountOwner, client_id: str
) -> Done:
    """Delete all secrets of an app at once; it then works as a public one."""
    await service.delete_all(conn, actor_of(request, caller), client_id)
    return Done()


@router.delete("/{secret_id}")
async def delete_oauth_secret(
    request: Request, conn: Conn, caller: AccountOwner, client_id: str, secret_id: str
) -> Done:
    """Delete one secret of an app at once; without its last one it works as a public one."""
    await service.delete(conn, actor_of(request, caller), client_id, secret_id)
    return Done()
