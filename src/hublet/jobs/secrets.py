"""What a job keeps to itself: sealed in the database, opened only to be handed to an attempt."""

from collections.abc import Mapping

import msgspec

from hublet.core.sealing import KeyRing


def seal(keys: KeyRing, owner: str, secrets: Mapping[str, str]) -> bytes | None:
    """Seal the secrets of what has this id, a job or a scheduled job; None when there are none."""
    if not secrets:
        return None
    return keys.seal(msgspec.json.encode(dict(secrets)), context=_context(owner))


def unseal(keys: KeyRing, owner: str, sealed: bytes | None) -> dict[str, str]:
    if sealed is None:
        return {}
    opened = keys.open(sealed, context=_context(owner))
    return msgspec.json.decode(opened, type=dict[str, str])


def _context(owner: str) -> str:
    return f"jobs.secrets:{owner}"
