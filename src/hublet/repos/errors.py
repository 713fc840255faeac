"""Errors of repositories and of their content, with the codes that the public clients read."""

from collections.abc import Iterable, Sequence

from hublet.core.errors import (
    Conflict,
    HubError,
    InvalidRequest,
    NotAllowed,
    NotFound,
    TooLarge,
    Unavailable,
)
from hublet.core.light_dataclasses import dataclass


class InvalidRepoName(InvalidRequest):
    def __init__(self, rule: str) -> None:
        super().__init__(f"This is no name for a repository: {rule}.")


class InvalidRepo(InvalidRequest):
    """What is asked for does not go together."""


class InvalidPath(InvalidRequest):
    def __init__(self, rule: str) -> None:
        super().__init__(f"This is no path of a file: {rule}.")


class RepoNotFound(NotFound):
    """It does not exist, or the caller may not know that it does."""

    code = "RepoNotFound"

    def __init__(self, type: str, full_name: str) -> None:  # noqa: A002 - the interface's word
        super().__init__(
            f"There is no {type} {full_name}, or you cannot see it. "
            "If it is private, check that your token may read it."
        )


class RepoMoved(HubError):
    """It has another name now; the client follows."""

    status = 307

    def __init__(self, full_name: str, *, location: str) -> None:
        super().__init__(f"The repository is now {full_name}.", headers={"Location": location})


class RevisionNotFound(NotFound):
    code = "RevisionNotFound"

    def __init__(self, revision: str) -> None:
        super().__init__(f"There is no revision {revision} in this repository.")


class EntryNotFound(NotFound):
    code = "EntryNotFound"

    def __init__(self, path: str, *, commit: str | None = None) -> None:
        headers = {"X-Repo-Commit": commit} if commit else None
        super().__init__(f"There is no file or folder {path} in this revision.", headers=headers)


class AccessNotGranted(NotAllowed):
    """The repository is gated and the caller was not let in."""

    code = "GatedRepo"

    def __init__(self, full_name: str, reason: str) -> None:
        super().__init__(f"Access to {full_name} is restricted: {reason}")


class RightNeeded(NotAllowed):
    def __init__(self, full_name: str, reason: str) -> None:
        super().__init__(f"You cannot do this with {full_name}: {reason}")


class CannotCreateThere(NotAllowed):
    def __init__(self, namespace: str, reason: str) -> None:
        super().__init__(f"You cannot create a repository under {namespace}: {reason}")


class RefChanged(Conflict):
    """Somebody else moved the branch since the caller looked."""

    def __init__(self, revision: str) -> None:
        super().__init__(f"{revision} has moved on since; read it again and repeat the change.")


class RepoExists(Conflict):
    """The name is taken; the public client reads the url even then."""

    def __init__(self, full_name: str, *, url: str) -> None:
        super().__init__(f"There is a repository {full_name} already.", extra={"url": url})


class PathTakenInTree(InvalidRequest):
    """A file cannot be where a folder is, nor a folder where a file is."""

    def __init__(self, path: str, *, by: str, place: str | None = None) -> None:
        where = place or path
        super().__init__(
            f"{path} cannot be added, because {where} is a {by}; delete that in the same commit."
        )


class InvalidCard(InvalidRequest):
    """The public client shows each of the errors to its user."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__(
            f"The metadata in README.md is not valid: {' '.join(problems)}",
            extra={"errors": [{"message": problem} for problem in problems], "warnings": []},
        )


class InvalidRefName(InvalidRequest):
    def __init__(self, kind: str, rule: str) -> None:
        super().__init__(f"This is no name for a {kind}: {rule}.")


class RefExists(Conflict):
    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"There is a {kind} {name} already.")


class RefConflict(Conflict):
    """Git keeps refs like files: one cannot lie in another."""

    def __init__(self, name: str, *, other: str) -> None:
        super().__init__(f"There cannot be {name} beside {other}.")


class MainNotDeletable(InvalidRequest):
    def __init__(self) -> None:
        super().__init__("The branch main cannot be deleted.")


class NotABranch(InvalidRequest):
    def __init__(self, revision: str) -> None:
        super().__init__(f"{revision} is no branch; only the history of a branch can be squashed.")


class InvalidCommitLine(InvalidRequest):
    """A line of the body breaks a rule."""

    def __init__(self, number: int, rule: str) -> None:
        super().__init__(f"Line {number}: {rule}")


class InvalidCommit(InvalidRequest):
    """The body as a whole breaks a rule."""


class CommitTooLarge(TooLarge):
    pass


class ParentMoved(Conflict):
    """The commit is meant for another state of the branch."""

    def __init__(self, revision: str, *, parent: str, head: str) -> None:
        super().__init__(
            f"parentCommit is {parent}, but {revision} is at {head} by now; "
            "read it again and repeat the change."
        )


class StorageUnavailable(Unavailable):
    """The disk is full, or it fails."""

    def __init__(self) -> None:
        super().__init__("The hub cannot store content right now; please try again shortly.")


class ContentMissing(NotFound):
    """Git has the pointer to a large file, and nobody uploaded what it points to."""

    def __init__(self, path: str) -> None:
        # Without a code: the clients would remember that there is no such file.
        super().__init__(
            f"The content of {path} is not here: its pointer was pushed without it, "
            "or it was deleted for good."
        )


class FileNotFound(NotFound):
    code = "EntryNotFound"

    def __init__(self, path: str, *, full_name: str) -> None:
        super().__init__(f"There is no file {path} in {full_name}.")


class PathTakenInBucket(Conflict):
    """A path cannot be a file and a folder: no disk could hold both."""

    def __init__(self, paths: list[str]) -> None:
        super().__init__(f"{', '.join(paths)}: {PATH_TAKEN}")
        self.paths = paths


PATH_TAKEN = "a path, or one that it begins with, cannot be a file and a folder at once."


class ConditionFailed(HubError):
    """The file is not, or not any more, what the caller takes it for."""

    status = 412

    def __init__(self, path: str) -> None:
        super().__init__(f"If-Match or If-None-Match does not hold for {path} as it is now.")


class FileTooLarge(TooLarge):
    def __init__(self, limit: int) -> None:
        super().__init__(f"A file must have at most {limit} bytes.")


class WrongDigest(InvalidRequest):
    def __init__(self, header: str) -> None:
        super().__init__(f"{header} is not the digest of the body that arrived; send it again.")


class InvalidDigest(InvalidRequest):
    def __init__(self, rule: str) -> None:
        super().__init__(f"{rule}.")


class BodyIncomplete(InvalidRequest):
    """The client went away; hardly anybody hears this."""

    def __init__(self) -> None:
        super().__init__("The body broke off before its end; nothing of it was kept.")


class InvalidMediaType(InvalidRequest):
    def __init__(self) -> None:
        super().__init__("Content-Type must be a media type such as text/plain.")


class InvalidBatchLine(InvalidRequest):
    def __init__(self, number: int, problem: str) -> None:
        super().__init__(f"Line {number} of the batch: {problem}")


class TooManyOperations(InvalidRequest):
    def __init__(self, limit: int) -> None:
        super().__init__(f"A batch must have 1 to {limit} operations, one on each line.")


class BatchTooLarge(TooLarge):
    def __init__(self, limit: int) -> None:
        super().__init__(
            f"A batch must have at most {limit} bytes; larger files go by PUT, one by one."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFailure:
    """Why one operation cannot be done."""

    path: str
    error: str


class BatchFailed(HubError):
    """Some operations cannot be done, so none was; the public client reads which."""

    status = 422

    def __init__(self, failures: Sequence[BatchFailure], *, of: int) -> None:
        super().__init__(
            f"{len(failures)} of {of} operations cannot be done, so nothing was changed.",
            extra={"failed": [{"path": each.path, "error": each.error} for each in failures]},
        )


class OwnerNotFound(NotFound):
    def __init__(self, name: str) -> None:
        super().__init__(f"There is no user or organization {name}.")


class InvalidLink(NotAllowed):
    """An address that authorises by itself was changed, or is too old."""

    def __init__(self) -> None:
        super().__init__("This link is not valid any more; ask the batch endpoint for a new one.")


class UploadIncomplete(InvalidRequest):
    def __init__(self, *, size: int, received: int) -> None:
        super().__init__(
            f"The upload must have {size} bytes as announced; it has "
            f"{f'{received}' if received < size else 'more'}."
        )


class ContentMismatch(InvalidRequest):
    def __init__(self, oid: str, *, found: str) -> None:
        super().__init__(f"The bytes must have the SHA-256 {oid}; they have {found}.")


class PartMissing(InvalidRequest):
    def __init__(self, number: int) -> None:
        super().__init__(f"parts: part {number} with this etag was not uploaded.")


class InvalidParts(InvalidRequest):
    def __init__(self, count: int) -> None:
        super().__init__(f"parts must name each of the {count} parts once, in their order.")


class WrongOid(InvalidRequest):
    def __init__(self) -> None:
        super().__init__("oid must be the object that this link is for.")


class ObjectNotFound(NotFound):
    def __init__(self, oid: str) -> None:
        super().__init__(f"There is no object {oid} in this repository.")


class WrongSize(InvalidRequest):
    def __init__(self, oid: str) -> None:
        super().__init__(f"size must be that of the object {oid}.")


class MalformedRequest(InvalidRequest):
    def __init__(self, rule: str) -> None:
        super().__init__(f"This is no request of git's: {rule}.")


class RequestTooLarge(TooLarge):
    def __init__(self, largest: int) -> None:
        super().__init__(f"A request of git's must have at most {largest} bytes.")


class GitBusy(Unavailable):
    def __init__(self) -> None:
        super().__init__("Too many git requests are running; try again shortly.")


class GitUnavailable(Unavailable):
    def __init__(self) -> None:
        super().__init__("Git could not read this repository; try again, or tell the operator.")


class PushRefused(Exception):
    """Nothing of a push is taken; the text says why, for the person who pushed."""


class BadPack(PushRefused):
    """Git could not take the objects of a push apart."""


class RepoFolderGone(NotFound):
    """The row was there a moment ago, and its folder goes with it."""

    code = "RepoNotFound"

    def __init__(self) -> None:
        super().__init__("The repository was deleted a moment ago.")


class RepoNotGated(InvalidRequest):
    def __init__(self, full_name: str) -> None:
        super().__init__(f"{full_name} is not gated.")


class AlreadyHasAccess(InvalidRequest):
    def __init__(self, user: str, full_name: str) -> None:
        super().__init__(f"{user} has access to {full_name} already.")


class InvalidDecision(InvalidRequest):
    pass


class AccessRequestNotFound(NotFound):
    def __init__(self, what: str, full_name: str) -> None:
        super().__init__(f"There is no {what} for {full_name}.")


class AttachmentNotFound(NotFound):
    def __init__(self, name: str) -> None:
        super().__init__(f"There is no attachment {name}.")


class NotAnAttachment(InvalidRequest):
    def __init__(self, media_types: Iterable[str]) -> None:
        super().__init__(f"Content-Type must be one of {', '.join(media_types)}.")


class EmptyAttachment(InvalidRequest):
    def __init__(self) -> None:
        super().__init__("The body must be the content of a file; it is empty.")
