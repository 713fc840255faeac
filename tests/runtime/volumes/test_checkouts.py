"""Repositories as volumes: a commit becomes a folder that jobs share."""

import asyncio
import os
from pathlib import Path
from time import sleep

import httpx2
import pygit2
import pytest
from pygit2.enums import FileMode

from hublet.core.clock import micros
from hublet.core.database import Database
from hublet.first_start import prepare as start
from hublet.jobs.records import Stage
from hublet.repos.git import bare_repos
from hublet.runtime.errors import CannotRun, CannotRunYet, CommitTooLarge, NestedTooDeeply
from hublet.runtime.records import BindMount
from hublet.runtime.volumes import checkouts
from hublet.storage.object_store import LocalStore
from jobs.jobs_api import set_row
from people import Headers, sign_in
from repos.content import pointer, put, put_blob
from repositories import a_repo
from runtime.volumes.mounts import a_job, contents, model, mounted, prepared
from workers import drain

WEEK = 7 * 86400


@pytest.fixture
async def engine(client: httpx2.AsyncClient, ada: Headers) -> str:
    """The id of a private model."""
    return await a_repo(client, ada, "ada/engine", private=True)


def checkout_folder(database: Database, repo_id: str, commit: str) -> Path:
    data_dir = database.hub.settings.database.data_dir
    return data_dir / "jobs" / "volumes" / repo_id / commit


async def test_a_commit_is_mounted_as_it_was_when_the_job_was_made(
    client: httpx2.AsyncClient, database: Database, ada: Headers, engine: str
) -> None:
    commit = await put(database, engine, {"a": b"1", "deep/er/b": b"2"})
    job = await a_job(client, database, ada, model())
    await put(database, engine, {"a": b"later"})

    found = await prepared(database, job)

    folder = checkout_folder(database, engine, commit)
    assert found.binds == (BindMount(source=folder, target="/data", read_only=True),)
    assert contents(folder) == {"a": b"1", "deep/er/b": b"2"}
    assert (found.image, found.argv, found.content) == ("ubuntu", ("true",), None)
    # Nothing half-written lies beside it.
    assert [path.name for path in folder.parent.iterdir()] == [commit]


async def test_large_files_have_their_content_and_pointers_are_no_right_to_one(
    client: httpx2.AsyncClient, database: Database, ada: Headers, engine: str
) -> None:
    own = await put_blob(database, engine, b"weights")
    # Somebody else's: the repository only knows its digest.
    await put_blob(database, None, b"private")
    files = {"own.bin": pointer(b"weights"), "stolen.bin": pointer(b"private")}
    await put(database, engine, files)

    folder = await mounted(database, await a_job(client, database, ada, model()))

    assert contents(folder) == {"own.bin": b"weights", "stolen.bin": pointer(b"private")}
    # Whoever writes to the mounted file does not write into the hub's blobs.
    assert (folder / "own.bin").stat().st_nlink == 1
    assert own.size == 7


async def test_a_pointer_that_lies_about_the_size_stays_a_pointer(
    client: httpx2.AsyncClient, database: Database, ada: Headers, engine: str
) -> None:
    await put_blob(database, engine, b"weights")
    lie = pointer(b"weights").replace(b"size 7", b"size 8")
    await put(database, engine, {"a.bin": lie})

    folder = await mounted(database, await a_job(client, database, ada, model()))

    assert contents(folder) == {"a.bin": lie}


def commit_modes(folder: Path, items: dict[str, tuple[bytes, FileMode]]) -> str:
    repository = bare_repos.open_repository(folder)
    builder = repository.TreeBuilder()
    for name, (data, mode) in items.items():
        builder.insert(name, repository.create_blob(data), mode)
    who = pygit2.Signature("ada", "ada@example.com", 0, 0)
    return str(repository.create_commit(None, who, who, "Modes.", builder.write(), []))


def test_modes_and_links_are_kept_and_no_link_is_followed(tmp_path: Path) -> None:
    git = tmp_path / "git"
    bare_repos.create_empty(git)
    items = {
        "run": (b"#!/bin/sh\n", FileMode.BLOB_EXECUTABLE),
        "text": (b"1", FileMode.BLOB),
        "out": (b"/etc", FileMode.LINK),
    }
    checkout = checkouts.Checkout(
        git=git, commit=commit_modes(git, items), folder=tmp_path / "x" / "y"
    )

    assert checkouts.is_present(checkout) is False
    checkouts.write_checkout(LocalStore(tmp_path), checkout, {})
    checkouts.write_checkout(LocalStore(tmp_path), checkout, {})

    assert checkouts.is_present(checkout) is True
    modes = {p.name: p.lstat().st_mode & 0o777 for p in checkout.folder.iterdir()}
    assert (modes["run"], modes["text"]) == (0o755, 0o644)
    assert (checkout.folder / "out").readlink() == Path("/etc")
    assert checkouts.find_inside(checkout.folder, "out") is None
    assert checkouts.find_inside(checkout.folder, "text") is None


def a_bomb(tmp_path: Path, *, depth: int, width: int) -> checkouts.Checkout:
    """A commit of few objects: each folder holds the next one under several names."""
    git = tmp_path / "git"
    bare_repos.create_empty(git)
    repository = bare_repos.open_repository(git)
    item, mode = repository.create_blob(b"boom"), FileMode.BLOB
    for _ in range(depth):
        builder = repository.TreeBuilder()
        for number in range(width):
            builder.insert(f"{number}", item, mode)
        item, mode = builder.write(), FileMode.TREE
    who = pygit2.Signature("ada", "ada@example.com", 0, 0)
    commit = str(repository.create_commit(None, who, who, "Boom.", item, []))
    return checkouts.Checkout(git=git, commit=commit, folder=tmp_path / "x" / "y")


@pytest.mark.parametrize("limit", ["entries", "bytes"])
def test_a_bomb_of_shared_folders_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    bomb = a_bomb(tmp_path, depth=4, width=10)
    entries, size = (11_109, 40_000) if limit == "entries" else (11_110, 39_999)
    monkeypatch.setattr(checkouts, "MAX_ENTRIES", entries)
    monkeypatch.setattr(checkouts, "MAX_SIZE", size)

    with pytest.raises(CommitTooLarge) as refused:
        checkouts.list_large(bomb)

    rule = "11,109 entries" if limit == "entries" else "0 GiB"
    sentence = f"The commit {bomb.commit} is too large to be mounted: it has more than {rule}."
    assert str(refused.value) == sentence


def test_a_commit_within_the_limits_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folded = a_bomb(tmp_path, depth=3, width=4)
    monkeypatch.setattr(checkouts, "MAX_ENTRIES", 84)
    monkeypatch.setattr(checkouts, "MAX_SIZE", 4 * 64)

    assert checkouts.list_large(folded) == {}
    checkouts.write_checkout(LocalStore(tmp_path), folded, {})

    assert len(contents(folded.folder)) == 64


def test_folders_nested_without_end_are_refused(tmp_path: Path) -> None:
    bomb = a_bomb(tmp_path, depth=3000, width=1)

    with pytest.raises(NestedTooDeeply):
        checkouts.list_large(bomb)
    with pytest.raises(NestedTooDeeply):
        checkouts.write_checkout(LocalStore(tmp_path), bomb, {})

    assert list(bomb.folder.parent.iterdir()) == []


async def test_a_bomb_ends_the_job(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    engine: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commit = await put(database, engine, {"a": b"1", "b": b"2"})
    job = await a_job(client, database, ada, model())
    monkeypatch.setattr(checkouts, "MAX_ENTRIES", 1)

    with pytest.raises(CannotRun) as refused:
        await prepared(database, job)

    rule = "it has more than 1 entries"
    assert str(refused.value) == f"The commit {commit} is too large to be mounted: {rule}"


async def test_of_large_files_only_second_copies_count(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    engine: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await put_blob(database, engine, b"weights")
    await put(database, engine, {"a": pointer(b"weights"), "b": pointer(b"weights")})
    job = await a_job(client, database, ada, model())

    monkeypatch.setattr(checkouts, "MAX_SIZE", 6)
    with pytest.raises(CannotRun, match="too large"):
        await prepared(database, job)
    monkeypatch.setattr(checkouts, "MAX_SIZE", 7)

    assert contents(await mounted(database, job)) == {"a": b"weights", "b": b"weights"}


async def test_whoever_is_cancelled_has_the_writing_end(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    engine: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commit = await put(database, engine, {f"{number:03}": b"1" for number in range(200)})
    job = await a_job(client, database, ada, model())
    begun, write_item = asyncio.Event(), checkouts._write_item  # noqa: SLF001
    loop, written = asyncio.get_running_loop(), list[Path]()

    def write_slowly(item: pygit2.Object, target: Path) -> None:
        loop.call_soon_threadsafe(begun.set)
        written.append(target)
        sleep(0.05)
        write_item(item, target)

    monkeypatch.setattr(checkouts, "_write_item", write_slowly)
    preparing = asyncio.create_task(prepared(database, job))
    await begun.wait()
    preparing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await preparing

    assert len(written) < 200
    assert list(checkout_folder(database, engine, commit).parent.iterdir()) == []


async def test_a_path_mounts_only_what_lies_in_it(
    client: httpx2.AsyncClient, database: Database, ada: Headers, engine: str
) -> None:
    await put(database, engine, {"a": b"1", "deep/er/b": b"2"})
    job = await a_job(client, database, ada, model(path="deep/er"))
    missing = await a_job(client, database, ada, model(path="deep/sea"))

    assert contents(await mounted(database, job)) == {"b": b"2"}
    with pytest.raises(CannotRun) as refused:
        await prepared(database, missing)
    assert str(refused.value) == "volumes[0]: ada/engine has no folder deep/sea"


async def test_jobs_share_a_commit_and_it_is_written_once(
    client: httpx2.AsyncClient, database: Database, ada: Headers, engine: str
) -> None:
    await put(database, engine, {"a": b"1"})
    first = await mounted(database, await a_job(client, database, ada, model()))
    inode = (first / "a").stat().st_ino

    second = await mounted(database, await a_job(client, database, ada, model()))

    assert second == first
    assert (second / "a").stat().st_ino == inode


async def test_each_attempt_needs_the_right_that_the_creator_has_then(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    grace = await sign_in(database, "grace")
    repo_id = await a_repo(client, grace, "grace/engine")
    await put(database, repo_id, {"a": b"1"})
    job = await a_job(client, database, ada, model(source="grace/engine"))
    await mounted(database, job)
    response = await client.put(
        "/api/models/grace/engine/settings", headers=grace, json={"private": True}
    )
    assert response.status_code == 200

    with pytest.raises(CannotRun) as refused:
        await prepared(database, job, number=2)

    sentence = "volumes[0]: there is no model grace/engine, or you cannot read it"
    assert str(refused.value) == sentence


async def test_a_creator_whose_account_is_off_mounts_nothing(
    client: httpx2.AsyncClient, database: Database, ada: Headers, engine: str
) -> None:
    await put(database, engine, {"a": b"1"})
    job = await a_job(client, database, ada, model())
    async with database.transaction() as conn:
        await conn.execute("UPDATE users SET disabled_at = 1 WHERE name = 'ada'")

    with pytest.raises(CannotRun, match=r"has no account on this hub any more$"):
        await prepared(database, job)


async def test_a_full_disk_is_a_reason_to_try_later(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    engine: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commit = await put(database, engine, {"a": b"1"})
    job = await a_job(client, database, ada, model())

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(checkouts, "_sync", fail)
        with pytest.raises(CannotRunYet) as refused:
            await prepared(database, job)

    assert str(refused.value) == "its volumes cannot be written: No space left on device"
    folder = checkout_folder(database, engine, commit)
    assert list(folder.parent.iterdir()) == []
    assert contents(await mounted(database, job)) == {"a": b"1"}


async def test_a_repository_whose_folder_is_gone_is_refused(
    client: httpx2.AsyncClient, database: Database, ada: Headers, engine: str
) -> None:
    commit = await put(database, engine, {"a": b"1"})
    job = await a_job(client, database, ada, model())
    bare_repos.remove(bare_repos.folder_of(database.hub.settings.database.data_dir, engine))

    with pytest.raises(CannotRun) as refused:
        await prepared(database, job)

    assert str(refused.value) == (
        f"Invalid rev id: there is no revision {commit} in this repository"
    )


def age(folder: Path, seconds: int) -> None:
    moment = micros() / 1e6 - seconds
    os.utime(folder, (moment, moment))


async def test_what_no_job_mounted_for_a_week_is_cleared_away(
    client: httpx2.AsyncClient, database: Database, ada: Headers, engine: str
) -> None:
    await put(database, engine, {"a": b"1"})
    over = await a_job(client, database, ada, model())
    old = await mounted(database, over)
    await set_row(database, over.id, stage=Stage.completed)
    await put(database, engine, {"a": b"2"})
    running = await mounted(database, await a_job(client, database, ada, model()))
    await put(database, engine, {"a": b"3"})
    third = await a_job(client, database, ada, model())
    young = await mounted(database, third)
    await set_row(database, third.id, stage=Stage.completed)
    interrupted = old.parent / ".incoming-x"
    interrupted.mkdir()
    for folder, seconds in [
        (old, WEEK + 60), (running, WEEK + 60), (young, WEEK - 60), (interrupted, WEEK + 60)
    ]:  # fmt: skip
        age(folder, seconds)

    await checkouts.prune(database)

    kept = [folder.exists() for folder in (old, running, young, interrupted)]
    assert kept == [False, True, True, False]


async def test_mounting_makes_a_commit_used_again(
    client: httpx2.AsyncClient, database: Database, ada: Headers, engine: str
) -> None:
    await put(database, engine, {"a": b"1"})
    job = await a_job(client, database, ada, model())
    folder = await mounted(database, job)
    age(folder, WEEK + 60)
    await mounted(database, job, number=2)
    await set_row(database, job.id, stage=Stage.completed)

    await checkouts.prune(database)

    assert folder.exists()


async def test_a_start_sweeps_and_a_sweep_plans_the_next(database: Database) -> None:
    data_dir = database.hub.settings.database.data_dir
    old = data_dir / "jobs" / "volumes" / ("a" * 24) / ("b" * 40)
    old.mkdir(parents=True)
    age(old, WEEK + 60)

    await start(database)
    await drain(database)

    assert not old.exists()
    async with database.read() as conn:
        waiting = await conn.fetch_value(
            "SELECT count(*) FROM tasks WHERE kind = $1", checkouts.PRUNE_TASK
        )
    assert waiting == 1
