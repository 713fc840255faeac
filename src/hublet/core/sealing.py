"""Master keys: digests of secrets that are only compared, encryption of secrets that are needed,
and signed documents: what this hub wrote, and reads again when somebody brings it back.
"""

import base64
import os
import re
import stat
from base64 import urlsafe_b64decode, urlsafe_b64encode
from contextlib import suppress
from dataclasses import field
from functools import lru_cache
from hmac import compare_digest
from pathlib import Path
from typing import Any, Self, TypeVar

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from hublet.core import ids
from hublet.core.dataclasses import dataclass

_KEY_BYTES = 32
_NONCE_BYTES = 12
_ENVELOPE_VERSION = 1
_ENTRY = re.compile(r"([A-Za-z0-9_-]{1,32}):([A-Za-z0-9_-]{43}=?)")
_FILE_HEADER = """\
# The key ring of this hub: whoever has it and the database has every secret in it.
# Keep a copy apart from the database; without this file the sealed values are lost.
# One id:key on each line. The first key is current, the others still open what they sealed.
"""


class KeyRingError(Exception):
    """The file of the key ring is open to others, broken, or out of reach."""


class WrongKeys(KeyRingError):
    """The key ring is not the one this database was written with."""

    def __init__(self) -> None:
        super().__init__(
            "The key ring does not belong to this database, so no stored token could be checked: "
            "restore the file secret.keys of its data folder, or set HUBLET_KEYS_RING."
        )


class SealBroken(Exception):
    """The value was changed, moved to another context, or sealed with a key we do not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    id: str
    master: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRing:
    """At least one key; the first is current, the others are on their way out."""

    keys: tuple[Key, ...]

    @classmethod
    def new(cls) -> Self:
        key = Key(id=ids.random_bytes(4).hex(), master=ids.random_bytes(_KEY_BYTES))
        return cls(keys=(key,))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read entries `id:base64url(32 bytes)`, one a line or with commas between them.

        A ValueError names the entry by its number: what stands there may be a key.
        """
        keys = tuple(
            _parse_key(number, entry) for number, entry in enumerate(_split_entries(text), start=1)
        )
        if not keys:
            raise ValueError("A key ring needs at least one key.")
        if len({key.id for key in keys}) < len(keys):
            raise ValueError("Two keys in the key ring have the same id.")
        return cls(keys=keys)

    @classmethod
    def load_or_create(cls, path: Path) -> Self:
        """Read the ring; the first of several processes that find none makes it for all."""
        try:
            if not path.exists():
                _create(path, cls.new())
            return cls.parse(_read(path))
        except OSError as error:
            raise KeyRingError(f"The key ring {path} is out of reach: {error.strerror}.") from error
        except ValueError as error:
            raise KeyRingError(f"The key ring {path} is broken. {error}") from error

    def digest(self, kind: str, value: str) -> bytes:
        """Return what may be stored in place of a secret: without the ring it tells nothing."""
        return _digest(self.keys[0], kind, value)

    def digests(self, kind: str, value: str) -> tuple[bytes, ...]:
        """Return the digest under each key, current first, to find rows of before a rotation."""
        return tuple(_digest(key, kind, value) for key in self.keys)

    def seal(self, plain: bytes, *, context: str) -> bytes:
        """Encrypt; the same context, such as table, column and id, is needed to open."""
        key = self.keys[0]
        key_id = key.id.encode()
        header = bytes((_ENVELOPE_VERSION, len(key_id))) + key_id
        nonce = ids.random_bytes(_NONCE_BYTES)
        return header + nonce + _cipher(key).encrypt(nonce, plain, header + context.encode())

    def open(self, sealed: bytes, *, context: str) -> bytes:
        end = 2 + sealed[1] if len(sealed) > 1 and sealed[0] == _ENVELOPE_VERSION else 0
        header, nonce = sealed[:end], sealed[end : end + _NONCE_BYTES]
        key = next((key for key in self.keys if key.id.encode() == header[2:]), None)
        if key is None:
            raise SealBroken("The value is not sealed with a key of this ring.")
        try:
            body = sealed[end + _NONCE_BYTES :]
            return _cipher(key).decrypt(nonce, body, header + context.encode())
        except (InvalidTag, ValueError):
            raise SealBroken("The sealed value was changed or moved.") from None

    def render(self) -> str:
        """Return the text of a file with all keys of the ring."""
        return _FILE_HEADER + _render(self)

    def fingerprint(self) -> str:
        """Name the current key without telling it, to see which ring a database belongs to."""
        return self.fingerprints()[0]

    def fingerprints(self) -> tuple[str, ...]:
        return tuple(_derive_key(key.master, "fingerprint")[:8].hex() for key in self.keys)


def _split_entries(text: str) -> list[str]:
    lines = (line.partition("#")[0] for line in text.splitlines())
    return [entry.strip() for line in lines for entry in line.split(",") if entry.strip()]


def _parse_key(number: int, entry: str) -> Key:
    match = _ENTRY.fullmatch(entry)
    if match is None:
        raise ValueError(f"Entry {number} of the key ring is not `id:` and 32 bytes in base64url.")
    return Key(id=match[1], master=base64.urlsafe_b64decode(match[2][:43] + "="))


# Keys are derived once for each label; the digest of a credential is on every request.
@lru_cache(maxsize=1024)
def _derive_key(master: bytes, label: str) -> bytes:
    info = f"hublet 1 {label}".encode()
    return HKDF(algorithm=SHA256(), length=_KEY_BYTES, salt=None, info=info).derive(master)


@lru_cache(maxsize=1024)
def _mac(master: bytes, kind: str) -> HMAC:
    return HMAC(_derive_key(master, f"digest {kind}"), SHA256())


def _digest(key: Key, kind: str, value: str) -> bytes:
    mac = _mac(key.master, kind).copy()
    mac.update(value.encode("utf-8", "surrogatepass"))
    return mac.finalize()


def _cipher(key: Key) -> AESGCM:
    return AESGCM(_derive_key(key.master, "seal"))


def _create(path: Path, ring: KeyRing) -> None:
    temporary = path.with_name(f".{path.name}.{ids.random_bytes(8).hex()}")
    temporary.touch(mode=0o600, exist_ok=False)
    try:
        with temporary.open("w") as file:
            file.write(ring.render())
            file.flush()
            os.fsync(file.fileno())
        # A link never replaces, as a rename would: the ring of a faster process stays.
        with suppress(FileExistsError):
            path.hardlink_to(temporary)
    finally:
        temporary.unlink()
    _sync_folder(path.parent)


def _render(ring: KeyRing) -> str:
    return "".join(
        f"{key.id}:{base64.urlsafe_b64encode(key.master).decode()}\n" for key in ring.keys
    )


def _sync_folder(path: Path) -> None:
    """Make a new name in the folder survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read(path: Path) -> str:
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise KeyRingError(
                f"The key ring {path} is open to others than its owner. Run: chmod 600 {path}"
            )
        # A byte that is not ASCII makes its entry invalid; the error of a strict decoder
        # would carry the whole file with it.
        return file.read().decode("ascii", "replace")


_Document = TypeVar("_Document")


def sign(document: Any, *, kind: str, keys: KeyRing) -> str:
    """Return a document as text that nobody can change; a kind's signature is good for no other."""
    body = urlsafe_b64encode(msgspec.json.encode(document)).decode()
    return f"{body}.{keys.digest(kind, body).hex()}"


def read_signed(text: str, type_: type[_Document], *, kind: str, keys: KeyRing) -> _Document | None:
    """Return the document of a text; None unless this hub signed it."""
    body, _, signature = text.partition(".")
    given = signature.encode("utf-8", "surrogatepass")
    good = [each.hex().encode() for each in keys.digests(kind, body)]
    if not any(compare_digest(each, given) for each in good):
        return None
    return msgspec.json.decode(urlsafe_b64decode(body), type=type_)
