"""SQL of the catalogue: tags, manifests and images of container repositories, as they are shown."""

from collections.abc import Iterable, Sequence

import msgspec

from hublet.core.clock import from_micros
from hublet.core.database import Reader, Row
from hublet.registry.records import ListedTag, RepoImage, ShownManifest, TagPosition

_TAG_COLUMNS = """
    t.image, t.name, t.digest, t.pushed_at, u.name AS pushed_by, m.media_type, m.artifact_type,
    m.size, m.content
"""
_TAGS = f"""
    SELECT {_TAG_COLUMNS} FROM registry_tags t
        JOIN registry_manifests m
            ON m.repo_id = t.repo_id AND m.image = t.image AND m.digest = t.digest
        LEFT JOIN users u ON u.id = t.pushed_by
    WHERE t.repo_id = $1
"""


async def count_tags(conn: Reader, repo_ids: Iterable[str]) -> dict[str, int]:
    """Return how many tags repositories have, by id; those without are left out."""
    rows = await conn.fetch_all(
        "SELECT repo_id, count(*) AS tags FROM registry_tags WHERE repo_id IN each($1) GROUP BY 1",
        _json_array(repo_ids),
    )
    return {row["repo_id"]: row["tags"] for row in rows}


async def list_images(conn: Reader, repo_id: str) -> list[RepoImage]:
    """Return the images of a repository that have a manifest, by path."""
    rows = await conn.fetch_all(
        """
        SELECT m.image, count(*) AS manifests, max(m.pushed_at) AS pushed_at, (
            SELECT count(*) FROM registry_tags t WHERE t.repo_id = $1 AND t.image = m.image
        ) AS tags
        FROM registry_manifests m WHERE m.repo_id = $1 GROUP BY m.image ORDER BY m.image
        """,
        repo_id,
    )
    return [
        RepoImage(
            path=row["image"],
            tags=row["tags"],
            manifests=row["manifests"],
            pushed_at=from_micros(row["pushed_at"]),
        )
        for row in rows
    ]


async def list_tags(
    conn: Reader,
    repo_id: str,
    *,
    image: str | None = None,
    search: str = "",
    after: TagPosition | None = None,
    limit: int,
) -> list[ListedTag]:
    """Return tags, those pushed last first; without an image, those of all of them."""
    position = after or TagPosition.start()
    rows = await conn.fetch_all(
        f"""
        {_TAGS} AND ($2 = FALSE OR t.image = $3)
            AND ($4 = '' OR replace(lower(t.name), $4, '') <> lower(t.name))
            AND (t.pushed_at < $5 OR (t.pushed_at = $5 AND (t.image, t.name) > ($6, $7)))
        ORDER BY t.pushed_at DESC, t.image, t.name LIMIT $8
        """,
        repo_id, image is not None, image or "", search.lower(),
        position.pushed_at, position.image, position.name, limit,
    )  # fmt: skip
    return [_listed_tag(row) for row in rows]


async def find_tag(conn: Reader, repo_id: str, *, image: str, name: str) -> ListedTag | None:
    row = await conn.fetch_one(f"{_TAGS} AND t.image = $2 AND t.name = $3", repo_id, image, name)
    return _listed_tag(row) if row else None


async def find_manifests(
    conn: Reader, repo_id: str, *, image: str, digests: Iterable[str]
) -> dict[str, ShownManifest]:
    """Return, by digest, those manifests that the image has."""
    rows = await conn.fetch_all(
        """
        SELECT image, digest, media_type, artifact_type, subject, size, content, pushed_at
        FROM registry_manifests WHERE repo_id = $1 AND image = $2 AND digest IN each($3)
        """,
        repo_id, image, _json_array(digests),
    )  # fmt: skip
    return {row["digest"]: _shown_manifest(row) for row in rows}


async def list_tags_of(conn: Reader, repo_id: str, *, image: str, digest: str) -> list[str]:
    rows = await conn.fetch_all(
        """
        SELECT name FROM registry_tags WHERE repo_id = $1 AND image = $2 AND digest = $3
        ORDER BY name
        """,
        repo_id, image, digest,
    )  # fmt: skip
    return [row["name"] for row in rows]


async def list_blob_contents(
    conn: Reader, repo_id: str, *, image: str, digests: Iterable[str]
) -> dict[str, str]:
    """Return, by digest, under which SHA-256 the store has those blobs that the image has."""
    rows = await conn.fetch_all(
        """
        SELECT digest, sha256 FROM registry_blobs
        WHERE repo_id = $1 AND image = $2 AND digest IN each($3)
        """,
        repo_id, image, _json_array(digests),
    )  # fmt: skip
    return {row["digest"]: row["sha256"] for row in rows}


def _listed_tag(row: Row) -> ListedTag:
    return ListedTag(
        image=row["image"],
        name=row["name"],
        digest=row["digest"],
        media_type=row["media_type"],
        artifact_type=row["artifact_type"],
        manifest_size=row["size"],
        content=bytes(row["content"]),
        pushed_at=from_micros(row["pushed_at"]),
        pushed_by=row["pushed_by"],
    )


def _shown_manifest(row: Row) -> ShownManifest:
    return ShownManifest(
        image=row["image"],
        digest=row["digest"],
        media_type=row["media_type"],
        artifact_type=row["artifact_type"],
        subject=row["subject"],
        size=row["size"],
        content=bytes(row["content"]),
        pushed_at=from_micros(row["pushed_at"]),
    )


def _json_array(texts: Iterable[str] | Sequence[str]) -> str:
    return msgspec.json.encode(list(texts)).decode()
