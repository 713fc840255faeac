"""Which files .gitattributes hands to LFS, and how one more is named there."""

import re
from collections.abc import Iterable

from hublet.repos.git.folders import LARGE_FILE_ATTRIBUTES
from hublet.repos.git.patterns import Pattern

FILE_NAME = ".gitattributes"

_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"\s*(.*)')
_SPECIAL = re.compile(r"([\\*?\[\]])")


class Attributes:
    """The .gitattributes at the root of a repository, as far as LFS goes."""

    def __init__(self, text: str) -> None:
        parsed = (_line(line) for line in text.splitlines())
        # The last line that says something of the filter decides.
        self._lines = [line for line in parsed if line is not None][::-1]

    def hands_to_lfs(self, path: str) -> bool:
        return next((lfs for pattern, lfs in self._lines if pattern.matches(path)), False)


def with_lfs(text: str, paths: Iterable[str]) -> str:
    """Return the text with a line for each of these files that no line hands to LFS yet."""
    attributes = Attributes(text)
    added = [
        f"{_spelled(path)} {LARGE_FILE_ATTRIBUTES}\n"
        for path in sorted(paths)
        if not attributes.hands_to_lfs(path)
    ]
    if added and text and not text.endswith("\n"):
        text += "\n"
    return text + "".join(added)


def _line(line: str) -> tuple[Pattern, bool] | None:
    text = line.strip()
    if text.startswith("#"):
        return None
    if quoted := _QUOTED.fullmatch(text):
        pattern, words = re.sub(r"\\(.)", r"\1", quoted[1]), quoted[2].split()
    else:
        pattern, *words = text.split() or [""]
    filters = [word for word in words if re.fullmatch(r"[-!]?filter(=.*)?", word)]
    # A folder has no attributes, and a pattern that begins with ! is no pattern here.
    if not pattern or not filters or pattern.endswith("/") or pattern.startswith("!"):
        return None
    return Pattern(pattern), filters[-1] == "filter=lfs"


def _spelled(path: str) -> str:
    """Return a pattern that matches this path alone, without blanks, as git-lfs writes it."""
    spelled = re.sub(r"\s", "[[:space:]]", _SPECIAL.sub(r"\\\1", path))
    # At the start a line, these would mean something else.
    return f"/{spelled}" if "/" not in path or path.startswith(("#", "!", '"')) else spelled
