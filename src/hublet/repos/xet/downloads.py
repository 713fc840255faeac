"""Downloads from the CAS: chunk queries, reconstructions of files, and addresses of their data."""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import timedelta
from hmac import compare_digest
from urllib.parse import urlencode

from hublet.core.clock import micros
from hublet.core.database import Reader
from hublet.core.dataclasses import dataclass
from hublet.core.ids import random_bytes
from hublet.core.sealing import KeyRing
from hublet.repos.errors import CasAccessRefused, CasEntryNotFound
from hublet.repos.xet import store
from hublet.repos.xet.addresses import domain_of
from hublet.repos.xet.cas import Cas
from hublet.repos.xet.store import KnownFile
from hublet.repos.xet.tokens import CasAccess
from hublet.storage import store as storage
from hublet.storage.reconstructions import AddressOf, FetchRange, Reconstruction, reconstruct
from hublet.storage.records import BlobSegment, Content, Xorb, hash_of
from hublet.storage.shard_verification import answer_chunk_query
from hublet.storage.shards import Segment
from hublet.storage.workers import processes
from hublet.storage.xet_hashes import HASH_BYTES, from_text
from hublet.storage.xorbs import XorbLayout

# Addresses of data work for everybody who has them, so they end soon.
DATA_LIFE = timedelta(minutes=5)
# How long clients remember the response to a chunk query. Garbage collection waits longer.
QUERY_LIFE = timedelta(days=7)

NO_XORB = "There is no such xorb any more."

_KIND = "cas-data"
_INVALID = "This address has expired or was changed; ask for the reconstruction again."
_SECOND = 1_000_000


async def query_chunk(cas: Cas, repo_id: str, chunk: str) -> bytes:
    """Return a shard of the xorbs in which this repository has a chunk and what followed it."""
    from_text(chunk)
    async with cas.database.read() as conn:
        xorbs = await store.find_chunk_xorbs(conn, repo_id, chunk)
    if not xorbs:
        raise CasEntryNotFound("This repository has no such chunk.")
    now = micros() // _SECOND
    return await processes.run(
        answer_chunk_query,
        cas.store,
        [(from_text(xorb.hash), xorb) for xorb in xorbs],
        # Another key each time: the answer only helps who has the chunks.
        key=random_bytes(HASH_BYTES),
        created_at=now,
        expires_at=now + QUERY_LIFE // timedelta(seconds=1),
    )


async def get_content(conn: Reader, repo_id: str, xet_hash: str) -> Content:
    """Return where the bytes of a file lie, if this repository holds it."""
    from_text(xet_hash)
    file = (await store.find_files(conn, repo_id, [xet_hash])).get(xet_hash)
    content = None if file is None else await _find_content(conn, file)
    if content is None:
        raise CasEntryNotFound(f"This repository has no file {xet_hash}.")
    return content


async def _find_content(conn: Reader, file: KnownFile) -> Content | None:
    layouts = {file.sha256: file.layout}
    return (await storage.find_contents(conn, layouts, layouts=layouts)).get(file.sha256)


async def find_reconstruction(
    cas: Cas, conn: Reader, content: Content, *, start: int, end: int
) -> Reconstruction:
    """Find what makes up the bytes of a file from start to before end."""
    touched = _touched(content.segments, start, end)
    xorbs = await storage.find_xorbs(conn, {segment.xorb for segment in touched})
    # Of several forms of a xorb one is enough.
    names = {from_text(hash_of(name)): name for name in sorted(xorbs)}
    layouts = await asyncio.to_thread(_layouts, cas, [xorbs[name] for name in names.values()])
    segments = [
        Segment(from_text(hash_of(each.xorb)), each.size, each.start_chunk, each.end_chunk)
        for each in content.segments
    ]
    return reconstruct(segments, layouts, names, start=start, end=end)


async def find_reconstructions(
    cas: Cas, repo_id: str, hashes: Sequence[str]
) -> dict[str, Reconstruction]:
    """Find what makes up those of several files that the repository holds."""
    async with cas.database.read() as conn:
        known = await store.find_files(conn, repo_id, hashes)
        contents = {each: await _find_content(conn, file) for each, file in sorted(known.items())}
        return {
            file: await find_reconstruction(cas, conn, content, start=0, end=content.size)
            for file, content in contents.items()
            if content is not None
        }


def _touched(segments: Sequence[BlobSegment], start: int, end: int) -> list[BlobSegment]:
    touched = []
    at = 0
    for segment in segments:
        first, at = at, at + segment.size
        if at > start and first < end:
            touched.append(segment)
    return touched


def _layouts(cas: Cas, xorbs: Iterable[Xorb]) -> dict[bytes, XorbLayout]:
    try:
        return {from_text(xorb.hash): cas.layouts.get(cas.store, xorb) for xorb in xorbs}
    except FileNotFoundError:
        raise CasEntryNotFound(NO_XORB) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class DataAddress:
    """Ranges of one stored xorb that can be fetched for a while, without a token."""

    domain: str
    # The name of its object.
    xorb: str
    # As they stand in the address, `0-99,200-299`; the last byte is included.
    ranges: str
    # Whose request it was, so that fetching counts for them; empty: nobody's.
    user: str
    # Seconds since 1970.
    expires: int

    def text(self) -> str:
        return f"{self.domain} {self.xorb} {self.ranges} {self.user} {self.expires}"

    def covers(self, start: int, end: int) -> bool:
        """Tell whether the bytes from start to before end lie in one of the ranges."""
        for each in self.ranges.split(","):
            first, _, last = each.partition("-")
            if int(first) <= start < end <= int(last) + 1:
                return True
        return False


def data_addresses(access: CasAccess, *, keys: KeyRing, base_url: str) -> AddressOf:
    """Return what signs addresses of data for a caller; all of them end at the same time."""
    expires = micros() // _SECOND + DATA_LIFE // timedelta(seconds=1)
    domain = domain_of(access.repo.id, access.epoch)

    def address_of(xorb: str, ranges: Sequence[FetchRange]) -> str:
        address = DataAddress(
            domain=domain,
            xorb=xorb,
            ranges=",".join(f"{each.first_byte}-{each.end_byte - 1}" for each in ranges),
            user=access.user_name,
            expires=expires,
        )
        query = {
            "ranges": address.ranges,
            "user": address.user,
            "expires": expires,
            "signature": keys.digest(_KIND, address.text()).hex(),
        }
        return f"{base_url}/cas/{domain}/v1/data/{address.xorb}?{urlencode(query, safe=',')}"

    return address_of


def check_address(address: DataAddress, keys: KeyRing, *, signature: str) -> None:
    """Refuse an address that `data_addresses` did not make, or that has expired."""
    good = [each.hex().encode() for each in keys.digests(_KIND, address.text())]
    given = signature.encode("utf-8", "surrogatepass")
    if not any(compare_digest(each, given) for each in good):
        raise CasAccessRefused(_INVALID)
    if address.expires * _SECOND < micros():
        raise CasAccessRefused(_INVALID)
