"""A security key made of software: it answers a browser's questions, and can misbehave."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import cbor2
from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDSA,
    SECP256R1,
    EllipticCurvePrivateKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.hashes import SHA256

from hublet.core.ids import random_bytes

PRESENT, VERIFIED, ATTESTED = 0x01, 0x04, 0x40


def text_of(octets: bytes) -> str:
    return urlsafe_b64encode(octets).decode().rstrip("=")


def bytes_of(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass(slots=True, kw_only=True)
class Authenticator:
    """One passkey. Name only what the test is about; the rest is as it should be."""

    origin: str = "https://hub.test"
    host: str = "hub.test"
    flags: int = PRESENT | VERIFIED
    count: int = 0
    user_handle: bytes = b""
    credential_id: bytes = field(default_factory=lambda: random_bytes(16))
    key: EllipticCurvePrivateKey = field(default_factory=lambda: generate_private_key(SECP256R1()))

    def create(self, options: dict[str, Any]) -> str:
        """Answer like `navigator.credentials.create`."""
        self.user_handle = bytes_of(options["user"]["id"])
        attestation = {"fmt": "none", "attStmt": {}, "authData": self._data(with_key=True)}
        return self._answer(
            {
                "clientDataJSON": text_of(self._client_data("webauthn.create", options)),
                "attestationObject": text_of(cbor2.dumps(attestation)),
            }
        )

    def get(self, options: dict[str, Any]) -> str:
        """Answer like `navigator.credentials.get`."""
        self.count += 1
        data, client_data = self._data(), self._client_data("webauthn.get", options)
        signature = self.key.sign(data + sha256(client_data).digest(), ECDSA(SHA256()))
        return self._answer(
            {
                "clientDataJSON": text_of(client_data),
                "authenticatorData": text_of(data),
                "signature": text_of(signature),
                "userHandle": text_of(self.user_handle),
            }
        )

    def _answer(self, response: dict[str, str]) -> str:
        name = text_of(self.credential_id)
        return json.dumps({"id": name, "rawId": name, "type": "public-key", "response": response})

    def _client_data(self, kind: str, options: dict[str, Any]) -> bytes:
        data = {"type": kind, "challenge": options["challenge"], "origin": self.origin}
        return json.dumps(data).encode()

    def _data(self, *, with_key: bool = False) -> bytes:
        flags = self.flags | (ATTESTED if with_key else 0)
        data = sha256(self.host.encode()).digest() + bytes([flags]) + self.count.to_bytes(4, "big")
        if not with_key:
            return data
        numbers = self.key.public_key().public_numbers()
        public = {1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32, "big")}
        public[-3] = numbers.y.to_bytes(32, "big")
        length = len(self.credential_id).to_bytes(2, "big")
        return data + bytes(16) + length + self.credential_id + cbor2.dumps(public)
