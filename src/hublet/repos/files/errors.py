"""What goes wrong with files of buckets and containers."""

from hublet.core.errors import Conflict, HubError, InvalidRequest, NotFound, TooLarge


class FileNotFound(NotFound):
    code = "EntryNotFound"

    def __init__(self, path: str, *, full_name: str) -> None:
        super().__init__(f"There is no file {path} in {full_name}.")


class PathTaken(Conflict):
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


class BodyBroken(InvalidRequest):
    """The client went away; hardly anybody hears this."""

    def __init__(self) -> None:
        super().__init__("The body broke off before its end; nothing of it was kept.")


class InvalidMediaType(InvalidRequest):
    def __init__(self) -> None:
        super().__init__("Content-Type must be a media type such as text/plain.")
