"""Images: manifests, tags and referrers, mounts of blobs, and deletion.

A transaction that changes an image locks its repository first. What a manifest names is locked and
touched in the transaction that adds it: no collector takes it away at the same time.
"""

import asyncio
import hashlib
from collections.abc import Sequence

from hublet.core.clock import now
from hublet.core.database import Connection, Database, Reader
from hublet.core.outbox import publish_many
from hublet.events import RepoImagesUpdated, UpdatedImage
from hublet.registry import files, store
from hublet.registry.errors import (
    BlobNotFound,
    ContentInUse,
    ImageNotFound,
    InvalidManifest,
    ManifestNotFound,
    MissingReferences,
)
from hublet.registry.records import (
    Descriptor,
    ImageKey,
    ImageName,
    Manifest,
    ParsedManifest,
    Referrer,
    RegistryBlob,
    is_digest,
)
from hublet.registry.tokens import RegistryIdentity
from hublet.repos import service as repos
from hublet.repos import store as repos_store
from hublet.repos.files import store as files_store
from hublet.repos.records import Repo, Right
from hublet.repos.service import snapshot
from hublet.repos.usage import check_quota
from hublet.storage.contents import put_blob
from hublet.storage.object_store import ObjectStore, blob_key, open_store
from hublet.storage.records import Blob, Content
from hublet.storage.store import add_blobs, find_contents

# What a page of referrers holds at the most; clients read no more than 4 MiB at once.
MOST_REFERRERS = 500
_REFERRERS_BYTES = 3 << 20
_IMAGES_PER_EVENT = 1000
# So many images are tried when a client does not say where to mount a blob from.
_MOST_HOLDERS = 20


async def lock_image(conn: Connection, image: ImageKey) -> None:
    """Lock the repository of an image until the end of the transaction."""
    if not await files_store.lock_repo(conn, image.repo_id):
        raise ImageNotFound(image.path)


async def get_blob(conn: Reader, image: ImageKey, digest: str) -> tuple[RegistryBlob, Content]:
    """Return a blob of an image, and where its bytes lie."""
    blob = await store.find_blob(conn, image, digest)
    if blob is None:
        # A client may ask for a manifest as it asks for any other content.
        raise BlobNotFound(digest)
    contents = await find_contents(conn, [blob.sha256])
    return blob, contents[blob.sha256]


async def check_object(objects: ObjectStore, content: Content) -> bool:
    """Tell whether the store has the bytes: who is told so does not upload them."""
    if not content.is_whole:
        return True
    found = await asyncio.to_thread(objects.stat, blob_key(content.sha256))
    return found is not None and found.size == content.size


async def touch_blob(database: Database, image: ImageKey, blob: RegistryBlob) -> None:
    """Keep a blob from the collector, because a client was told that it need not upload it."""
    if now() - blob.touched_at > store.TOUCH_EVERY:
        async with database.transaction() as conn:
            await store.touch_blobs(conn, image, [blob.digest])


async def get_manifest(conn: Reader, image: ImageKey, reference: str) -> Manifest:
    """Return the manifest of a tag or a digest."""
    find = store.find_manifest if ":" in reference else store.find_tagged
    manifest = await find(conn, image, reference)
    if manifest is None:
        raise ManifestNotFound(reference)
    return manifest


async def put_manifest(
    database: Database,
    repo: Repo,
    image: ImageKey,
    manifest: ParsedManifest,
    *,
    tags: Sequence[str],
    user_id: str,
) -> None:
    """Store a manifest and let tags stand for it; all that it needs must be there."""
    objects = open_store(database.hub.settings)
    async with database.read() as conn:
        await _check_objects(conn, objects, image, manifest)
    content = await asyncio.to_thread(_put_content, objects, manifest.content)
    async with database.transaction() as conn:
        await lock_image(conn, image)
        references = await _lock_references(conn, image, manifest)
        await add_blobs(conn, [content])
        await store.add_manifest(conn, image, manifest, sha256=content.sha256)
        await store.add_references(conn, image, manifest.digest, references)
        updated = await set_tags(conn, image, manifest, tags, user_id=user_id)
        await check_quota(conn, repo.owner_id, 0)
        await publish_images(conn, repo, updated, actor_id=user_id)


def _put_content(objects: ObjectStore, content: bytes) -> Blob:
    with objects.new_spool() as spool:
        spool.write(content)
        return put_blob(objects, spool)


async def _check_objects(
    conn: Reader, objects: ObjectStore, image: ImageKey, manifest: ParsedManifest
) -> None:
    """Refuse a manifest whose blobs have rows and no bytes: its client uploads them again."""
    digests = [each.digest for each in manifest.references if each.is_required]
    blobs = await store.find_blobs(conn, image, digests)
    contents = await find_contents(conn, [blob.sha256 for blob in blobs.values()])
    if objects.local_path(blob_key("")) is None:
        # A bucket loses nothing, and would take its time for each of them.
        return
    lost = await asyncio.to_thread(_find_lost, objects, list(contents.values()))
    if lost:
        raise MissingReferences([each.digest for each in blobs.values() if each.sha256 in lost])


def _find_lost(objects: ObjectStore, contents: Sequence[Content]) -> set[str]:
    stats = {each.sha256: objects.stat(blob_key(each.sha256)) for each in contents if each.is_whole}
    sizes = {each.sha256: each.size for each in contents}
    return {key for key, found in stats.items() if found is None or found.size != sizes[key]}


async def _lock_references(
    conn: Connection, image: ImageKey, manifest: ParsedManifest
) -> list[tuple[Descriptor, str]]:
    """Lock and touch what a manifest names; return it with its kind, as far as it is there."""
    digests = [each.digest for each in manifest.references]
    manifests = await store.touch_manifests(conn, image, digests)
    blobs = await store.touch_blobs(conn, image, digests)
    sizes = {digest: blob.size for digest, blob in blobs.items()} | manifests
    missing = [
        each.digest for each in manifest.references if each.is_required and each.digest not in sizes
    ]
    if missing:
        raise MissingReferences(missing)
    for each in manifest.references:
        if each.size is not None and sizes.get(each.digest, each.size) != each.size:
            raise InvalidManifest(
                f"it says that {each.digest} has {each.size} bytes, and it has {sizes[each.digest]}"
            )
    return [
        (each, "manifest" if each.digest in manifests else "blob")
        for each in manifest.references
        if each.digest in sizes
    ]


async def set_tags(
    conn: Connection,
    image: ImageKey,
    manifest: ParsedManifest,
    tags: Sequence[str],
    *,
    user_id: str,
) -> list[UpdatedImage]:
    """Let tags stand for a manifest, and show all of it as files; return the tags that moved."""
    sha256 = hashlib.sha256(manifest.content).hexdigest()
    before = await store.find_tags(conn, image, tags)
    # How long a manifest has no tag counts from here.
    await store.touch_manifests(conn, image, set(before.values()))
    for tag in tags:
        await store.set_tag(conn, image, tag, manifest.digest, user_id=user_id)
    paths = [files.blob_path(manifest.digest), *(files.tag_path(image, tag) for tag in tags)]
    await files.put_files(
        conn,
        image.repo_id,
        [
            files.new_file(
                path, sha256=sha256, size=len(manifest.content), media_type=manifest.media_type
            )
            for path in paths
        ],
    )
    return [
        UpdatedImage(
            path=image.path, tag=tag, old_digest=before.get(tag), new_digest=manifest.digest
        )
        for tag in tags
        if before.get(tag) != manifest.digest
    ]


async def publish_images(
    conn: Connection, repo: Repo, updated: Sequence[UpdatedImage], *, actor_id: str | None
) -> None:
    """Publish that tags moved, or that they or manifests were deleted; by nobody: by a rule."""
    if not updated:
        return
    await publish_many(
        conn,
        [
            RepoImagesUpdated(
                repo=snapshot(repo),
                updated_images=tuple(updated[start : start + _IMAGES_PER_EVENT]),
                actor_id=actor_id,
            )
            for start in range(0, len(updated), _IMAGES_PER_EVENT)
        ],
    )


async def list_referrers(
    conn: Reader, image: ImageKey, subject: str, *, artifact_type: str | None, after: str
) -> tuple[list[Referrer], bool]:
    """Return a page of the manifests that are about another one, and whether more follow."""
    found = await store.list_referrers(
        conn, image, subject, artifact_type=artifact_type, after=after, limit=MOST_REFERRERS + 1
    )
    page: list[Referrer] = []
    size = 0
    for each in found[:MOST_REFERRERS]:
        size += len(str(each.annotations))
        if page and size > _REFERRERS_BYTES:
            break
        page.append(each)
    return page, len(page) < len(found)


async def delete_manifest(
    conn: Connection, repo: Repo, image: ImageKey, reference: str, *, user_id: str
) -> None:
    """Delete a tag, or a manifest with all its tags."""
    await lock_image(conn, image)
    delete = _delete_by_digest if is_digest(reference) else delete_tag
    await publish_images(conn, repo, await delete(conn, image, reference), actor_id=user_id)


async def _delete_by_digest(conn: Connection, image: ImageKey, digest: str) -> list[UpdatedImage]:
    holder = await store.find_reference_to(conn, image, digest)
    if holder is not None:
        raise ContentInUse(digest, manifest=holder)
    tags = [tag.name for tag in await store.list_tags_of(conn, image, digest)]
    if not await store.remove_manifest(conn, image, digest):
        raise ManifestNotFound(digest)
    await files.remove_tags(conn, image, tags)
    await files.remove_blobs(conn, image.repo_id, [digest])
    named: list[str | None] = [*tags] or [None]
    return [
        UpdatedImage(path=image.path, tag=tag, old_digest=digest, new_digest=None) for tag in named
    ]


async def delete_tag(conn: Connection, image: ImageKey, tag: str) -> list[UpdatedImage]:
    """Delete a tag of an image whose repository is locked; its manifest stays."""
    digest = (await store.find_tags(conn, image, [tag])).get(tag)
    if digest is None:
        raise ManifestNotFound(tag)
    await store.remove_tag(conn, image, tag)
    # How long a manifest has no tag counts from here.
    await store.touch_manifests(conn, image, [digest])
    await files.remove_tags(conn, image, [tag])
    return [UpdatedImage(path=image.path, tag=tag, old_digest=digest, new_digest=None)]


async def delete_blob(conn: Connection, image: ImageKey, digest: str) -> None:
    """Let an image have a blob no longer; those of other images stay."""
    await lock_image(conn, image)
    holder = await store.find_reference_to(conn, image, digest)
    if holder is not None and await store.find_blob(conn, image, digest) is not None:
        raise ContentInUse(digest, manifest=holder)
    if not await store.remove_blob(conn, image, digest):
        raise BlobNotFound(digest)
    await files.remove_blobs(conn, image.repo_id, [digest])


async def add_blob(
    conn: Connection, repo: Repo, image: ImageKey, *, digest: str, content: Blob
) -> None:
    """Let an image have a blob whose content was just put into the store, or is another's."""
    await lock_image(conn, image)
    await store.add_blob(conn, image, digest=digest, sha256=content.sha256, size=content.size)
    file = files.new_file(files.blob_path(digest), sha256=content.sha256, size=content.size)
    if await files.put_files(conn, image.repo_id, [file]) > 0:
        await check_quota(conn, repo.owner_id, 0)


async def list_readable_holders(
    conn: Reader, identity: RegistryIdentity, digest: str
) -> list[ImageKey]:
    """Return images that have a blob, of those that a caller may read now."""
    readable = []
    for image in await store.list_holders(conn, digest, limit=_MOST_HOLDERS):
        repo = await repos_store.find(conn, image.repo_id)
        if repo is None or not _reaches(identity, repo):
            continue
        if await repos.may(conn, identity.caller, repo, Right.read):
            readable.append(image)
    return readable


def _reaches(identity: RegistryIdentity, repo: Repo) -> bool:
    name = ImageName(namespace=repo.owner_name.lower(), repo=repo.name.lower())
    return identity.reaches(name)


async def mount_blob(
    conn: Connection, repo: Repo, image: ImageKey, digest: str, *, source: ImageKey
) -> bool:
    """Let an image have a blob of another one that the caller may read; False if that has it not."""
    # The touch locks the row there: whoever deletes it comes before or after.
    found = (await store.touch_blobs(conn, source, [digest])).get(digest)
    if found is None:
        return False
    contents = await find_contents(conn, [found.sha256])
    if not await check_object(open_store(conn.hub.settings), contents[found.sha256]):
        return False
    blob = Blob(sha256=found.sha256, size=found.size)
    await add_blob(conn, repo, image, digest=digest, content=blob)
    return True
