"""Access tokens of the CAS: signed, for one right in one domain, and only as good as its holder.

A token names the credential that it was given for. Whoever comes with it is looked up anew, so that
a right that was taken away, or a revoked credential, ends at once what is done with the token.
"""

from datetime import timedelta
from typing import Literal

from hublet.core.clock import micros
from hublet.core.database import Reader
from hublet.core.dataclasses import dataclass
from hublet.core.sealing import KeyRing, read_signed, sign
from hublet.repos import service as repos
from hublet.repos import store as repos_store
from hublet.repos.commits.pull_requests import may_upload
from hublet.repos.errors import CasAccessRefused, CasTokenRefused, RepoNotFound
from hublet.repos.records import Repo, Right
from hublet.repos.xet.addresses import domain_of
from hublet.storage.epochs import get_epoch
from hublet.tokens import store as tokens
from hublet.tokens.records import Caller

# Clients ask for a new one half a minute before, and give up when one ends too early.
TOKEN_LIFE = timedelta(hours=1)

CasRight = Literal["read", "write"]

_KIND = "cas-token"
_INVALID = "The access token is not valid, or its credential was revoked."
_SECOND = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessToken:
    repo_id: str
    epoch: int
    right: CasRight
    # The credential of who asked for it; None: it was nobody, which is enough for what is public.
    credential_id: str | None
    # Seconds since 1970.
    expires: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CasAccess:
    """Who speaks to the CAS, and the repository that is the domain."""

    repo: Repo
    caller: Caller | None
    epoch: int

    @property
    def user_id(self) -> str:
        return "" if self.caller is None else self.caller.user_id

    @property
    def user_name(self) -> str:
        return "" if self.caller is None else self.caller.user_name


def new_token(repo: Repo, caller: Caller | None, *, right: CasRight, epoch: int) -> AccessToken:
    return AccessToken(
        repo_id=repo.id,
        epoch=epoch,
        right=right,
        credential_id=None if caller is None else caller.token.id,
        expires=micros() // _SECOND + TOKEN_LIFE // timedelta(seconds=1),
    )


def sign_token(token: AccessToken, keys: KeyRing) -> str:
    return sign(token, kind=_KIND, keys=keys)


def read_token(text: str, keys: KeyRing) -> AccessToken:
    """Return what a token says; raise unless this hub signed it and it has not expired."""
    token = read_signed(text, AccessToken, kind=_KIND, keys=keys)
    if token is None:
        raise CasTokenRefused(_INVALID)
    if token.expires * _SECOND < micros():
        raise CasTokenRefused("The access token has expired; ask the hub for a new one.")
    return token


async def admit(
    conn: Reader, authorization: str | None, domain: str, *, right: CasRight, address: str
) -> CasAccess:
    """Return who calls, if their token is for this right in this domain, and they have it now."""
    if authorization is None:
        raise CasTokenRefused("The CAS needs an access token: a xet-read-token or xet-write-token.")
    scheme, _, text = authorization.partition(" ")
    if scheme.lower() != "bearer":
        raise CasTokenRefused(_INVALID)
    token = read_token(text.strip(), conn.hub.keys)
    epoch = await get_epoch(conn)
    if domain != domain_of(token.repo_id, epoch) or token.epoch != epoch:
        raise CasAccessRefused("The access token is not for this address of the CAS.")
    if right not in {"read", token.right}:
        raise CasAccessRefused("The access token is only for reading.")
    return await _current_access(conn, token, right, address=address)


async def _current_access(
    conn: Reader, token: AccessToken, right: CasRight, *, address: str
) -> CasAccess:
    caller = None
    if token.credential_id is not None:
        caller = await tokens.find_caller_by_id(conn, token.credential_id)
        if caller is None:
            raise CasTokenRefused(_INVALID)
        caller = caller.seen_from(address)
    repo = await repos_store.find(conn, token.repo_id)
    if repo is None:
        raise RepoNotFound
    if not await _may(conn, caller, repo, right):
        # No name: the repository may have a new one, which is no business of the caller's.
        raise CasAccessRefused(f"You may no longer {right} the repository of this access token.")
    return CasAccess(repo=repo, caller=caller, epoch=token.epoch)


async def _may(conn: Reader, caller: Caller | None, repo: Repo, right: CasRight) -> bool:
    if right == "read":
        return await repos.may(conn, caller, repo, Right.read)
    return caller is not None and await may_upload(conn, caller, repo)
