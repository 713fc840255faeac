"""Addresses in which a revision and a path meet: only their raw form tells them apart."""

from urllib.parse import unquote

# Refs with slashes of their own that people write without encoding them.
_UNENCODED = (("refs", "pr"), ("refs", "convert"))


def split_rest(raw_path: str, rest: str) -> tuple[str, str]:
    """Return the revision and the path that the end of an address names.

    `rest` is that end as the framework decoded it; there `feat%2Fx/a.txt` and `feat/x%2Fa.txt`
    look the same. In the raw path the revision is what stands before the first slash.
    """
    segments = _raw_end(raw_path, rest)
    count = 3 if tuple(segments[:2]) in _UNENCODED else 1
    revision, path = "/".join(segments[:count]), "/".join(segments[count:])
    return unquote(revision), unquote(path).removesuffix("/")


def _raw_end(raw_path: str, rest: str) -> list[str]:
    segments = raw_path.split("/")
    for start in range(len(segments)):
        if unquote("/".join(segments[start:])) == rest:
            return segments[start:]
    return rest.split("/")
