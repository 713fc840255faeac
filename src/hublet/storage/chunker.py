"""Chunker: contents are cut into chunks as the public clients cut, and packed into xorbs.

So what arrived by other ways shares its chunks with the clients' uploads. Two steps, each in a worker
process: `list_chunks`, and with the xorbs that may have some of these chunks, `pack`.
"""

import hashlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta

from hublet.core import clock
from hublet.core.database import Connection
from hublet.core.dataclasses import dataclass
from hublet.core.queue import NewTask
from hublet.core.queue import add as add_task
from hublet.storage import contents
from hublet.storage.object_store import ObjectStore
from hublet.storage.records import Blob, BlobSegment, Content, CutBlob, Xorb
from hublet.storage.verification import form_of_file
from hublet.storage.xet_hashes import (
    Node,
    chunk_hash,
    file_hash,
    is_queried,
    to_text,
)
from hublet.storage.xorb_objects import put_xorb, read_layout
from hublet.storage.xorbs import (
    MOST_CHUNKS,
    SMALLEST_CHUNK,
    Buffer,
    XorbLayout,
    chunk_header,
    compressed,
)

CUT = "contents.cut"

# What arrives within this time is cut by one task, which begins when the time is over.
_WINDOW = timedelta(seconds=5)
_LARGEST_XORB_CONTENT = 64 * 1024 * 1024
# A content of many short segments is slow to read: from so many on, only long runs are shared.
_SEGMENTS_OF_ANY_LENGTH = 128
_LONG_RUN = 8
# Further chunks are not found again: a content of 64 GB has so many.
_MOST_INDEXED = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CutContent:
    """Content that segments of stored xorbs make up; its bytes were read back and compared."""

    sha256: str
    size: int
    # Its file hash, in the text form like all hashes here.
    xet_hash: str
    segments: tuple[BlobSegment, ...]
    # The chunks that clients ask for, and in which segment each lies.
    queried_chunks: tuple[tuple[str, int], ...]

    @property
    def cut_blob(self) -> CutBlob:
        blob = Blob(sha256=self.sha256, size=self.size)
        return CutBlob(blob=blob, xet_hash=self.xet_hash, segments=self.segments)


@dataclass(frozen=True, slots=True, kw_only=True)
class CutResult:
    contents: list[CutContent]
    # Xorbs that were put into the store for them.
    xorbs: list[Xorb]


async def schedule_cutting(conn: Connection) -> None:
    """Schedule the cutting of everything that is not cut yet, in a few seconds."""
    window = clock.micros() // (_WINDOW // timedelta(microseconds=1))
    await add_task(conn, NewTask(kind=CUT, body="{}", key=f"{CUT}.{window}", delay=_WINDOW))


def list_chunks(store: ObjectStore, wanted: Sequence[Content]) -> list[list[Node]]:
    """Return the chunks of each content."""
    return [
        [Node(chunk_hash(chunk), len(chunk)) for chunk in _cut(store, content)]
        for content in wanted
    ]


def _cut(store: ObjectStore, content: Content) -> Iterator[Buffer]:
    if content.size <= SMALLEST_CHUNK:
        return filter(None, [b"".join(_pieces(store, content))])
    from hublet.storage.gearhash import cut  # noqa: PLC0415 - it loads numpy, in workers only

    return cut(_pieces(store, content))


def queried_chunks(chunks: Sequence[Node]) -> list[str]:
    """Return the chunks of a file that clients ask for, to find what they need not upload."""
    return [to_text(chunk.hash) for at, chunk in enumerate(chunks) if is_queried(chunk.hash, at)]


def pack(
    store: ObjectStore,
    wanted: Sequence[Content],
    chunks: Sequence[list[Node]],
    known: Sequence[Xorb],
    *,
    is_fresh: bool = False,
) -> CutResult:
    """Pack what is new of these contents into xorbs, and put those into the store.

    Chunks of the known xorbs are not packed again. What was packed is read back. Raise ValueError
    where it does not have the chunks that were listed, or not the SHA-256 of its content; of fresh
    contents that was computed a moment ago, as they arrived, and is not computed again.
    """
    packer = _Packer(store, known)
    try:
        for content, its_chunks in zip(wanted, chunks, strict=True):
            packer.add(content, its_chunks)
        result = packer.finish()
    finally:
        packer.close()
    for cut_content, its_chunks in zip(result.contents, chunks, strict=True):
        _compare(store, cut_content, its_chunks, is_fresh=is_fresh)
    return result


@dataclass(slots=True, kw_only=True)
class _Run:
    """Run of chunks in one of the packer's xorbs."""

    xorb: int
    start: int
    end: int


class _OpenXorb:
    """Xorb that is being written."""

    def __init__(self, store: ObjectStore) -> None:
        self.spool = store.new_spool(hashed=False)
        self._hashes = bytearray()
        self._stored_ends, self._ends = array("I"), array("I")

    def has_room_for(self, length: int) -> bool:
        size = self._ends[-1] if self._ends else 0
        return len(self._ends) < MOST_CHUNKS and size + length <= _LARGEST_XORB_CONTENT

    def add(self, chunk: Node, content: bytes) -> None:
        scheme, stored = compressed(content)
        self.spool.write(chunk_header(scheme, stored=len(stored), length=len(content)))
        self.spool.write(stored)
        self._hashes += chunk.hash
        self._stored_ends.append(self.spool.size)
        self._ends.append(sum(self._ends[-1:]) + len(content))

    @property
    def layout(self) -> XorbLayout:
        return XorbLayout.of_chunks(
            bytes(self._hashes), stored_ends=self._stored_ends, ends=self._ends
        )


class _Packer:
    """Writes the new chunks of contents to xorbs, one after the other.

    Xorbs are known here by their number: the known ones first, then the new ones.
    """

    def __init__(self, store: ObjectStore, known: Sequence[Xorb]) -> None:
        self._store = store
        self._xorbs: list[Xorb] = []
        self._layouts: list[XorbLayout] = []
        # The hashes of the chunks of each xorb, and for each chunk where it first occurs.
        self._chunks: list[list[bytes]] = []
        self._index: dict[bytes, tuple[int, int]] = {}
        self._files: list[tuple[Content, list[Node], list[_Run]]] = []
        self._open: _OpenXorb | None = None
        for xorb in known:
            self._add_known(xorb)
        self._known = len(self._xorbs)

    def _add_known(self, xorb: Xorb) -> None:
        try:
            layout = read_layout(self._store, xorb)
        except FileNotFoundError:
            return
        self._xorbs.append(xorb)
        self._layouts.append(layout)
        self._chunks.append([])
        for at in range(len(layout)):
            self._remember(layout.chunk(at))

    def _remember(self, chunk: bytes) -> None:
        """Note the next chunk of the last xorb."""
        chunks = self._chunks[-1]
        if len(self._index) < _MOST_INDEXED:
            self._index.setdefault(chunk, (len(self._chunks) - 1, len(chunks)))
        chunks.append(chunk)

    def add(self, content: Content, chunks: list[Node]) -> None:
        """Write those chunks of a content that are new."""
        runs: list[_Run] = []
        self._files.append((content, chunks, runs))
        shared_until = 0
        for at, data in enumerate(_split(_pieces(self._store, content), chunks)):
            if at < shared_until:
                continue
            run = self._find(chunks, at)
            if run is None or not _is_worth(run, runs):
                run = self._write(chunks[at], data)
            shared_until = at + run.end - run.start
            _append(runs, run)

    def _find(self, chunks: Sequence[Node], at: int) -> _Run | None:
        """Return the run of chunks that begins with this one and is stored already."""
        found = self._index.get(chunks[at].hash)
        if found is None:
            return None
        xorb, start = found
        stored = self._chunks[xorb]
        length = 1
        longest = min(len(stored) - start, len(chunks) - at)
        while length < longest and stored[start + length] == chunks[at + length].hash:
            length += 1
        return _Run(xorb=xorb, start=start, end=start + length)

    def _write(self, chunk: Node, data: bytes) -> _Run:
        if self._open is not None and not self._open.has_room_for(chunk.length):
            self._put()
        if self._open is None:
            self._open = _OpenXorb(self._store)
            self._chunks.append([])
        self._open.add(chunk, data)
        self._remember(chunk.hash)
        at = len(self._chunks[-1])
        return _Run(xorb=len(self._chunks) - 1, start=at - 1, end=at)

    def _put(self) -> None:
        if self._open is None:
            return
        self._open.spool.flush()
        layout, form = self._open.layout, form_of_file(self._open.spool.path)
        self._xorbs.append(put_xorb(self._store, self._open.spool, layout, form=form))
        self._layouts.append(layout)
        self.close()

    def finish(self) -> CutResult:
        self._put()
        return CutResult(
            contents=[self._cut_content(*each) for each in self._files],
            xorbs=self._xorbs[self._known :],
        )

    def close(self) -> None:
        if self._open is not None:
            self._open.spool.close()
        self._open = None

    def _cut_content(self, content: Content, chunks: list[Node], runs: list[_Run]) -> CutContent:
        return CutContent(
            sha256=content.sha256,
            size=content.size,
            xet_hash=to_text(file_hash(chunks)),
            segments=tuple(self._segment(run) for run in runs),
            queried_chunks=tuple(_queried_with_segments(chunks, runs)),
        )

    def _segment(self, run: _Run) -> BlobSegment:
        layout = self._layouts[run.xorb]
        start_byte, end_byte = layout.stored_range(run.start, run.end)
        return BlobSegment(
            xorb=self._xorbs[run.xorb].name,
            start_chunk=run.start,
            end_chunk=run.end,
            start_byte=start_byte,
            end_byte=end_byte,
            size=layout.length(run.start, run.end),
        )


def _is_worth(run: _Run, runs: Sequence[_Run]) -> bool:
    """Return whether a run shall be shared, rather than written once more."""
    is_short = run.end - run.start < _LONG_RUN
    return not is_short or len(runs) < _SEGMENTS_OF_ANY_LENGTH or _continues(run, runs)


def _continues(run: _Run, runs: Sequence[_Run]) -> bool:
    return bool(runs) and runs[-1].xorb == run.xorb and runs[-1].end == run.start


def _append(runs: list[_Run], run: _Run) -> None:
    if _continues(run, runs):
        runs[-1].end = run.end
    else:
        runs.append(run)


def _queried_with_segments(
    chunks: Sequence[Node], runs: Sequence[_Run]
) -> Iterator[tuple[str, int]]:
    at = 0
    for position, run in enumerate(runs):
        for _ in range(run.start, run.end):
            if is_queried(chunks[at].hash, at):
                yield to_text(chunks[at].hash), position
            at += 1


def _pieces(store: ObjectStore, content: Content) -> Iterator[Buffer]:
    return contents.pieces(store, content, 0, content.size)


def _split(pieces: Iterable[Buffer], chunks: Iterable[Node]) -> Iterator[bytes]:
    """Yield the bytes of each chunk."""
    source = iter(pieces)
    rest = bytearray()
    for chunk in chunks:
        while len(rest) < chunk.length:
            rest += next(source)
        yield bytes(rest[: chunk.length])
        del rest[: chunk.length]


def _compare(
    store: ObjectStore, cut_content: CutContent, chunks: Sequence[Node], *, is_fresh: bool
) -> None:
    sha256 = cut_content.sha256
    stored = Content(
        sha256=sha256, size=cut_content.size, is_whole=False, segments=cut_content.segments
    )
    digest = hashlib.sha256()
    is_same = True
    for piece, chunk in zip(_pieces(store, stored), chunks, strict=True):
        is_same &= chunk_hash(piece) == chunk.hash
        if not is_fresh:
            digest.update(piece)
    if not is_same or not (is_fresh or digest.hexdigest() == sha256):
        raise ValueError(f"The bytes of {sha256} are not what they were.")
