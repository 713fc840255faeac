"""Rules for names of repositories and for paths of files, the same in git and in buckets."""

import re
import unicodedata
from collections.abc import Iterator

from hublet.accounts.names import name_key
from hublet.repos.errors import InvalidPath, InvalidRepoName
from hublet.repos.records import RepoType

MAX_NAME_LENGTH = 96
MAX_PATH_BYTES = 4096
MAX_SEGMENT_BYTES = 255

# A model's page is /owner/name, where the pages of the owner are too.
_PAGES = """
activity buckets collections containers datasets followers following kernels likes models papers
posts settings spaces
"""
_PAGES_OF_AN_OWNER = frozenset(_PAGES.split())

_LETTERS = re.compile(r"[A-Za-z0-9._-]+")

# Characters that the file system of macOS leaves out when it compares names.
_IGNORED = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
# Names that Windows takes for .git: its short name, and .git before blanks, dots or a stream.
_GIT_FOLDER = re.compile(r"(\.git[ .]*|git~[0-9]+[ .]*)(:.*)?", re.DOTALL)


def check_repo_name(name: str, type: RepoType | None = None) -> None:  # noqa: A002 - as elsewhere
    """Raise InvalidRepoName, which says the rule, for an invalid name."""
    if not 1 <= len(name) <= MAX_NAME_LENGTH:
        raise InvalidRepoName(f"it has 1 to {MAX_NAME_LENGTH} characters")
    if _LETTERS.fullmatch(name) is None:
        raise InvalidRepoName("it has only the letters a to z, digits, '-', '_' and '.'")
    if "--" in name or ".." in name:
        raise InvalidRepoName("it has no '--' and no '..'")
    if name.startswith(("-", ".")) or name.endswith(("-", ".")):
        raise InvalidRepoName("it does not start or end with '-' or '.'")
    if name.lower().endswith(".git"):
        raise InvalidRepoName("it does not end with '.git'")
    if type is RepoType.model and repo_name_key(name) in _PAGES_OF_AN_OWNER:
        raise InvalidRepoName(f"{name} is reserved for a page of its owner")


def split_name(name: str, *, organization: str | None = None) -> tuple[str | None, str]:
    """Return owner and name of `owner/name`, or of `name` with the owner in a field of its own."""
    owner, _, last = name.rpartition("/")
    if "/" in owner:
        raise InvalidRepoName("it is written owner/name")
    if owner and organization and name_key(owner) != name_key(organization):
        raise InvalidRepoName("its owner and the organization are not the same")
    return organization or owner or None, last


def repo_name_key(name: str) -> str:
    """Return the key by which names are compared: without case."""
    return name.casefold()


def check_path(path: str) -> None:
    """Raise InvalidPath, which says the rule, for an invalid path of a file.

    A valid path is safe on every system that a repository is checked out on: it stays below its
    folder, and it is never taken for git's own folder.
    """
    try:
        octets = path.encode()
    except UnicodeEncodeError:
        raise InvalidPath("it is valid Unicode text") from None
    if not 1 <= len(octets) <= MAX_PATH_BYTES:
        raise InvalidPath(f"it has 1 to {MAX_PATH_BYTES} bytes")
    if "\\" in path:
        raise InvalidPath("its parts are separated by '/', and it has no backslash")
    if any(unicodedata.category(character) == "Cc" for character in path):
        raise InvalidPath("it has no control characters")
    for segment in path.split("/"):
        _check_segment(segment)


def _check_segment(segment: str) -> None:
    if not segment:
        raise InvalidPath("it neither begins nor ends with '/', and has no '//'")
    if segment in {".", ".."}:
        raise InvalidPath("none of its parts is '.' or '..'")
    if len(segment.encode()) > MAX_SEGMENT_BYTES:
        raise InvalidPath(f"each of its parts has at most {MAX_SEGMENT_BYTES} bytes")
    if _GIT_FOLDER.fullmatch(_IGNORED.sub("", segment).casefold()):
        raise InvalidPath("none of its parts is git's own folder '.git', in any spelling")


def paths_above(path: str) -> Iterator[str]:
    """Yield the folders that a path lies in, the outermost first."""
    position = path.find("/")
    while position != -1:
        yield path[:position]
        position = path.find("/", position + 1)


# The folders of a container that its registry keeps.
REGISTRY_FOLDERS = frozenset({"blobs", "manifests"})


def is_of_registry(path: str) -> bool:
    """Tell whether a path of a container is kept by the registry."""
    return path.partition("/")[0] in REGISTRY_FOLDERS
