"""What a signing key is."""

from dataclasses import field
from datetime import datetime
from typing import Any

from hublet.core.light_dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKey:
    # The thumbprint of the public key (RFC 7638).
    id: str
    sealed_private: bytes = field(repr=False)
    # As a JWK, with what it is for.
    public: dict[str, Any]
    created_at: datetime
    # Shown from its creation on, so that everybody knows it when it begins to sign.
    signs_from: datetime
