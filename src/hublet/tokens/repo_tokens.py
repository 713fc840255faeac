"""Repository tokens: signed, for one right to one repository, and only as good as their holder.

A token names the credential that it was given for. Whoever comes with it is looked up anew, so that a
right that was taken away, or a revoked credential, ends at once what is done with the token. Beyond
the one repository it reaches nothing.
"""

from dataclasses import replace
from datetime import timedelta

from hublet.core.clock import from_micros, micros
from hublet.core.database import Reader
from hublet.core.dataclasses import dataclass
from hublet.core.sealing import KeyRing, read_signed, sign
from hublet.tokens import store
from hublet.tokens.errors import TokenOfItsOwnNeeded
from hublet.tokens.format import TokenKind
from hublet.tokens.records import Caller, Grants, Scope, ScopedGrant, TokenRole, scopes_of

READ_LIFE = timedelta(hours=1)
WRITE_LIFE = timedelta(minutes=10)

_KIND = "repo-token"
_SECOND = 1_000_000
_FROM = frozenset({TokenKind.access, TokenKind.oauth})


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoToken:
    credential_id: str
    repo_id: str
    repo_type: str
    repo_name: str
    may_write: bool
    # Seconds since 1970.
    expires: int


def new_token(
    caller: Caller, *, repo: tuple[str, str, str], may_write: bool, life: timedelta | None
) -> RepoToken:
    """Return a token for a repository, given by id, type and name; `life` can only shorten it."""
    if caller.token.kind not in _FROM:
        raise TokenOfItsOwnNeeded
    longest = WRITE_LIFE if may_write else READ_LIFE
    seconds = min(life or longest, longest) // timedelta(seconds=1)
    repo_id, repo_type, repo_name = repo
    return RepoToken(
        credential_id=caller.token.id,
        repo_id=repo_id,
        repo_type=repo_type,
        repo_name=repo_name,
        may_write=may_write,
        expires=micros() // _SECOND + seconds,
    )


def write(token: RepoToken, *, prefix: str, keys: KeyRing) -> str:
    return f"{prefix}{TokenKind.jwt.part}{sign(token, kind=_KIND, keys=keys)}"


async def find_caller(conn: Reader, value: str) -> Caller | None:
    """Return who comes with a repository token, with no more rights than it has."""
    start = conn.hub.settings.tokens.prefix + TokenKind.jwt.part
    if "." not in value or not value.startswith(start):
        return None
    token = read_signed(value.removeprefix(start), RepoToken, kind=_KIND, keys=conn.hub.keys)
    if token is None:
        return None
    caller = await store.find_caller_by_id(conn, token.credential_id)
    return None if caller is None else _narrow(caller, token)


def _narrow(caller: Caller, token: RepoToken) -> Caller:
    grant = ScopedGrant(
        entity_id=token.repo_id,
        entity_type=token.repo_type,
        entity_name=token.repo_name,
        scopes=frozenset({Scope.write_repos if token.may_write else Scope.read_repos}),
    )
    grants = Grants(scoped=(grant,))
    expires_at = from_micros(token.expires * _SECOND)
    if caller.token.expires_at is not None:
        expires_at = min(expires_at, caller.token.expires_at)
    return replace(
        caller,
        # Whatever an administrator may do, a token for a repository does not.
        is_admin=False,
        token=replace(
            caller.token,
            kind=TokenKind.jwt,
            role=TokenRole.fine_grained,
            grants=grants,
            expires_at=expires_at,
        ),
        scopes=scopes_of(TokenRole.fine_grained, grants),
        kept={},
    )
