"""Format of a credential: prefix, 256 random bits, checksum."""

import re
import zlib
from enum import StrEnum

from hublet.core import ids

MAX_LENGTH = 64

_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]
_SECRET_LENGTH = 43
_CHECKSUM_LENGTH = 6
_BODY_LENGTH = _SECRET_LENGTH + _CHECKSUM_LENGTH

_OURS = re.compile(rf"[!-~]{{0,{MAX_LENGTH - _BODY_LENGTH}}}[0-9A-Za-z]{{{_BODY_LENGTH}}}")
_IMPORTABLE = re.compile(r"[!-~]{8,200}")
_IMPORTED_PREFIX = re.compile(r"[A-Za-z]{1,4}_((oauth|jwt|rt|cs)_)?")


class TokenKind(StrEnum):
    access = "access"
    oauth = "oauth"
    jwt = "jwt"
    # Of a trusted publisher, for one repository.
    publisher = "publisher"
    # What these two open is an OAuth endpoint, never the API.
    refresh = "refresh"
    secret = "secret"  # noqa: S105 - a name

    @property
    def part(self) -> str:
        """What follows the hub's own prefix, so that people and scanners see the kind."""
        return _PARTS[self]


# None is longer than six characters: see the longest prefix in core/config.
_PARTS = {
    TokenKind.access: "",
    TokenKind.oauth: "oauth_",
    TokenKind.jwt: "jwt_",
    TokenKind.publisher: "jwt_",
    TokenKind.refresh: "rt_",
    TokenKind.secret: "cs_",
}


def new_credential(prefix: str, kind: TokenKind) -> str:
    start = prefix + kind.part
    if len(start) + _BODY_LENGTH > MAX_LENGTH:
        raise ValueError(f"The prefix {start} makes credentials longer than {MAX_LENGTH}.")
    text = start + _base62(int.from_bytes(ids.random_bytes(32)), width=_SECRET_LENGTH)
    return text + _checksum(text)


def has_valid_checksum(text: str) -> bool:
    """Tell a credential made by a hub from a typing error. The digest alone decides access."""
    if _OURS.fullmatch(text) is None:
        return False
    return _checksum(text[:-_CHECKSUM_LENGTH]) == text[-_CHECKSUM_LENGTH:]


def is_importable(value: str) -> bool:
    return _IMPORTABLE.fullmatch(value) is not None


def hint(value: str) -> str:
    """Return what may be shown of a credential: its prefix and its last 4 characters.

    An imported value may be short: at most a quarter of its secret part is shown.
    """
    start = value[:-_BODY_LENGTH] if has_valid_checksum(value) else _imported_prefix(value)
    visible = min(4, (len(value) - len(start)) // 4)
    return f"{start}…{value[len(value) - visible :]}"


def _imported_prefix(value: str) -> str:
    match = _IMPORTED_PREFIX.match(value)
    return match[0] if match else ""


def _checksum(text: str) -> str:
    return _base62(zlib.crc32(text.encode()), width=_CHECKSUM_LENGTH)


def _base62(number: int, *, width: int) -> str:
    # Two digits at a time: this is on the way of every token that an app gets.
    pairs: list[str] = []
    while number:
        number, pair = divmod(number, len(_PAIRS))
        pairs.append(_PAIRS[pair])
    return "".join(reversed(pairs)).rjust(width, _ALPHABET[0])[-width:]
