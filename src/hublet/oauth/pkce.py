"""PKCE, Proof Key for Code Exchange (RFC 7636): the method S256 and no other."""

import re
from base64 import urlsafe_b64encode
from hashlib import sha256
from hmac import compare_digest

_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")


def is_verifier(text: str) -> bool:
    return _VERIFIER.fullmatch(text) is not None


def is_challenge(text: str) -> bool:
    """Tell whether this can be the SHA-256 of a verifier in base64url."""
    return _CHALLENGE.fullmatch(text) is not None


def challenge_of(verifier: str) -> str:
    return urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def verifier_matches(verifier: str, challenge: str) -> bool:
    return is_verifier(verifier) and compare_digest(challenge_of(verifier), challenge)
