"""Proofs about all images of a hub: nothing they name is gone, nothing is left over, totals are right."""

import hashlib
from typing import Any

from hublet.core.database import Database
from hublet.repos import usage_store
from hublet.storage.object_store import blob_key, open_store


async def rows_of(database: Database, sql: str) -> list[tuple[Any, ...]]:
    async with database.read() as conn:
        return [tuple(row) for row in await conn.fetch_all(sql)]


async def check_complete(database: Database) -> None:
    """What a manifest names is there, with its bytes; so is what every file shows."""
    missing = await rows_of(
        database,
        """
        SELECT r.manifest, r.digest FROM registry_references r WHERE NOT EXISTS (
            SELECT 1 FROM registry_blobs b
            WHERE b.repo_id = r.repo_id AND b.image = r.image AND b.digest = r.digest
        ) AND NOT EXISTS (
            SELECT 1 FROM registry_manifests m
            WHERE m.repo_id = r.repo_id AND m.image = r.image AND m.digest = r.digest
        )
        """,
    )
    assert missing == []
    store = open_store(database.hub.settings)
    for sha256, size in await rows_of(
        database,
        """
        SELECT sha256, size FROM registry_blobs UNION SELECT sha256, size FROM registry_manifests
        UNION SELECT sha256, size FROM repo_files
        """,
    ):
        content = b"".join(store.pieces(blob_key(sha256), 0, size))
        assert hashlib.sha256(content).hexdigest() == sha256


async def check_files(database: Database) -> None:
    """Files are those of blobs, manifests and tags; the totals and the quota are theirs."""
    shown = await rows_of(database, "SELECT repo_id, path FROM repo_files")
    expected = {
        (repo, f"blobs/{digest.replace(':', '/')}")
        for repo, digest in await rows_of(
            database,
            """
            SELECT repo_id, digest FROM registry_blobs
            UNION SELECT repo_id, digest FROM registry_manifests
            """,
        )
    } | {
        (repo, "/".join(filter(None, ("manifests", image, "_tags", tag))))
        for repo, image, tag in await rows_of(
            database, "SELECT repo_id, image, name FROM registry_tags"
        )
    }
    assert set(shown) == expected
    for owner, size, files, shown_size, shown_files in await rows_of(
        database,
        """
        SELECT r.owner_id, r.size, r.total_files,
            (SELECT coalesce(sum(f.size), 0) FROM repo_files f WHERE f.repo_id = r.id),
            (SELECT count(*) FROM repo_files f WHERE f.repo_id = r.id)
        FROM repos r WHERE r.type = 'container'
        """,
    ):
        assert (size, files) == (int(shown_size), shown_files)
        async with database.read() as conn:
            arriving = await conn.fetch_value("SELECT coalesce(sum(size), 0) FROM registry_uploads")
            assert await usage_store.raw_of_owner(conn, owner) == size + int(arriving)


async def check_no_orphans(database: Database) -> None:
    """After a sweep: no blob without a manifest, no upload, no content that nothing shows."""
    unlinked = await rows_of(
        database,
        """
        SELECT b.digest FROM registry_blobs b WHERE NOT EXISTS (
            SELECT 1 FROM registry_references r
            WHERE r.repo_id = b.repo_id AND r.image = b.image AND r.digest = b.digest
        )
        """,
    )
    assert unlinked == []
    assert await rows_of(database, "SELECT id FROM registry_uploads") == []
    assert await rows_of(database, "SELECT upload_id FROM registry_upload_parts") == []
    used = {row[0] for row in await rows_of(database, "SELECT sha256 FROM repo_files")}
    assert {row[0] for row in await rows_of(database, "SELECT sha256 FROM blobs")} == used
    store = open_store(database.hub.settings)
    assert {each.key.name for each in store.list("blobs")} == used
    assert list(store.list("parts")) == []
    incoming = database.hub.settings.database.data_dir / "incoming"
    assert [path for path in incoming.glob("*") if path.is_file()] == []
