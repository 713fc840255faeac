"""The key by which clients know this hub again; every process of the hub has the same."""

import os
from contextlib import suppress
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from hublet.core.ids import new_object_id

NAME = "ssh_host_ed25519_key"


def host_key(data_dir: Path) -> bytes:
    """Return the key, made at the first start, as OpenSSH writes keys. Blocks."""
    path = data_dir / NAME
    if not path.exists():
        _make(path)
    return path.read_bytes()


def _make(path: Path) -> None:
    key = Ed25519PrivateKey.generate()
    text = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    new = path.with_name(f"{NAME}.{new_object_id()}")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    # Whole or not at all, and the first of several processes wins.
    with suppress(FileExistsError):
        path.hardlink_to(new)
    new.unlink()
