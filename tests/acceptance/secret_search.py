"""Finding a secret in bytes, however it was written down."""

import base64
import hashlib
from collections.abc import Iterator, Mapping
from urllib.parse import quote


def find_secrets(secrets: Mapping[str, str], places: Mapping[str, bytes]) -> list[str]:
    """Name each secret that stands in a place, and its spelling there; never the secret itself."""
    return [
        f"{name}, {spelling}, in {place}"
        for name, secret in secrets.items()
        for spelling, octets in _spellings(secret)
        for place, content in places.items()
        if octets in content
    ]


def _spellings(secret: str) -> Iterator[tuple[str, bytes]]:
    octets = secret.encode()
    yield "as it is", octets
    yield "percent-encoded", quote(secret, safe="").encode()
    yield "in hexadecimal", octets.hex().encode()
    yield "in upper-case hexadecimal", octets.hex().upper().encode()
    for shift in range(3):
        yield f"in base64 shifted by {shift}", _inner_base64(octets, shift=shift, safe=False)
        yield f"in base64url shifted by {shift}", _inner_base64(octets, shift=shift, safe=True)
    # A digest without a key can be guessed at by whoever has it.
    yield "as plain SHA-256", hashlib.sha256(octets).hexdigest().encode()
    yield "as plain MD5", hashlib.md5(octets, usedforsecurity=False).hexdigest().encode()


def _inner_base64(octets: bytes, *, shift: int, safe: bool) -> bytes:
    """Return the characters that stand for these octets whatever is before and after them."""
    encode = base64.urlsafe_b64encode if safe else base64.b64encode
    begin, end = -(-shift * 8 // 6), (shift + len(octets)) * 8 // 6
    return encode(bytes(shift) + octets)[begin:end]
