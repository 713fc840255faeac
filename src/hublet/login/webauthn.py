"""WebAuthn (level 3): challenges, options for the browser, and verification of its responses.

The browser keeps the challenge, sealed, so that showing a page writes nothing. Only when a challenge is
answered is its digest stored, so that it cannot be used a second time.

The library takes 300 ms to import: it is imported where it is used, in a thread.
"""
# ruff: noqa: PLC0415

import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import field
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from hublet.accounts.records import User
from hublet.core.clock import from_micros, now, to_micros
from hublet.core.config import Settings
from hublet.core.dataclasses import dataclass
from hublet.core.hub import Hub
from hublet.core.ids import random_bytes
from hublet.core.sealing import SealBroken
from hublet.login.errors import InvalidCredential
from hublet.login.records import Passkey, Session

CHALLENGE_LIFE = timedelta(minutes=5)
SIGN_IN_PURPOSE = "sign in"

_TIME_BYTES = 8
_CHALLENGE_BYTES = 32
_TIMEOUT_MILLISECONDS = 300_000
_CREDENTIAL_ID = re.compile(r"[A-Za-z0-9_-]{1,1400}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge:
    value: bytes = field(repr=False)
    expires_at: datetime


def new_challenge() -> Challenge:
    return Challenge(value=random_bytes(_CHALLENGE_BYTES), expires_at=now() + CHALLENGE_LIFE)


def registration_purpose(session: Session) -> str:
    """Name the purpose of a challenge that only this session can answer."""
    return f"add {session.id}"


def seal_challenge(hub: Hub, challenge: Challenge, purpose: str) -> str:
    plain = to_micros(challenge.expires_at).to_bytes(_TIME_BYTES, "big") + challenge.value
    return urlsafe_b64encode(hub.keys.seal(plain, context=_context(purpose))).decode()


def unseal_challenge(hub: Hub, text: str | None, purpose: str) -> Challenge | None:
    """Return the challenge unless it is broken, for another purpose, or too old."""
    try:
        plain = hub.keys.open(urlsafe_b64decode(text or ""), context=_context(purpose))
    except (SealBroken, ValueError):
        return None
    expires_at = from_micros(int.from_bytes(plain[:_TIME_BYTES], "big"))
    if expires_at <= now():
        return None
    return Challenge(value=plain[_TIME_BYTES:], expires_at=expires_at)


def _context(purpose: str) -> str:
    return f"passkey challenge {purpose}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCredential:
    credential_id: str
    public_key: bytes
    sign_count: int


def is_available(settings: Settings) -> bool:
    """Tell whether browsers allow passkeys at the hub's address: never at a bare IP address."""
    parts = urlsplit(settings.base_url)
    host = parts.hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    return parts.scheme == "https" and not _is_ip(host)


def registration_options(
    settings: Settings, user: User, *, known: Sequence[Passkey], challenge: bytes
) -> str:
    """Return the options of `navigator.credentials.create`, as JSON."""
    from webauthn import base64url_to_bytes, generate_registration_options, options_to_json
    from webauthn.helpers.structs import (
        AuthenticatorSelectionCriteria,
        PublicKeyCredentialDescriptor,
        ResidentKeyRequirement,
        UserVerificationRequirement,
    )

    return options_to_json(
        generate_registration_options(
            rp_id=_host(settings),
            rp_name="Hublet",
            user_id=user.id.encode(),
            user_name=user.name,
            user_display_name=user.fullname,
            challenge=challenge,
            timeout=_TIMEOUT_MILLISECONDS,
            authenticator_selection=AuthenticatorSelectionCriteria(
                resident_key=ResidentKeyRequirement.REQUIRED,
                user_verification=UserVerificationRequirement.REQUIRED,
            ),
            exclude_credentials=[
                PublicKeyCredentialDescriptor(id=base64url_to_bytes(each.credential_id))
                for each in known
            ],
        )
    )


def verify_registration(settings: Settings, response: str, *, challenge: bytes) -> NewCredential:
    from webauthn import verify_registration_response
    from webauthn.helpers import bytes_to_base64url
    from webauthn.helpers.exceptions import WebAuthnException

    try:
        verified = verify_registration_response(
            credential=response,
            expected_challenge=challenge,
            expected_rp_id=_host(settings),
            expected_origin=settings.base_url,
            require_user_verification=True,
        )
    except (WebAuthnException, ValueError, KeyError, TypeError) as error:
        raise InvalidCredential from error
    return NewCredential(
        credential_id=bytes_to_base64url(verified.credential_id),
        public_key=verified.credential_public_key,
        sign_count=verified.sign_count,
    )


def authentication_options(settings: Settings, *, challenge: bytes) -> str:
    """Return the options of `navigator.credentials.get`, as JSON, for any passkey of the hub."""
    from webauthn import generate_authentication_options, options_to_json
    from webauthn.helpers.structs import UserVerificationRequirement

    return options_to_json(
        generate_authentication_options(
            rp_id=_host(settings),
            challenge=challenge,
            timeout=_TIMEOUT_MILLISECONDS,
            user_verification=UserVerificationRequirement.REQUIRED,
        )
    )


def credential_id_of(response: str) -> str | None:
    """Return the id of the passkey that a response claims to come from."""
    try:
        parsed: Any = json.loads(response)
    except ValueError:
        return None
    claimed = parsed.get("id") if isinstance(parsed, dict) else None
    return claimed if isinstance(claimed, str) and _CREDENTIAL_ID.fullmatch(claimed) else None


def verify_authentication(
    settings: Settings, passkey: Passkey, response: str, *, challenge: bytes
) -> int:
    """Return the new count of signatures; a count that does not grow means a copied key."""
    from webauthn import verify_authentication_response
    from webauthn.helpers import parse_authentication_credential_json
    from webauthn.helpers.exceptions import WebAuthnException

    try:
        credential = parse_authentication_credential_json(response)
        verified = verify_authentication_response(
            credential=credential,
            expected_challenge=challenge,
            expected_rp_id=_host(settings),
            expected_origin=settings.base_url,
            credential_public_key=passkey.public_key,
            credential_current_sign_count=passkey.sign_count,
            require_user_verification=True,
        )
    except (WebAuthnException, ValueError, KeyError, TypeError) as error:
        raise InvalidCredential from error
    # The authenticator chose the passkey, so its response has to name the user (7.2, step 6).
    if credential.response.user_handle != passkey.user_id.encode():
        raise InvalidCredential
    return verified.new_sign_count


def _host(settings: Settings) -> str:
    return urlsplit(settings.base_url).hostname or ""


def _is_ip(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
