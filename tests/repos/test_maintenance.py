"""Keeping bare repositories in shape: the list of refs, and packing."""

import os
import shutil
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest

from hublet.core import clock
from hublet.core.database import Database
from hublet.repos import maintenance
from hublet.repos.git import bare_repos, quarantine
from people import Headers
from repos.git_objects import commit_files, git_sha1
from repos.pushes import MAIN, Pusher, a_pusher
from workers import drain

LONG_AGO = timedelta(days=15)


@pytest.fixture
async def pusher(
    client: httpx2.AsyncClient, database: Database, ada: Headers, tmp_path: Path
) -> Pusher:
    return await a_pusher(client, database, ada, tmp_path)


def loose(folder: Path) -> int:
    return sum(1 for _ in (folder / "objects").glob("[0-9a-f][0-9a-f]/*"))


def packs(folder: Path) -> int:
    return sum(1 for _ in (folder / "objects" / "pack").glob("*.pack"))


def make_old(folder: Path) -> None:
    """Let everything in the repository have been written long ago."""
    then = (clock.now() - LONG_AGO).timestamp()
    for path in (folder / "objects").rglob("*"):
        os.utime(path, (then, then))


async def tasks_of(database: Database) -> list[tuple[str, int]]:
    async with database.read() as conn:
        rows = await conn.fetch_all(
            "SELECT id, due_at FROM tasks WHERE kind = $1", maintenance.REPACK
        )
    return [(row["id"], row["due_at"]) for row in rows]


async def test_the_list_of_refs_is_written_when_they_changed_and_only_then(
    pusher: Pusher, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, repo_id = pusher.database, pusher.repo.id
    written: list[int] = []
    write = bare_repos.write_packed_refs

    def write_and_note(folder: Path, refs: dict[str, str], *, version: int) -> None:
        written.append(version)
        write(folder, refs, version=version)

    monkeypatch.setattr(bare_repos, "write_packed_refs", write_and_note)
    for _ in range(2):
        assert await maintenance.sync_packed_refs(database, repo_id) == pusher.folder
    await pusher.push(("refs/heads/a", None, pusher.head))
    for _ in range(2):
        await maintenance.sync_packed_refs(database, repo_id)

    assert written == [0, 1]
    assert "refs/heads/a" in (pusher.folder / "packed-refs").read_text()


async def test_pushes_plan_one_look_an_hour_later(pusher: Pusher) -> None:
    before = clock.micros()
    for name in ("refs/heads/a", "refs/heads/b"):
        await pusher.push((name, None, pusher.head))
        await drain(pusher.database)

    [(key, due_at)] = await tasks_of(pusher.database)
    assert key == f"repos.pack.{pusher.repo.id}"
    assert timedelta(0) <= timedelta(microseconds=due_at - before) - maintenance.REPACK_EVERY
    assert timedelta(microseconds=due_at - before) - maintenance.REPACK_EVERY < timedelta(minutes=1)


async def test_a_small_repository_is_left_alone(pusher: Pusher) -> None:
    before = loose(pusher.folder)

    assert not await maintenance.repack_if_needed(pusher.database, pusher.repo.id)
    assert loose(pusher.folder) == before > 0


async def test_many_packs_become_one_and_nothing_is_lost(
    pusher: Pusher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bare_repos, "MOST_PACKS", 2)
    commits = [pusher.head]
    for number in range(3):
        commits.append(pusher.clone.commit({"a.txt": b"%d" % number}, commits[-1]))
        await pusher.push(
            (MAIN, commits[-2], commits[-1]), pack=pusher.clone.pack(commits[-1])
        )  # fmt: skip
    make_old(pusher.folder)

    assert packs(pusher.folder) == 3
    assert await maintenance.repack_if_needed(pusher.database, pusher.repo.id)

    assert (packs(pusher.folder), loose(pusher.folder)) == (1, 0)
    repository = bare_repos.open_repository(pusher.folder)
    assert all(sha in repository for sha in commits)
    assert await pusher.refs() == {MAIN: commits[-1]}


async def test_many_loose_objects_become_a_pack(
    pusher: Pusher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bare_repos, "MOST_LOOSE", 255)
    # Git estimates by one folder of 256, and so do we.
    number = next(n for n in range(100_000) if git_sha1(b"%d" % n).startswith("17"))
    sha = commit_files(pusher.folder, {"a": b"%d" % number}, parents=(pusher.head,))
    await pusher.push((MAIN, pusher.head, sha))

    assert await maintenance.repack_if_needed(pusher.database, pusher.repo.id)

    assert (packs(pusher.folder), loose(pusher.folder)) == (1, 0)
    assert sha in bare_repos.open_repository(pusher.folder)


async def test_only_what_nothing_has_pointed_to_for_long_is_dropped(
    pusher: Pusher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bare_repos, "MOST_PACKS", 0)
    old = pusher.clone.commit({"a.txt": b"old"}, pusher.head)
    await pusher.push(("refs/heads/a", None, old), pack=pusher.clone.pack(old))
    await pusher.push(("refs/heads/a", old, None))
    make_old(pusher.folder)
    # Objects of a change that is just being written: nothing points to them yet.
    coming = commit_files(pusher.folder, {"a": b"coming"}, parents=(pusher.head,))

    assert await maintenance.repack_if_needed(pusher.database, pusher.repo.id)

    repository = bare_repos.open_repository(pusher.folder)
    assert [sha in repository for sha in (pusher.head, old, coming)] == [True, False, True]


async def test_refs_count_as_the_table_has_them_not_as_git_last_saw_them(
    pusher: Pusher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bare_repos, "MOST_PACKS", 0)
    new = pusher.clone.commit({"a.txt": b"new"})
    await pusher.push((MAIN, pusher.head, new), pack=pusher.clone.pack(new))
    make_old(pusher.folder)

    # The list that git has shows main where it was before the push.
    assert bare_repos.packed_refs_version(pusher.folder) == 0
    await maintenance.repack_if_needed(pusher.database, pusher.repo.id)

    repository = bare_repos.open_repository(pusher.folder)
    assert [sha in repository for sha in (pusher.head, new)] == [False, True]


async def test_what_a_dead_push_left_is_cleared_away_after_a_day(pusher: Pusher) -> None:
    fresh, stale = quarantine.create(pusher.folder), quarantine.create(pusher.folder)
    yesterday = (clock.now() - timedelta(hours=25)).timestamp()
    os.utime(stale, (yesterday, yesterday))

    await maintenance.repack_if_needed(pusher.database, pusher.repo.id)

    assert (fresh.exists(), stale.exists()) == (True, False)


async def test_a_repository_that_is_being_deleted_is_left_alone(
    pusher: Pusher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bare_repos, "MOST_PACKS", -1)
    body = {"name": "engine", "type": "model"}
    await pusher.client.request("DELETE", "/api/repos/delete", headers=pusher.headers, json=body)

    assert not await maintenance.repack_if_needed(pusher.database, pusher.repo.id)
    shutil.rmtree(pusher.folder)
    assert not await maintenance.repack_if_needed(pusher.database, pusher.repo.id)


async def test_the_worker_packs_when_the_hour_is_over(
    pusher: Pusher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bare_repos, "MOST_PACKS", 0)
    new = pusher.clone.commit({"a.txt": b"new"}, pusher.head)
    await pusher.push((MAIN, pusher.head, new), pack=pusher.clone.pack(new))
    await drain(pusher.database)

    assert loose(pusher.folder) > 0
    clock.move(maintenance.REPACK_EVERY)
    await drain(pusher.database)

    assert (packs(pusher.folder), loose(pusher.folder)) == (1, 0)
    assert await tasks_of(pusher.database) == []
