"""SQL of the blobs that repositories may point to, of direct uploads, and of attachments."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import msgspec

from hublet.core.clock import from_micros, micros, to_micros
from hublet.core.database import Connection, Reader, Row
from hublet.core.dataclasses import dataclass
from hublet.repos.records import Attachment, LinkedBlob
from hublet.storage import store as contents
from hublet.storage.records import Blob, Content


async def link(
    conn: Connection, repo_id: str, blobs: Iterable[Blob], *, is_used: bool = True
) -> None:
    """Give a repository the right to point to these blobs.

    What nothing uses yet is only registered, and goes when nothing takes it in time. What the
    repository has not cut waits for that.
    """
    wanted = list(blobs)
    await conn.execute_many(
        """
        INSERT INTO repo_blobs (repo_id, sha256, size, git_sha1, pushed_at, is_used)
        VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (repo_id, sha256) DO UPDATE SET
            git_sha1 = coalesce(excluded.git_sha1, repo_blobs.git_sha1),
            is_used = repo_blobs.is_used OR excluded.is_used,
            pushed_at = CASE WHEN repo_blobs.is_used
                THEN repo_blobs.pushed_at ELSE excluded.pushed_at END
        """,
        [(repo_id, blob.sha256, blob.size, blob.git_sha1, micros(), is_used) for blob in wanted],
    )
    await add_uncut(conn, repo_id, [blob.sha256 for blob in wanted])


async def add_uncut(conn: Connection, repo_id: str, digests: Iterable[str]) -> None:
    """Note which contents of a repository are yet to be cut: those of these that it has not cut."""
    await conn.execute(
        """
        INSERT INTO uncut_contents (repo_id, sha256)
        SELECT r.id, b.sha256 FROM repos r CROSS JOIN blobs b
        WHERE r.id = $1 AND b.sha256 IN each($2) AND NOT EXISTS (
            SELECT 1 FROM repo_layouts l WHERE l.repo_id = $1 AND l.sha256 = b.sha256
        )
        ON CONFLICT (repo_id, sha256) DO NOTHING
        """,
        repo_id, _json_array(digests),
    )  # fmt: skip


async def copy_layouts(
    conn: Connection, repo_id: str, digests: Iterable[str], *, source_id: str
) -> None:
    """Let a repository see contents of another one as that one sees them: they are copied to it."""
    await conn.execute(
        """
        INSERT INTO repo_layouts (repo_id, xet_hash, sha256, layout, added_at)
        SELECT $1, xet_hash, sha256, layout, added_at FROM repo_layouts
        WHERE repo_id = $2 AND sha256 IN each($3)
        ON CONFLICT (repo_id, xet_hash) DO NOTHING
        """,
        repo_id, source_id, _json_array(digests),
    )  # fmt: skip


async def set_used(conn: Connection, repo_id: str, digests: Iterable[str]) -> set[str]:
    """Keep blobs that a repository may point to, because it does now; return those it has."""
    rows = await conn.fetch_all(
        """
        UPDATE repo_blobs SET is_used = TRUE WHERE repo_id = $1 AND sha256 IN each($2)
        RETURNING sha256
        """,
        repo_id, _json_array(digests),
    )  # fmt: skip
    return {row["sha256"] for row in rows}


async def link_those_of(conn: Connection, repo_id: str, *, source_id: str) -> None:
    """Give a new repository the right to point to all blobs that another one points to."""
    rows = await conn.fetch_all(
        """
        SELECT b.sha256, b.size, r.git_sha1 FROM repo_blobs r JOIN blobs b ON b.sha256 = r.sha256
        WHERE r.repo_id = $1 AND r.is_used = TRUE
        """,
        source_id,
    )
    blobs = [Blob(**dict(row)) for row in rows]
    await copy_layouts(conn, repo_id, [blob.sha256 for blob in blobs], source_id=source_id)
    await link(conn, repo_id, blobs)


async def find_in_repo(conn: Reader, repo_id: str, digests: Iterable[str]) -> dict[str, Blob]:
    """Return, by digest, those blobs that the repository may point to."""
    rows = await conn.fetch_all(
        """
        SELECT b.sha256, b.size, r.git_sha1
        FROM repo_blobs r JOIN blobs b ON b.sha256 = r.sha256
        WHERE r.repo_id = $1 AND r.sha256 IN each($2)
        """,
        repo_id, _json_array(digests),
    )  # fmt: skip
    return {row["sha256"]: Blob(**dict(row)) for row in rows}


async def find_contents_in_repo(
    conn: Reader, repo_id: str, digests: Iterable[str]
) -> dict[str, Content]:
    """Return, by digest, where the bytes of those blobs lie that the repository may point to."""
    return await find_contents(conn, repo_id, await find_in_repo(conn, repo_id, digests))


async def find_contents(conn: Reader, repo_id: str, digests: Iterable[str]) -> dict[str, Content]:
    """Return, by digest, where the bytes of a repository's contents lie, and how it sees them."""
    wanted = list(digests)
    rows = await _list_seen(conn, repo_id, wanted)
    layouts = {row["sha256"]: row["layout"] for row in rows}
    hashes = {row["sha256"]: row["xet_hash"] for row in rows}
    found = await contents.find_contents(conn, wanted, layouts=layouts)
    return {
        digest: replace(content, xet_hash=hashes.get(digest)) for digest, content in found.items()
    }


async def find_xet_hashes(conn: Reader, repo_id: str, digests: Iterable[str]) -> dict[str, str]:
    """Return the file hashes of Xet, by digest, of contents that were cut in a repository."""
    rows = await _list_seen(conn, repo_id, digests)
    return {row["sha256"]: row["xet_hash"] for row in rows}


async def _list_seen(conn: Reader, repo_id: str, digests: Iterable[str]) -> Sequence[Row]:
    """Return what a repository sees of contents, the first of each last."""
    return await conn.fetch_all(
        """
        SELECT sha256, xet_hash, layout FROM repo_layouts
        WHERE repo_id = $1 AND sha256 IN each($2) ORDER BY added_at DESC, xet_hash DESC
        """,
        repo_id, _json_array(digests),
    )  # fmt: skip


async def list_of_repo(
    conn: Reader, repo_id: str, *, after: str = "", limit: int
) -> list[LinkedBlob]:
    """Return the blobs that a repository may point to, in the order of their digests."""
    rows = await conn.fetch_all(
        """
        SELECT b.sha256, b.size, r.pushed_at
        FROM repo_blobs r JOIN blobs b ON b.sha256 = r.sha256
        WHERE r.repo_id = $1 AND r.sha256 > $2 ORDER BY r.sha256 LIMIT $3
        """,
        repo_id, after, limit,
    )  # fmt: skip
    return [
        LinkedBlob(sha256=row["sha256"], size=row["size"], pushed_at=from_micros(row["pushed_at"]))
        for row in rows
    ]


async def unlink(conn: Connection, repo_id: str, digests: Iterable[str]) -> int:
    """Take from a repository the right to point to these blobs; return how many it had."""
    return await conn.execute(
        "DELETE FROM repo_blobs WHERE repo_id = $1 AND sha256 IN each($2)",
        repo_id,
        _json_array(digests),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectUpload:
    """An upload to the object storage that a client makes itself; its content is a claim."""

    id: str
    repo_id: str
    sha256: str
    size: int
    upload_id: str
    parts: int
    is_complete: bool = False


_DIRECT_UPLOAD = "id, repo_id, sha256, size, upload_id, parts, is_complete"


async def add_direct_upload(conn: Connection, upload: DirectUpload) -> None:
    await conn.execute(
        f"""
        INSERT INTO direct_uploads ({_DIRECT_UPLOAD}, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        """,
        upload.id, upload.repo_id, upload.sha256, upload.size, upload.upload_id, upload.parts,
        upload.is_complete, micros(),
    )  # fmt: skip


async def find_direct_upload(conn: Reader, upload: str) -> DirectUpload | None:
    row = await conn.fetch_one(f"SELECT {_DIRECT_UPLOAD} FROM direct_uploads WHERE id = $1", upload)
    return None if row is None else _direct_upload(row)


async def list_direct_uploads(
    conn: Reader, repo_id: str, digests: Iterable[str]
) -> list[DirectUpload]:
    """Return the uploads of these contents to a repository, the newest first."""
    rows = await conn.fetch_all(
        f"""
        SELECT {_DIRECT_UPLOAD} FROM direct_uploads
        WHERE repo_id = $1 AND sha256 IN each($2) ORDER BY created_at DESC, id DESC
        """,
        repo_id, _json_array(digests),
    )  # fmt: skip
    return [_direct_upload(row) for row in rows]


async def list_old_direct_uploads(conn: Reader, *, before: int, limit: int) -> list[DirectUpload]:
    rows = await conn.fetch_all(
        f"SELECT {_DIRECT_UPLOAD} FROM direct_uploads WHERE created_at < $1 LIMIT $2",
        before, limit,
    )  # fmt: skip
    return [_direct_upload(row) for row in rows]


async def set_direct_upload_complete(conn: Connection, upload: str) -> None:
    await conn.execute("UPDATE direct_uploads SET is_complete = TRUE WHERE id = $1", upload)


async def remove_direct_upload(conn: Connection, upload: str) -> None:
    await conn.execute("DELETE FROM direct_uploads WHERE id = $1", upload)


def _direct_upload(row: Row) -> DirectUpload:
    return DirectUpload(
        id=row["id"],
        repo_id=row["repo_id"],
        sha256=row["sha256"],
        size=row["size"],
        upload_id=row["upload_id"],
        parts=row["parts"],
        is_complete=bool(row["is_complete"]),
    )


def _json_array(digests: Iterable[str]) -> str:
    return msgspec.json.encode(list(digests)).decode()


async def add_attachment(conn: Connection, attachment: Attachment) -> None:
    await conn.execute(
        """
        INSERT INTO attachments (name, user_id, sha256, size, media_type, created_at)
        VALUES ($1, $2, $3, $4, $5, $6)
        """,
        attachment.name, attachment.user_id, attachment.sha256, attachment.size,
        attachment.media_type, to_micros(attachment.created_at),
    )  # fmt: skip


async def find_attachment(conn: Reader, name: str) -> Attachment | None:
    row = await conn.fetch_one(
        "SELECT name, user_id, sha256, size, media_type, created_at FROM attachments WHERE name = $1",
        name,
    )
    if row is None:
        return None
    return Attachment(
        name=row["name"],
        user_id=row["user_id"],
        sha256=row["sha256"],
        size=row["size"],
        media_type=row["media_type"],
        created_at=from_micros(row["created_at"]),
    )
