"""The rules for names of repositories, the same that the public clients check."""

import re

from hublet.repos.errors import InvalidRepoName

MAX_LENGTH = 96

_LETTERS = re.compile(r"[A-Za-z0-9._-]+")


def check_repo_name(name: str) -> None:
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


def repo_name_key(name: str) -> str:
    """Return the form in which two names are the same name."""
    return name.casefold()
