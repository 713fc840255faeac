"""Git's objects as bytes: how trees and commits are spelled, and what their names are."""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from hublet.core.light_dataclasses import dataclass
from hublet.repos.git.identities import email_of

Kind = Literal["commit", "tree", "blob"]

FILE = b"100644"
EXECUTABLE = b"100755"
FOLDER = b"40000"
SUBMODULE = b"160000"


@dataclass(frozen=True, slots=True)
class Item:
    """A line of a tree."""

    mode: bytes
    # Twenty bytes, not their hexadecimal form.
    oid: bytes


# The content of a folder by name; names are bytes, because git knows no other.
Items = dict[bytes, Item]


def header_of(kind: Kind, size: int) -> bytes:
    return b"%s %d\x00" % (kind.encode(), size)


def name_of(kind: Kind, data: bytes) -> str:
    # Git's names are SHA-1 by definition; nothing here rests on its strength.
    return hashlib.sha1(header_of(kind, len(data)) + data, usedforsecurity=False).hexdigest()


def parse_tree(data: bytes) -> Items:
    items: Items = {}
    position = 0
    while position < len(data):
        space = data.index(b" ", position)
        end = data.index(b"\x00", space)
        item = Item(data[position:space], data[end + 1 : end + 21])
        items[data[space + 1 : end]] = item
        position = end + 21
    return items


def tree_data(items: Mapping[bytes, Item]) -> bytes:
    # Git sorts a folder as if its name ended in a slash.
    ordered = sorted(
        items.items(), key=lambda pair: pair[0] + b"/" if pair[1].mode == FOLDER else pair[0]
    )
    return b"".join(b"%s %s\x00%s" % (item.mode, name, item.oid) for name, item in ordered)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a commit says beside its tree and its parents."""

    author: str
    at: datetime
    message: str


def commit_data(draft: Draft, *, tree: str, parents: tuple[str, ...]) -> bytes:
    who = f"{draft.author} <{email_of(draft.author)}> {int(draft.at.timestamp())} +0000"
    lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents)]
    lines += [f"author {who}", f"committer {who}", "", draft.message]
    return "\n".join(lines).encode()
