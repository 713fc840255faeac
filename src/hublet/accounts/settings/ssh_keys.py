"""Rules of one's own SSH keys: registering and removing them."""

from hublet.accounts.errors import SshKeyNotFound, SshKeyTaken, TooManySshKeys
from hublet.accounts.records import UserSshKey
from hublet.accounts.settings import store
from hublet.accounts.settings.public_keys import parse
from hublet.core.clock import now
from hublet.core.database import Connection
from hublet.core.database.engine import CREDENTIALS_CHANNEL
from hublet.core.ids import new_object_id
from hublet.core.outbox import publish
from hublet.events import SshKeyAdded, SshKeyRemoved

MAX_SSH_KEYS = 100


async def add(conn: Connection, *, user_id: str, title: str, text: str) -> UserSshKey:
    """Register a public key. It names its owner at log-in, so nobody else may have it."""
    public = parse(text)
    await conn.lock(f"SSH keys of {user_id}")
    if await store.count_ssh_keys(conn, user_id=user_id) >= MAX_SSH_KEYS:
        raise TooManySshKeys(MAX_SSH_KEYS)
    key = UserSshKey(
        id=new_object_id(),
        user_id=user_id,
        title=title,
        type=public.type,
        data=public.data,
        fingerprint=public.fingerprint,
        created_at=now(),
    )
    if not await store.add_ssh_key(conn, key):
        raise SshKeyTaken(key.fingerprint)
    await publish(
        conn,
        SshKeyAdded(user_id=user_id, key_id=key.id, title=title, fingerprint=key.fingerprint),
    )
    return key


async def remove(conn: Connection, key_id: str, *, user_id: str) -> None:
    key = await store.find_ssh_key(conn, key_id, user_id=user_id)
    if key is None:
        raise SshKeyNotFound(key_id)
    await _remove_and_publish(conn, key)


async def remove_all(conn: Connection, *, user_id: str) -> None:
    """Remove the keys of somebody who is not to log in by them any more."""
    await conn.lock(f"SSH keys of {user_id}")
    for key in await store.list_ssh_keys(conn, user_id=user_id):
        await _remove_and_publish(conn, key)


async def _remove_and_publish(conn: Connection, key: UserSshKey) -> None:
    await store.remove_ssh_key(conn, key.id)
    await publish(
        conn,
        SshKeyRemoved(
            user_id=key.user_id, key_id=key.id, title=key.title, fingerprint=key.fingerprint
        ),
    )
    # Whoever is logged in by it is to go.
    conn.wake(CREDENTIALS_CHANNEL)
