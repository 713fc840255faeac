"""Events of credentials and of apps' access. The value of a credential is never part of an event."""

from hublet.core.dataclasses import dataclass
from hublet.core.outbox import Event
from hublet.events.repos import RepoSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialCreated(Event):
    """A credential was issued or imported. Its value is never part of an event."""

    kind = "credential.created"
    token_id: str
    user_id: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialsReported(Event):
    """Somebody presented raw values to the public revoke call, from `address`.

    Only their digests are told, whether or not they belong to anything: tokens among them are
    revoked already, other features look for secrets of their own.
    """

    kind = "credentials.reported"
    digests: tuple[str, ...]
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialRevoked(Event):
    """A credential stopped working for good; its owner is to be told.

    `reason` is `owner`, `administrator` (of the hub), `operator` (by a command), `organization`
    (an administrator of the organization that the service account belongs to, or whose identity
    provider deactivated the user) or `reported` (somebody presented its raw value to the public
    revoke call, from `address`).
    """

    kind = "credential.revoked"
    token_id: str
    user_id: str
    name: str
    hint: str
    reason: str
    address: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretDetected(Event):
    """A credential that works was found in a commit of a public repository.

    The same credential may be found again, in a later commit.
    """

    kind = "credential.detected"
    token_id: str
    user_id: str
    name: str
    hint: str
    repo: RepoSnapshot
    path: str
    commit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessEnded(Event):
    """An app's access to an account was ended by the hub; its owner is to be told.

    `reason` is `reuse`: somebody came with a code or a refresh token that was used before, so
    it may have been stolen.
    """

    kind = "access.ended"
    user_id: str
    app_id: str
    app_name: str
    reason: str
