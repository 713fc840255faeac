"""Commit target: the branch or pull request that a commit goes to, and who may commit there."""

import re

from hublet.core.database import Reader
from hublet.core.light_dataclasses import dataclass
from hublet.repos import service as repos
from hublet.repos.commits.pull_requests import may_commit_to
from hublet.repos.errors import RevisionNotFound
from hublet.repos.records import HEADS, Repo, RepoAddress, Right
from hublet.repos.refs import store as refs
from hublet.tokens.records import Caller

_PULL_REQUEST = re.compile(r"refs/pr/([1-9][0-9]{0,17})")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitAddress:
    """What a request names."""

    address: RepoAddress
    # A branch, or refs/pr/3.
    revision: str
    create_pr: bool = False

    @property
    def ref(self) -> str:
        """The revision as git spells it."""
        return self.revision if self.revision.startswith("refs/") else HEADS + self.revision


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitTarget:
    repo: Repo
    ref: str
    # The commit it is at.
    head: str


async def get_target(conn: Reader, caller: Caller, wanted: CommitAddress) -> CommitTarget:
    """Return what a commit goes to when the caller may make it."""
    repo = await repos.get(conn, caller, wanted.address, Right.see)
    await _check_right(conn, caller, repo, wanted)
    is_branch = wanted.ref.startswith(HEADS) or _PULL_REQUEST.fullmatch(wanted.ref)
    head = await refs.find(conn, repo.id, wanted.ref) if is_branch else None
    if head is None:
        raise RevisionNotFound(wanted.revision)
    return CommitTarget(repo=repo, ref=wanted.ref, head=head)


async def _check_right(conn: Reader, caller: Caller, repo: Repo, wanted: CommitAddress) -> None:
    if wanted.create_pr:
        # Whoever may discuss may propose a change to what they may read.
        await repos.check(conn, caller, repo, Right.read)
        await repos.check(conn, caller, repo, Right.discuss)
        return
    pull_request = _PULL_REQUEST.fullmatch(wanted.ref)
    if pull_request and await _is_own_pull_request(conn, caller, repo, int(pull_request[1])):
        return
    await repos.check(conn, caller, repo, Right.write)


async def _is_own_pull_request(conn: Reader, caller: Caller, repo: Repo, number: int) -> bool:
    if not await repos.may(conn, caller, repo, Right.discuss):
        return False
    return await may_commit_to(conn, caller, repo, number)
