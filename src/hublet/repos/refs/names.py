"""The rules for names of branches and tags."""

import re

import pygit2

from hublet.repos.refs.errors import InvalidRefName
from hublet.repos.refs.records import HEADS

MAX_BYTES = 200

_SHA = re.compile(r"[0-9a-f]{40}")


def check_ref_name(kind: str, name: str) -> None:
    """Refuse with InvalidRefName, which says the rule, what cannot name a branch or a tag."""
    if not 1 <= len(name.encode(errors="replace")) <= MAX_BYTES:
        raise InvalidRefName(kind, f"it has 1 to {MAX_BYTES} bytes")
    if _SHA.fullmatch(name):
        raise InvalidRefName(kind, "it does not look like the id of a commit")
    if name.startswith(("refs/", "-")) or name == "HEAD":
        raise InvalidRefName(kind, "it does not begin with 'refs/' or '-', and it is not HEAD")
    if not name.isprintable() or not pygit2.reference_is_valid_name(HEADS + name):
        raise InvalidRefName(
            kind,
            "it has no blanks, none of ~^:?*[\\ and '@{', no '..' and no '//', and no part of it "
            "begins with '.' or ends with '.' or '.lock'",
        )
