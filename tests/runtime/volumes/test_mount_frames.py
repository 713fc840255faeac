"""Volumes inside of volumes, in jobs that really run."""

import shutil

import httpx2
import pytest

from hublet.core.database import Database
from hublet.jobs.records import JobRecord
from hublet.runtime.errors import CannotRun
from hublet.runtime.sandbox.runner import sandbox_runner
from hublet.runtime.volumes import mount_frames
from people import Headers
from repos.content import put
from repositories import a_repo
from runtime.attempts import HOST, Run, an_order
from runtime.volumes.mounts import (
    a_bucket,
    a_job,
    after,
    attempt_of,
    bucket,
    in_bucket,
    model,
    prepared,
)

pytestmark = pytest.mark.skipif(
    shutil.which("bwrap") is None, reason="bubblewrap is not installed."
)

FILES = {"a": b"1\n", "sub/b": b"2\n", "sub/er/c": b"3\n"}


@pytest.fixture
async def engine(client: httpx2.AsyncClient, database: Database, ada: Headers) -> str:
    """The id of a model with some files; there is a bucket too."""
    await a_bucket(client, ada, x="4\n")
    repo_id = await a_repo(client, ada, "ada/engine")
    await put(database, repo_id, FILES)
    return repo_id


async def printed(database: Database, job: JobRecord, script: str) -> list[str]:
    """Run something with the volumes of a job, to its end; return what it printed."""
    data_dir = database.hub.settings.database.data_dir
    # Asked again it is the same.
    binds = (await prepared(database, job)).binds
    assert (await prepared(database, job)).binds == binds
    runner = sandbox_runner(data_dir, image_map=HOST, network=False)
    folder = attempt_of(database, job)
    order = an_order(data_dir, "sh", "-c", script, job_id=job.id, folder=folder, binds=binds)
    run = Run(runner=runner, order=order, handle=await runner.launch(order))
    seen = await run.ended()
    assert seen.exit_code == 0, (seen, run.lines())
    return run.lines()


async def test_a_bucket_in_a_commit_that_has_no_folder_for_it(
    client: httpx2.AsyncClient, database: Database, ada: Headers, engine: str
) -> None:
    job = await a_job(
        client, database, ada, bucket(mountPath="/data/out"), model(), bucket(mountPath="/a")
    )

    script = """cd /data; find . | sort; cat a sub/b sub/er/c out/x
        echo 5 > out/new; touch a sub/b new sub/new 2> /dev/null || echo no"""
    lines = await printed(database, job, script)

    places = [".", "./a", "./out", "./out/x", "./sub", "./sub/b", "./sub/er", "./sub/er/c"]
    assert lines == [*places, "1", "2", "3", "4", "no"]
    assert await after(database, job) == []
    assert await in_bucket(client, ada) == {"x": "4\n", "new": "5\n"}
    # Others who mount the commit see it as it is.
    other = await a_job(client, database, ada, model())
    (bind,) = (await prepared(database, other)).binds
    assert bind.source.parent.name == engine
    assert sorted(path.name for path in bind.source.iterdir()) == ["a", "sub"]


async def test_a_bucket_deep_in_folders_of_a_commit_and_one_in_that(
    client: httpx2.AsyncClient, database: Database, ada: Headers, engine: str
) -> None:
    places = ("/data/sub/x/y", "/data/sub/x/y/z", "/data/sub/er", "/data/a")
    job = await a_job(client, database, ada, model(), *(bucket(mountPath=p) for p in places))

    lines = await printed(database, job, "cd /data; find . -type f | sort")

    found = ["./a/x", "./sub/b", "./sub/er/x", "./sub/x/y/x", "./sub/x/y/z/x"]
    assert lines == found
    assert await after(database, job) == []
    assert await in_bucket(client, ada) == {"x": "4\n"}


@pytest.mark.parametrize("read_only", [False, True])
async def test_a_commit_in_a_bucket(
    client: httpx2.AsyncClient, database: Database, ada: Headers, engine: str, *, read_only: bool
) -> None:
    outer = bucket(mountPath="/box", readOnly=read_only)
    job = await a_job(client, database, ada, model(mountPath="/box/in/er"), outer)

    lines = await printed(database, job, "cd /box; find . -type f | sort")

    assert lines == ["./in/er/a", "./in/er/sub/b", "./in/er/sub/er/c", "./x"]
    assert await after(database, job) == []
    assert await in_bucket(client, ada) == {"x": "4\n"}


async def test_links_of_a_commit_lead_where_they_led(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    engine: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = await a_job(client, database, ada, model(), bucket(mountPath="/data/link/in"))
    beside = await a_job(client, database, ada, model(), bucket(mountPath="/data/out"))
    (bind,) = (await prepared(database, await a_job(client, database, ada, model()))).binds
    (bind.source / "link").symlink_to("sub/b")

    assert await printed(database, beside, "cat /data/link") == ["2"]
    with pytest.raises(CannotRun) as refused:
        await prepared(database, job)
    assert str(refused.value) == "Nothing can be mounted in /data/link: it is no folder"
    monkeypatch.setattr(mount_frames, "_MAX_ENTRIES", 2)
    with pytest.raises(CannotRun) as refused:
        await prepared(database, beside)
    assert str(refused.value) == "Nothing can be mounted in /data: it is too full"


async def test_nothing_is_mounted_in_the_place_of_a_file_of_a_bucket(
    client: httpx2.AsyncClient, database: Database, ada: Headers, engine: str
) -> None:
    job = await a_job(client, database, ada, bucket(), model(mountPath="/box/x/in"))

    with pytest.raises(CannotRun) as refused:
        await prepared(database, job)

    assert str(refused.value) == "Nothing can be mounted at /box/x/in: ada/box has a file there"
