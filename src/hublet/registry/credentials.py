"""Credentials for other registries: of a user, an organization, or the hub; sealed in the database."""

import base64
import re

from hublet.core.database import Connection, Reader
from hublet.core.sealing import SealBroken
from hublet.registry import credentials_store as store
from hublet.registry.errors import CredentialNotFound, InvalidCredential, TooManyCredentials
from hublet.registry.records import RegistryCredential

# The owner of those that every job of the hub uses.
HUB = ""
MOST = 100
_MAX_LENGTH = 4096
_HOST = re.compile(
    r"(?=.{1,255}\Z)(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:]+\])(?::[0-9]{1,5})?"
)
# As names of images write Docker Hub.
_DOCKER_HUB = "docker.io"
_DOCKER_NAMES = {"index.docker.io", "registry-1.docker.io", "https://index.docker.io/v1/"}


async def set_credential(
    conn: Connection, owner_id: str, host: str, *, username: str, secret: str
) -> RegistryCredential:
    """Store how an owner logs in to a registry; those from before are replaced."""
    host = normalize_host(host)
    # Basic authentication separates the two by a colon.
    _check(username, "username", "it has 1 to 4096 printable characters without a colon", ":")
    _check(secret, "secret", "it has 1 to 4096 printable characters")
    is_new = await store.find(conn, owner_id=owner_id, host=host) is None
    if is_new and len(await store.list_of(conn, owner_id=owner_id)) >= MOST:
        raise TooManyCredentials(MOST)
    sealed = conn.hub.keys.seal(secret.encode(), context=_context(owner_id, host))
    text = base64.b64encode(sealed).decode()
    await store.put(conn, owner_id=owner_id, host=host, username=username, secret=text)
    stored = await store.find(conn, owner_id=owner_id, host=host)
    assert stored is not None  # noqa: S101 - just written.
    return stored


async def list_credentials(conn: Reader, owner_id: str) -> list[RegistryCredential]:
    return await store.list_of(conn, owner_id=owner_id)


async def remove_credential(conn: Connection, owner_id: str, host: str) -> None:
    host = normalize_host(host)
    if not await store.remove(conn, owner_id=owner_id, host=host):
        raise CredentialNotFound(host)


async def find_login(conn: Reader, owner_id: str, host: str) -> tuple[str, str] | None:
    """Return the name and the secret of an owner at a registry, if they can be opened."""
    found = await store.find(conn, owner_id=owner_id, host=host)
    if found is None:
        return None
    try:
        sealed = base64.b64decode(found.sealed_secret)
        secret = conn.hub.keys.open(sealed, context=_context(owner_id, host))
    except SealBroken:
        # Sealed with a key that was removed: as good as none, and the owner stores them anew.
        return None
    return found.username, secret.decode()


def normalize_host(text: str) -> str:
    """Return a registry as names of images write it: `docker.io`, `registry.example.com:5000`."""
    host = text.strip().lower()
    if host in _DOCKER_NAMES:
        return _DOCKER_HUB
    if not _HOST.fullmatch(host):
        raise InvalidCredential(
            "host", "it is a registry as in the name of an image, such as ghcr.io or host:5000"
        )
    return host


def _check(text: str, field: str, rule: str, forbidden: str = "") -> None:
    is_valid = 0 < len(text) <= _MAX_LENGTH and text.isprintable()
    if not is_valid or any(character in text for character in forbidden):
        raise InvalidCredential(field, rule)


def _context(owner_id: str, host: str) -> str:
    return f"registry credentials {owner_id} {host}"
