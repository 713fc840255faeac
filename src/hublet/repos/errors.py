"""Errors of repositories and of their content, with the codes that the public clients read.

HubError
├── InvalidRequest  400
│   ├── InvalidRepo, InvalidRepoName, InvalidPath, InvalidRefName, InvalidBranch
│   ├── InvalidCard (CardTooLong)
│   ├── InvalidCommit (InvalidCommitLine), PathTakenInTree, InvalidBatch, InvalidUpload
│   └── InvalidAccessRequest, AlreadyHasAccess, MalformedRequest
├── AuthenticationNeeded 401
│   └── CasTokenRefused
├── NotAllowed      403
│   └── AccessNotGranted, RightNeeded, CannotCreateThere, InvalidLink, CasAccessRefused
├── NotFound        404
│   ├── RepoNotFound, RepoFolderGone, RevisionNotFound, EntryNotFound, ContentMissing
│   ├── FileNotFound, ObjectNotFound, OwnerNotFound, AccessRequestNotFound, AttachmentNotFound
│   └── CasEntryNotFound
├── Conflict        409
│   └── RepoExists, RefExists, RefConflict, RefChanged, PathChanged, PathTakenInBucket
├── TooLarge        413
│   └── CommitTooLarge, BatchTooLarge, RequestTooLarge
├── Unavailable     503
│   └── StorageUnavailable, GitBusy, GitUnavailable, GitMissing
├── RepoMoved       307
├── ConditionFailed, ParentMoved 412
└── BatchFailed, InvalidCommitPath 422
Exception
├── PushRefused (BadPack)
└── GitFailed
"""

from collections.abc import Mapping, Sequence

from hublet.core.errors import (
    AuthenticationNeeded,
    Conflict,
    HubError,
    InvalidRequest,
    NotAllowed,
    NotFound,
    TooLarge,
    Unavailable,
)

# A repository: its name, its owner, who may do what.


class InvalidRepo(InvalidRequest):
    """The fields of a request contradict each other."""


class InvalidRepoName(InvalidRequest):
    def __init__(self, rule: str) -> None:
        super().__init__(f"This is no name for a repository: {rule}.")


class InvalidPath(InvalidRequest):
    def __init__(self, rule: str) -> None:
        super().__init__(f"This is no path of a file: {rule}.")


class InvalidRefName(InvalidRequest):
    def __init__(self, kind: str, rule: str) -> None:
        super().__init__(f"This is no name for a {kind}: {rule}.")


class RepoNotFound(NotFound):
    """The repository does not exist, or the caller may not know that it does."""

    code = "RepoNotFound"

    def __init__(self) -> None:
        # The public clients write their own explanation, and leave out this part of it.
        super().__init__("Repository not found")


class RepoFolderGone(NotFound):
    """The repository is being deleted: its row was there a moment ago."""

    code = "RepoNotFound"

    def __init__(self) -> None:
        super().__init__("The repository was deleted a moment ago.")


class RepoMoved(HubError):
    """The repository has another name now; the client follows.

    `path` begins with a slash: the public clients download no file through a redirect that
    names a host, because they take it for storage elsewhere.
    """

    status = 307

    def __init__(self, full_name: str, *, path: str) -> None:
        super().__init__(f"The repository is now {full_name}.", headers={"Location": path})


class RepoExists(Conflict):
    """The name is taken; the public client reads the url even then."""

    def __init__(self, type: str, full_name: str, *, url: str) -> None:  # noqa: A002 - as elsewhere
        super().__init__(
            f"A {type} repository called {full_name} already exists.", extra={"url": url}
        )


class OwnerNotFound(NotFound):
    def __init__(self, name: str) -> None:
        super().__init__(f"There is no user or organization {name}.")


class CannotCreateThere(NotAllowed):
    def __init__(self, namespace: str, reason: str) -> None:
        super().__init__(f"You cannot create a repository under {namespace}: {reason}")


class RightNeeded(NotAllowed):
    def __init__(self, full_name: str, reason: str) -> None:
        super().__init__(f"You cannot do this with {full_name}: {reason}")


class AccessNotGranted(NotAllowed):
    """The repository is gated and the caller has no access to its content."""

    code = "GatedRepo"

    def __init__(self, type: str, full_name: str, reason: str) -> None:  # noqa: A002 - as elsewhere
        where = f"Access to {type} {full_name} is restricted"
        super().__init__(f"{where} and you are not in the authorized list: {reason}")


class InvalidAccessRequest(InvalidRequest):
    """An access request, or the decision about one, makes no sense."""


class AlreadyHasAccess(InvalidRequest):
    def __init__(self, user: str, full_name: str) -> None:
        super().__init__(f"{user} has access to {full_name} already.")


class AccessRequestNotFound(NotFound):
    def __init__(self, what: str, full_name: str) -> None:
        super().__init__(f"There is no {what} for {full_name}.")


# Its content: revisions, refs and commits.


class RevisionNotFound(NotFound):
    code = "RevisionNotFound"

    def __init__(self, revision: str) -> None:
        super().__init__(f"Invalid rev id: there is no revision {revision} in this repository.")


class EntryNotFound(NotFound):
    code = "EntryNotFound"

    def __init__(self, path: str, *, commit: str | None = None) -> None:
        headers = {"X-Repo-Commit": commit} if commit else None
        super().__init__(f"There is no file or folder {path} in this revision.", headers=headers)


class ContentMissing(NotFound):
    """Git has the pointer to a large file, and nobody uploaded its content."""

    def __init__(self, path: str) -> None:
        # Without a code: the clients would remember that there is no such file.
        super().__init__(
            f"The content of {path} is not here: its pointer was pushed without it, "
            "or it was deleted for good."
        )


class RefExists(Conflict):
    def __init__(self, ref: str) -> None:
        super().__init__(f"Reference {ref} already exists.")


class RefConflict(Conflict):
    """Git stores refs like files: one cannot be a folder of another."""

    def __init__(self, name: str, *, other: str) -> None:
        super().__init__(f"There cannot be {name} beside {other}.")


class RefChanged(Conflict):
    """The branch moved since the caller read it."""

    def __init__(self, revision: str) -> None:
        super().__init__(f"{revision} has moved on since; read it again and repeat the change.")


class InvalidBranch(InvalidRequest):
    """The operation is not possible with this branch."""


class InvalidCommit(InvalidRequest):
    """The body of a commit as a whole breaks a rule."""


class InvalidCommitLine(InvalidCommit):
    """A line of the body breaks a rule."""

    def __init__(self, number: int, rule: str) -> None:
        super().__init__(f"Line {number}: {rule}")


class InvalidCommitPath(HubError):
    """The path of an operation breaks a rule; above all it may lead out of the repository."""

    status = 422


class CommitTooLarge(TooLarge):
    pass


class ParentMoved(HubError):
    """The commit is meant for another state of the branch."""

    status = 412

    def __init__(self, revision: str, *, parent: str, head: str) -> None:
        super().__init__(
            "The branch was updated since you opened this page. Please refresh and try again. "
            f"(parentCommit is {parent}, and {revision} is at {head}.)"
        )


class PathChanged(Conflict):
    """A file is no longer, or not yet, what its editor saw."""

    def __init__(self, path: str, change: str) -> None:
        super().__init__(f"{path}: {change} since the page was opened.")


class PathTakenInTree(InvalidRequest):
    """A file cannot be where a folder is, nor a folder where a file is."""

    def __init__(self, path: str, *, by: str, taken: str | None = None) -> None:
        super().__init__(
            f"{path} cannot be added, because {taken or path} is a {by}; "
            "delete that in the same commit."
        )


class InvalidCard(InvalidRequest):
    """The metadata in README.md is invalid; the public client shows each problem to its user."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__(
            f"The metadata in README.md is not valid: {' '.join(problems)}",
            extra={"errors": [{"message": problem} for problem in problems], "warnings": []},
        )


class CardTooLong(InvalidCard):
    """The metadata has more names and values than the hub reads."""


class StorageUnavailable(Unavailable):
    """The disk is full, or it fails."""

    def __init__(self) -> None:
        super().__init__("The hub cannot store content right now; please try again shortly.")


# Uploads: files of buckets, attachments and Git LFS.


class InvalidUpload(InvalidRequest):
    """The body, its type or its digest is not what it must be or was announced to be."""


class FileNotFound(NotFound):
    code = "EntryNotFound"

    def __init__(self, path: str, *, full_name: str) -> None:
        super().__init__(f"There is no file {path} in {full_name}.")


PATH_TAKEN = "a path, or one that it begins with, cannot be a file and a folder at once."


class PathTakenInBucket(Conflict):
    """A path cannot be a file and a folder: no disk could hold both."""

    def __init__(self, paths: list[str]) -> None:
        super().__init__(f"{', '.join(paths)}: {PATH_TAKEN}")
        self.paths = paths


class ConditionFailed(HubError):
    """The file is not, or not any more, the version that the caller names."""

    status = 412

    def __init__(self, path: str) -> None:
        super().__init__(f"If-Match or If-None-Match does not hold for {path} as it is now.")


class InvalidBatch(InvalidRequest):
    """A batch, or a line of it, breaks a rule."""


class BatchTooLarge(TooLarge):
    def __init__(self, limit: int) -> None:
        super().__init__(
            f"A batch must have at most {limit} bytes; larger files go by PUT, one by one."
        )


class BatchFailed(HubError):
    """No operation of a batch can be done; the public clients read why.

    `failures` are the reasons by path.
    """

    status = 422

    def __init__(self, failures: Mapping[str, str], *, of: int) -> None:
        failed = [{"path": path, "error": error} for path, error in failures.items()]
        super().__init__(
            "No operation of the batch can be done, so nothing was changed.",
            extra={"success": False, "processed": of, "succeeded": 0, "failed": failed},
        )


class AttachmentNotFound(NotFound):
    def __init__(self, name: str) -> None:
        super().__init__(f"There is no attachment {name}.")


# The CAS of Xet: public clients give up after a 401, and ask for new addresses of data after a 403.


class CasTokenRefused(AuthenticationNeeded):
    pass


class CasAccessRefused(NotAllowed):
    pass


class CasEntryNotFound(NotFound):
    pass


class InvalidLink(NotAllowed):
    """A signed link was changed, or is too old."""

    def __init__(self) -> None:
        super().__init__("This link is not valid any more; ask the batch endpoint for a new one.")


class ObjectNotFound(NotFound):
    def __init__(self, oid: str) -> None:
        super().__init__(f"There is no object {oid} in this repository.")


# Git itself.


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


class GitMissing(Unavailable):
    def __init__(self) -> None:
        super().__init__("This hub cannot run git; its operator has to install it.")


class GitFailed(Exception):
    """Git exited with an error; the text is what it wrote to stderr."""


class PushRefused(Exception):
    """A whole push is refused; the text says why, for the person who pushed."""


class BadPack(PushRefused):
    """Git could not unpack the objects of a push."""
