"""Facts about credentials. The value of one is never part of a fact."""

from dataclasses import dataclass

from hublet.core.outbox import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialCreated(Event):
    """A credential was issued or imported. Its value is never part of a fact."""

    kind = "credential.created"
    token_id: str
    user_id: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialRevoked(Event):
    """A credential stopped working for good; its owner is to be told.

    `reason` is `owner`, `administrator` (of the hub), `operator` (by a command), `organization`
    (an administrator of the organization that the service account belongs to) or `reported`
    (somebody presented its raw value to the public revoke call, from `address`).
    """

    kind = "credential.revoked"
    token_id: str
    user_id: str
    name: str
    hint: str
    reason: str
    address: str | None = None
