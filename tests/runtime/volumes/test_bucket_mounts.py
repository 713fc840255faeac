"""Buckets as volumes: an attempt gets a copy, and its changes go back in the creator's name."""

import os
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from hublet.accounts.records import User
from hublet.core.database import Database
from hublet.events import RepoFilesUpdated
from hublet.jobs.records import JobRecord
from hublet.runtime.errors import CannotRun
from hublet.runtime.records import BindMount
from hublet.runtime.volumes import write_back
from hublet.tokens.delegations import Delegation
from outbox_events import published_events
from people import Headers, a_user, sign_in
from runtime.volumes.mounts import (
    BOX,
    a_bucket,
    a_job,
    after,
    attempt_of,
    bucket,
    contents,
    in_bucket,
    mounted,
    prepared,
    put_file,
)


async def news(database: Database) -> list[tuple[str, str]]:
    facts = await published_events(database, RepoFilesUpdated)
    return [(file["action"], file["path"]) for fact in facts for file in fact["updated_files"]]


async def test_an_attempt_gets_a_copy_of_its_own(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_bucket(client, ada, a="1", deep__er__b="2")
    job = await a_job(client, database, ada, bucket())

    found = await prepared(database, job)

    source = attempt_of(database, job) / "volumes" / "0" / "files"
    mount = BindMount(
        source=source,
        target="/box",
        read_only=False,
        snapshot=source.with_name("handed.json"),
    )
    assert found.binds == (mount,)
    assert contents(source) == {"a": b"1", "deep/er/b": b"2"}
    assert (source / "a").stat().st_nlink == 1
    second = await mounted(database, job, number=2)
    assert second != source
    assert contents(second) == contents(source)


async def test_what_an_attempt_added_replaced_and_deleted_is_so_in_the_bucket(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_bucket(client, ada, same="1", old="2", gone="3", file="4")
    job = await a_job(client, database, ada, bucket())
    folder = await mounted(database, job)
    (folder / "old").write_text("new")
    (folder / "gone").unlink()
    # A folder in the place of a file.
    (folder / "file").unlink()
    (folder / "file").mkdir()
    (folder / "file" / "in.txt").write_text("added")
    before = len(await news(database))

    assert await after(database, job) == []

    assert await in_bucket(client, ada) == {"same": "1", "old": "new", "file/in.txt": "added"}
    assert (await news(database))[before:] == [
        ("delete", "file"), ("delete", "gone"), ("add", "old"), ("add", "file/in.txt")
    ]  # fmt: skip
    actor = (await published_events(database, RepoFilesUpdated))[-1]["actor_id"]
    assert actor == (await a_user(database, "ada")).id
    head = await client.head(f"{BOX}/files/file/in.txt", headers=ada)
    assert head.headers["content-type"].startswith("text/plain")


async def test_what_was_written_back_is_not_written_again(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_bucket(client, ada, a="1")
    job = await a_job(client, database, ada, bucket())
    (await mounted(database, job) / "a").write_text("from the job")
    await after(database, job)
    await put_file(client, ada, "a", "from somebody later")

    assert await after(database, job) == []
    # An attempt that is prepared again keeps what it has.
    folder = await mounted(database, job)

    assert await in_bucket(client, ada) == {"a": "from somebody later"}
    assert contents(folder) == {"a": b"from the job"}


async def test_what_did_not_change_is_not_touched(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_bucket(client, ada, a="1", b="2", c="3")
    job = await a_job(client, database, ada, bucket())
    folder = await mounted(database, job)
    # The same again, and only another time: neither is a change.
    (folder / "a").write_text("1")
    os.utime(folder / "b", (0, 0))
    await put_file(client, ada, "a", "theirs")
    await put_file(client, ada, "b", "theirs")
    before = await news(database)

    assert await after(database, job) == []

    assert await in_bucket(client, ada) == {"a": "theirs", "b": "theirs", "c": "3"}
    assert await news(database) == before


async def test_a_change_that_kept_size_and_time_is_seen(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_bucket(client, ada, a="1")
    job = await a_job(client, database, ada, bucket())
    file = await mounted(database, job) / "a"
    was = file.stat()
    file.write_text("2")
    os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))

    await after(database, job)

    assert await in_bucket(client, ada) == {"a": "2"}


async def test_what_somebody_else_replaced_is_not_deleted(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_bucket(client, ada, a="1", b="2")
    job = await a_job(client, database, ada, bucket())
    folder = await mounted(database, job)
    (folder / "a").unlink()
    (folder / "b").unlink()
    await put_file(client, ada, "a", "theirs")

    assert await after(database, job) == []

    assert await in_bucket(client, ada) == {"a": "theirs"}


async def test_a_read_only_bucket_takes_nothing_back(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_bucket(client, ada, a="1")
    job = await a_job(client, database, ada, bucket(readOnly=True))
    (bind,) = (await prepared(database, job)).binds
    (bind.source / "a").write_text("2")

    assert bind.read_only
    assert await after(database, job) == []
    assert await in_bucket(client, ada) == {"a": "1"}


async def test_a_path_is_all_that_an_attempt_sees_and_changes(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_bucket(client, ada, runs__a="1", runs__b="2", runsaway="3")
    job = await a_job(client, database, ada, bucket(path="runs"))
    folder = await mounted(database, job)

    assert contents(folder) == {"a": b"1", "b": b"2"}
    (folder / "a").unlink()
    (folder / "c").write_text("4")
    await after(database, job)

    assert await in_bucket(client, ada) == {"runs/b": "2", "runs/c": "4", "runsaway": "3"}


async def test_an_empty_bucket_is_an_empty_folder(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_bucket(client, ada)
    job = await a_job(client, database, ada, bucket())
    folder = await mounted(database, job)

    assert list(folder.iterdir()) == []
    (folder / "first").write_text("1")
    await after(database, job)

    assert await in_bucket(client, ada) == {"first": "1"}


async def test_links_pipes_and_names_that_no_bucket_has_stay_behind(
    client: httpx2.AsyncClient, database: Database, ada: Headers, tmp_path: Path
) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "key").write_text("of the hub")
    await a_bucket(client, ada, a="1")
    job = await a_job(client, database, ada, bucket())
    folder = await mounted(database, job)
    (folder / "link").symlink_to(tmp_path / "private" / "key")
    (folder / "linked").symlink_to(tmp_path / "private")
    # What was a file is none any more.
    (folder / "a").unlink()
    (folder / "a").symlink_to(tmp_path / "private" / "key")
    os.mkfifo(folder / "pipe")
    (folder / "back\\slash").write_text("2")
    (folder / os.fsdecode(b"\xff")).write_text("3")
    (folder / "good").write_text("4")

    refusals = await after(database, job)

    assert await in_bucket(client, ada) == {"good": "4"}
    no_path = "was not written back: This is no path of a file:"
    no_backslash = "its parts are separated by '/', and it has no backslash."
    assert refusals == [
        "volumes[0]: 'a' was not written back: It is a link.",
        "volumes[0]: 'link' was not written back: It is a link.",
        "volumes[0]: 'linked' was not written back: It is a link.",
        "volumes[0]: 'pipe' was not written back: It is a pipe.",
        f"volumes[0]: 'back\\\\slash' {no_path} {no_backslash}",
        f"volumes[0]: '\\udcff' {no_path} it is valid Unicode text.",
    ]


async def test_a_file_that_is_too_large_stays_behind(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_bucket(client, ada)
    job = await a_job(client, database, ada, bucket())
    folder = await mounted(database, job)
    (folder / "large").write_text("12345")
    (folder / "small").write_text("1234")
    settings = database.hub.settings
    limits = replace(settings.limits, file_bytes=4)
    database.hub = replace(database.hub, settings=replace(settings, limits=limits))

    refusals = await after(database, job)

    assert refusals == [
        "volumes[0]: 'large' was not written back: A file must have at most 4 bytes."
    ]
    assert await in_bucket(client, ada) == {"small": "1234"}


async def test_a_path_that_somebody_else_took_meanwhile_stays_behind_alone(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_bucket(client, ada)
    job = await a_job(client, database, ada, bucket())
    folder = await mounted(database, job)
    (folder / "x").write_text("a file")
    (folder / "y").write_text("another")
    await put_file(client, ada, "x/in", "a folder")

    refusals = await after(database, job)

    rule = "a path, or one that it begins with, cannot be a file and a folder at once."
    assert refusals == [f"volumes[0]: x was not written back: x: {rule}"]
    assert await in_bucket(client, ada) == {"x/in": "a folder", "y": "another"}


async def test_many_changes_go_back_in_batches(
    client: httpx2.AsyncClient, database: Database, ada: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_back, "_BATCH", 2)
    await a_bucket(client, ada, a="1", b="2", c="3")
    job = await a_job(client, database, ada, bucket())
    folder = await mounted(database, job)
    for name in "abc":
        (folder / name).unlink()
    for name in "defgh":
        (folder / name).write_text(name)

    assert await after(database, job) == []

    assert await in_bucket(client, ada) == {name: name for name in "defgh"}


def as_if_of(job: JobRecord, user: User) -> JobRecord:
    """Return the job as if it were another user's."""
    return replace(
        job, owner_id=user.id, creator_id=user.id, delegation=Delegation(user_id=user.id)
    )


async def test_nothing_is_written_back_without_the_right_to_write(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_bucket(client, ada, a="1")
    job = await a_job(client, database, ada, bucket())
    (await mounted(database, job) / "a").write_text("2")
    grace = await a_user(database, "grace")
    # As if the job were somebody's who may only read by now.
    (await client.put(f"{BOX}/settings", headers=ada, json={"private": False})).raise_for_status()
    job = as_if_of(job, grace)

    refusals = await after(database, job)

    assert await in_bucket(client, ada) == {"a": "1"}
    (refusal,) = refusals
    assert refusal.startswith("volumes[0]: ada/box was not written back: ")
    assert refusal.endswith("you have no write access to it.")
    with pytest.raises(CannotRun) as refused:
        await prepared(database, job, number=2)
    assert str(refused.value) == (
        "volumes[0]: you may not write to the bucket ada/box; mount it with readOnly"
    )


async def test_another_bucket_of_the_same_name_is_left_alone(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_bucket(client, ada, a="1")
    job = await a_job(client, database, ada, bucket())
    (await mounted(database, job) / "b").write_text("2")
    (await client.delete(BOX, headers=ada)).raise_for_status()
    await a_bucket(client, ada, c="3")

    refusals = await after(database, job)

    assert await in_bucket(client, ada) == {"c": "3"}
    why = "The bucket that was mounted is not there any more."
    assert refusals == [f"volumes[0]: ada/box was not written back: {why}"]


async def test_a_stranger_cannot_have_a_private_bucket_mounted(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_bucket(client, ada, a="1")
    job = await a_job(client, database, ada, bucket())
    await sign_in(database, "grace")
    job = as_if_of(job, await a_user(database, "grace"))

    with pytest.raises(CannotRun, match="there is no bucket ada/box"):
        await prepared(database, job)

    assert not attempt_of(database, job).exists()
