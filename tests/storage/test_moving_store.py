"""Content moves from one store to another, and the hub reads and writes meanwhile."""

import hashlib
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from hublet.core.clock import now
from hublet.storage import content_move
from hublet.storage.content_move import copy_content
from hublet.storage.contents import put_blob
from hublet.storage.moving_store import MovingStore
from hublet.storage.object_store import (
    NEVER,
    LocalStore,
    ObjectKey,
    ObjectStore,
    blob_key,
    open_store_at,
)

LOG = ObjectKey("logs", "job/1/0-5")
OLD = b"old"


@pytest.fixture
def old(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "old")


@pytest.fixture
def new(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "new")


@pytest.fixture
def moving(old: LocalStore, new: LocalStore) -> MovingStore:
    return MovingStore(new, old)


def put(store: ObjectStore, content: bytes) -> ObjectKey:
    with store.new_spool() as spool:
        spool.write(content)
        return blob_key(put_blob(store, spool).sha256)


def contents(store: ObjectStore) -> dict[ObjectKey, bytes]:
    return {
        each.key: store.read(each.key) for kind in content_move.KINDS for each in store.list(kind)
    }


def test_the_hub_reads_both_and_writes_the_first(
    moving: MovingStore, old: LocalStore, new: LocalStore
) -> None:
    first, second = put(old, OLD), put(moving, b"new")

    assert moving.read(first) == OLD
    assert b"".join(moving.pieces(second, 1, 3)) == b"ew"
    assert b"".join(moving.pieces(first, 1, 3)) == b"ld"
    assert list(moving.pieces(first, 1, 1)) == []
    assert {each.key for each in moving.list("blobs")} == {first, second}
    assert (new.stat(first), old.stat(second)) == (None, None)
    assert moving.local_path(first) == old.local_path(first)
    assert moving.local_path(second) == new.local_path(second)
    assert pickle.loads(pickle.dumps(moving)).read(first) == OLD
    with pytest.raises(FileNotFoundError):
        moving.read(blob_key("a" * 64))


def test_what_is_deleted_is_deleted_in_both_and_what_was_put_again_stays(
    moving: MovingStore, old: LocalStore
) -> None:
    gone, again = put(old, b"gone"), put(old, b"again")
    old.put_bytes(LOG, b"lines")
    for key in (gone, again, LOG):
        os.utime(old.local_path(key), (0, 0))
    copy_content(old, moving.store)
    moving.put_bytes(fresh := ObjectKey("logs", "job/1/5-9"), b"more")
    os.utime(LocalStore.local_path(moving.store, gone), (0, 0))  # type: ignore[arg-type]
    put(moving, b"again")

    moving.delete([gone, again, LOG, fresh], before=now() - timedelta(hours=1))

    assert {key.name for key in contents(moving)} == {again.name, fresh.name}
    moving.delete([fresh], before=NEVER)
    assert moving.stat(fresh) is None


def test_everything_is_copied_once_and_the_second_time_nothing_is(
    old: LocalStore, new: LocalStore
) -> None:
    for number in range(300):
        put(old, b"%d" % number)
    old.put_bytes(LOG, b"lines")

    would = copy_content(old, new, dry_run=True)
    assert (would.copied, contents(new)) == (301, {})
    moved = copy_content(old, new, verify=True)
    again = copy_content(old, new, verify=True)

    assert contents(new) == contents(old)
    assert (moved.copied, moved.present, again.copied, again.present) == (301, 0, 0, 301)
    assert moved.copied_bytes == sum(map(len, contents(old).values()))


def test_what_is_damaged_is_told_and_not_copied(old: LocalStore, new: LocalStore) -> None:
    sound, broken, changed = put(old, b"sound"), put(old, b"broken"), put(old, b"changed")
    old.local_path(broken).write_bytes(b"brokeN")
    copy_content(old, new)
    new.local_path(changed).write_bytes(b"changeD")

    assert copy_content(old, new).damaged == (broken,)
    assert set(copy_content(old, new, verify=True).damaged) == {broken, changed}
    assert new.stat(broken) is None
    assert new.read(sound) == b"sound"


def test_what_is_deleted_while_it_is_copied_stays_deleted(
    moving: MovingStore, old: LocalStore, new: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = put(old, OLD)
    old.put_bytes(LOG, b"lines")
    pieces, put_spool = LocalStore.pieces, LocalStore.put

    def delete_after_read(
        self: LocalStore, key: ObjectKey, start: int, end: int
    ) -> Iterator[bytes]:
        yield from pieces(self, key, start, end)
        if key.kind == "blobs":
            moving.delete([key], before=NEVER)

    def delete_before_put(
        self: LocalStore, key: ObjectKey, *given: object, **named: object
    ) -> None:
        if key == LOG:
            moving.delete([key], before=NEVER)
        put_spool(self, key, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(LocalStore, "pieces", delete_after_read)
    monkeypatch.setattr(LocalStore, "put", delete_before_put)
    moved = copy_content(old, new)

    assert (moved.copied, moving.stat(key), moving.stat(LOG)) == (0, None, None)


_MOVE = """
import sys
from pathlib import Path
from hublet.storage.content_move import copy_content
from hublet.storage.object_store import open_store_at
source, target, folder = sys.argv[1:]
copy_content(
    open_store_at(source, Path(folder)),
    open_store_at(target, Path(folder)),
    on_progress=lambda moved: print(moved.copied, flush=True),
)
"""


@pytest.mark.full
def test_a_folder_goes_to_a_bucket_and_back_through_kills_while_it_is_used(
    bucket_url: str, tmp_path: Path
) -> None:
    folder, back = f"file://{tmp_path}/folder", f"file://{tmp_path}/back"
    first = open_store_at(folder, tmp_path)
    expected: dict[ObjectKey, bytes] = {}
    for number in range(400):
        data = hashlib.sha256(b"%d" % number).digest() * (number + 1)
        expected[put(first, data)] = data
    first.put_bytes(LOG, b"lines")
    expected[LOG] = b"lines"

    for source, target in ((folder, bucket_url), (bucket_url, back)):
        moving = MovingStore(open_store_at(target, tmp_path), open_store_at(source, tmp_path))
        for kill in range(6):
            process = subprocess.Popen(
                [sys.executable, "-c", _MOVE, source, target, str(tmp_path)],
                stdout=subprocess.PIPE,
                text=True,
            )
            assert process.stdout is not None
            for _ in range(10 * kill + 1):
                process.stdout.readline()
            # The hub goes on: it writes, reads and deletes.
            data = f"{target} {kill}".encode()
            expected[put(moving, data)] = data
            gone = next(iter(expected))
            moving.delete([gone], before=NEVER)
            del expected[gone]
            assert all(moving.read(key) == expected[key] for key in list(expected)[:20])
            process.send_signal(signal.SIGKILL)
            process.wait()
            process.stdout.close()
        before = contents(moving.store)
        moved = copy_content(moving.previous, moving.store, verify=True)
        assert moved.damaged == ()
        assert moved.present + moved.copied == len(contents(moving.previous))
        assert before.items() <= contents(moving.store).items()
        held = contents(moving.store)
        assert all(held[key] == data for key, data in expected.items())
        # Only a copy that was under way at the moment of the kill may be left of what was deleted.
        assert len(held) - len(expected) <= 6
        moving.store.delete([key for key in held if key not in expected], before=NEVER)
    assert contents(open_store_at(back, tmp_path)) == expected
