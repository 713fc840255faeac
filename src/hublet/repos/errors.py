"""What goes wrong with repositories, with the codes that the public clients read."""

from hublet.core.errors import Conflict, HubError, InvalidRequest, NotAllowed, NotFound


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
