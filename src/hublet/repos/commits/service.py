"""Commits: the body goes to the disk first, then git gets the commit, then the ref moves.

Nothing of it is visible before the last step, which is one transaction with its event. Without
`parentCommit`, commits to one branch queue up: each is built on the head that it finds, and none
is lost.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from weakref import WeakValueDictionary

import pygit2

from hublet.core.batching import write_in_group
from hublet.core.clock import now
from hublet.core.database import Connection, Database
from hublet.core.dataclasses import dataclass
from hublet.core.logs import get_logger
from hublet.events import UpdatedRef
from hublet.repos import blobs_store
from hublet.repos.cards import changes_card, read_card
from hublet.repos.commits import pull_requests
from hublet.repos.commits.builder import BuiltCommit, CommitBase, CommitBuilder
from hublet.repos.commits.intake import CommitIntake, CommitRequest
from hublet.repos.commits.operations import AddLfsFile, CommitResult
from hublet.repos.commits.pull_requests import NewPullRequest
from hublet.repos.commits.targets import CommitAddress, CommitTarget, get_repo, get_target
from hublet.repos.errors import InvalidCommit, RefChanged, RepoNotFound, StorageUnavailable
from hublet.repos.git.objects import CommitDraft
from hublet.repos.git.tree_changes import FilePut
from hublet.repos.git.trees import pointer_to
from hublet.repos.packs.workspaces import Workspace, open_workspace
from hublet.repos.records import MAIN, PULL_REQUESTS, Card, NewPacks, RefTransaction, Repo
from hublet.repos.refs import service as refs
from hublet.storage.object_store import open_store
from hublet.tokens.records import Caller
from hublet.tokens.service import check_still_reaches

log = get_logger("commits")

# How often a commit is built again because another process moved the branch meanwhile.
ATTEMPTS = 20

# Bytes of the body that go to a thread at a time: enough that the switch costs nothing.
_CHUNK = 1 << 20

# Commits of this process to one branch take turns, so that none is built in vain. A lock is
# removed with the last commit that holds it; between processes the ref itself decides.
_branch_locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

# A request that an intake has taken, or what takes it, which blocks.
TakenRequest = CommitRequest | Callable[[], CommitRequest]


@dataclass(frozen=True, slots=True, kw_only=True)
class _CommitOutcome:
    repo: Repo
    oid: str
    pull_request_url: str | None = None
    is_new: bool = True


async def commit(
    database: Database, caller: Caller, address: CommitAddress, body: AsyncIterator[bytes]
) -> CommitResult:
    """Make the commit that a body describes; without changes, return the head of the branch."""
    return await commit_with(database, caller, address, lambda intake: _read_body(intake, body))


async def commit_with(
    database: Database,
    caller: Caller,
    address: CommitAddress,
    read: Callable[[CommitIntake], Awaitable[TakenRequest]],
) -> CommitResult:
    """Make the commit that `read` brings to an intake."""
    async with database.read() as conn:
        target = await get_target(conn, caller, address)
    settings = database.hub.settings
    async with open_workspace(database, target.repo.id) as work:
        intake = CommitIntake(
            store=open_store(settings),
            folder=work.folder,
            largest_file=settings.limits.file_bytes,
            credential_prefix=settings.tokens.prefix,
        )
        try:
            attempts = _CommitAttempts(database, caller, address, intake, await read(intake))
            outcome = await attempts.run(work, target)
        except (OSError, pygit2.GitError) as error:
            if not work.folder.exists():
                # The repository was deleted while the body arrived.
                raise RepoNotFound from None
            log.exception("a commit could not be stored", repo=target.repo.id)
            raise StorageUnavailable from error
        finally:
            await _close(intake)
    url = f"{outcome.repo.url(settings.base_url)}/commit/{outcome.oid}"
    return CommitResult(
        oid=outcome.oid,
        url=url,
        pull_request_url=outcome.pull_request_url,
        is_new=outcome.is_new,
    )


async def _close(intake: CommitIntake) -> None:
    if intake.has_files:
        await asyncio.shield(asyncio.to_thread(intake.close))
    else:
        intake.close()


async def _read_body(intake: CommitIntake, body: AsyncIterator[bytes]) -> TakenRequest:
    """Read a body; one that is short is taken in by the thread that builds its commit."""
    waiting = bytearray()
    is_short = True
    async for data in body:
        waiting += data
        if len(waiting) >= _CHUNK:
            await asyncio.to_thread(intake.feed, bytes(waiting))
            waiting.clear()
            is_short = False

    def finish() -> CommitRequest:
        intake.feed(bytes(waiting))
        return intake.finish()

    return finish if is_short else await asyncio.to_thread(finish)


async def _write_pointers(
    database: Database, repo: Repo, intake: CommitIntake, request: CommitRequest
) -> None:
    """Write pointers to files that were uploaded to this repository through LFS.

    To know the digest of a file is no right to its content.
    """
    async with database.read() as conn:
        known = await blobs_store.find_in_repo(
            conn, repo.id, {file.sha256 for file in request.lfs_files}
        )
    for file in request.lfs_files:
        blob = known.get(file.sha256)
        if blob is None:
            raise _missing_content(file)
        if file.size is not None and file.size != blob.size:
            raise InvalidCommit(f"{file.path}: size must be {blob.size}, as the content is.")
        oid = intake.writer.add("blob", pointer_to(blob.sha256, blob.size))
        request.changes.puts[file.path] = FilePut(oid=oid, size=blob.size, is_lfs=True)


def _missing_content(file: AddLfsFile) -> InvalidCommit:
    return InvalidCommit(
        f"{file.path}: there is no content {file.sha256} in this repository; "
        "upload it through Xet or LFS first."
    )


async def _keep_contents(conn: Connection, repo: Repo, files: Sequence[AddLfsFile]) -> None:
    """Keep what the pointers of a commit name; pruning may have taken it since they were written."""
    if not files:
        return
    kept = await blobs_store.set_used(conn, repo.id, {file.sha256 for file in files})
    for file in files:
        if file.sha256 not in kept:
            raise _missing_content(file)


class _CommitAttempts:
    """Attempts to commit one request to a branch, each on the head that the branch has then."""

    def __init__(
        self,
        database: Database,
        caller: Caller,
        address: CommitAddress,
        intake: CommitIntake,
        taken: TakenRequest,
    ) -> None:
        self._database = database
        self._caller = caller
        self._address = address
        self._intake = intake
        self._taken = taken
        self._has_pointers = False
        self._packs: NewPacks | None = None

    async def run(self, work: Workspace, target: CommitTarget) -> _CommitOutcome:
        key = (target.repo.id, target.ref)
        lock = _branch_locks.setdefault(key, asyncio.Lock())
        async with lock:
            return await self._commit_with_retries(work, target.repo)

    async def _commit_with_retries(self, work: Workspace, repo: Repo) -> _CommitOutcome:
        for _ in range(ATTEMPTS):
            # The body may have taken hours, and what is built, or not, tells of the content.
            async with self._database.read() as conn:
                target = await get_target(conn, self._caller, self._address)
            _check_same(repo, target.repo)
            request, built, card = await self._build_with_pointers(work, target)
            if not built.is_new:
                async with self._database.read() as conn:
                    await check_still_reaches(conn, self._caller, target.repo.owner_id)
                return _CommitOutcome(repo=target.repo, oid=built.oid, is_new=False)
            self._packs = await work.upload()
            move = partial(self._move, target=target, request=request, built=built, card=card)
            try:
                return await write_in_group(self._database, move)
            except RefChanged:
                continue
        raise RefChanged(self._address.revision)

    async def _build_with_pointers(
        self, work: Workspace, target: CommitTarget
    ) -> tuple[CommitRequest, BuiltCommit, Card | None]:
        await work.refresh()
        built = await asyncio.to_thread(self._build, work.folder, target)
        if isinstance(built, CommitRequest):
            await _write_pointers(self._database, target.repo, self._intake, built)
            self._has_pointers = True
            built = await asyncio.to_thread(self._build, work.folder, target)
        assert not isinstance(built, CommitRequest)  # noqa: S101 - it has its pointers
        return built

    def _build(
        self, folder: Path, target: CommitTarget
    ) -> tuple[CommitRequest, BuiltCommit, Card | None] | CommitRequest:
        """Build the commit; return the request alone when pointers are to be written first.

        One call of a thread does all: each costs as much as the work of a small commit.
        """
        if not isinstance(self._taken, CommitRequest):
            self._taken = self._taken()
        request = self._taken
        if request.lfs_files and not self._has_pointers:
            return request
        draft = CommitDraft(author=self._caller.user_name, at=now(), message=request.header.message)
        base = CommitBase(folder=folder, revision=self._address.revision, head=target.head)
        may_be_empty = self._address.create_pr and request.may_be_empty
        built = CommitBuilder(
            base, request, draft, self._intake.writer, may_be_empty=may_be_empty
        ).build()
        to_main = built.is_new and target.ref == MAIN and not self._address.create_pr
        has_card = to_main and changes_card(request.changed_names)
        return request, built, read_card(folder, built.oid, target.repo.type) if has_card else None

    async def _move(
        self,
        conn: Connection,
        *,
        target: CommitTarget,
        request: CommitRequest,
        built: BuiltCommit,
        card: Card | None,
    ) -> _CommitOutcome:
        # What counts are the rights of the moment in which the ref moves.
        if self._address.create_pr:
            repo = (await get_target(conn, self._caller, self._address)).repo
        else:
            # Where the branch is by now, the move of its ref tells.
            repo = await get_repo(conn, self._caller, self._address)
        _check_same(target.repo, repo)
        await check_still_reaches(conn, self._caller, repo.owner_id)
        await _keep_contents(conn, repo, request.lfs_files)
        update = UpdatedRef(ref=target.ref, old_sha=target.head, new_sha=built.oid)
        url = None
        if self._address.create_pr:
            pull_request = await pull_requests.open_pull_request(
                conn, self._caller, repo, _proposal(request, target, built)
            )
            url = pull_request.url
            ref = f"{PULL_REQUESTS}{pull_request.number}"
            update = UpdatedRef(ref=ref, old_sha=None, new_sha=built.oid)
        transaction = RefTransaction(
            updates=(update,),
            actor_id=self._caller.user_id,
            card=card,
            changed_names=request.changed_names,
            may_leak=request.may_leak,
            added_bytes=built.added_bytes,
            blobs=request.blobs,
            packs=self._packs,
        )
        return _CommitOutcome(
            repo=await refs.update_refs(conn, repo, transaction),
            oid=built.oid,
            pull_request_url=url,
        )


def _check_same(before: Repo, after: Repo) -> None:
    """Refuse when another repository has taken the name: the objects are not in its folder."""
    if after.id != before.id:
        raise RepoNotFound


def _proposal(request: CommitRequest, target: CommitTarget, built: BuiltCommit) -> NewPullRequest:
    return NewPullRequest(
        title=request.header.summary.partition("\n")[0],
        description=request.header.description,
        base=target.ref,
        base_sha=target.head,
        head_sha=built.oid,
    )
