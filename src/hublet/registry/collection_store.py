"""SQL of the garbage collection: what nothing needs any more, looked at again as it is removed.

Who removes locks the repository before (`lock_repo`), as every push does: the condition in the
statement that deletes a row sees all that was pushed before, and what comes after finds it gone.
"""

from collections.abc import Iterable

import msgspec

from hublet.core.clock import from_micros
from hublet.core.database import Connection, Reader, Row
from hublet.registry.records import ImageItem, ImageKey, RetentionRule, Tag

_DAY = 86_400_000_000

_BLOB_IS_UNLINKED = """
    b.touched_at < {before} AND NOT EXISTS (
        SELECT 1 FROM registry_references r
        WHERE r.repo_id = b.repo_id AND r.image = b.image AND r.digest = b.digest
    )
"""
# Children of an index stay with it, and what is about a manifest stays as long as that.
_MANIFEST_IS_UNTAGGED = """
    m.touched_at < {before}
    AND NOT EXISTS (
        SELECT 1 FROM registry_tags t
        WHERE t.repo_id = m.repo_id AND t.image = m.image AND t.digest = m.digest
    )
    AND NOT EXISTS (
        SELECT 1 FROM registry_references r
        WHERE r.repo_id = m.repo_id AND r.image = m.image AND r.digest = m.digest
            AND r.manifest <> m.digest
    )
    AND NOT EXISTS (
        SELECT 1 FROM registry_manifests s
        WHERE s.repo_id = m.repo_id AND s.image = m.image AND s.digest = m.subject
    )
"""
_SINCE_RULE = f"$1 - k.untagged_days * {_DAY}"


async def lock_repo(conn: Connection, repo_id: str) -> bool:
    """Lock a repository as its pushes do, without making it new; False when it is gone."""
    return await conn.execute("UPDATE repos SET size = size WHERE id = $1", repo_id) > 0


async def list_unlinked_blobs(conn: Reader, *, before: int, limit: int) -> list[ImageItem]:
    """Return blobs that no manifest of their image names and nobody touched since then."""
    rows = await conn.fetch_all(
        f"""
        SELECT b.repo_id, b.image, b.digest FROM registry_blobs b
        WHERE {_BLOB_IS_UNLINKED.format(before="$1")} ORDER BY b.repo_id, b.image LIMIT $2
        """,
        before, limit,
    )  # fmt: skip
    return [ImageItem(image=_key(row), digest=row["digest"]) for row in rows]


async def remove_unlinked_blob(conn: Connection, item: ImageItem, *, before: int) -> bool:
    """Remove a blob if it is still unlinked."""
    return await conn.execute(
        f"""
        DELETE FROM registry_blobs AS b
        WHERE b.repo_id = $1 AND b.image = $2 AND b.digest = $3
            AND {_BLOB_IS_UNLINKED.format(before="$4")}
        """,
        item.image.repo_id, item.image.path, item.digest, before,
    ) > 0  # fmt: skip


async def list_untagged(conn: Reader, *, now: int, limit: int) -> list[ImageItem]:
    """Return manifests that had no tag, and nothing that needs them, for longer than the rule says."""
    rows = await conn.fetch_all(
        f"""
        SELECT m.repo_id, m.image, m.digest
        FROM registry_retention k JOIN registry_manifests m ON m.repo_id = k.repo_id
        WHERE k.untagged_days IS NOT NULL AND {_MANIFEST_IS_UNTAGGED.format(before=_SINCE_RULE)}
        ORDER BY m.repo_id, m.image LIMIT $2
        """,
        now, limit,
    )  # fmt: skip
    return [ImageItem(image=_key(row), digest=row["digest"]) for row in rows]


async def remove_untagged(conn: Connection, item: ImageItem, *, now: int) -> bool:
    """Remove a manifest if its repository's rule still says so."""
    condition = _MANIFEST_IS_UNTAGGED.format(
        before=f"""(
            SELECT $4 - k.untagged_days * {_DAY} FROM registry_retention k
            WHERE k.repo_id = $1 AND k.untagged_days IS NOT NULL
        )"""
    )
    return await conn.execute(
        f"""
        DELETE FROM registry_manifests AS m
        WHERE m.repo_id = $1 AND m.image = $2 AND m.digest = $3 AND {condition}
        """,
        item.image.repo_id, item.image.path, item.digest, now,
    ) > 0  # fmt: skip


async def list_crowded_images(conn: Reader, *, after: ImageKey, limit: int) -> list[ImageKey]:
    """Return images that have more tags than the rule of their repository keeps."""
    rows = await conn.fetch_all(
        """
        SELECT t.repo_id, t.image
        FROM registry_retention k JOIN registry_tags t ON t.repo_id = k.repo_id
        WHERE k.keep_tags IS NOT NULL AND (t.repo_id, t.image) > ($1, $2)
        GROUP BY t.repo_id, t.image, k.keep_tags HAVING count(*) > k.keep_tags
        ORDER BY t.repo_id, t.image LIMIT $3
        """,
        after.repo_id, after.path, limit,
    )  # fmt: skip
    return [_key(row) for row in rows]


async def find_rule(conn: Reader, repo_id: str) -> RetentionRule:
    row = await conn.fetch_one(
        "SELECT keep_tags, untagged_days FROM registry_retention WHERE repo_id = $1", repo_id
    )
    if row is None:
        return RetentionRule()
    return RetentionRule(keep_tags=row["keep_tags"], untagged_days=row["untagged_days"])


async def set_rule(conn: Connection, repo_id: str, rule: RetentionRule) -> None:
    await conn.execute(
        """
        INSERT INTO registry_retention (repo_id, keep_tags, untagged_days) VALUES ($1, $2, $3)
        ON CONFLICT (repo_id) DO UPDATE SET
            keep_tags = excluded.keep_tags, untagged_days = excluded.untagged_days
        """,
        repo_id, rule.keep_tags, rule.untagged_days,
    )  # fmt: skip


async def list_newest_tags(conn: Reader, image: ImageKey) -> list[Tag]:
    """Return all tags of an image, those pushed last first."""
    rows = await conn.fetch_all(
        """
        SELECT name, digest, pushed_at FROM registry_tags WHERE repo_id = $1 AND image = $2
        ORDER BY pushed_at DESC, name DESC
        """,
        image.repo_id, image.path,
    )  # fmt: skip
    return [
        Tag(name=row["name"], digest=row["digest"], pushed_at=from_micros(row["pushed_at"]))
        for row in rows
    ]


async def find_manifests(conn: Reader, image: ImageKey, digests: Iterable[str]) -> set[str]:
    """Return those of these manifests that an image has."""
    rows = await conn.fetch_all(
        """
        SELECT digest FROM registry_manifests
        WHERE repo_id = $1 AND image = $2 AND digest IN each($3)
        """,
        image.repo_id, image.path, msgspec.json.encode(list(digests)).decode(),
    )  # fmt: skip
    return {row["digest"] for row in rows}


def _key(row: Row) -> ImageKey:
    return ImageKey(repo_id=row["repo_id"], path=row["image"])
