"""What a sender says its content is, held against what arrived."""

import base64

from hublet.repos.files.errors import InvalidDigest, WrongDigest
from hublet.repos.files.records import Upload

_SHA256_BYTES = 32


def announced_digests(
    *, x_content_sha256: str | None, digest: str | None
) -> tuple[tuple[str, str], ...]:
    """Return, by header, the SHA-256 that the sender announces; other digests are passed over."""
    found = [] if x_content_sha256 is None else [("X-Content-Sha256", x_content_sha256.lower())]
    for part in (digest or "").split(","):
        algorithm, _, value = part.strip().partition("=")
        if algorithm.lower() == "sha-256":
            found.append(("Digest", _from_base64(value)))
    return tuple(found)


def _from_base64(value: str) -> str:
    # RFC 3230 writes the value bare, RFC 9530 between colons.
    try:
        octets = base64.b64decode(value.strip(":"), validate=True)
    except ValueError:
        octets = b""
    if len(octets) != _SHA256_BYTES:
        raise InvalidDigest("Digest must be written sha-256= and 32 bytes in base64")
    return octets.hex()


def check_digests(upload: Upload, *, sha256: str) -> None:
    for header, announced in upload.digests:
        if announced != sha256:
            raise WrongDigest(header)
