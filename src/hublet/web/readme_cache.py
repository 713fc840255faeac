"""Cache of rendered Markdown files: by their content, where they stand, and the renderer's version."""

import asyncio
import sys
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable

from markupsafe import Markup

from hublet.web.picture_sizes import PictureSource
from hublet.web.rendering.links import MarkdownPlace

MAX_BYTES = 64_000_000


class MarkupCache:
    """LRU cache whose limit is the memory that its values take."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._held = 0
        self._values: OrderedDict[Hashable, Markup] = OrderedDict()

    @property
    def held_bytes(self) -> int:
        return self._held

    def find(self, key: Hashable) -> Markup | None:
        if key not in self._values:
            return None
        self._values.move_to_end(key)
        return self._values[key]

    def keep(self, key: Hashable, value: Markup) -> None:
        if key in self._values:
            return
        self._values[key] = value
        self._held += sys.getsizeof(value)
        while self._held > self._max_bytes:
            _, oldest = self._values.popitem(last=False)
            self._held -= sys.getsizeof(oldest)


_readmes = MarkupCache(MAX_BYTES)


async def render_readme(
    place: MarkdownPlace,
    oid: str,
    read: Callable[[], Awaitable[str]],
    pictures: PictureSource | None = None,
) -> Markup:
    """Return the file with this id of git's as HTML; it is read only if it is not known yet.

    The place names the repository and the revision, so nothing is shared between two of them.
    With a source of pictures, those that say no size get one; it is kept for each commit, because
    a picture may change without the text.
    """
    # The parsers are imported by the first page that needs them.
    from hublet.web.rendering import markdown  # noqa: PLC0415

    key = (oid, place, markdown.VERSION)
    sized_key = key if pictures is None else (*key, pictures.version)
    sized = _readmes.find(sized_key)
    if sized is not None:
        return sized
    known = _readmes.find(key)
    if known is None:
        known = await asyncio.to_thread(markdown.render, await read(), place)
        _readmes.keep(key, known)
    if pictures is None:
        return known
    sized = await pictures.add_sizes(known, place)
    _readmes.keep(sized_key, sized)
    return sized
