"""SQL of files in buckets and containers, and of their owners."""

from collections.abc import Iterable, Sequence

import msgspec

from hublet.accounts.names import name_key
from hublet.core.clock import from_micros, micros, to_micros
from hublet.core.database import Connection, Reader, Row
from hublet.repos.files.records import NO_CONTENT_HASH, File, FileOrFolder, Folder, HeldContent

# What a repository first saw of a content; NULL until it is cut there.
_FIRST_HASH = """(
    SELECT l.xet_hash FROM repo_layouts l
    WHERE l.repo_id = {repo} AND l.sha256 = {sha256} ORDER BY l.added_at, l.xet_hash LIMIT 1
)"""
_COLUMNS = """
    f.path, f.sha256, f.size, f.media_type, f.modified_at, f.uploaded_at,
    {first_hash} AS xet_hash
""".format(first_hash=_FIRST_HASH.format(repo="f.repo_id", sha256="f.sha256"))

# Longer than any part of a path can be, of the greatest character there is: behind every path.
_END = "\U0010ffff" * 64
# The character that follows the slash: `a0` is behind everything in the folder `a/`.
_BEHIND_SLASH = "0"
# The least character that a path can have: nothing lies between `a` and `a `.
_LEAST = " "


async def find(conn: Reader, repo_id: str, path: str) -> File | None:
    row = await conn.fetch_one(
        f"SELECT {_COLUMNS} FROM repo_files f WHERE f.repo_id = $1 AND f.path = $2", repo_id, path
    )
    return _record(row) if row else None


async def find_all(conn: Reader, repo_id: str, paths: Iterable[str]) -> dict[str, File]:
    """Return, by path, those of the files that exist."""
    rows = await conn.fetch_all(
        f"""
        SELECT {_COLUMNS} FROM repo_files f
        WHERE f.repo_id = $1 AND f.path IN each($2) ORDER BY f.path
        """,
        repo_id, _json_array(paths),
    )  # fmt: skip
    return {row["path"]: _record(row) for row in rows}


async def find_held(
    conn: Reader, repo_id: str, hashes: Iterable[str], *, with_uploads: bool
) -> dict[str, HeldContent]:
    """Return, by SHA-256 or file hash of Xet, those contents that a repository has now.

    With uploads, those that arrived and that nothing shows yet count too.
    """
    first_hash = _FIRST_HASH.format(repo="$1", sha256="b.sha256")
    rows = await conn.fetch_all(
        f"""
        WITH named (hash, sha256) AS (
            SELECT xet_hash, sha256 FROM repo_layouts WHERE repo_id = $1 AND xet_hash IN each($2)
            UNION SELECT sha256, sha256 FROM blobs WHERE sha256 IN each($2)
        )
        SELECT n.hash, b.sha256, b.size, {first_hash} AS xet_hash
        FROM named n JOIN blobs b ON b.sha256 = n.sha256
        WHERE EXISTS (SELECT 1 FROM repo_files f WHERE f.sha256 = b.sha256 AND f.repo_id = $1)
            OR EXISTS (
                SELECT 1 FROM repo_blobs r
                WHERE r.repo_id = $1 AND r.sha256 = b.sha256 AND (r.is_used = TRUE OR $3 = TRUE)
            )
        """,
        repo_id, _json_array(hashes), with_uploads,
    )  # fmt: skip
    return {
        row["hash"]: HeldContent(
            sha256=row["sha256"], size=row["size"], xet_hash=_xet_hash(row), holder_id=repo_id
        )
        for row in rows
    }


async def remove_uploads(conn: Connection, repo_id: str, digests: Iterable[str]) -> None:
    """Forget that contents were uploaded: files show them now, and keep them as long as they do."""
    await conn.execute(
        "DELETE FROM repo_blobs WHERE repo_id = $1 AND sha256 IN each($2)",
        repo_id, _json_array(digests),
    )  # fmt: skip


async def list_files(
    conn: Reader, repo_id: str, *, prefix: str, after: str, limit: int
) -> list[FileOrFolder]:
    """Return the files whose paths begin with the prefix, by path; `after` is a path or empty."""
    rows = await conn.fetch_all(
        f"""
        SELECT {_COLUMNS} FROM repo_files f
        WHERE f.repo_id = $1 AND f.path >= $2 AND f.path < $3 ORDER BY f.path LIMIT $4
        """,
        repo_id, max(prefix, _start_after(after)), _end_of(prefix), limit,
    )  # fmt: skip
    return [_record(row) for row in rows]


async def list_entries(
    conn: Reader, repo_id: str, *, prefix: str, after: str, limit: int
) -> list[FileOrFolder]:
    """Return files, and folders instead of the files in them, by path.

    `after` is a path, that of a folder with a slash at its end. The files in a folder are skipped
    in the index, so a page takes as many index lookups as it has entries.
    """
    rows = await conn.fetch_all(
        f"""
        WITH RECURSIVE page (path, position) AS (
            SELECT {_FIRST.format(start="$2")}, 1
            UNION ALL
            SELECT {_FIRST.format(start=_NEXT)}, p.position + 1
            FROM page p WHERE p.path IS NOT NULL AND p.position < $5
        )
        -- A cross join is done in this order; otherwise SQLite would read every file.
        SELECT {_COLUMNS} FROM page CROSS JOIN repo_files f
        WHERE f.repo_id = $1 AND f.path = page.path ORDER BY f.path
        """,
        repo_id, max(prefix, _start_after(after)), _end_of(prefix), len(prefix) + 1, limit,
    )  # fmt: skip
    return [_entry(row, len(prefix)) for row in rows]


_FIRST = """(
    SELECT f.path FROM repo_files f
    WHERE f.repo_id = $1 AND f.path >= {start} AND f.path < $3 ORDER BY f.path LIMIT 1
)"""
# The rest of a path, without the slash that may follow the prefix, has a tail from its first
# slash on: with one it stands for a folder, whose name ends where the tail begins.
_REST = "ltrim(substr(p.path, $4), '/')"
_TAIL = f"ltrim({_REST}, replace({_REST}, '/', ''))"
_NEXT = f"""
    CASE {_TAIL} WHEN '' THEN p.path || '{_LEAST}'
    ELSE substr(p.path, 1, length(p.path) - length({_TAIL})) || '{_BEHIND_SLASH}' END
"""


def _entry(row: Row, start: int) -> FileOrFolder:
    path: str = row["path"]
    # A slash right behind the prefix ends no folder: `a` lists what is in `a/`.
    slash = path.find("/", start + 1 if path[start : start + 1] == "/" else start)
    if slash < 0:
        return _record(row)
    return Folder(path=path[:slash], uploaded_at=from_micros(row["uploaded_at"]))


def _start_after(position: str) -> str:
    if position.endswith("/"):
        return position[:-1] + _BEHIND_SLASH
    return position + _LEAST if position else ""


def _end_of(prefix: str) -> str:
    return prefix + _END


async def folders_among(conn: Reader, repo_id: str, paths: Iterable[str]) -> list[str]:
    """Return those of the paths that have files below them."""
    rows = await conn.fetch_all(
        f"""
        WITH candidates (path) AS each($2)
        SELECT c.path FROM candidates c WHERE EXISTS (
            SELECT 1 FROM repo_files f
            WHERE f.repo_id = $1 AND f.path >= c.path || '/' AND f.path < c.path || '{_BEHIND_SLASH}'
        )
        """,
        repo_id, _json_array(paths),
    )  # fmt: skip
    return [row["path"] for row in rows]


async def lock_repo(conn: Connection, repo_id: str) -> bool:
    """Lock the repository until the end of the transaction; False when it is gone."""
    return (
        await conn.execute("UPDATE repos SET updated_at = $2 WHERE id = $1", repo_id, micros()) == 1
    )


async def lock_unchanged_repo(conn: Connection, repo_id: str) -> int | None:
    """Lock the repository without making it new; return when it changed last, None when it is gone."""
    changed_at: int | None = await conn.fetch_value(
        "UPDATE repos SET size = size WHERE id = $1 RETURNING updated_at", repo_id
    )
    return changed_at


async def add_totals(conn: Connection, repo_id: str, *, size: int, files: int) -> None:
    await conn.execute(
        "UPDATE repos SET size = size + $2, total_files = total_files + $3 WHERE id = $1",
        repo_id, size, files,
    )  # fmt: skip


async def put(conn: Connection, repo_id: str, files: Sequence[File]) -> None:
    await conn.execute_many(
        """
        INSERT INTO repo_files (repo_id, path, sha256, size, media_type, modified_at, uploaded_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7)
        ON CONFLICT (repo_id, path) DO UPDATE SET
            sha256 = excluded.sha256, size = excluded.size, media_type = excluded.media_type,
            modified_at = excluded.modified_at, uploaded_at = excluded.uploaded_at
        """,
        [
            (repo_id, file.path, file.sha256, file.size, file.media_type,
             to_micros(file.modified_at), to_micros(file.uploaded_at))
            for file in files
        ],
    )  # fmt: skip


async def remove(conn: Connection, repo_id: str, paths: Iterable[str]) -> None:
    await conn.execute(
        "DELETE FROM repo_files WHERE repo_id = $1 AND path IN each($2)",
        repo_id,
        _json_array(paths),
    )


def _json_array(texts: Iterable[str]) -> str:
    return msgspec.json.encode(list(texts)).decode()


def _record(row: Row) -> File:
    return File(
        path=row["path"],
        sha256=row["sha256"],
        size=row["size"],
        xet_hash=_xet_hash(row),
        media_type=row["media_type"],
        modified_at=from_micros(row["modified_at"]),
        uploaded_at=from_micros(row["uploaded_at"]),
    )


def _xet_hash(row: Row) -> str | None:
    # Nothing has to be cut where there is nothing.
    found: str | None = row["xet_hash"] if row["size"] else NO_CONTENT_HASH
    return found


async def owner_exists(conn: Reader, name: str) -> bool:
    found = await conn.fetch_value("SELECT 1 FROM names WHERE key = $1", name_key(name))
    return found is not None
