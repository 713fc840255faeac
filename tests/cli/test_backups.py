"""Backups of a hub that does not run, and what is restored from them."""

import asyncio
import hashlib
import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import AsyncMock

import pytest

from cli.hublet_command import Hublet, in_hub
from cli.test_storage import add_repo, in_database
from hublet.backups import STORE_KINDS, BackupSummary
from hublet.core import metadata, queue
from hublet.core.config import Settings, load
from hublet.core.database import Connection, Database
from hublet.repos import pruning
from hublet.repos.reactions import sweep_blobs
from hublet.restore import restore
from hublet.storage import removals
from hublet.storage.epochs import get_epoch
from hublet.storage.object_store import NEVER, ObjectKey, ObjectStore, blob_key, open_store
from object_storage import ObjectStorage
from patience import SOON_SECONDS
from processes import wait_until
from repos.content import put_blob

AWKWARD = "tab\t, line\n, return\r, backslash \\, \\N, ünï\u2028 and \\x41"
BLOB = b"12345"


async def fill(database: Database) -> None:
    async with database.transaction() as conn:
        repo_id = await add_repo(conn)
        await metadata.set_value(conn, "awkward", AWKWARD)
        sealed = conn.hub.keys.seal(b"s3cret", context="here")
        await metadata.set_value(conn, "sealed", sealed.hex())
    await put_blob(database, repo_id, BLOB)


@pytest.fixture
def filled(hublet: Hublet, settings: Settings) -> Settings:
    assert hublet("migrate").code == 0
    in_database(settings, fill)
    return settings


@pytest.fixture
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that is not in that of the hub."""
    return tmp_path_factory.mktemp("outside")


@pytest.fixture
def saved(hublet: Hublet, filled: Settings, outside: Path) -> Path:
    """A backup of a hub that has something of everything."""
    assert hublet("backup", str(outside / "hub.tar")).code == 0
    return outside / "hub.tar"


def place_of(folder: Path, url: str | None = None) -> list[str]:
    return ["--data-dir", str(folder), *([] if url is None else ["--database-url", url])]


def settings_of(folder: Path, url: str | None = None) -> Settings:
    return load({"database.data_dir": folder, "database.url": url}, environ={})


@pytest.mark.parametrize("target", ["sqlite", "postgresql"])
def test_a_backup_is_restored_on_both_engines(
    hublet: Hublet,
    run: Hublet,
    filled: Settings,
    outside: Path,
    target: str,
    fresh_url: Callable[[], str],
) -> None:
    url = fresh_url() if target == "postgresql" else None
    name = "hub.tar.gz" if target == "postgresql" else "hub.tar"
    folder, file = outside / "new", outside / name
    made = hublet("backup", str(file), "--verify", "--json")
    restored = run("restore", str(file), "--json", *place_of(folder, url))

    assert (made.code, restored.code) == (0, 0), made.err + restored.err
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert restored.json == made.json
    checked = run("restore", str(file), "--check", "--json")
    assert checked.json == made.json
    settings = settings_of(folder, url)

    async def check(conn: Connection) -> None:
        assert await metadata.find(conn, "awkward") == AWKWARD
        sealed = bytes.fromhex(await metadata.find(conn, "sealed") or "")
        assert conn.hub.keys.open(sealed, context="here") == b"s3cret"
        # Clients forget what they uploaded after the backup.
        assert await get_epoch(conn) == 1
        assert not await removals.is_held(conn)

    in_hub(settings, check)
    assert open_store(settings).read(blob_key(hashlib.sha256(BLOB).hexdigest())) == BLOB
    assert run("storage", "verify", "--all", *place_of(folder, url)).code == 0
    assert run("storage", "usage", "--json", *place_of(folder, url)).json == (
        hublet("storage", "usage", "--json").json
    )


def test_a_backup_that_was_changed_or_cut_leaves_nothing_behind(
    run: Hublet, saved: Path, outside: Path
) -> None:
    whole = saved.read_bytes()
    changed, cut, foreign = outside / "changed.tar", outside / "cut.tar", outside / "foreign.tar"
    changed.write_bytes(whole.replace(BLOB + b"\0", b"12346\0"))
    cut.write_bytes(whole[: len(whole) // 2])
    in_a_file = outside / "in-a-file.tar"
    in_a_file.write_bytes(whole[: whole.index(BLOB + b"\0") + 2])
    foreign.write_text("not a backup")

    outcomes = [
        run("restore", str(file), *place_of(outside / "new"))
        for file in (changed, cut, foreign, in_a_file)
    ]

    assert [each.code for each in outcomes] == [1, 1, 1, 1]
    assert "is not as it was written. Take another backup." in outcomes[0].err
    assert "cannot be used" in outcomes[1].err
    assert "cannot be used" in outcomes[2].err
    assert "cannot be used" in outcomes[3].err
    assert list((outside / "new").iterdir()) == []


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedStores:
    """A backup of a hub with a shared store, and an empty store for hubs that are made of it."""

    file: Path
    place: list[str]
    store: ObjectStore

    def objects(self) -> list[ObjectKey]:
        return [each.key for kind in STORE_KINDS for each in self.store.list(kind)]


@pytest.fixture(params=["folder", pytest.param("bucket", marks=pytest.mark.full)])
def shared(
    run: Hublet, outside: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> SharedStores:
    url = f"file://{outside / 'store'}"
    if request.param == "bucket":
        url = request.getfixturevalue("bucket_url")
    old, file = outside / "old", outside / "hub.tar"
    monkeypatch.setenv("HUBLET_STORAGE_URL", url)
    assert run("migrate", *place_of(old)).code == 0
    in_database(shared_settings(old, url), fill)
    assert run("backup", str(file), *place_of(old)).code == 0
    empty = url.replace("?", "-new?") if request.param == "bucket" else f"{url}-new"
    monkeypatch.setenv("HUBLET_STORAGE_URL", empty)
    new = outside / "new"
    return SharedStores(
        file=file, place=place_of(new), store=open_store(shared_settings(new, empty))
    )


def test_a_restore_that_fails_leaves_nothing_in_a_shared_store(
    run: Hublet, shared: SharedStores, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = shared.file.read_bytes()
    changed, cut = outside / "changed.tar", outside / "cut.tar"
    changed.write_bytes(whole.replace(BLOB + b"\0", b"12346\0"))
    cut.write_bytes(whole[: whole.index(BLOB + b"\0") + 2])
    # What others keep there is not the restore's to remove.
    other = ObjectKey("images", "of/others")
    shared.store.put_bytes(other, b"other")

    outcomes = [run("restore", str(file), *shared.place) for file in (changed, cut)]
    with monkeypatch.context() as patch:
        patch.setattr("hublet.restore.keys_fit", AsyncMock(return_value=False))
        outcomes.append(run("restore", str(shared.file), *shared.place))

    assert [each.code for each in outcomes] == [1, 1, 1]
    assert "is not as it was written" in outcomes[0].err
    assert "cannot be used" in outcomes[1].err
    assert "The key ring does not belong to this database" in outcomes[2].err
    assert list((outside / "new").iterdir()) == []
    assert shared.objects() == []
    assert shared.store.read(other) == b"other"
    again = run("restore", str(shared.file), *shared.place)
    assert (again.code, len(shared.objects())) == (0, 1), again.err


async def test_a_restore_that_is_cancelled_leaves_nothing_behind(
    shared: SharedStores, outside: Path
) -> None:
    settings = shared_settings(outside / "new", str(os.environ["HUBLET_STORAGE_URL"]))
    task: asyncio.Task[BackupSummary]

    def cancel(_members: int, _bytes: int) -> None:
        if not task.cancelling():
            task.get_loop().call_soon_threadsafe(task.cancel)
            wait_until(lambda: task.cancelling() > 0, seconds=SOON_SECONDS)

    task = asyncio.create_task(restore(settings, str(shared.file), cancel))
    with pytest.raises(asyncio.CancelledError):
        await task
    # Which ends the threads.
    await asyncio.get_running_loop().shutdown_default_executor()

    assert list((outside / "new").iterdir()) == []
    assert shared.objects() == []


def test_a_backup_is_restored_only_where_there_is_no_hub(
    hublet: Hublet, run: Hublet, saved: Path, outside: Path, filled: Settings
) -> None:
    over = hublet("restore", str(saved))
    assert over.code == 1
    assert "a backup is restored where there is no hub" in over.err

    other = place_of(outside / "new", filled.database.url)
    if filled.database.url is not None:
        assert "The database is not empty" in run("restore", str(saved), *other).err


def test_a_name_that_is_taken_is_left_alone(hublet: Hublet, saved: Path) -> None:
    before = saved.read_bytes()

    again = hublet("backup", str(saved))

    assert (again.code, again.err) == (1, f"hublet: {saved} exists already: choose another name.\n")
    assert saved.read_bytes() == before


def test_a_backup_does_not_lie_in_the_data_folder(hublet: Hublet, filled: Settings) -> None:
    made = hublet("backup", str(filled.database.data_dir / "hub.tar"))

    assert (made.code, "lies in the data folder" in made.err) == (1, True)


def test_without_its_keys_a_backup_waits_for_them(
    hublet: Hublet, run: Hublet, filled: Settings, outside: Path
) -> None:
    file, folder = outside / "hub.tar", outside / "new"
    ring = filled.database.data_dir / "secret.keys"
    made = hublet("backup", str(file), "--without-keys")
    assert "without keys" in made.err
    assert ring.read_text().splitlines()[-1].encode() not in file.read_bytes()

    refused = run("restore", str(file), *place_of(folder))
    assert (refused.code, "The backup has no keys" in refused.err) == (1, True)
    shutil.copy(ring, folder)

    assert run("restore", str(file), *place_of(folder)).code == 0


def test_a_start_in_the_middle_of_a_restore_is_refused(run: Hublet, outside: Path) -> None:
    (outside / "new" / "restore-unfinished").mkdir(parents=True)

    started = run("migrate", *place_of(outside / "new"))

    assert (started.code, "did not end: empty the folder" in started.err) == (1, True)


def test_a_second_restore_after_one_that_was_killed_says_what_to_do(
    run: Hublet, shared: SharedStores, outside: Path
) -> None:
    # Where a kill comes while the first object is noted and put.
    (outside / "new" / "restore-unfinished").mkdir(parents=True)
    shared.store.put_bytes(blob_key(hashlib.sha256(BLOB).hexdigest()), BLOB)

    again = run("restore", str(shared.file), *shared.place)
    (outside / "new" / "restore-unfinished").rmdir()
    with_an_empty_folder = run("restore", str(shared.file), *shared.place)
    shared.store.delete(shared.objects(), before=NEVER)
    with_an_empty_store = run("restore", str(shared.file), *shared.place)

    assert again.err == (
        f"hublet: A restore into {outside / 'new'} did not end: empty the folder, and its shared store "
        "and its database elsewhere if it has such, and run `hublet restore` again.\n"
    )
    assert "or empty it if a restore that was killed has left that" in with_an_empty_folder.err
    assert (again.code, with_an_empty_folder.code, with_an_empty_store.code) == (1, 1, 0)


def test_nothing_is_removed_while_a_backup_is_made(
    hublet: Hublet, filled: Settings, outside: Path
) -> None:
    async def hold(conn: Connection) -> None:
        await removals.hold(conn, "backup-1")

    in_hub(filled, hold)

    assert hublet("storage", "prune").err == (
        "hublet: A backup is being made, and nothing is removed until it is done: try again after "
        "it.\n"
    )
    assert (
        "Another backup of this hub is being made"
        in hublet("backup", str(outside / "other.tar")).err
    )

    async def postpone(database: Database) -> int:
        await sweep_blobs(database, {})
        async with database.read() as conn:
            return await queue.next_due_of(conn, pruning.PRUNE_BLOBS) or 0

    assert in_database(filled, postpone) > 0


def test_a_hold_ends_with_its_backup(hublet: Hublet, saved: Path) -> None:
    assert saved.exists()
    assert hublet("storage", "prune").code == 0


@pytest.mark.full
def test_content_of_a_bucket_is_saved_in_a_bucket_and_restored_to_another(
    run: Hublet,
    bucket_url: str,
    object_storage: ObjectStorage,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old, new = place_of(tmp_path / "old"), place_of(tmp_path / "new")
    file = object_storage.url("saved/hub.tar.gz")
    other = object_storage.url("another")
    monkeypatch.setenv("HUBLET_STORAGE_URL", bucket_url)
    assert run("migrate", *old).code == 0
    in_database(shared_settings(tmp_path / "old", bucket_url), fill)

    made = run("backup", file, "--verify", "--json", *old)
    again = run("backup", file, *old)
    monkeypatch.setenv("HUBLET_STORAGE_URL", other)
    restored = run("restore", file, "--json", *new)

    assert (made.code, restored.code) == (0, 0), made.err + restored.err
    assert restored.json == made.json
    assert (again.code, "exists already" in again.err, "endpoint" in again.err) == (1, True, False)
    store = open_store(shared_settings(tmp_path / "new", other))
    assert store.read(blob_key(hashlib.sha256(BLOB).hexdigest())) == BLOB
    assert run("storage", "verify", "--all", *new).code == 0
    # A second one would mix with the first.
    full = run("restore", file, *place_of(tmp_path / "third"))
    assert (full.code, "The store is not empty" in full.err) == (1, True)
    monkeypatch.delenv("HUBLET_STORAGE_URL")
    alone = run("restore", file, *place_of(tmp_path / "third"))
    assert (alone.code, "storage.url is not set" in alone.err) == (1, True)


def shared_settings(folder: Path, url: str) -> Settings:
    return load({"database.data_dir": folder, "storage.url": url}, environ={})
