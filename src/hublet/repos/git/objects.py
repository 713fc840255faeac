"""Git objects as bytes: trees, commits, their ids and their authors."""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Literal

import pygit2

from hublet.core.dataclasses import dataclass

# A domain that cannot exist (RFC 2606), so that no mail ever leaves by mistake.
_EMAIL_DOMAIN = "users.noreply.invalid"
_PUBLISHER_DOMAIN = "publishers.noreply.invalid"

# What the name of a trusted publisher begins with; no user's name has brackets.
PUBLISHER_MARK = "[OIDC] "


def email_of(user_name: str) -> str:
    if user_name.startswith(PUBLISHER_MARK):
        # The name has spaces and is of any length; publishers with different names are different.
        return f"{hashlib.sha256(user_name.encode()).hexdigest()[:24]}@{_PUBLISHER_DOMAIN}"
    return f"{user_name}@{_EMAIL_DOMAIN}"


def signature_of(user_name: str, *, at: datetime) -> pygit2.Signature:
    return pygit2.Signature(user_name, email_of(user_name), int(at.timestamp()), 0)


def user_of(email: str) -> str | None:
    """Return the user of this hub that an author's email names; None for other authors."""
    name, _, domain = email.partition("@")
    return name if domain == _EMAIL_DOMAIN else None


ObjectKind = Literal["commit", "tree", "blob"]

FILE = b"100644"
EXECUTABLE = b"100755"
LINK = b"120000"
FOLDER = b"40000"
SUBMODULE = b"160000"


@dataclass(frozen=True, slots=True)
class TreeItem:
    """An entry of a tree."""

    mode: bytes
    # Twenty bytes, not their hexadecimal form.
    oid: bytes


# The content of a folder by name; names are bytes, because git knows no other.
TreeItems = dict[bytes, TreeItem]


def header_of(kind: ObjectKind, size: int) -> bytes:
    return b"%s %d\x00" % (kind.encode(), size)


def oid_of(kind: ObjectKind, data: bytes) -> str:
    # Ids of git objects are SHA-1 by definition; nothing here rests on its strength.
    return hashlib.sha1(header_of(kind, len(data)) + data, usedforsecurity=False).hexdigest()


def parse_tree(data: bytes) -> TreeItems:
    items: TreeItems = {}
    position = 0
    while position < len(data):
        space = data.index(b" ", position)
        end = data.index(b"\x00", space)
        item = TreeItem(data[position:space], data[end + 1 : end + 21])
        items[data[space + 1 : end]] = item
        position = end + 21
    return items


def tree_data(items: Mapping[bytes, TreeItem]) -> bytes:
    # Git sorts a folder as if its name ended in a slash.
    ordered = sorted(
        items.items(), key=lambda pair: pair[0] + b"/" if pair[1].mode == FOLDER else pair[0]
    )
    return b"".join(b"%s %s\x00%s" % (item.mode, name, item.oid) for name, item in ordered)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitDraft:
    """Author, time and message of a commit."""

    author: str
    at: datetime
    message: str


def commit_data(draft: CommitDraft, *, tree: str, parents: tuple[str, ...]) -> bytes:
    who = f"{draft.author} <{email_of(draft.author)}> {int(draft.at.timestamp())} +0000"
    lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents)]
    lines += [f"author {who}", f"committer {who}", "", draft.message]
    return "\n".join(lines).encode()
