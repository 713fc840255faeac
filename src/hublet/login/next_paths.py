"""Where a browser goes after the login: a path of this hub, never anywhere else."""

import re

START = "/settings/sessions"

# An authorization request comes back from the login with its state, of 8 KiB before encoding.
_LONGEST = 40_000
# Browsers take a backslash for a slash and drop control characters, so `/\host` and `/<tab>/host`
# lead to other hosts just as `//host` does. What is not printable ASCII has to be %-encoded.
_PATH = re.compile(r"/(?![/\\])[\x21-\x5b\x5d-\x7e]*")


def safe_path(asked: str | None) -> str:
    """Return the path and query that was asked for if it is one of this hub, else the start."""
    if asked is None or len(asked) > _LONGEST or _PATH.fullmatch(asked) is None:
        return START
    return asked
