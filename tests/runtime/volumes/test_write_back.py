"""What cannot be written back into a bucket is told of, and is in nobody's way."""

import errno
import os
import socket
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest

from hublet.core import clock
from hublet.core.database import Database, DatabaseUnavailable
from hublet.jobs.records import JobRecord
from hublet.runtime.errors import CannotRun, CannotRunYet
from hublet.runtime.volumes import bucket_mounts, preparation, write_back
from hublet.runtime.volumes.records import BucketDiff, ChangedFile
from people import Headers
from runtime.deep_folders import nested
from runtime.unprivileged import not_root
from runtime.volumes.mounts import (
    a_bucket,
    a_job,
    after,
    attempt_of,
    bucket,
    in_bucket,
    mounted,
    prepared,
    put_file,
)


@pytest.fixture
async def job(client: httpx2.AsyncClient, database: Database, ada: Headers) -> JobRecord:
    """One that mounts a bucket with some files."""
    await a_bucket(client, ada, a="1", deep__b="2", deep__er__c="3")
    return await a_job(client, database, ada, bucket())


@pytest.mark.parametrize("depth", [256, 2100])
async def test_folders_that_are_nested_too_deeply_stay_behind_alone(
    client: httpx2.AsyncClient, database: Database, ada: Headers, job: JobRecord, depth: int
) -> None:
    folder = await mounted(database, job)
    (folder / "a").unlink()
    (folder / "new").write_text("4")
    with nested(folder / "deep", depth):
        refusals = await after(database, job)

    deepest = "/".join(["deep", *["d"] * 255])
    why = "Folders may be nested 255 deep."
    assert refusals == [f"volumes[0]: '{deepest}' was not written back: {why}"]
    assert await in_bucket(client, ada) == {"deep/b": "2", "deep/er/c": "3", "new": "4"}


async def test_what_is_nested_as_deep_as_may_be_comes_back_and_forth(
    client: httpx2.AsyncClient, database: Database, ada: Headers, job: JobRecord
) -> None:
    with nested(await mounted(database, job) / "deep", 254):
        assert await after(database, job) == []

    bottom = "/".join(["deep", *["d"] * 254, "bottom"])
    assert (await in_bucket(client, ada))[bottom] == ""
    assert (await mounted(database, job, number=2) / bottom).exists()


async def test_a_bucket_that_is_nested_too_deeply_is_not_mounted(
    client: httpx2.AsyncClient, database: Database, ada: Headers, job: JobRecord
) -> None:
    await put_file(client, ada, "d/" * 256 + "file", "1")

    with pytest.raises(CannotRun) as refused:
        await prepared(database, job)

    rule = "its folders are nested more than 255 deep"
    assert str(refused.value) == f"A volume cannot be mounted: {rule}"


async def test_a_path_that_is_too_long_for_the_machine_is_not_tried_again(
    client: httpx2.AsyncClient, database: Database, ada: Headers, job: JobRecord
) -> None:
    await put_file(client, ada, f"{'d' * 250}/" * 16 + "file", "1")

    with pytest.raises(CannotRun) as refused:
        await prepared(database, job)

    assert str(refused.value) == "its volumes have a path that is too long for this machine"


@pytest.mark.parametrize("mode", [0o000, 0o400, 0o300])
async def test_nothing_in_a_closed_folder_counts_as_deleted(
    client: httpx2.AsyncClient, database: Database, ada: Headers, job: JobRecord, mode: int
) -> None:
    folder = await mounted(database, job)
    (folder / "a").unlink()
    (folder / "deep" / "new").write_text("4")
    data_dir = database.hub.settings.database.data_dir
    with not_root(data_dir):
        (folder / "deep").chmod(mode)
        refusals = await after(database, job)

    why = "It cannot be read: Permission denied."
    assert refusals == [f"volumes[0]: 'deep' was not written back: {why}"]
    assert await in_bucket(client, ada) == {"deep/b": "2", "deep/er/c": "3"}


async def test_a_bucket_that_was_closed_as_a_whole_stays_as_it_was(
    client: httpx2.AsyncClient, database: Database, ada: Headers, job: JobRecord
) -> None:
    folder = await mounted(database, job)
    with not_root(database.hub.settings.database.data_dir):
        folder.chmod(0)
        refusals = await after(database, job)

    why = "It cannot be read: Permission denied."
    assert refusals == [f"volumes[0]: ada/box was not written back: {why}"]
    assert await in_bucket(client, ada) == {"a": "1", "deep/b": "2", "deep/er/c": "3"}


async def test_a_closed_file_stays_behind_alone(
    client: httpx2.AsyncClient, database: Database, ada: Headers, job: JobRecord
) -> None:
    folder = await mounted(database, job)
    (folder / "a").write_text("4")
    (folder / "deep" / "b").write_text("5")
    with not_root(database.hub.settings.database.data_dir):
        (folder / "a").chmod(0)
        refusals = await after(database, job)

    why = "It cannot be read: Permission denied."
    assert refusals == [f"volumes[0]: 'a' was not written back: {why}"]
    assert await in_bucket(client, ada) == {"a": "1", "deep/b": "5", "deep/er/c": "3"}


async def test_sockets_are_told_of_and_much_is_told_of_in_one_line(
    database: Database, job: JobRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = await mounted(database, job)
    monkeypatch.chdir(folder)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("0-socket")
    for number in range(150):
        (folder / f"link-{number:03}").symlink_to("a")

    refusals = await after(database, job)

    assert len(refusals) == 101
    assert refusals[0] == "volumes[0]: '0-socket' was not written back: It is a socket."
    assert refusals[99] == "volumes[0]: 'link-098' was not written back: It is a link."
    assert refusals[100] == "volumes[0]: 51 more were not written back."


def failing_with(error: Exception) -> object:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("step", ["store_blob", "compare"])
async def test_what_may_pass_is_tried_again_for_ten_minutes(
    database: Database,
    job: JobRecord,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    step: str,
) -> None:
    (await mounted(database, job) / "new").write_text("4")
    with monkeypatch.context() as broken:
        broken.setattr(bucket_mounts, step, failing_with(OSError(number, "The disk is ill")))
        for _ in range(2):
            with pytest.raises(OSError, match="The disk is ill"):
                await after(database, job)
            clock.move(timedelta(minutes=9))
        refusals = await after(database, job)

    assert refusals == ["volumes[0]: ada/box was not written back: The disk is ill."]
    assert await after(database, job) == []


async def test_what_has_passed_is_written_back(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    job: JobRecord,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (await mounted(database, job) / "a").write_text("4")
    full = OSError(errno.ENOSPC, "No space left on device")
    with monkeypatch.context() as broken:
        broken.setattr(bucket_mounts, "store_blob", failing_with(full))
        with pytest.raises(OSError, match="No space"):
            await after(database, job)

    assert await after(database, job) == []

    assert (await in_bucket(client, ada))["a"] == "4"


@pytest.mark.parametrize(
    ("error", "why"),
    [
        pytest.param(OSError(errno.ESTALE, "Moved away"), "Moved away.", id="the disk"),
        pytest.param(
            RecursionError(), "Something in it is nested too deeply.", id="what calls itself"
        ),
    ],
)
async def test_what_does_not_pass_is_not_tried_again(
    database: Database, job: JobRecord, monkeypatch: pytest.MonkeyPatch, error: Exception, why: str
) -> None:
    await mounted(database, job)
    monkeypatch.setattr(bucket_mounts, "compare", failing_with(error))

    assert await after(database, job) == [f"volumes[0]: ada/box was not written back: {why}"]


async def test_a_database_that_is_away_loses_nothing(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    job: JobRecord,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (await mounted(database, job) / "a").write_text("4")
    away = failing_with(DatabaseUnavailable("restarting"))
    with monkeypatch.context() as broken:
        broken.setattr(write_back, "get_delegate", away)
        broken.setattr(preparation, "get_delegate_of_job", away)
        with pytest.raises(DatabaseUnavailable):
            await after(database, job)
        with pytest.raises(CannotRunYet):
            await prepared(database, job, number=2)

    assert await after(database, job) == []

    assert (await in_bucket(client, ada))["a"] == "4"


@pytest.mark.parametrize("moment", [-(10**22), 10**22])
async def test_a_time_that_no_calendar_has_is_no_obstacle(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    job: JobRecord,
    monkeypatch: pytest.MonkeyPatch,
    moment: int,
) -> None:
    (await mounted(database, job) / "a").write_text("4")
    seen = ChangedFile(path="a", size=1, modified=moment)
    diff = BucketDiff(changed=[seen], removed=[], skipped=[])
    # Not every file system has such times.
    monkeypatch.setattr(bucket_mounts, "compare", lambda *_: diff)

    assert await after(database, job) == []

    assert (await in_bucket(client, ada))["a"] == "4"


async def test_a_note_that_cannot_be_touched_holds_up_nobody(
    database: Database, job: JobRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    await mounted(database, job)
    ill = failing_with(OSError(errno.EIO, "The disk is ill"))
    with monkeypatch.context() as broken:
        broken.setattr(bucket_mounts, "compare", ill)
        broken.setattr(os, "utime", ill)
        broken.setattr(Path, "unlink", ill)
        refusals = await after(database, job)

    assert refusals == ["volumes[0]: ada/box was not written back: The disk is ill."]
    assert (attempt_of(database, job) / "volumes" / "0" / "handed.json").exists()
