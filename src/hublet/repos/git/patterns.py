"""Patterns of .gitignore and .gitattributes, matched as git matches them.

Why no library does it: decision 0025.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

GIT_ATTRIBUTES_FILE = ".gitattributes"

LFS_ATTRIBUTES = "filter=lfs diff=lfs merge=lfs -text"
# What the public service gives to a new repository; to a dataset some more, and media.
_MODEL_PATTERNS = (
    "*.7z *.arrow *.bin *.bz2 *.ckpt *.ftz *.gz *.h5 *.joblib *.lfs.* *.mlmodel *.model "
    "*.msgpack *.npy *.npz *.onnx *.ot *.parquet *.pb *.pickle *.pkl *.pt *.pth *.rar "
    "*.safetensors saved_model/**/* *.tar.* *.tar *.tflite *.tgz *.wasm *.xz *.zip *.zst "
    "*tfevents*"
)
_DATASET_PATTERNS = _MODEL_PATTERNS.replace("*.bin", "*.avro *.bin", 1).replace(
    "*.mlmodel", "*.lz4 *.mds *.mlmodel", 1
)
_MEDIA_PATTERNS = {
    "Audio files - uncompressed": "*.pcm *.sam *.raw",
    "Audio files - compressed": "*.aac *.flac *.mp3 *.ogg *.wav",
    "Image files - uncompressed": "*.bmp *.gif *.png *.tiff",
    "Image files - compressed": "*.jpg *.jpeg *.webp",
    "Video files - compressed": "*.mp4 *.webm",
}


def _lfs_lines(patterns: str) -> str:
    return "".join(f"{pattern} {LFS_ATTRIBUTES}\n" for pattern in patterns.split())


NEW_ATTRIBUTES = _lfs_lines(_MODEL_PATTERNS)
NEW_DATASET_ATTRIBUTES = _lfs_lines(_DATASET_PATTERNS) + "".join(
    f"# {kind}\n{_lfs_lines(patterns)}" for kind, patterns in _MEDIA_PATTERNS.items()
)

_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": r" \t",
    "digit": "0-9",
    "lower": "a-z",
    "punct": re.escape("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"),
    "space": r"\s",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}
_STARS = re.compile(r"\*+/?")
_WILDCARD = re.compile(r"[*?\[\\]")
_NAMED = re.compile(r"\[:(\w+):\]")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"\s*(.*)')
_TO_ESCAPE = re.compile(r"([\\*?\[\]])")


class Pattern:
    """One pattern; it matches a name in any folder, or with a slash in it a path from the root."""

    def __init__(self, text: str) -> None:
        self._is_anchored = "/" in text
        # A pattern that is malformed matches nothing, as in git.
        self._regex = _compiled(text.removeprefix("/"))

    def matches(self, path: str) -> bool:
        subject = path if self._is_anchored else path.rpartition("/")[2]
        return self._regex is not None and self._regex.fullmatch(subject) is not None


def _compiled(text: str) -> re.Pattern[str] | None:
    try:
        return re.compile(_expression(list(_tokens(text))), re.DOTALL)
    except _Malformed:
        return None


class _Malformed(Exception):
    """A bracket that does not close, or a backslash with nothing behind it."""


class _Gap(Enum):
    """Wildcard between two fixed pieces of a path."""

    # A star: anything but a slash.
    within_name = "[^/]*"
    # Two stars that are a whole part of the pattern: any number of folders.
    over_folders = "(?:[^/]+/)*"


def _expression(tokens: Sequence[str | _Gap]) -> str:
    """Join the pieces to an expression that never backtracks.

    The first match of a piece after a gap is as good as any later one, because the next gap
    takes what is left between: so all gaps but the last are atomic, and no pattern is slow.
    """
    first, *groups = _split(tokens, _Gap.over_folders)
    expression = _names(first)
    for group in groups[:-1]:
        expression += f"(?>{_Gap.over_folders.value}?{_names(group)})"
    return expression + "".join(_Gap.over_folders.value + _names(group) for group in groups[-1:])


def _names(tokens: Sequence[str | _Gap]) -> str:
    first, *pieces = ("".join(map(str, piece)) for piece in _split(tokens, _Gap.within_name))
    expression = first
    for piece in pieces[:-1]:
        expression += f"(?>{_Gap.within_name.value}?{piece})"
    return expression + "".join(_Gap.within_name.value + piece for piece in pieces[-1:])


def _split(tokens: Sequence[str | _Gap], gap: _Gap) -> list[list[str | _Gap]]:
    groups: list[list[str | _Gap]] = [[]]
    for token in tokens:
        if token is gap:
            groups.append([])
        else:
            groups[-1].append(token)
    return groups


def _tokens(text: str) -> Iterator[str | _Gap]:
    position = 0
    while position < len(text):
        if stars := _STARS.match(text, position):
            yield from _gaps(text, stars)
            position = stars.end()
        elif text[position] == "[":
            expression, position = _bracket(text, position + 1)
            yield expression
        elif text[position] == "\\":
            if position + 1 == len(text):
                raise _Malformed
            yield re.escape(text[position + 1])
            position += 2
        else:
            yield "[^/]" if text[position] == "?" else re.escape(text[position])
            position += 1


def _gaps(text: str, stars: re.Match[str]) -> Iterator[str | _Gap]:
    """Two stars span folders only where they are a whole part of the path.

    Or right behind the letters that a path must begin with: git compares those on their own.
    """
    before = text[: stars.start()]
    is_part = not before or before.endswith("/")
    is_first = "/" in text and not _WILDCARD.search(before)
    spans = stars[0].startswith("**") and (is_part or is_first)
    if spans and stars[0].endswith("/"):
        yield _Gap.over_folders if is_part else "(?:.*/)?"
    elif spans and stars.end() == len(text):
        yield ".*"
    else:
        yield _Gap.within_name
        if stars[0].endswith("/"):
            yield "/"


def _bracket(text: str, position: int) -> tuple[str, int]:
    """Return a class of characters as a regular expression, and where the pattern goes on."""
    negated = text[position : position + 1] in {"!", "^"}
    position += negated
    members = ""
    first = True
    while first or text[position : position + 1] != "]":
        if position >= len(text):
            raise _Malformed
        member, position = _member(text, position)
        members += member
        first = False
    return f"(?!/)[{'^' if negated else ''}{members}]", position + 1


def _member(text: str, position: int) -> tuple[str, int]:
    if named := _NAMED.match(text, position):
        if named[1] not in _CLASSES:
            raise _Malformed
        return _CLASSES[named[1]], named.end()
    low, position = _character(text, position)
    if text[position : position + 1] == "-" and text[position + 1 : position + 2] not in {"", "]"}:
        high, position = _character(text, position + 1)
        # A range that runs backwards holds nothing.
        return (f"{re.escape(low)}-{re.escape(high)}" if low <= high else ""), position
    return re.escape(low), position


def _character(text: str, position: int) -> tuple[str, int]:
    if text[position] == "\\":
        position += 1
    if position >= len(text):
        raise _Malformed
    return text[position], position + 1


@dataclass(frozen=True, slots=True)
class _IgnoreRule:
    pattern: Pattern
    ignores: bool
    only_folders: bool


class IgnoreRules:
    """The rules of one .gitignore at the root of a repository."""

    def __init__(self, text: str) -> None:
        rules = (_parse_rule(line) for line in text.splitlines())
        # The last rule that matches decides.
        self._rules = [rule for rule in rules if rule is not None][::-1]

    def ignores(self, path: str) -> bool:
        # A file in an ignored folder cannot be included again.
        parts = path.split("/")
        folders = ("/".join(parts[:count]) for count in range(1, len(parts)))
        return any(
            self._is_ignored(folder, is_folder=True) for folder in folders
        ) or self._is_ignored(path, is_folder=False)

    def _is_ignored(self, path: str, *, is_folder: bool) -> bool:
        for rule in self._rules:
            if (is_folder or not rule.only_folders) and rule.pattern.matches(path):
                return rule.ignores
        return False


def _parse_rule(line: str) -> _IgnoreRule | None:
    text = _without_trailing_blanks(line)
    if not text or text.startswith("#"):
        return None
    negated = text.startswith("!")
    text = text.removeprefix("!")
    only_folders = text.endswith("/")
    text = text.removesuffix("/")
    if not text:
        return None
    return _IgnoreRule(Pattern(text), ignores=not negated, only_folders=only_folders)


def _without_trailing_blanks(line: str) -> str:
    """Remove blanks at the end, except one that is escaped."""
    text = line.rstrip(" \t\r")
    backslashes = len(text) - len(text.rstrip("\\"))
    return text + " " if backslashes % 2 and len(text) < len(line) else text


class GitAttributes:
    """The .gitattributes at the root of a repository: which files LFS filters.

    It may have a line for each of thousands of files, so those without wildcards are looked up.
    """

    def __init__(self, text: str) -> None:
        # The number of the last line that names a file, or a path from the root, and what it says.
        self._exact: dict[str, tuple[int, bool]] = {}
        patterns: list[tuple[int, Pattern, bool]] = []
        for number, line in enumerate(text.splitlines()):
            if (parsed := _parse_attribute_line(line)) is None:
                continue
            pattern, lfs = parsed
            if _WILDCARD.search(pattern):
                patterns.append((number, Pattern(pattern), lfs))
            else:
                key = f"/{pattern.removeprefix('/')}" if "/" in pattern else pattern
                self._exact[key] = (number, lfs)
        self._patterns = patterns[::-1]

    def is_lfs(self, path: str) -> bool:
        """Tell whether the last line that sets the filter of this file sets it to LFS."""
        keys = (f"/{path}", path.rpartition("/")[2])
        last, answer = max(self._exact.get(key, (-1, False)) for key in keys)
        for number, pattern, lfs in self._patterns:
            if number < last:
                break
            if pattern.matches(path):
                return lfs
        return answer


def add_lfs_lines(text: str, paths: Iterable[str]) -> str:
    """Return the text with a new line for each of these files that is not in LFS yet."""
    attributes = GitAttributes(text)
    added = [
        f"{_pattern_for(path)} {LFS_ATTRIBUTES}\n"
        for path in sorted(paths)
        if not attributes.is_lfs(path)
    ]
    if added and text and not text.endswith("\n"):
        text += "\n"
    return text + "".join(added)


def _parse_attribute_line(line: str) -> tuple[str, bool] | None:
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
    return pattern, filters[-1] == "filter=lfs"


def _pattern_for(path: str) -> str:
    """Return a pattern that matches this path alone, without blanks, as git-lfs writes it."""
    spelled = re.sub(r"\s", "[[:space:]]", _TO_ESCAPE.sub(r"\\\1", path))
    # At the start a line, these would mean something else.
    return f"/{spelled}" if "/" not in path or path.startswith(("#", "!", '"')) else spelled
