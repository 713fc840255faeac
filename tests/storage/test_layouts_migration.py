"""Contents that were cut when all repositories saw the same segments."""

from collections.abc import AsyncIterator

import pytest

from hublet.core.database import Database, open_database
from hublet.core.database.migrations import known_migrations, migrate
from hublet.repos import blobs_store, usage_store
from hublet.repos.xet import ingestion_store, store
from processes import Place
from scratch_database import hub_of

NUMBER = 24
BEFORE = """
INSERT INTO users (id, name, fullname, type, is_admin, created_at) VALUES
    ('ada', 'ada', 'ada', 'user', FALSE, 1);
INSERT INTO repos (
    id, type, owner_id, name, name_key, visibility, creator_id, tags, created_at, updated_at
) VALUES
    ('git', 'model', 'ada', 'git', 'git', 'public', 'ada', '[]', 1, 1),
    ('box', 'bucket', 'ada', 'box', 'box', 'public', 'ada', '[]', 1, 1);
INSERT INTO blobs (sha256, size, git_sha1, xet_hash, is_whole, created_at) VALUES
    ('cut', 9, 'git id', 'first', FALSE, 5), ('whole', 3, NULL, NULL, TRUE, 5);
INSERT INTO xorbs (hash, chunks, size, stored_size, created_at) VALUES ('xorb', 2, 9, 25, 5);
INSERT INTO blob_segments (
    sha256, position, xorb, start_chunk, end_chunk, start_byte, end_byte, size
) VALUES ('cut', 0, 'xorb', 0, 1, 0, 12, 4), ('cut', 1, 'xorb', 1, 2, 12, 25, 5);
INSERT INTO xet_files (hash, sha256) VALUES ('a second', 'cut'), ('first', 'cut');
INSERT INTO repo_blobs (repo_id, sha256, pushed_at) VALUES ('git', 'cut', 5), ('git', 'whole', 5);
INSERT INTO repo_files (repo_id, path, sha256, size, modified_at, uploaded_at) VALUES
    ('box', 'one', 'cut', 9, 5, 5), ('box', 'two', 'cut', 9, 5, 5);
INSERT INTO repo_xorbs (repo_id, xorb) VALUES ('git', 'xorb');
INSERT INTO repo_chunks (repo_id, chunk, xorb, next_xorbs) VALUES ('git', 'chunk', 'xorb', '[]');
"""


@pytest.fixture
async def migrated(place: Place) -> AsyncIterator[Database]:
    place.data_dir.mkdir()
    known = known_migrations()
    async with open_database(hub_of(place.settings)) as database:
        await migrate(database, [each for each in known if each.number < NUMBER])
        async with database.transaction() as conn:
            await conn.apply(BEFORE)
        await migrate(database, known)
        yield database


async def test_every_holder_keeps_the_segments_and_all_file_hashes(migrated: Database) -> None:
    async with migrated.read() as conn:
        for repo_id in ("git", "box"):
            content = (await blobs_store.find_contents(conn, repo_id, ["cut"]))["cut"]
            assert (content.xet_hash, content.is_whole) == ("first", False)
            assert [(each.xorb, each.start_byte) for each in content.segments] == [
                ("xorb", 0),
                ("xorb", 12),
            ]
            files = await store.find_files(conn, repo_id, ["first", "a second"])
            assert {file.sha256 for file in files.values()} == {"cut"}
            assert files.keys() == {"first", "a second"}


async def test_uploads_use_the_xorbs_as_before(migrated: Database) -> None:
    async with migrated.read() as conn:
        [xorb] = (await store.find_xorbs(conn, "git", ["xorb"])).values()
        assert (xorb.name, xorb.hash, xorb.stored_size) == ("xorb", "xorb", 25)
        assert await store.find_chunk_xorbs(conn, "git", "chunk") == [xorb]


async def test_what_was_not_cut_waits_for_it(migrated: Database) -> None:
    async with migrated.read() as conn:
        assert await usage_store.count_uncut(conn) == 1
        [content] = await ingestion_store.list_uncut(conn, "git", limit=9)
        assert (content.sha256, content.is_whole) == ("whole", True)


async def test_the_id_in_git_stays_with_the_repository(migrated: Database) -> None:
    async with migrated.read() as conn:
        blobs = await blobs_store.find_in_repo(conn, "git", ["cut", "whole"])
    assert {digest: blob.git_sha1 for digest, blob in blobs.items()} == {
        "cut": "git id",
        "whole": None,
    }
