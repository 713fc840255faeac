"""Registry of pull request functions, which lie on the floor above: they register what commits
need.

`hublet.community.discussions` calls `register` when it is imported. The opener runs inside the
transaction that moves `refs/pr/N` to the new commit right after it; it keeps the pull request
and gives it its number, and leaves the ref alone.
"""

from typing import Protocol

from hublet.core.database import Connection, Reader
from hublet.core.errors import NotImplementedHere
from hublet.core.light_dataclasses import dataclass
from hublet.repos.records import Repo
from hublet.tokens.records import Caller


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequest:
    number: int
    # Its page; the public client reads the number from the end: `…/discussions/3`.
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPullRequest:
    """What somebody wants to change, as a commit that is already in git."""

    title: str
    description: str
    # The branch it is to be merged into, as git spells it: refs/heads/main.
    base: str
    base_sha: str
    head_sha: str


class PullRequestOpener(Protocol):
    """Opens a pull request; the caller has the right to discuss."""

    async def __call__(
        self, conn: Connection, caller: Caller, repo: Repo, wanted: NewPullRequest
    ) -> PullRequest: ...


class PullRequestCheck(Protocol):
    """Tells whether somebody without the right to write may commit to this pull request.

    Its author may, as long as it is open.
    """

    async def __call__(self, conn: Reader, caller: Caller, repo: Repo, number: int) -> bool: ...


class _Registered:
    opener: PullRequestOpener | None = None
    check: PullRequestCheck | None = None


def register(*, opener: PullRequestOpener, check: PullRequestCheck) -> None:
    _Registered.opener, _Registered.check = opener, check


async def open_pull_request(
    conn: Connection, caller: Caller, repo: Repo, wanted: NewPullRequest
) -> PullRequest:
    if _Registered.opener is None:
        raise NotImplementedHere("This hub has no pull requests.")
    return await _Registered.opener(conn, caller, repo, wanted)


async def may_commit_to(conn: Reader, caller: Caller, repo: Repo, number: int) -> bool:
    return _Registered.check is not None and await _Registered.check(conn, caller, repo, number)
