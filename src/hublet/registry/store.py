"""SQL of the registry: blobs, manifests and tags of images, and what they refer to.

Whoever changes an image locks its repository first (`repos.files.store.lock_repo`): pushes, deletions
and the garbage collector of one repository come one after the other.
"""

import json
from collections.abc import Iterable, Sequence
from datetime import timedelta

import msgspec

from hublet.core.clock import from_micros, micros
from hublet.core.database import Connection, Reader, Row
from hublet.registry.records import (
    Descriptor,
    ImageKey,
    Manifest,
    ParsedManifest,
    Referrer,
    RegistryBlob,
    Tag,
)

# Reads stay reads: a row is touched at most so often.
TOUCH_EVERY = timedelta(minutes=1)

_BLOB = "digest, sha256, size, touched_at"
_MANIFEST = (
    "m.digest, m.media_type, m.content, m.artifact_type, m.annotations, m.subject, m.pushed_at"
)


async def find_blob(conn: Reader, image: ImageKey, digest: str) -> RegistryBlob | None:
    row = await conn.fetch_one(
        f"SELECT {_BLOB} FROM registry_blobs WHERE repo_id = $1 AND image = $2 AND digest = $3",
        image.repo_id, image.path, digest,
    )  # fmt: skip
    return None if row is None else _blob(row)


async def find_blobs(
    conn: Reader, image: ImageKey, digests: Iterable[str]
) -> dict[str, RegistryBlob]:
    rows = await conn.fetch_all(
        f"""
        SELECT {_BLOB} FROM registry_blobs
        WHERE repo_id = $1 AND image = $2 AND digest IN each($3)
        """,
        image.repo_id, image.path, _json_array(digests),
    )  # fmt: skip
    return {row["digest"]: _blob(row) for row in rows}


async def list_holders(conn: Reader, digest: str, *, limit: int) -> list[ImageKey]:
    """Return images of the whole hub that have a blob; only for who checks each of them."""
    rows = await conn.fetch_all(
        """
        SELECT b.repo_id, b.image FROM registry_blobs b WHERE b.digest = $1
        ORDER BY b.touched_at DESC, b.repo_id, b.image LIMIT $2
        """,
        digest, limit,
    )  # fmt: skip
    return [ImageKey(repo_id=row["repo_id"], path=row["image"]) for row in rows]


async def add_blob(
    conn: Connection, image: ImageKey, *, digest: str, sha256: str, size: int
) -> None:
    """Let an image have a blob whose content the store has."""
    await conn.execute(
        """
        INSERT INTO registry_blobs (repo_id, image, digest, sha256, size, touched_at)
        VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (repo_id, image, digest) DO UPDATE SET touched_at = excluded.touched_at
        """,
        image.repo_id, image.path, digest, sha256, size, micros(),
    )  # fmt: skip


async def remove_blob(conn: Connection, image: ImageKey, digest: str) -> bool:
    return await conn.execute(
        "DELETE FROM registry_blobs WHERE repo_id = $1 AND image = $2 AND digest = $3",
        image.repo_id, image.path, digest,
    ) > 0  # fmt: skip


async def touch_blobs(
    conn: Connection, image: ImageKey, digests: Iterable[str]
) -> dict[str, RegistryBlob]:
    """Lock blobs of an image until the end of the transaction, and let them be new; return them."""
    rows = await conn.fetch_all(
        f"""
        UPDATE registry_blobs SET touched_at = $4
        WHERE repo_id = $1 AND image = $2 AND digest IN each($3) RETURNING {_BLOB}
        """,
        image.repo_id, image.path, _json_array(digests), micros(),
    )  # fmt: skip
    return {row["digest"]: _blob(row) for row in rows}


async def touch_manifests(
    conn: Connection, image: ImageKey, digests: Iterable[str]
) -> dict[str, int]:
    """Lock manifests of an image the same way; return their sizes."""
    rows = await conn.fetch_all(
        """
        UPDATE registry_manifests SET touched_at = $4
        WHERE repo_id = $1 AND image = $2 AND digest IN each($3) RETURNING digest, size
        """,
        image.repo_id, image.path, _json_array(digests), micros(),
    )  # fmt: skip
    return {row["digest"]: row["size"] for row in rows}


async def find_manifest(conn: Reader, image: ImageKey, digest: str) -> Manifest | None:
    row = await conn.fetch_one(
        f"""
        SELECT {_MANIFEST} FROM registry_manifests m
        WHERE m.repo_id = $1 AND m.image = $2 AND m.digest = $3
        """,
        image.repo_id, image.path, digest,
    )  # fmt: skip
    return None if row is None else _manifest(row)


async def find_tagged(conn: Reader, image: ImageKey, tag: str) -> Manifest | None:
    row = await conn.fetch_one(
        f"""
        SELECT {_MANIFEST} FROM registry_tags t JOIN registry_manifests m
            ON m.repo_id = t.repo_id AND m.image = t.image AND m.digest = t.digest
        WHERE t.repo_id = $1 AND t.image = $2 AND t.name = $3
        """,
        image.repo_id, image.path, tag,
    )  # fmt: skip
    return None if row is None else _manifest(row)


async def add_manifest(
    conn: Connection, image: ImageKey, manifest: ParsedManifest, *, sha256: str
) -> None:
    """Add a manifest, or let the one that is there be new: the same digest is the same content."""
    annotations = None if manifest.annotations is None else json.dumps(manifest.annotations)
    await conn.execute(
        """
        INSERT INTO registry_manifests (
            repo_id, image, digest, media_type, content, sha256, size, artifact_type, annotations,
            subject, pushed_at, touched_at
        ) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11)
        ON CONFLICT (repo_id, image, digest) DO UPDATE SET
            media_type = excluded.media_type, artifact_type = excluded.artifact_type,
            touched_at = excluded.touched_at
        """,
        image.repo_id, image.path, manifest.digest, manifest.media_type, manifest.content, sha256,
        len(manifest.content), manifest.artifact_type, annotations, manifest.subject, micros(),
    )  # fmt: skip


async def remove_manifest(conn: Connection, image: ImageKey, digest: str) -> bool:
    """Remove a manifest with its tags and references."""
    return await conn.execute(
        "DELETE FROM registry_manifests WHERE repo_id = $1 AND image = $2 AND digest = $3",
        image.repo_id, image.path, digest,
    ) > 0  # fmt: skip


async def add_references(
    conn: Connection, image: ImageKey, manifest: str, references: Sequence[tuple[Descriptor, str]]
) -> None:
    """Add what a manifest names, each with its kind: `blob` or `manifest`."""
    await conn.execute_many(
        """
        INSERT INTO registry_references (repo_id, image, manifest, digest, kind)
        VALUES ($1, $2, $3, $4, $5) ON CONFLICT (repo_id, image, manifest, digest) DO NOTHING
        """,
        [(image.repo_id, image.path, manifest, each.digest, kind) for each, kind in references],
    )


async def find_reference_to(conn: Reader, image: ImageKey, digest: str) -> str | None:
    """Return a manifest of an image that names a digest, if there is one."""
    found: str | None = await conn.fetch_value(
        """
        SELECT min(manifest) FROM registry_references
        WHERE repo_id = $1 AND image = $2 AND digest = $3 AND manifest <> $3
        """,
        image.repo_id, image.path, digest,
    )  # fmt: skip
    return found


async def list_referrers(
    conn: Reader,
    image: ImageKey,
    subject: str,
    *,
    artifact_type: str | None,
    after: str,
    limit: int,
) -> list[Referrer]:
    """Return manifests that are about another one, by digest."""
    rows = await conn.fetch_all(
        """
        SELECT digest, media_type, size, artifact_type, annotations FROM registry_manifests
        WHERE repo_id = $1 AND image = $2 AND subject = $3 AND digest > $4
            AND ($5 = '' OR artifact_type = $5)
        ORDER BY digest LIMIT $6
        """,
        image.repo_id, image.path, subject, after, artifact_type or "", limit,
    )  # fmt: skip
    return [
        Referrer(
            digest=row["digest"],
            media_type=row["media_type"],
            size=row["size"],
            artifact_type=row["artifact_type"],
            annotations=_annotations(row),
        )
        for row in rows
    ]


async def set_tag(
    conn: Connection, image: ImageKey, name: str, digest: str, *, user_id: str
) -> None:
    await conn.execute(
        """
        INSERT INTO registry_tags (repo_id, image, name, digest, pushed_by, pushed_at)
        VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (repo_id, image, name) DO UPDATE SET
            digest = excluded.digest, pushed_by = excluded.pushed_by,
            pushed_at = excluded.pushed_at
        """,
        image.repo_id, image.path, name, digest, user_id, micros(),
    )  # fmt: skip


async def find_tags(conn: Reader, image: ImageKey, names: Iterable[str]) -> dict[str, str]:
    """Return the digests that those of these tags stand for that an image has."""
    rows = await conn.fetch_all(
        """
        SELECT name, digest FROM registry_tags
        WHERE repo_id = $1 AND image = $2 AND name IN each($3)
        """,
        image.repo_id, image.path, _json_array(names),
    )  # fmt: skip
    return {row["name"]: row["digest"] for row in rows}


async def remove_tag(conn: Connection, image: ImageKey, name: str) -> bool:
    return await conn.execute(
        "DELETE FROM registry_tags WHERE repo_id = $1 AND image = $2 AND name = $3",
        image.repo_id, image.path, name,
    ) > 0  # fmt: skip


async def list_tags(conn: Reader, image: ImageKey, *, after: str, limit: int) -> list[Tag]:
    """Return the tags of an image that come after a name, in the order of their bytes."""
    rows = await conn.fetch_all(
        """
        SELECT name, digest, pushed_at FROM registry_tags
        WHERE repo_id = $1 AND image = $2 AND name > $3 ORDER BY name LIMIT $4
        """,
        image.repo_id, image.path, after, limit,
    )  # fmt: skip
    return [_tag(row) for row in rows]


async def list_tags_of(conn: Reader, image: ImageKey, digest: str) -> list[Tag]:
    """Return the tags of a manifest."""
    rows = await conn.fetch_all(
        """
        SELECT name, digest, pushed_at FROM registry_tags
        WHERE repo_id = $1 AND image = $2 AND digest = $3 ORDER BY name
        """,
        image.repo_id, image.path, digest,
    )  # fmt: skip
    return [_tag(row) for row in rows]


async def image_exists(conn: Reader, image: ImageKey) -> bool:
    """Tell whether anything was pushed to an image and is still there."""
    found = await conn.fetch_value(
        """
        SELECT 1 WHERE EXISTS (
            SELECT 1 FROM registry_manifests WHERE repo_id = $1 AND image = $2
        ) OR EXISTS (SELECT 1 FROM registry_blobs WHERE repo_id = $1 AND image = $2)
        """,
        image.repo_id, image.path,
    )  # fmt: skip
    return found is not None


async def find_held(conn: Reader, repo_id: str, digests: Iterable[str]) -> set[str]:
    """Return those digests that an image of a repository has, as a blob or as a manifest."""
    rows = await conn.fetch_all(
        """
        SELECT digest FROM registry_blobs WHERE repo_id = $1 AND digest IN each($2)
        UNION SELECT digest FROM registry_manifests WHERE repo_id = $1 AND digest IN each($2)
        """,
        repo_id, _json_array(digests),
    )  # fmt: skip
    return {row["digest"] for row in rows}


def _blob(row: Row) -> RegistryBlob:
    return RegistryBlob(
        digest=row["digest"],
        sha256=row["sha256"],
        size=row["size"],
        touched_at=from_micros(row["touched_at"]),
    )


def _manifest(row: Row) -> Manifest:
    return Manifest(
        digest=row["digest"],
        media_type=row["media_type"],
        content=bytes(row["content"]),
        artifact_type=row["artifact_type"],
        annotations=_annotations(row),
        subject=row["subject"],
        pushed_at=from_micros(row["pushed_at"]),
    )


def _annotations(row: Row) -> dict[str, str] | None:
    return None if row["annotations"] is None else json.loads(row["annotations"])


def _tag(row: Row) -> Tag:
    return Tag(name=row["name"], digest=row["digest"], pushed_at=from_micros(row["pushed_at"]))


def _json_array(texts: Iterable[str]) -> str:
    return msgspec.json.encode(list(texts)).decode()
