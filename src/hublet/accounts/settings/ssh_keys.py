"""SSH keys of a user: registering and removing them, and the parser of an `id_….pub` line."""

import base64
import hashlib

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import SSHPublicKeyTypes, load_ssh_public_key

from hublet.accounts.errors import InvalidSshKey, SshKeyNotFound, SshKeyTaken, TooManySshKeys
from hublet.accounts.records import UserSshKey
from hublet.accounts.settings import store
from hublet.core.clock import now
from hublet.core.database import Connection
from hublet.core.database.engine import CREDENTIALS_CHANNEL
from hublet.core.dataclasses import dataclass
from hublet.core.ids import new_object_id
from hublet.core.outbox import publish
from hublet.events import SshKeyAdded, SshKeyRemoved

MAX_SSH_KEYS = 100

TYPES = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "ssh-rsa",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
)
MIN_RSA_BITS = 2048
# The largest RSA key that OpenSSH knows, 16384 bits, takes less than 3,000 characters.
MAX_LENGTH = 4096

# PEM and OpenSSH files, PuTTY files, and the body of an OpenSSH file without its first line.
_PRIVATE_KEY_MARKERS = ("PRIVATE KEY", "PuTTY-User-Key-File", "b3BlbnNzaC1rZXktdjEA")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicKey:
    type: str
    data: str
    comment: str
    fingerprint: str


async def add(conn: Connection, *, user_id: str, title: str, text: str) -> UserSshKey:
    """Register a public key. It identifies its owner at log-in, so only one user may have it."""
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
    """Remove all keys of a user."""
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
    # Sessions that were opened with the key end.
    conn.wake(CREDENTIALS_CHANNEL)


def parse(text: str) -> PublicKey:
    """Parse the line of a public key; InvalidSshKey names the broken rule and repeats no input."""
    line = _single_line(text)
    key_type, data, comment = _parts(line)
    blob = _decode(data)
    _check_inner_type(key_type, blob)
    _check_key(_load(key_type, blob))
    return PublicKey(
        type=key_type,
        data=base64.b64encode(blob).decode(),
        comment=comment,
        fingerprint=_fingerprint(blob),
    )


def _single_line(text: str) -> str:
    if any(mark in text for mark in _PRIVATE_KEY_MARKERS):
        raise InvalidSshKey(
            "This is a private key. Make a new pair, and paste the line of its .pub file."
        )
    if len(text) > MAX_LENGTH:
        raise InvalidSshKey(f"An SSH key has at most {MAX_LENGTH} characters.")
    line = text.strip().replace("\t", " ")
    if len(line.splitlines()) > 1:
        raise InvalidSshKey("An SSH key is one line; add several keys one by one.")
    if not line.isprintable():
        raise InvalidSshKey("An SSH key has no control characters.")
    return line


def _parts(line: str) -> tuple[str, str, str]:
    words = line.split()
    if words and words[0] in TYPES:
        if len(words) == 1:
            raise InvalidSshKey("An SSH key is its type, its data in base64, and a comment.")
        return words[0], words[1], " ".join(words[2:])
    if "ssh-dss" in words:
        raise InvalidSshKey("DSA keys are too weak. Make a key of type ssh-ed25519.")
    if any(word in TYPES for word in words):
        raise InvalidSshKey("An SSH key starts with its type, without options in front of it.")
    raise InvalidSshKey(f"An SSH key starts with its type, one of {', '.join(TYPES)}.")


def _decode(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except ValueError:
        raise InvalidSshKey("The data of the SSH key is not valid base64.") from None


def _check_inner_type(key_type: str, blob: bytes) -> None:
    # The data repeats the type, as a length in 4 bytes and the text.
    if not blob.startswith(len(key_type).to_bytes(4) + key_type.encode()):
        raise InvalidSshKey("The data of the SSH key is not of the type in front of it.")


def _load(key_type: str, blob: bytes) -> SSHPublicKeyTypes:
    try:
        return load_ssh_public_key(f"{key_type} {base64.b64encode(blob).decode()}".encode())
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidSshKey("The data of the SSH key is damaged.") from None


def _check_key(key: SSHPublicKeyTypes) -> None:
    if isinstance(key, RSAPublicKey) and key.key_size < MIN_RSA_BITS:
        raise InvalidSshKey(f"An RSA key has at least {MIN_RSA_BITS} bits.")


def _fingerprint(blob: bytes) -> str:
    digest = base64.b64encode(hashlib.sha256(blob).digest()).decode()
    return "SHA256:" + digest.rstrip("=")
