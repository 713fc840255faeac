"""Edits: commits that people make in a browser, of files that they see there.

Beside the rules of every commit: a file must still be what the person saw, and what belongs into
LFS goes there, which programs decide for themselves with the advice of `preupload`.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from hublet.core.database import Database, Reader
from hublet.core.dataclasses import dataclass
from hublet.repos import service as repos
from hublet.repos.commits import preupload, service
from hublet.repos.commits.intake import CommitIntake, CommitRequest
from hublet.repos.commits.operations import (
    AddFile,
    CommitHeader,
    CommitResult,
    FileContent,
    Operation,
)
from hublet.repos.commits.preupload import Offer, OfferedFile
from hublet.repos.commits.pull_requests import is_pull_request_ref, may_push_to
from hublet.repos.commits.targets import CommitAddress
from hublet.repos.errors import InvalidBranch, InvalidCommit
from hublet.repos.git.patterns import GIT_ATTRIBUTES_FILE
from hublet.repos.records import HEADS, Repo, Right
from hublet.repos.refs import store as ref_store
from hublet.storage.object_store import ObjectStore
from hublet.tokens.records import Caller

# What is longer is no text that people edit by hand.
LARGEST_TEXT = 1 << 20
# As many as the public clients send for advice.
_SAMPLE_BYTES = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class EditWays:
    """How somebody may change the files of a branch."""

    may_commit: bool = False
    # As a pull request, to which everybody has a right who may read and discuss.
    may_propose: bool = False

    def __bool__(self) -> bool:
        return self.may_commit or self.may_propose


NO_WAY = EditWays()


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """The commit of a form."""

    header: CommitHeader
    operations: Sequence[Operation]
    # What the person saw at these paths: the id of an object, or None for nothing.
    expected: Mapping[str, str | None] = field(default_factory=dict)


async def find_ways(conn: Reader, caller: Caller | None, repo: Repo, revision: str) -> EditWays:
    """Return how the caller may change files in this revision: not at all in tags and commits."""
    ref = _ref_of(repo, revision)
    if caller is None or not await _is_branch(conn, repo, ref):
        return NO_WAY
    rights = (await repos.get_viewer(conn, caller, repo)).rights
    if is_pull_request_ref(ref):
        may = Right.write in rights or await may_push_to(conn, caller, repo, ref)
        return EditWays(may_commit=may)
    proposes = {Right.read, Right.discuss} <= rights and not repo.discussions_disabled
    return EditWays(may_commit=Right.write in rights, may_propose=proposes)


async def get_ways(conn: Reader, caller: Caller, repo: Repo, revision: str) -> EditWays:
    """Return the same, or refuse with the reason who may change nothing here."""
    ways = await find_ways(conn, caller, repo, revision)
    if not ways:
        if not await _is_branch(conn, repo, _ref_of(repo, revision)):
            raise InvalidBranch(f"{revision} is no branch: only branches can be changed.")
        for right in (Right.read, Right.write):
            await repos.check(conn, caller, repo, right)
    return ways


def _ref_of(repo: Repo, revision: str) -> str:
    return CommitAddress(repo=repo.address, revision=revision).ref


async def _is_branch(conn: Reader, repo: Repo, ref: str) -> bool:
    is_one = ref.startswith(HEADS) or is_pull_request_ref(ref)
    return is_one and await ref_store.find(conn, repo.id, ref) is not None


async def commit_edit(
    database: Database, caller: Caller, address: CommitAddress, edit: Edit
) -> CommitResult:
    """Make the commit of a form; refuse one that would change nothing."""
    operations = await _choose_storage(database, caller, address, edit.operations)

    def take(intake: CommitIntake) -> CommitRequest:
        for operation in operations:
            intake.take(operation)
        request = intake.complete(edit.header)
        return replace(request, expected=edit.expected, may_be_empty=False)

    async def read(intake: CommitIntake) -> CommitRequest:
        # Not in the turn of the branch: files may be large.
        return await asyncio.to_thread(take, intake)

    result = await service.commit_with(database, caller, address, read)
    if address.create_pr and not result.is_new:
        raise InvalidCommit("This changes nothing, so there is nothing to propose.")
    return result


async def _choose_storage(
    database: Database, caller: Caller, address: CommitAddress, operations: Sequence[Operation]
) -> list[Operation]:
    """Return the operations with the files marked that belong into LFS; quota and rights count."""
    added = [each for each in operations if isinstance(each, AddFile)]
    if not added:
        return list(operations)
    offer = await asyncio.to_thread(_offer_of, added)
    advice = await preupload.advise(database, caller, address, offer)
    large = {each.path for each in advice if each.is_lfs}
    return [
        replace(each, is_lfs=each.path in large) if isinstance(each, AddFile) else each
        for each in operations
    ]


def _offer_of(added: Sequence[AddFile]) -> Offer:
    files = [
        OfferedFile(
            path=each.path, size=each.content.size, sample=each.content.sample(_SAMPLE_BYTES)
        )
        for each in added
    ]
    attributes = [each.content for each in added if each.path == GIT_ATTRIBUTES_FILE]
    text = attributes[0].sample(LARGEST_TEXT).decode(errors="replace") if attributes else None
    return Offer(files=files, attributes=text)


def content_of(store: ObjectStore, text: str) -> FileContent:
    """Return a text as the content of a file."""
    content = FileContent(store)
    content.write(text.encode())
    return content
