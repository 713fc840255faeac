"""The card of a commit. Blocks on the disk; call it from a thread."""

from pathlib import Path

from hublet.repos.cards import metadata
from hublet.repos.cards.errors import InvalidCard
from hublet.repos.cards.tags import tags_of
from hublet.repos.git import trees
from hublet.repos.records import RepoType
from hublet.repos.refs.records import Card

FILE_NAME = "README.md"
# Of a larger file only the metadata counts, and that is not so long.
_LARGEST = 4 * metadata.LARGEST


def read_card(folder: Path, commit: str, type: RepoType) -> Card:  # noqa: A002 - the interface's word
    """Return what the README of a commit says; nothing, when it is missing or no good."""
    found = trees.find_entries(folder, commit, [FILE_NAME])
    if not found or found[0].type != "file" or found[0].lfs is not None:
        return Card()
    return card_of(trees.read_blob(folder, found[0].oid), type)


def card_of(content: bytes, type: RepoType) -> Card:  # noqa: A002 - as above
    try:
        data = metadata.parse(content[:_LARGEST].decode(errors="replace"))
    except InvalidCard:
        # A push is not refused for its README: git has no way to say it well.
        return Card()
    return Card(data=data, tags=tags_of(data, type))
