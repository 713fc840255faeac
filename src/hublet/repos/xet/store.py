"""SQL of domains: the xorbs, files and queried chunks that a repository has."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from hublet.core.clock import micros
from hublet.core.database import Connection, Reader
from hublet.storage.records import Blob, CutBlob, Xorb

# As many further xorbs as the response to a chunk query names.
_MOST_FOLLOWING = 15


async def link_xorbs(conn: Connection, repo_id: str, names: Iterable[str]) -> int:
    """Give a repository xorbs that were uploaded to it with all their bytes; return how many are new.

    Until some content has a piece of them they count as unused from now on.
    """
    wanted = _json_array(names)
    added = await conn.execute(
        """
        INSERT INTO repo_xorbs (repo_id, xorb, unused_since)
        SELECT $1, name, $3 FROM xorbs WHERE name IN each($2)
        ON CONFLICT (repo_id, xorb) DO NOTHING
        """,
        repo_id, wanted, micros(),
    )  # fmt: skip
    await conn.execute(
        """
        UPDATE repo_xorbs SET unused_since = $3
        WHERE repo_id = $1 AND xorb IN each($2) AND unused_since IS NOT NULL
        """,
        repo_id, wanted, micros(),
    )  # fmt: skip
    return added


async def use_xorbs(conn: Connection, repo_id: str, names: Iterable[str]) -> int:
    """Mark xorbs of a repository as used, which keeps them; return how many of them it has."""
    return await conn.execute(
        "UPDATE repo_xorbs SET unused_since = NULL WHERE repo_id = $1 AND xorb IN each($2)",
        repo_id, _json_array(names),
    )  # fmt: skip


async def find_xorbs(conn: Reader, repo_id: str, hashes: Iterable[str]) -> dict[str, Xorb]:
    """Return by their hashes those xorbs that the repository has, in a form that it has."""
    rows = await conn.fetch_all(
        """
        SELECT x.name, x.chunks, x.size, x.stored_size
        FROM xorbs x JOIN repo_xorbs r ON r.xorb = x.name
        WHERE r.repo_id = $1 AND x.hash IN each($2) ORDER BY x.name
        """,
        repo_id, _json_array(hashes),
    )  # fmt: skip
    found = (Xorb(**dict(row)) for row in rows)
    return {xorb.hash: xorb for xorb in found}


async def find_named_xorbs(conn: Reader, repo_id: str, names: Iterable[str]) -> list[Xorb]:
    """Return those of some stored xorbs that the repository has."""
    rows = await conn.fetch_all(
        """
        SELECT x.name, x.chunks, x.size, x.stored_size
        FROM repo_xorbs r JOIN xorbs x ON x.name = r.xorb
        WHERE r.repo_id = $1 AND r.xorb IN each($2) ORDER BY x.name
        """,
        repo_id, _json_array(names),
    )  # fmt: skip
    return [Xorb(**dict(row)) for row in rows]


async def index_chunks(
    conn: Connection, repo_id: str, contents: Iterable[tuple[Mapping[str, str], Sequence[str]]]
) -> None:
    """Let clients find chunks of contents, given for each their xorbs, and all of its xorbs in order."""
    rows = {
        chunk: (repo_id, chunk, xorb, _json_array(following))
        for chunks, xorbs in contents
        for chunk, xorb, following in _with_following(chunks, xorbs)
    }
    await conn.execute_many(
        """
        INSERT INTO repo_chunks (repo_id, chunk, xorb, next_xorbs) VALUES ($1, $2, $3, $4)
        ON CONFLICT (repo_id, chunk) DO UPDATE SET
            xorb = excluded.xorb, next_xorbs = excluded.next_xorbs
        """,
        [row for _, row in sorted(rows.items())],
    )


def _with_following(
    chunks: Mapping[str, str], xorbs: Sequence[str]
) -> Iterator[tuple[str, str, Sequence[str]]]:
    position = {xorb: at for at, xorb in enumerate(xorbs)}
    for chunk, xorb in chunks.items():
        after = position[xorb] + 1
        yield chunk, xorb, xorbs[after : after + _MOST_FOLLOWING]


async def find_chunk_xorbs(conn: Reader, repo_id: str, chunk: str) -> list[Xorb]:
    """Return the xorb of a queried chunk, and those that followed it in a file.

    Only those in use count: garbage collection may take the others before clients forget them.
    """
    row = await conn.fetch_one(
        "SELECT xorb, next_xorbs FROM repo_chunks WHERE repo_id = $1 AND chunk = $2",
        repo_id, chunk,
    )  # fmt: skip
    if row is None:
        return []
    names = [row["xorb"], *msgspec.json.decode(row["next_xorbs"], type=list[str])]
    rows = await conn.fetch_all(
        """
        SELECT x.name, x.chunks, x.size, x.stored_size
        FROM repo_xorbs r JOIN xorbs x ON x.name = r.xorb
        WHERE r.repo_id = $1 AND r.xorb IN each($2) AND r.unused_since IS NULL
        """,
        repo_id, _json_array(names),
    )  # fmt: skip
    found = {row["name"]: Xorb(**dict(row)) for row in rows}
    return [found[each] for each in names if each in found]


async def link_unused_blobs(conn: Connection, repo_id: str, blobs: Iterable[Blob]) -> None:
    """Give a repository the right to point to blobs that were uploaded, and are not used yet."""
    await conn.execute_many(
        """
        INSERT INTO repo_blobs (repo_id, sha256, size, pushed_at, is_used)
        VALUES ($1, $2, $3, $4, FALSE)
        ON CONFLICT (repo_id, sha256) DO UPDATE SET pushed_at = excluded.pushed_at
        WHERE NOT repo_blobs.is_used
        """,
        [(repo_id, blob.sha256, blob.size, micros()) for blob in blobs],
    )


class KnownFile(NamedTuple):
    """A file of Xet that a repository has: its content, and the layout that the repository sees."""

    sha256: str
    layout: str


async def add_files(conn: Connection, repo_id: str, cut: Iterable[CutBlob]) -> None:
    """Let a repository see how contents were packed for it; what it sees of a file already stays."""
    files = {each.xet_hash: each for each in cut}
    await conn.execute_many(
        """
        INSERT INTO repo_layouts (repo_id, xet_hash, sha256, layout, added_at)
        VALUES ($1, $2, $3, $4, $5)
        -- The update keeps pruning away from the row.
        ON CONFLICT (repo_id, xet_hash) DO UPDATE SET added_at = excluded.added_at
        """,
        [
            (repo_id, xet_hash, each.blob.sha256, each.layout, micros())
            for xet_hash, each in sorted(files.items())
        ],
    )
    digests = _json_array(each.blob.sha256 for each in files.values())
    await conn.execute(
        "DELETE FROM uncut_contents WHERE repo_id = $1 AND sha256 IN each($2)", repo_id, digests
    )


async def find_files(conn: Reader, repo_id: str, hashes: Iterable[str]) -> dict[str, KnownFile]:
    """Return by their hashes of Xet those files that the repository holds."""
    rows = await conn.fetch_all(
        """
        SELECT l.xet_hash, l.sha256, l.layout FROM repo_layouts l
        WHERE l.repo_id = $1 AND l.xet_hash IN each($2) AND (
            EXISTS (SELECT 1 FROM repo_blobs b WHERE b.repo_id = $1 AND b.sha256 = l.sha256)
            OR EXISTS (SELECT 1 FROM repo_files f WHERE f.repo_id = $1 AND f.sha256 = l.sha256)
        )
        """,
        repo_id, _json_array(hashes),
    )  # fmt: skip
    return {row["xet_hash"]: KnownFile(row["sha256"], row["layout"]) for row in rows}


def _json_array(texts: Iterable[str]) -> str:
    return msgspec.json.encode(list(texts)).decode()
