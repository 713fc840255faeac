"""Pull requests as commits and pushes see them: who may push to one, and how one is opened.

Pull requests live on the floor above: `hublet.community.discussions` calls `register` when it is
imported. Its opener runs inside the transaction that moves `refs/pr/N` to the new commit right
after it; it stores the pull request and gives it its number, and leaves the ref alone.
"""

import re
from typing import Protocol

from hublet.core.database import Connection, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.errors import NotImplementedHere
from hublet.repos import service as repos
from hublet.repos.records import Repo, Right
from hublet.tokens.records import Caller

_REF = re.compile(r"refs/pr/([1-9][0-9]{0,17})")

# Interface 5.3: whoever proposes a change must be able to discuss the repository and to read it.
RIGHTS_TO_PROPOSE = (Right.read, Right.discuss)


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequest:
    number: int
    # Its page; the public client reads the number from the end: `…/discussions/3`.
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPullRequest:
    """A proposed change, as a commit that is already in git."""

    title: str
    description: str
    # The branch it is to be merged into, as git spells it: refs/heads/main.
    base: str
    base_sha: str
    head_sha: str


class PullRequestOpener(Protocol):
    """Opens a pull request; the caller has the rights to propose one."""

    async def __call__(
        self, conn: Connection, caller: Caller, repo: Repo, new: NewPullRequest, /
    ) -> PullRequest: ...


class AuthorCheck(Protocol):
    """Tells whether a pull request is open and the caller is its author."""

    async def __call__(self, conn: Reader, caller: Caller, repo: Repo, number: int, /) -> bool: ...


class _Registered:
    opener: PullRequestOpener | None = None
    check: AuthorCheck | None = None


def register(*, opener: PullRequestOpener, check: AuthorCheck) -> None:
    _Registered.opener, _Registered.check = opener, check


def is_pull_request_ref(ref: str) -> bool:
    return _REF.fullmatch(ref) is not None


async def check_proposal(conn: Reader, caller: Caller, repo: Repo) -> None:
    """Refuse, with the reason, a caller who may not propose changes to a repository."""
    for right in RIGHTS_TO_PROPOSE:
        await repos.check(conn, caller, repo, right)


async def may_propose(conn: Reader, caller: Caller, repo: Repo) -> bool:
    """Tell whether the caller may open pull requests and push to their own."""
    for right in RIGHTS_TO_PROPOSE:
        if not await repos.may(conn, caller, repo, right):
            return False
    return True


async def may_upload(conn: Reader, caller: Caller, repo: Repo) -> bool:
    """Tell whether the caller may upload files, for a commit or a pull request of their own."""
    proposes = repo.type.has_git and not repo.discussions_disabled
    if proposes and await may_propose(conn, caller, repo):
        return True
    return await repos.may(conn, caller, repo, Right.write)


async def check_upload(conn: Reader, caller: Caller, repo: Repo) -> None:
    """Refuse, with the reason, a caller who may not upload files."""
    if not await may_upload(conn, caller, repo):
        await repos.check(conn, caller, repo, Right.write)


async def may_push_to(conn: Reader, caller: Caller, repo: Repo, ref: str) -> bool:
    """Tell whether this is the ref of an open pull request that its author may push to.

    The one rule for `git push` and for the commit API. Writers need no such right: they may push
    to every ref.
    """
    match = _REF.fullmatch(ref)
    if match is None or _Registered.check is None or not await may_propose(conn, caller, repo):
        return False
    return await _Registered.check(conn, caller, repo, int(match[1]))


async def open_pull_request(
    conn: Connection, caller: Caller, repo: Repo, new: NewPullRequest
) -> PullRequest:
    if _Registered.opener is None:
        raise NotImplementedHere("This hub has no pull requests.")
    return await _Registered.opener(conn, caller, repo, new)
