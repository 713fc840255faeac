"""Commit targets: the branch or pull request that a commit goes to, for callers who may commit."""

from hublet.core.database import Reader
from hublet.core.dataclasses import dataclass
from hublet.repos import service as repos
from hublet.repos.commits.pull_requests import check_proposal, is_pull_request_ref, may_push_to
from hublet.repos.errors import RevisionNotFound
from hublet.repos.records import HEADS, Repo, RepoAddress, Right
from hublet.repos.refs import store as ref_store
from hublet.tokens.records import Caller


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitAddress:
    """The repository and the revision that a request names."""

    repo: RepoAddress
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
    # The commit that the ref points to.
    head: str


async def get_target(conn: Reader, caller: Caller, address: CommitAddress) -> CommitTarget:
    """Return the target of a commit when the caller may make it."""
    repo = await get_repo(conn, caller, address)
    is_branch = address.ref.startswith(HEADS) or is_pull_request_ref(address.ref)
    head = await ref_store.find(conn, repo.id, address.ref) if is_branch else None
    if head is None:
        raise RevisionNotFound(address.revision)
    return CommitTarget(repo=repo, ref=address.ref, head=head)


async def get_repo(conn: Reader, caller: Caller, address: CommitAddress) -> Repo:
    """Return the repository of a commit when the caller may make it, whether the branch is there or not."""
    repo = await repos.get(conn, caller, address.repo, Right.see)
    await _check_right(conn, caller, repo, address)
    return repo


async def _check_right(conn: Reader, caller: Caller, repo: Repo, address: CommitAddress) -> None:
    if address.create_pr:
        await check_proposal(conn, caller, repo)
    elif not await may_push_to(conn, caller, repo, address.ref):
        await repos.check(conn, caller, repo, Right.write)
