"""The folder of one machine as a store: spools, objects, and what is removed."""

import hashlib
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hublet.storage.contents import put_blob
from hublet.storage.object_store import (
    NEVER,
    LocalStore,
    ObjectKey,
    blob_key,
    part_key,
    xorb_key,
)
from hublet.storage.records import Blob
from repos.git_objects import git_sha1

CONTENT = b"0123456789"
DIGEST = hashlib.sha256(CONTENT).hexdigest()
LONG_AGO = datetime(2001, 9, 9, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path)


def put(store: LocalStore, key: ObjectKey, content: bytes = CONTENT) -> None:
    with store.new_spool(hashed=False) as spool:
        spool.write(content)
        store.put(key, spool)


def age(store: LocalStore, key: ObjectKey) -> None:
    os.utime(store.local_path(key), (LONG_AGO.timestamp(), LONG_AGO.timestamp()))


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_a_copy_is_another_name_of_the_same_file(store: LocalStore, tmp_path: Path) -> None:
    put(store, part_key("a"))
    age(store, part_key("a"))

    for _ in range(2):
        store.copy(part_key("a"), blob_key(DIGEST), size=len(CONTENT))
    found = store.stat(blob_key(DIGEST))
    store.delete([part_key("a")], before=NEVER)

    assert found is not None
    assert found.modified_at > LONG_AGO
    assert store.read(blob_key(DIGEST)) == CONTENT
    assert names_in(tmp_path) == [DIGEST]


def test_a_copy_is_written_where_files_have_one_name(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path, __: Path) -> None:
        raise PermissionError

    put(store, part_key("a"))
    monkeypatch.setattr(Path, "hardlink_to", refuse)

    store.copy(part_key("a"), blob_key(DIGEST), size=len(CONTENT))

    assert store.read(blob_key(DIGEST)) == CONTENT


def test_what_is_shorter_than_it_should_be_is_not_copied(store: LocalStore) -> None:
    put(store, part_key("a"))

    with pytest.raises(EOFError):
        store.copy(part_key("a"), blob_key(DIGEST), size=len(CONTENT) + 1)
    with pytest.raises(FileNotFoundError):
        store.copy(part_key("b"), blob_key(DIGEST), size=len(CONTENT))

    assert store.stat(blob_key(DIGEST)) is None


def test_a_spool_is_kept_under_its_digest(store: LocalStore, tmp_path: Path) -> None:
    with store.new_spool() as spool:
        spool.write(CONTENT[:4])
        spool.write(CONTENT[4:])
        git_name = spool.git_sha1()
        blob = put_blob(store, spool)

    assert blob == Blob(sha256=DIGEST, size=10)
    assert git_name == git_sha1(CONTENT)
    assert b"".join(store.pieces(blob_key(DIGEST), 0, 10)) == CONTENT
    assert names_in(tmp_path) == [DIGEST]


def test_with_the_size_known_gits_name_is_found_on_the_way(store: LocalStore) -> None:
    with store.new_spool(size=20) as spool:
        spool.write(CONTENT)
        spool.write_all([CONTENT[:3], CONTENT[3:]])
        blob = put_blob(store, spool)

    assert blob.git_sha1 == git_sha1(CONTENT * 2)


def test_what_is_not_kept_vanishes(store: LocalStore, tmp_path: Path) -> None:
    with store.new_spool() as spool:
        spool.write(CONTENT)

    assert names_in(tmp_path) == []


def test_a_part_of_an_object_is_read_alone(store: LocalStore) -> None:
    put(store, xorb_key(DIGEST))

    assert b"".join(store.pieces(xorb_key(DIGEST), 2, 5)) == b"234"
    with pytest.raises(EOFError):
        list(store.pieces(xorb_key(DIGEST), 2, 11))
    with pytest.raises(FileNotFoundError):
        list(store.pieces(blob_key(DIGEST), 0, 1))


def test_objects_are_listed_by_kind(store: LocalStore) -> None:
    assert list(store.list("blobs")) == []
    put(store, blob_key(DIGEST))
    put(store, xorb_key(DIGEST), b"other")

    assert [(each.key, each.size) for each in store.list("xorbs")] == [(xorb_key(DIGEST), 5)]
    assert store.stat(blob_key(DIGEST)) == next(store.list("blobs"))
    assert store.stat(blob_key("0" * 64)) is None


def test_only_old_objects_are_deleted(store: LocalStore, tmp_path: Path) -> None:
    old, new = blob_key("a" * 64), blob_key("b" * 64)
    for key in (old, new):
        put(store, key)
    age(store, old)

    store.delete([old, new, blob_key("c" * 64)], before=LONG_AGO + timedelta(days=1))

    assert (store.stat(old), store.stat(new) is None) == (None, False)
    assert names_in(tmp_path) == [new.name]


def test_an_object_that_is_put_again_is_new(store: LocalStore) -> None:
    put(store, blob_key(DIGEST))
    age(store, blob_key(DIGEST))
    put(store, blob_key(DIGEST))

    store.delete([blob_key(DIGEST)], before=LONG_AGO + timedelta(days=1))

    assert store.stat(blob_key(DIGEST)) is not None
