"""The rules for names of repositories, the same that the public clients check."""

import re

from hublet.accounts.names import name_key
from hublet.repos.errors import InvalidRepoName
from hublet.repos.records import RepoType

MAX_LENGTH = 96

# A model's page is /owner/name, where the pages of the owner are too.
_PAGES = """
activity buckets collections containers datasets followers following kernels likes models papers
posts settings spaces
"""
_PAGES_OF_AN_OWNER = frozenset(_PAGES.split())

_LETTERS = re.compile(r"[A-Za-z0-9._-]+")


def check_repo_name(name: str, type: RepoType | None = None) -> None:  # noqa: A002 - as elsewhere
    """Refuse with InvalidRepoName, which says the rule, what cannot name a repository."""
    if not 1 <= len(name) <= MAX_LENGTH:
        raise InvalidRepoName(f"it has 1 to {MAX_LENGTH} characters")
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
    """Return owner and name of what a body calls `owner/name`, or `name` with the owner apart."""
    owner, _, last = name.rpartition("/")
    if "/" in owner:
        raise InvalidRepoName("it is written owner/name")
    if owner and organization and name_key(owner) != name_key(organization):
        raise InvalidRepoName("its owner and the organization are not the same")
    return organization or owner or None, last


def repo_name_key(name: str) -> str:
    """Return the form in which two names are the same name."""
    return name.casefold()
