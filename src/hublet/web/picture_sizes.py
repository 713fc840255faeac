"""Sizes of the pictures in a text, so that nothing moves while they load.

Those of the text's own repository and of attachments are known, and kept by what the picture holds.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from urllib.parse import unquote

from markupsafe import Markup

from hublet.core.database import Database
from hublet.core.dataclasses import dataclass
from hublet.core.errors import HubError
from hublet.repos import attachments, blobs_store
from hublet.repos.browse.records import Revision
from hublet.repos.errors import AttachmentNotFound
from hublet.repos.git import trees
from hublet.repos.git.trees import GitEntry
from hublet.storage import store as storage
from hublet.storage.contents import ContentSource
from hublet.storage.object_store import open_store
from hublet.storage.records import Content
from hublet.web.rendering.decoration import list_unsized_pictures, with_sizes
from hublet.web.rendering.links import MarkdownPlace, revision_segment
from hublet.web.rendering.pictures import HEAD_BYTES, PictureSize, read_size

# Of one text.
MAX_PICTURES = 50
# Of larger files in git even the beginning is not read: that takes all of them into memory.
_LARGEST_IN_GIT = 10_000_000
_MOST_KEPT = 20_000

# The repository and git's id of the file, or nothing and the digest of an attachment.
_Key = tuple[str, str]
_kept: dict[_Key, PictureSize | None] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureSource:
    """Where the pictures of a text may lie: in a commit that the viewer may read, and in uploads."""

    database: Database
    revision: Revision | None = None

    @property
    def version(self) -> str:
        return self.revision.commit if self.revision else ""

    async def add_sizes(self, html: Markup, place: MarkdownPlace) -> Markup:
        """Return the text with a size at each of its pictures that has none and is known here."""
        if "<img " not in html:
            return html
        addresses = await asyncio.to_thread(list_unsized_pictures, html, most=MAX_PICTURES)
        found = await self._in_repo(addresses, place) | await self._uploads(addresses, place)
        sizes = {address: size for address, size in found.items() if size is not None}
        return await asyncio.to_thread(with_sizes, html, sizes) if sizes else html

    async def _in_repo(
        self, addresses: Sequence[str], place: MarkdownPlace
    ) -> dict[str, PictureSize | None]:
        start = f"{place.repo}/resolve/{revision_segment(place.revision)}/"
        paths = _paths_below(start, addresses, place) if place.repo else {}
        revision = self.revision
        if revision is None or not paths:
            return {}
        entries = await asyncio.to_thread(
            trees.find_entries, revision.folder, revision.commit, paths.values()
        )
        by_path = {each.path: await self._size_of(revision, each) for each in entries}
        return {address: by_path.get(path) for address, path in paths.items()}

    async def _size_of(self, revision: Revision, entry: GitEntry) -> PictureSize | None:
        key = (revision.repo.id, entry.oid)
        if entry.type != "file" or entry.is_link:
            return None
        if key in _kept:
            return _kept[key]
        if entry.lfs is None and entry.size > _LARGEST_IN_GIT:
            return None
        if entry.lfs is None:
            data = await asyncio.to_thread(trees.read_blob, revision.folder, entry.oid)
            return _keep(key, read_size(data[:HEAD_BYTES]))
        sha256 = entry.lfs.sha256
        async with self.database.read() as conn:
            held = await blobs_store.find_contents_in_repo(conn, revision.repo.id, [sha256])
        return await self._stored_size(key, held.get(sha256))

    async def _uploads(
        self, addresses: Sequence[str], place: MarkdownPlace
    ) -> dict[str, PictureSize | None]:
        found: dict[str, PictureSize | None] = {}
        for address, name in _paths_below("/uploads/", addresses, place).items():
            with suppress(AttachmentNotFound):
                async with self.database.read() as conn:
                    sha256 = (await attachments.get(conn, name)).sha256
                    held = await storage.find_contents(conn, [sha256])
                found[address] = await self._stored_size(("", sha256), held.get(sha256))
        return found

    async def _stored_size(self, key: _Key, content: Content | None) -> PictureSize | None:
        if content is None or key in _kept:
            return _kept.get(key)
        source = ContentSource(open_store(self.database.hub.settings), content)
        try:
            end = min(content.size, HEAD_BYTES)
            pieces = await asyncio.to_thread(lambda: list(source.pieces(0, end)))
        except (OSError, EOFError, HubError):
            # It is damaged, which is told elsewhere.
            return None
        return _keep(key, read_size(b"".join(pieces)))


def _keep(key: _Key, size: PictureSize | None) -> PictureSize | None:
    if len(_kept) >= _MOST_KEPT:
        _kept.clear()
    _kept[key] = size
    return size


def _paths_below(start: str, addresses: Sequence[str], place: MarkdownPlace) -> dict[str, str]:
    """Return those addresses that begin so, each with the path behind it."""
    hub = place.hub.rstrip("/")
    return {
        address: unquote(path.removeprefix(start).partition("?")[0].partition("#")[0])
        for address in addresses
        if (path := address.removeprefix(hub)).startswith(start)
    }
