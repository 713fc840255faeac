"""Rules of client secrets: shown once, replaced with an overlap, deleted to make an app public."""

from collections.abc import Iterable
from datetime import timedelta

from hublet.accounts.records import Actor
from hublet.core.clock import now, to_micros
from hublet.core.database import Connection
from hublet.core.ids import new_object_id
from hublet.core.outbox import publish_many
from hublet.events import CredentialRevoked
from hublet.oauth.apps import service as apps
from hublet.oauth.apps import store
from hublet.oauth.apps.records import ClientSecret
from hublet.oauth.errors import SecretNotFound, TooManySecrets
from hublet.tokens import service as tokens
from hublet.tokens.format import TokenKind, hint, new_credential

OVERLAP = timedelta(hours=24)
MAX_SECRETS = 10


async def create(
    conn: Connection, actor: Actor, client_id: str, *, overlap: timedelta = OVERLAP
) -> tuple[ClientSecret, str]:
    """Add a secret to an app and return it with its value; older ones work until the overlap ends."""
    app = (await apps.lock_app(conn, actor, client_id)).app
    await store.expire_secrets(conn, app.id, at=to_micros(now() + overlap))
    await store.remove_expired_secrets(conn, app.id)
    if len(await store.list_working_secrets(conn, app.id)) >= MAX_SECRETS:
        raise TooManySecrets(MAX_SECRETS)
    secret, value = await issue(conn, app.id)
    await apps.write_audit(
        conn, actor, app, "oauth-app.create-secret", details={"hint": secret.hint}
    )
    return secret, value


async def issue(conn: Connection, app_id: str) -> tuple[ClientSecret, str]:
    """Add a secret to an app that was just created or is locked."""
    value = new_credential(conn.hub.settings.tokens.prefix, TokenKind.secret)
    secret = ClientSecret(id=new_object_id(), hint=hint(value), created_at=now())
    # Digests as tokens have them: a leaked value can be reported without knowing what it is.
    digest = tokens.digests_of(conn.hub.keys, value)[0]
    await store.add_secret(conn, app_id, secret, digest=digest)
    return secret, value


async def expire_reported(conn: Connection, digests: Iterable[str], *, address: str | None) -> None:
    """Make leaked secrets expire, and notify those who registered the apps.

    The apps do not become public by that: they need new secrets.
    """
    leaked = await store.expire_reported_secrets(conn, digests)
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
    if not await store.remove_secret(conn, app.id, secret_id):
        raise SecretNotFound(secret_id)
    await apps.write_audit(
        conn, actor, app, "oauth-app.delete-secret", details={"secret": secret_id}
    )


async def delete_all(conn: Connection, actor: Actor, client_id: str) -> None:
    """Make an app public: from now on it is known by its client id alone."""
    app = (await apps.lock_app(conn, actor, client_id)).app
    await store.remove_secrets(conn, app.id)
    await apps.write_audit(conn, actor, app, "oauth-app.delete-secret", details={"secret": "all"})
