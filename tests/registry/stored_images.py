"""Images in the tables of the registry, as pushes leave them, without the protocol."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from hublet.core import clock
from hublet.core.database import Connection, Database
from repos.content import put_blob

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def descriptor(content: bytes, media_type: str, **more: Any) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": digest_of(content), "size": len(content), **more}


def a_config(
    *commands: str, architecture: str = "amd64", system: str = "linux", **running: Any
) -> bytes:
    history = [{"created_by": command} for command in commands]
    body = {"os": system, "architecture": architecture, "config": running, "history": history}
    return json.dumps(body).encode()


def a_manifest(config: bytes, layers: Sequence[bytes], **more: Any) -> bytes:
    body = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": descriptor(config, CONFIG),
        "layers": [descriptor(layer, LAYER) for layer in layers],
        **more,
    }
    return json.dumps(body).encode()


def an_index(manifests: Mapping[str, bytes]) -> bytes:
    """Return an index of manifests by platform, as in linux/arm64."""
    entries = []
    for platform, manifest in manifests.items():
        system, architecture = platform.split("/")
        entries.append(
            descriptor(manifest, MANIFEST, platform={"os": system, "architecture": architecture})
        )
    return json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}).encode()


async def store_blob(database: Database, repo_id: str, content: bytes, *, image: str = "") -> str:
    blob = (await put_blob(database, None, content)).sha256
    digest = f"sha256:{blob}"
    async with database.transaction() as conn:
        await conn.execute(
            """
            INSERT INTO registry_blobs (repo_id, image, digest, sha256, size, touched_at)
            VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING
            """,
            repo_id, image, digest, blob, len(content), clock.micros(),
        )  # fmt: skip
        await _add_file(conn, repo_id, f"blobs/sha256/{blob}", blob, len(content))
    return digest


async def _add_file(conn: Connection, repo_id: str, path: str, sha256: str, size: int) -> None:
    await conn.execute(
        "UPDATE repos SET size = size - coalesce((SELECT f.size FROM repo_files f "
        "WHERE f.repo_id = $1 AND f.path = $2), 0), total_files = total_files - (SELECT count(*) "
        "FROM repo_files f WHERE f.repo_id = $1 AND f.path = $2) WHERE id = $1",
        repo_id, path,
    )  # fmt: skip
    await conn.execute(
        """
        INSERT INTO repo_files (repo_id, path, sha256, size, media_type, modified_at, uploaded_at)
        VALUES ($1, $2, $3, $4, NULL, $5, $5)
        ON CONFLICT (repo_id, path) DO UPDATE SET sha256 = excluded.sha256, size = excluded.size
        """,
        repo_id, path, sha256, size, clock.micros(),
    )  # fmt: skip
    await conn.execute(
        "UPDATE repos SET size = size + $2, total_files = total_files + 1 WHERE id = $1",
        repo_id, size,
    )  # fmt: skip


async def store_manifest(
    database: Database, repo_id: str, content: bytes, *tags: str, image: str = ""
) -> str:
    """Store a manifest or an index whose parts are there, and let tags stand for it."""
    blob = (await put_blob(database, None, content)).sha256
    digest, document = f"sha256:{blob}", json.loads(content)
    subject = document.get("subject", {}).get("digest")
    config = document.get("config", {}).get("mediaType")
    async with database.transaction() as conn:
        await conn.execute(
            """
            INSERT INTO registry_manifests (repo_id, image, digest, media_type, content, sha256,
                size, artifact_type, annotations, subject, pushed_at, touched_at)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, NULL, $9, $10, $10) ON CONFLICT DO NOTHING
            """,
            repo_id, image, digest, document["mediaType"], content, blob, len(content), config,
            subject, clock.micros(),
        )  # fmt: skip
        for kind, parts in (
            ("blob", [*document.get("layers", []), *([document["config"]] if config else [])]),
            ("manifest", document.get("manifests", [])),
        ):
            for part in {each["digest"] for each in parts}:
                await conn.execute(
                    """
                    INSERT INTO registry_references (repo_id, image, manifest, digest, kind)
                    VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING
                    """,
                    repo_id, image, digest, part, kind,
                )  # fmt: skip
        for tag in tags:
            await conn.execute(
                """
                INSERT INTO registry_tags (repo_id, image, name, digest, pushed_by, pushed_at)
                SELECT $1, $2, $3, $4, r.creator_id, $5 FROM repos r WHERE r.id = $1
                ON CONFLICT (repo_id, image, name) DO UPDATE SET
                    digest = excluded.digest, pushed_at = excluded.pushed_at
                """,
                repo_id, image, tag, digest, clock.micros(),
            )  # fmt: skip
            path = "/".join(filter(None, ("manifests", image, "_tags", tag)))
            await _add_file(conn, repo_id, path, blob, len(content))
    return digest


async def store_image(
    database: Database,
    repo_id: str,
    *tags: str,
    layers: Sequence[bytes] = (b"layer",),
    config: bytes | None = None,
    image: str = "",
    **more: Any,
) -> str:
    """Store an image with its blobs; return the digest of its manifest."""
    config = config or a_config(*(f"RUN step {number}" for number in range(len(layers))))
    for content in (config, *layers):
        await store_blob(database, repo_id, content, image=image)
    manifest = a_manifest(config, layers, **more)
    return await store_manifest(database, repo_id, manifest, *tags, image=image)
