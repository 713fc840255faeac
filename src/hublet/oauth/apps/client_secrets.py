"""Client secrets: shown once, replaced with an overlap, deleted to make an app public."""

from collections.abc import Iterable
from datetime import timedelta

from hublet.accounts.records import Actor
from hublet.core.clock import now, to_micros
from hublet.core.database import Connection
from hublet.core.ids import new_object_id
from hublet.core.outbox import publish_many
from hublet.events import CredentialRevoked
from hublet.oauth.apps import secrets_store
from hublet.oauth.apps import service as apps
from hublet.oauth.apps.records import ClientSecret
from hublet.oauth.errors import SecretNotFound, TooManySecrets
from hublet.tokens import service as tokens
from hublet.tokens.format import TokenKind, hint, new_credential

OVERLAP = timedelta(hours=24)
MAX_SECRETS = 10


async def create(
    conn: Connection, actor: Actor, client_id: str, *, overlap: timedelta = OVERLAP
) -> tuple[ClientSecret, str]:
    """Give an app a new secret; return it with its value, this once. Those before it work on."""
    app = (await apps.lock_app(conn, actor, client_id)).app
    await secrets_store.expire_all(conn, app.id, at=to_micros(now() + overlap))
    await secrets_store.remove_expired(conn, app.id)
    if len(await secrets_store.list_working(conn, app.id)) >= MAX_SECRETS:
        raise TooManySecrets(MAX_SECRETS)
    secret, value = await issue(conn, app.id)
    await apps.write_audit(
        conn, actor, app, "oauth-app.create-secret", details={"hint": secret.hint}
    )
    return secret, value


async def issue(conn: Connection, app_id: str) -> tuple[ClientSecret, str]:
    """Add a secret to an app that was just made or is held."""
    value = new_credential(conn.hub.settings.tokens.prefix, TokenKind.secret)
    secret = ClientSecret(id=new_object_id(), hint=hint(value), created_at=now())
    # Digests as tokens have them: who reports a leaked value need not know what it is.
    digest = tokens.digests_of(conn.hub.keys, value)[0]
    await secrets_store.add(conn, app_id, secret, digest=digest)
    return secret, value


async def expire_reported(conn: Connection, digests: Iterable[str], *, address: str | None) -> None:
    """Let secrets that leaked work no more, and have those told who registered the apps.

    The apps do not become public by that: they need new secrets.
    """
    leaked = await secrets_store.expire_reported(conn, digests)
    await publish_many(
        conn,
        [
            CredentialRevoked(
                token_id=each.secret_id,
                user_id=each.owner_id,
                name=f"secret of {each.app_name}",
                hint=each.hint,
                reason="reported",
                address=address,
            )
            for each in leaked
            if each.owner_id is not None
        ],
    )


async def delete(conn: Connection, actor: Actor, client_id: str, secret_id: str) -> None:
    """Delete one secret at once; without the last one the app is public."""
    app = (await apps.lock_app(conn, actor, client_id)).app
    if not await secrets_store.remove(conn, app.id, secret_id):
        raise SecretNotFound(secret_id)
    await apps.write_audit(
        conn, actor, app, "oauth-app.delete-secret", details={"secret": secret_id}
    )


async def delete_all(conn: Connection, actor: Actor, client_id: str) -> None:
    """Make an app public: from now on it is known by its client id alone."""
    app = (await apps.lock_app(conn, actor, client_id)).app
    await secrets_store.remove_all(conn, app.id)
    await apps.write_audit(conn, actor, app, "oauth-app.delete-secret", details={"secret": "all"})
