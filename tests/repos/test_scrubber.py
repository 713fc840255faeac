"""Scrubber: objects at rest are read again, healed where another copy is, and reported otherwise."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest

from hublet.core import clock
from hublet.core.database import Database
from hublet.repos import blobs_store, scrub_store, scrubber
from hublet.repos.records import DamagedObject
from hublet.repos.scrubber import Scrubbed
from hublet.storage import contents, store
from hublet.storage.object_store import ObjectKey, blob_key, xorb_key
from hublet.storage.records import Blob, Xorb
from people import Headers
from repos.content import put_blob, sha256
from repos.xorbs import object_store, put_cut_blob
from repositories import a_repo
from workers import drain

CHUNKS = [b"one" * 1000, b"two" * 1000]
CONTENT = b"".join(CHUNKS)

Damage = Callable[[Path], object]


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(data)


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def lengthen(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"more")


ANY_DAMAGE = [
    pytest.param(flip, "damaged", id="another byte"),
    pytest.param(cut_short, "damaged", id="too short"),
    pytest.param(lengthen, "damaged", id="too long"),
    pytest.param(Path.unlink, "missing", id="gone"),
]


def spoil(database: Database, key: ObjectKey, damage: Damage = flip) -> None:
    path = object_store(database).local_path(key)
    assert path is not None
    damage(path)


async def scrub(database: Database) -> Scrubbed:
    return await scrubber.scrub(database, unchecked_since=clock.now())


async def damaged(database: Database) -> list[DamagedObject]:
    async with database.read() as conn:
        return await scrub_store.list_damaged(conn, limit=10)


async def problems(database: Database) -> list[tuple[str, str, str, tuple[str, ...]]]:
    return [(each.kind, each.digest, each.problem, each.repos) for each in await damaged(database)]


async def read(database: Database, digest: str) -> bytes:
    async with database.read() as conn:
        content = (await store.find_contents(conn, [digest]))[digest]
    return b"".join(contents.pieces(object_store(database), content, 0, content.size))


async def links(database: Database) -> int:
    async with database.read() as conn:
        return int(await conn.fetch_value("SELECT count(*) FROM repo_xorbs"))


async def put_both(database: Database, repo_id: str) -> tuple[Blob, Xorb]:
    """Store a blob whole and cut, as it is just after it was cut."""
    await put_blob(database, repo_id, CONTENT)
    blob, xorb = await put_cut_blob(database, repo_id, CHUNKS)
    async with database.read() as conn:
        content = (await store.find_contents(conn, [blob.sha256]))[blob.sha256]
    assert content.is_whole
    assert content.segments
    return blob, xorb


@pytest.fixture
async def repo_id(client: httpx2.AsyncClient, ada: Headers) -> str:
    return await a_repo(client, ada, "ada/engine")


async def test_what_is_sound_is_checked_once(database: Database, repo_id: str) -> None:
    await put_blob(database, repo_id, b"whole")
    _, xorb = await put_cut_blob(database, repo_id, CHUNKS)

    since = clock.now()
    first = await scrubber.scrub(database, unchecked_since=since)
    second = await scrubber.scrub(database, unchecked_since=since)

    assert first == Scrubbed(objects=2, bytes=5 + xorb.stored_size)
    assert second == Scrubbed()
    assert await damaged(database) == []


@pytest.mark.parametrize(("damage", "problem"), ANY_DAMAGE)
async def test_a_damaged_blob_is_reported_with_its_repositories(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    repo_id: str,
    damage: Damage,
    problem: str,
) -> None:
    other_id = await a_repo(client, ada, "ada/copy")
    for each in (repo_id, other_id):
        await put_blob(database, each, CONTENT)
    spoil(database, blob_key(sha256(CONTENT)), damage)

    done = await scrub(database)

    assert (done.damaged, done.healed) == (1, 0)
    names = ("ada/copy", "ada/engine")
    assert await problems(database) == [("blobs", sha256(CONTENT), problem, names)]


@pytest.mark.parametrize(("damage", "problem"), [ANY_DAMAGE[0], ANY_DAMAGE[3]])
async def test_a_damaged_xorb_is_reported_with_its_repositories(
    database: Database, repo_id: str, damage: Damage, problem: str
) -> None:
    _, xorb = await put_cut_blob(database, repo_id, CHUNKS)
    spoil(database, xorb_key(xorb.name), damage)

    done = await scrub(database)

    assert (done.damaged, done.healed) == (1, 0)
    assert await problems(database) == [("xorbs", xorb.name, problem, ("ada/engine",))]
    # Wrong bytes must not become a part of another file; a disk that is away comes back.
    assert await links(database) == (0 if problem == "damaged" else 1)


@pytest.mark.parametrize("damage", [cut_short, lengthen])
async def test_a_footer_is_written_anew(database: Database, repo_id: str, damage: Damage) -> None:
    blob, xorb = await put_cut_blob(database, repo_id, CHUNKS)
    path = object_store(database).local_path(xorb_key(xorb.name))
    assert path is not None
    before = path.read_bytes()
    damage(path)

    done = await scrub(database)

    assert (done.damaged, done.healed) == (0, 1)
    assert path.read_bytes() == before
    assert await read(database, blob.sha256) == CONTENT
    assert await damaged(database) == []
    assert await links(database) == 1


@pytest.mark.parametrize(("damage", "problem"), ANY_DAMAGE)
async def test_a_damaged_whole_copy_is_healed_from_the_segments(
    database: Database,
    repo_id: str,
    damage: Damage,
    problem: str,
) -> None:
    blob, _ = await put_both(database, repo_id)
    spoil(database, blob_key(blob.sha256), damage)

    done = await scrub(database)

    assert (done.damaged, done.healed) == (0, 1)
    assert await read(database, blob.sha256) == CONTENT
    assert await damaged(database) == []


@pytest.mark.parametrize("damage", [flip, Path.unlink])
async def test_a_damaged_xorb_is_healed_from_the_whole_copy(
    database: Database, repo_id: str, damage: Damage
) -> None:
    blob, xorb = await put_both(database, repo_id)
    spoil(database, xorb_key(xorb.name), damage)

    done = await scrub(database)

    assert (done.damaged, done.healed) == (0, 1)
    assert await read(database, blob.sha256) == CONTENT
    async with database.read() as conn:
        content = (await store.find_contents(conn, [blob.sha256]))[blob.sha256]
    # It is cut again later.
    assert (content.is_whole, content.segments, content.xet_hash) == (True, (), None)
    assert await links(database) == 0


async def read_as(database: Database, repo_id: str, digest: str) -> bytes:
    """Read a blob as one repository sees it."""
    async with database.read() as conn:
        content = (await blobs_store.find_contents(conn, repo_id, [digest]))[digest]
    assert content.xet_hash is not None
    return b"".join(contents.pieces(object_store(database), content, 0, content.size))


@pytest.mark.parametrize("damage", [flip, Path.unlink])
async def test_a_damaged_xorb_is_healed_from_another_form_of_its_chunks(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str, damage: Damage
) -> None:
    other_id = await a_repo(client, ada, "ada/copy")
    blob, xorb = await put_cut_blob(database, repo_id, CHUNKS)
    _, form = await put_cut_blob(database, other_id, CHUNKS, scheme=1)
    assert form.hash == xorb.hash
    spoil(database, xorb_key(xorb.name), damage)

    done = await scrub(database)

    assert (done.damaged, done.healed) == (0, 1)
    assert await damaged(database) == []
    for each in (repo_id, other_id):
        assert await read_as(database, each, blob.sha256) == CONTENT
    async with database.read() as conn:
        rows = await conn.fetch_all("SELECT xorb FROM repo_xorbs")
    # Both may go on to use it in their uploads.
    assert [row["xorb"] for row in rows] == [form.name, form.name]


@pytest.mark.parametrize("damage", [flip, Path.unlink])
async def test_a_damaged_xorb_is_healed_from_how_another_repository_packed_it(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str, damage: Damage
) -> None:
    other_id = await a_repo(client, ada, "ada/copy")
    blob, xorb = await put_cut_blob(database, repo_id, CHUNKS)
    await put_cut_blob(database, other_id, [CONTENT])
    spoil(database, xorb_key(xorb.name), damage)

    done = await scrub(database)

    assert (done.damaged, done.healed) == (0, 1)
    for each in (repo_id, other_id):
        assert await read_as(database, each, blob.sha256) == CONTENT


async def test_a_damaged_whole_copy_is_healed_from_any_layout_that_is_sound(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    other_id = await a_repo(client, ada, "ada/copy")
    blob, xorb = await put_both(database, repo_id)
    await put_cut_blob(database, other_id, [CONTENT])
    spoil(database, blob_key(blob.sha256))
    spoil(database, xorb_key(xorb.name))

    done = await scrub(database)

    assert (done.damaged, done.healed) == (0, 2)
    for each in (repo_id, other_id):
        assert await read_as(database, each, blob.sha256) == CONTENT


async def test_two_damaged_copies_do_not_heal_each_other(database: Database, repo_id: str) -> None:
    blob, xorb = await put_both(database, repo_id)
    spoil(database, blob_key(blob.sha256))
    spoil(database, xorb_key(xorb.name))

    done = await scrub(database)

    assert (done.damaged, done.healed) == (2, 0)
    assert len(await damaged(database)) == 2


async def test_what_was_damaged_and_is_sound_again_is_not_reported_any_more(
    database: Database, repo_id: str
) -> None:
    _, xorb = await put_cut_blob(database, repo_id, CHUNKS)
    spoil(database, xorb_key(xorb.name))
    await scrub(database)

    # Another byte, and back: as from a backup.
    spoil(database, xorb_key(xorb.name))
    done = await scrubber.scrub(database, unchecked_since=clock.now() - timedelta(days=1))

    assert done.objects == 1
    assert await damaged(database) == []


async def test_what_is_damaged_and_gone_is_not_reported_any_more(
    database: Database, repo_id: str
) -> None:
    await put_blob(database, repo_id, CONTENT)
    spoil(database, blob_key(sha256(CONTENT)), Path.unlink)
    await scrub(database)
    async with database.transaction() as conn:
        await conn.execute("DELETE FROM repo_blobs")
        await conn.execute("DELETE FROM blobs")

    await scrub(database)

    assert await damaged(database) == []


async def test_a_day_reads_as_much_as_the_settings_say_the_oldest_first(
    database: Database, repo_id: str
) -> None:
    for number in range(3):
        await put_blob(database, repo_id, b"%d" % number * 100)
        clock.move(timedelta(hours=1))

    done = await scrubber.scrub(database, unchecked_since=clock.now(), most_bytes=150)

    assert done == Scrubbed(objects=2, bytes=200)
    async with database.read() as conn:
        left = await scrub_store.list_unchecked(conn, before=clock.micros() - 60_000_000, limit=10)
    assert [each.digest for each in left if each.size == 100] == [sha256(b"2" * 100)]


async def test_the_storage_is_scrubbed_every_day_and_each_object_every_month(
    database: Database, repo_id: str
) -> None:
    await put_blob(database, repo_id, CONTENT)
    spoil(database, blob_key(sha256(CONTENT)))
    async with database.transaction() as conn:
        await scrubber.schedule(conn)

    await drain(database)
    assert await damaged(database) == []

    clock.move(timedelta(days=31))
    await drain(database)
    assert len(await damaged(database)) == 1
