"""Access tokens of the registry: signed, for some repositories, and only as good as their holder.

A token names the credential that it was given for, and the repositories that it was asked for. What
its holder may do there is looked up with each request, so that a right that was taken away, or a
revoked credential, ends at once what is done with the token (decision 0068).
"""

from collections.abc import Iterable, Iterator
from datetime import timedelta

from hublet.core.clock import micros
from hublet.core.config import Settings
from hublet.core.dataclasses import dataclass
from hublet.core.sealing import KeyRing, read_signed, sign
from hublet.registry.errors import InvalidImageName, InvalidTokenForm, RegistryTokenNeeded
from hublet.registry.records import ImageName, parse_image_name
from hublet.repos.records import Right
from hublet.tokens.delegations import Delegation
from hublet.tokens.records import Caller

REALM_PATH = "/api/registry/token"
# A push may take long, and clients do not ask for another token in the middle of an upload.
TOKEN_LIFE = timedelta(hours=1)
# A token stands in a header of each request.
MOST_REPOSITORIES = 50

_KIND = "registry-token"
_SECOND = 1_000_000
_A_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryToken:
    # The credential of who asked for it; None: it was nobody, which is enough for what is public.
    credential_id: str | None
    # `namespace/name` of each repository that it was asked for.
    repositories: tuple[str, ...]
    # Seconds since 1970.
    issued: int
    # In whose name a job pulls; then there is no credential, and the token is for nothing else.
    delegation: Delegation | None = None
    # In seconds.
    life: int = TOKEN_LIFE // _A_SECOND

    @property
    def expires(self) -> int:
        return self.issued + self.life


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryIdentity:
    """Who speaks to the registry, and what their token was asked for."""

    caller: Caller | None = None
    # None: there is no token, or it is a credential of the hub, which is for all repositories.
    repositories: frozenset[str] | None = None
    # Whether it is the token of a job, which only pulls.
    is_read_only: bool = False

    def reaches(self, name: ImageName) -> bool:
        return self.repositories is None or repository_of(name) in self.repositories


def repository_of(name: ImageName) -> str:
    """Return the repository of an image: those below a path belong to the same one."""
    return f"{name.namespace}/{name.repo}"


def new_token(caller: Caller | None, scopes: Iterable[str]) -> RegistryToken:
    repositories = tuple(sorted(set(_named_repositories(scopes))))
    if len(repositories) > MOST_REPOSITORIES:
        raise InvalidTokenForm(f"scope names at most {MOST_REPOSITORIES} repositories.")
    return RegistryToken(
        credential_id=None if caller is None else caller.token.id,
        repositories=repositories,
        issued=micros() // _SECOND,
    )


def new_job_token(
    delegation: Delegation, name: ImageName, *, life: timedelta = TOKEN_LIFE
) -> RegistryToken:
    """Return the token by which the engine that runs a job pulls its image."""
    return RegistryToken(
        credential_id=None,
        repositories=(repository_of(name),),
        issued=micros() // _SECOND,
        delegation=delegation,
        life=life // _A_SECOND,
    )


def _named_repositories(scopes: Iterable[str]) -> Iterator[str]:
    """Yield the repositories of scopes like `repository:ada/tool:pull,push`.

    What this hub does not know (another type, a name that no image can have) grants nothing, and is
    no error: clients ask for more than they need.
    """
    for scope in " ".join(scopes).split():
        kind, _, rest = scope.partition(":")
        name, _, _actions = rest.rpartition(":")
        if kind == "repository":
            try:
                yield repository_of(parse_image_name(name))
            except InvalidImageName:
                continue


def sign_token(token: RegistryToken, keys: KeyRing) -> str:
    return sign(token, kind=_KIND, keys=keys)


def read_token(text: str, keys: KeyRing) -> RegistryToken | None:
    """Return what a token says; None unless this hub signed it, for it may be another credential."""
    return read_signed(text, RegistryToken, kind=_KIND, keys=keys)


def is_expired(token: RegistryToken) -> bool:
    return token.expires * _SECOND <= micros()


def token_needed(
    settings: Settings, message: str, *, scopes: Iterable[str] = (), error: str | None = None
) -> RegistryTokenNeeded:
    """Return the error whose challenge says where to ask for a token, and for which scopes."""
    host = settings.base_url.partition("://")[2]
    fields = {"realm": f"{settings.base_url}{REALM_PATH}", "service": host}
    if scope := " ".join(scopes):
        fields["scope"] = scope
    if error is not None:
        fields["error"] = error
    challenge = ",".join(f'{name}="{value}"' for name, value in fields.items())
    return RegistryTokenNeeded(message, challenge=f"Bearer {challenge}")


def scope_for(name: ImageName | str, right: Right) -> str:
    actions = "pull" if right in {Right.see, Right.read} else "pull,push"
    return f"repository:{name}:{actions}"
