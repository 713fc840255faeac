"""Signed documents: what this hub wrote, and reads again when somebody brings it back."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from hmac import compare_digest
from typing import Any, TypeVar

import msgspec

from hublet.core.sealing import KeyRing

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
