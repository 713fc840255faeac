"""Whether a terminal shows what a page shows, but for what differs from run to run."""

import re

TOKEN = "hf_…"

_ID = r"\b(?:[0-9a-f]{40}|[0-9a-f]{32}|[0-9a-f]{24})\b"
_PORT = r"\b(?:7860|8000|9000)\b"
_NAMED = re.compile(rf"{TOKEN}|{_ID}|{_PORT}")

_PASSWORD = r"\b[a-z0-9]{4}(?:-[a-z0-9]{4}){3}\b"
_USER_CODE = r"\b[B-Z0-9]{4}-[B-Z0-9]{4}\b"
_MINUTE = r"\b20\d\d-\d\d-\d\d[ T]\d\d:\d\d"
# How a page spells what differs from run to run, and what may stand in its place.
_VARYING = {
    rf"{_MINUTE}:\d\d\.\d+Z": rf"{_MINUTE}:\d\d\.\d+Z",
    rf"{_MINUTE}(?::\d\d)?": rf"{_MINUTE}(?::\d\d)?",
    r"\b\d+ ms\b": r"\d+ ms",
    r"\b[\d,]+ MB\b": r"[\d,]+ MB",
    r"\b\d+ wait\b": r"\d+ wait",
    r"\bgit version [\d.]+ at [\w/]+\b": r"git version [\d.]+ at [\w/]+",
    r"\bSQLite [\d.]+\b": r"SQLite [\d.]+",
    r"\bAll \d+ migrations\b": r"All \d+ migrations",
    # How far a job is, and for how many seconds.
    r"\bRUNNING +\d+\b": r"(?:SCHEDULING|RUNNING) +(?:\d+|-)",
    # What runs jobs is another matter on another machine.
    r"^ok  jobs .*$": r"[a-z]+ +jobs .*(?:\n  .*)*",
    # The port of a hub in a test is set by a variable.
    r"\bfrom flags and\b": r"from (?:HUBLET_PORT, )?flags and",
    _PASSWORD: _PASSWORD,
    _USER_CODE: _USER_CODE,
    # Columns and lines are as wide as what stands in them.
    r" +": r" +",
    r"─{3,}": r"─+",
    r"-{3,}": r"-+",
    # Left out: lines, or a part of one.
    r"^…\n": r"(?:.*\n)*?",
    r"…": r".*?",
}
_PART = re.compile(
    "|".join([f"(?P<named>{_NAMED.pattern})", *(f"({spelled})" for spelled in _VARYING)]),
    re.MULTILINE,
)
_STANDING = list(_VARYING.values())


class OutputMatcher:
    """How the things that a page names are called here: ids, ports, tokens."""

    def __init__(self, known: dict[str, str]) -> None:
        self._known = dict(known)

    def translate(self, text: str) -> str:
        """Return a command or a file of the page with the names of here."""
        return _NAMED.sub(lambda found: self._known.get(found[0], found[0]), text)

    def match(self, shown: str, real: str, *, whole: bool) -> int | None:
        """Return how many lines of `real` are what the page shows, or None if it is not so.

        All of them must be unless it is not yet the whole. What the page names for the first time
        is learned.
        """
        groups: dict[str, str] = {}
        pattern = re.compile(self._pattern(f"{shown}\n" if shown else "", groups))
        found = pattern.fullmatch(real) if whole else pattern.match(real)
        if found is None:
            return None
        self._known |= {name: found[group] for name, group in groups.items()}
        return found[0].count("\n")

    def _pattern(self, shown: str, groups: dict[str, str]) -> str:
        pattern, end = "", 0
        for part in _PART.finditer(shown):
            pattern += re.escape(shown[end : part.start()])
            pattern += self._named(part[0], groups) if part["named"] else _standing_for(part)
            end = part.end()
        return pattern + re.escape(shown[end:])

    def _named(self, name: str, groups: dict[str, str]) -> str:
        if name in groups:
            return f"(?P={groups[name]})"
        # A token is shown once: each that comes is a new one.
        if name in self._known and name != TOKEN:
            return re.escape(self._known[name])
        groups[name] = f"name{len(groups)}"
        like = r"hf_[\w-]+" if name == TOKEN else rf"[0-9a-f]{{{len(name)}}}"
        return f"(?P<{groups[name]}>{like})"


def _standing_for(part: re.Match[str]) -> str:
    assert part.lastindex is not None
    # The first group is that of names.
    return _STANDING[part.lastindex - 2]
