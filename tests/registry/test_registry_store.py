"""What the tables of the registry promise, on both engines."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from hublet.core import clock
from hublet.core.database import Connection, Database
from hublet.registry import service, store, uploads, uploads_store
from hublet.registry.manifests import parse_manifest
from hublet.registry.records import ImageKey, ParsedManifest, Upload, UploadPart
from hublet.repos import lifecycle, usage_store
from hublet.repos import store as repos_store
from hublet.repos.lifecycle import NewRepo
from hublet.repos.records import Repo, RepoType
from hublet.storage.records import Blob
from hublet.storage.store import add_blobs
from hublet.tokens import service as tokens
from people import a_token
from registry.images import a_manifest, digest_of


@pytest.fixture
async def repo(database: Database) -> Repo:
    value = await a_token(database, "ada")
    async with database.read() as conn:
        caller = await tokens.find_caller(conn, value)
    assert caller is not None
    new = NewRepo(type=RepoType.container, namespace="ada", name="tool")
    return await lifecycle.create(database, caller, new)


@pytest.fixture
def image(repo: Repo) -> ImageKey:
    return ImageKey(repo_id=repo.id, path="")


async def add_blob(conn: Connection, repo: Repo, image: ImageKey, content: bytes) -> str:
    digest = digest_of(content)
    blob = Blob(sha256=digest[7:], size=len(content))
    await add_blobs(conn, [blob])
    await service.add_blob(conn, repo, image, digest=digest, content=blob)
    return digest


async def add_manifest(conn: Connection, image: ImageKey, content: bytes) -> ParsedManifest:
    manifest = parse_manifest(content, content_type="")
    await add_blobs(conn, [Blob(sha256=manifest.digest[7:], size=len(content))])
    await store.add_manifest(conn, image, manifest, sha256=manifest.digest[7:])
    return manifest


async def test_a_blob_is_found_in_its_image(
    database: Database, repo: Repo, image: ImageKey
) -> None:
    async with database.transaction() as conn:
        digest = await add_blob(conn, repo, image, b"abc")

    async with database.read() as conn:
        found = await store.find_blob(conn, image, digest)
        elsewhere = await store.find_blob(conn, ImageKey(repo_id=repo.id, path="gpu"), digest)
        holders = await store.list_holders(conn, digest, limit=5)

    assert found is not None
    assert (found.sha256, found.size) == (digest[7:], 3)
    assert elsewhere is None
    assert holders == [image]


async def test_a_blob_that_comes_again_is_new_and_counts_once(
    database: Database, repo: Repo, image: ImageKey
) -> None:
    async with database.transaction() as conn:
        digest = await add_blob(conn, repo, image, b"abc")
    clock.move(timedelta(hours=1))
    async with database.transaction() as conn:
        await add_blob(conn, repo, image, b"abc")

    async with database.read() as conn:
        found = await store.find_blob(conn, image, digest)
        now = await repos_store.find(conn, repo.id)

    assert found is not None
    assert clock.now() - found.touched_at < timedelta(minutes=1)
    assert now is not None
    assert (now.size, now.total_files) == (3, 1)


async def test_a_look_touches_at_most_once_a_minute(
    database: Database, repo: Repo, image: ImageKey
) -> None:
    async with database.transaction() as conn:
        digest = await add_blob(conn, repo, image, b"abc")

    async def touch() -> int:
        async with database.read() as conn:
            blob = await store.find_blob(conn, image, digest)
        assert blob is not None
        await service.touch_blob(database, image, blob)
        async with database.read() as conn:
            after = await store.find_blob(conn, image, digest)
        assert after is not None
        return (after.touched_at - blob.touched_at) // timedelta(seconds=1)

    assert await touch() == 0
    clock.move(timedelta(seconds=61))
    assert await touch() >= 61


async def test_a_manifest_keeps_its_bytes(database: Database, image: ImageKey) -> None:
    content = a_manifest(annotations={"ä": "\u2028"})

    async with database.transaction() as conn:
        manifest = await add_manifest(conn, image, content)
        again = await store.find_manifest(conn, image, manifest.digest)

    assert again is not None
    assert again.content == content
    assert again.annotations == {"ä": "\u2028"}


async def test_tags_and_references_go_with_their_manifest(
    database: Database, image: ImageKey
) -> None:
    async with database.transaction() as conn:
        manifest = await add_manifest(conn, image, a_manifest(b"layer"))
        references = [(each, "blob") for each in manifest.references]
        await store.add_references(conn, image, manifest.digest, references)
        await store.set_tag(conn, image, "a", manifest.digest, user_id="x")
        assert await store.find_reference_to(conn, image, digest_of(b"layer")) == manifest.digest

        assert await store.remove_manifest(conn, image, manifest.digest)

        assert await store.find_reference_to(conn, image, digest_of(b"layer")) is None
        assert await store.find_tagged(conn, image, "a") is None
        assert not await store.remove_manifest(conn, image, manifest.digest)


async def test_a_part_follows_what_arrived_or_is_refused(
    database: Database, image: ImageKey
) -> None:
    async with database.transaction() as conn:
        upload = await uploads.begin(conn, image, user_id="x")

    def part(position: int, size: int) -> UploadPart:
        return UploadPart(upload_id=upload.id, position=position, size=size, sha256="0" * 64)

    async with database.transaction() as conn:
        assert await uploads_store.advance(conn, part(0, 10))
        assert not await uploads_store.advance(conn, part(0, 10))
        assert not await uploads_store.advance(conn, part(11, 10))
        assert await uploads_store.advance(conn, part(10, 5))
        assert await uploads_store.list_parts(conn, upload.id) == [part(0, 10), part(10, 5)]
        assert not await uploads_store.remove(conn, upload.id, size=10)
        assert await uploads_store.remove(conn, upload.id, size=15)
        assert await uploads_store.list_parts(conn, upload.id) == []


async def test_uploads_count_for_the_owner_until_they_end(
    database: Database, repo: Repo, image: ImageKey
) -> None:
    async with database.transaction() as conn:
        upload = await uploads.begin(conn, image, user_id="x")
        part = UploadPart(upload_id=upload.id, position=0, size=10, sha256="0" * 64)
        await uploads_store.advance(conn, part)
        assert await usage_store.raw_of_owner(conn, repo.owner_id, with_uploads=True) == 10
        await uploads_store.remove(conn, upload.id)
        assert await usage_store.raw_of_owner(conn, repo.owner_id, with_uploads=True) == 0


async def test_old_uploads_are_found(database: Database, image: ImageKey) -> None:
    async with database.transaction() as conn:
        upload = await uploads.begin(conn, image, user_id="x")
        before = clock.micros()

        assert await uploads_store.list_unchanged(conn, before=before + 1, limit=5) == [upload]
        assert await uploads_store.list_unchanged(conn, before=0, limit=5) == []


async def body_of(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        await asyncio.sleep(0)
        yield piece


async def test_of_two_writers_of_one_upload_the_second_is_refused(
    database: Database, repo: Repo, image: ImageKey
) -> None:
    async with database.transaction() as conn:
        upload = await uploads.begin(conn, image, user_id="x")

    async def send(content: bytes) -> int:
        body = uploads.UploadBody(pieces=body_of(content))
        return await uploads.append(database, repo, upload, body)

    results = await asyncio.gather(send(b"abc"), send(b"xyzxyz"), return_exceptions=True)

    [size] = [each for each in results if isinstance(each, int)]
    async with database.read() as conn:
        found = await uploads_store.find(conn, upload.id)
        parts = await uploads_store.list_parts(conn, upload.id)
    assert found is not None
    assert (found.size, sum(part.size for part in parts)) == (size, size)
    folder = database.hub.settings.database.data_dir
    assert len([*folder.glob("parts/*/*/*")]) == 1


async def test_two_who_push_the_same_blob_at_once_both_succeed(
    database: Database, repo: Repo, image: ImageKey
) -> None:
    content = b"layer" * 1000
    digest = digest_of(content)
    other = ImageKey(repo_id=repo.id, path="gpu")

    async def push(where: ImageKey) -> None:
        async with database.transaction() as conn:
            upload = await uploads.begin(conn, where, user_id="x")
        await uploads.append(
            database, repo, upload, uploads.UploadBody(pieces=body_of(content[:10], content[10:]))
        )
        sized = Upload(id=upload.id, image=where, user_id="x", size=len(content))
        await uploads.complete(database, repo, sized, digest, uploads.UploadBody(pieces=body_of()))

    await asyncio.gather(*(push(where) for where in (image, image, other, other)))

    async with database.read() as conn:
        now = await repos_store.find(conn, repo.id)
        assert set(await store.list_holders(conn, digest, limit=5)) == {image, other}
    assert now is not None
    assert (now.size, now.total_files) == (len(content), 1)
    folder = database.hub.settings.database.data_dir
    assert [path.read_bytes() for path in folder.glob("blobs/??/??/*")] == [content]
    assert [*folder.glob("parts/*/*/*"), *folder.glob("blobs/incoming/*")] == []


async def test_a_manifest_and_the_deletion_of_its_layer_come_one_after_the_other(
    database: Database, repo: Repo, image: ImageKey
) -> None:
    async with database.transaction() as conn:
        for content in (b"{}", b"layer"):
            await add_blob(conn, repo, image, content)
    folder = database.hub.settings.database.data_dir
    for content in (b"{}", b"layer"):
        name = digest_of(content)[7:]
        path = folder / "blobs" / name[:2] / name[2:4] / name
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
    manifest = parse_manifest(a_manifest(b"layer"), content_type="")

    async def delete() -> None:
        async with database.transaction() as conn:
            await service.delete_blob(conn, image, digest_of(b"layer"))

    results = await asyncio.gather(
        service.put_manifest(database, repo, image, manifest, tags=["a"], user_id="x"),
        delete(),
        return_exceptions=True,
    )

    assert [isinstance(each, Exception) for each in results].count(True) == 1
    async with database.read() as conn:
        tagged = await store.find_tagged(conn, image, "a")
        layer = await store.find_blob(conn, image, digest_of(b"layer"))
    assert (tagged is None) == (layer is None)
