"""Rotation of signing keys: which one signs, which are published, and when the next one is due.
Pure functions of time.
"""

from collections.abc import Sequence
from dataclasses import field
from datetime import datetime, timedelta
from typing import Any

from hublet.core.dataclasses import dataclass

# A key is published for a day before it signs: clients cache the list for hours.
PUBLISHED_AHEAD = timedelta(days=1)
KEY_LIFE = timedelta(days=90)
# An ID token lives for an hour; its key can be found until it has expired.
PUBLISHED_AFTER = timedelta(hours=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKey:
    # The thumbprint of the public key (RFC 7638).
    id: str
    sealed_private: bytes = field(repr=False)
    # As a JWK, with its use and algorithm.
    public: dict[str, Any]
    created_at: datetime
    # Published from its creation on, so that clients know it when it begins to sign.
    signs_from: datetime


def signing_key(keys: Sequence[SigningKey], *, at: datetime) -> SigningKey | None:
    """Return the key that signs, of keys in the order of `store.list_all`."""
    return next((key for key in keys if key.signs_from <= at), None)


def published_keys(keys: Sequence[SigningKey], *, at: datetime) -> list[SigningKey]:
    """Return the keys that will sign, the one that does, and those that just did."""
    return [key for key, until in _with_ends(keys) if until is None or at < until + PUBLISHED_AFTER]


def is_next_due(keys: Sequence[SigningKey], *, at: datetime) -> bool:
    """Tell whether it is time to generate the key that follows the newest one."""
    return bool(keys) and at >= keys[0].signs_from + KEY_LIFE - PUBLISHED_AHEAD


def outdated_keys(keys: Sequence[SigningKey], *, at: datetime) -> list[SigningKey]:
    stay = {key.id for key in published_keys(keys, at=at)}
    return [key for key in keys if key.id not in stay]


def _with_ends(keys: Sequence[SigningKey]) -> list[tuple[SigningKey, datetime | None]]:
    """Pair each key with the moment from which the next one signs, if there is a next one."""
    ends = [None, *(key.signs_from for key in keys)]
    return list(zip(keys, ends[: len(keys)], strict=True))
