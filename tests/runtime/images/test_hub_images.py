"""Images of this hub's own registry in jobs: with whose rights, and without any HTTP."""

import asyncio
import shutil
import tarfile
from dataclasses import replace
from datetime import timedelta
from io import BytesIO
from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI

from hublet.core import clock
from hublet.core.database import Database
from hublet.core.ids import new_object_id
from hublet.jobs import store as jobs_store
from hublet.jobs.logs.reader import log_path
from hublet.jobs.records import JobRecord
from hublet.runtime.errors import CannotRun
from hublet.runtime.images import oci, rootfs
from hublet.runtime.images.pulled_files import PulledFiles, images_folder
from hublet.runtime.images.pulls import ImagePuller
from hublet.runtime.records import ImageLogin
from hublet.runtime.supervisor.runner_selection import choose_runner
from hublet.runtime.supervisor.supervisor import Supervisor
from patience import SOON_SECONDS
from people import Headers, a_user
from registry.stored_images import a_config, a_manifest, an_index, store_image, store_manifest
from repositories import a_repo
from runtime.images.layouts import a_layer, entry, files_of
from runtime.supervisor.scripted_runner import ScriptedRunner
from runtime.supervisor.supervised_jobs import a_job, set_jobs, status

LAYER = a_layer(entry("tool", "mine"))
HERE = a_config("COPY tool /tool", architecture=oci.machine())
ELSEWHERE = a_config("COPY tool /tool", architecture="mips")


async def job_of(database: Database, owner: str) -> JobRecord:
    user = await a_user(database, owner)
    job_id = await a_job(database, owner)
    async with database.read() as conn:
        job = await jobs_store.find(conn, job_id, owner_id=user.id)
    assert job is not None
    return job


async def pull(database: Database, name: str, log: Path, *, owner: str = "ada") -> str:
    puller = ImagePuller(database)
    host = f"localhost:{database.hub.settings.server.port}"
    try:
        job = await job_of(database, owner)
        digest = await puller.pull(job, f"{host}/{name}", is_space=False, log_path=log)
    finally:
        await puller.close()
    assert digest is not None
    return digest


async def engine_image(
    database: Database, name: str, *, owner: str = "ada"
) -> tuple[str, ImageLogin] | None:
    puller = ImagePuller(database)
    try:
        return await puller.find_engine_image(await job_of(database, owner), name)
    finally:
        await puller.close()


async def downloads_of(client: httpx2.AsyncClient, ada: Headers) -> int:
    count: int = (await client.get("/api/containers/ada/tool", headers=ada)).json()["downloads"]
    return count


@pytest.fixture
async def repo_id(client: httpx2.AsyncClient, ada: Headers) -> str:
    return await a_repo(client, ada, "ada/tool", type="container", private=True)


async def test_a_pushed_image_is_pulled_from_the_store(
    database: Database, repo_id: str, tmp_path: Path
) -> None:
    digest = await store_image(database, repo_id, "1", layers=[LAYER], config=HERE)
    assert await pull(database, "ada/tool:1", tmp_path / "log") == digest
    cache = images_folder(database.hub.settings.database.data_dir)
    manifest = PulledFiles(cache).load_image(digest)
    assert manifest is not None
    assert files_of(rootfs.unpack_manifest(manifest, cache=cache)) == {"tool": "mine"}
    assert "Pulled 1 of 1 layers" in (tmp_path / "log").read_text()


async def test_of_an_index_the_image_for_this_machine_is_taken(
    database: Database, repo_id: str, tmp_path: Path
) -> None:
    mine = await store_image(database, repo_id, layers=[LAYER], config=HERE)
    await store_image(database, repo_id, layers=[LAYER], config=ELSEWHERE)
    index = an_index(
        {
            "linux/mips": a_manifest(ELSEWHERE, [LAYER]),
            f"linux/{oci.machine()}": a_manifest(HERE, [LAYER]),
        }
    )
    await store_manifest(database, repo_id, index, "latest")
    assert await pull(database, "ada/tool", tmp_path / "log") == mine


async def test_somebody_who_may_not_read_the_image_learns_nothing(
    database: Database, repo_id: str, tmp_path: Path
) -> None:
    await store_image(database, repo_id, "1", layers=[LAYER], config=HERE)
    sentences = set[str]()
    for name in ("ada/tool:1", "ada/none:1"):
        with pytest.raises(CannotRun) as refused:
            await pull(database, name, tmp_path / "log", owner="bob")
        sentences.add(str(refused.value).replace("none", "tool"))
    [sentence] = sentences
    assert sentence == (
        "This hub has no image ada/tool:1 that the creator of the job may read: push it, or check "
        "the name and the tag."
    )


async def test_a_second_pull_writes_nothing_into_the_log(
    database: Database, repo_id: str, tmp_path: Path
) -> None:
    await store_image(database, repo_id, "1", layers=[LAYER], config=HERE)
    await pull(database, "ada/tool:1", tmp_path / "log")
    await pull(database, "ada/tool:1", tmp_path / "second")
    assert not (tmp_path / "second").exists()


def a_busybox() -> bytes:
    """A layer with one program that needs nothing else."""
    program = Path(shutil.which("busybox") or "").read_bytes()
    written = BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz") as file:
        member = tarfile.TarInfo("bin/sh")
        member.size, member.mode = len(program), 0o755
        file.addfile(member, BytesIO(program))
    return written.getvalue()


@pytest.mark.skipif(
    shutil.which("bwrap") is None or shutil.which("busybox") is None,
    reason="bubblewrap or busybox is not installed.",
)
async def test_a_job_runs_a_pushed_image_and_its_log_begins_with_the_pull(
    database: Database, repo_id: str
) -> None:
    await store_image(database, repo_id, "1", layers=[a_busybox()], config=HERE)
    set_jobs(database, runner="sandbox", images=(), cores=100, memory_bytes=2**50)
    settings = database.hub.settings
    image = f"localhost:{settings.server.port}/ada/tool:1"
    command = ["/bin/sh", "-c", "echo from the image; test ! -e /usr"]
    choice = await choose_runner(settings)
    assert choice.runner is not None
    assert choice.capabilities.usable, choice.capabilities.sentence
    job_id = await a_job(database, dockerImage=image, command=command)
    supervisor = Supervisor(database, new_object_id(), choice.runner)
    supervisor.start()
    try:
        async with asyncio.timeout(SOON_SECONDS):
            while (await status(database, job_id))[0] not in {"COMPLETED", "ERROR"}:
                await asyncio.sleep(0.05)
    finally:
        await supervisor.finish()
        await supervisor.abandon()
    lines = log_path(settings.database.data_dir, job_id).read_text().splitlines()
    texts = [line.partition(" ")[2] for line in lines]
    assert (await status(database, job_id))[0] == "COMPLETED", texts
    assert texts[0].startswith(f"===== Pulling {image}: 1 layer, ")
    assert texts[1].startswith("===== Pulled 1 of 1 layers, ")
    assert texts[2].startswith("===== Job started at ")
    assert texts[3] == "from the image"


async def test_a_job_whose_image_cannot_be_pulled_ends_with_the_sentence(
    database: Database, repo_id: str
) -> None:
    set_jobs(database, images=(), cores=100, memory_bytes=2**50)
    image = f"localhost:{database.hub.settings.server.port}/ada/tool:none"
    job_id = await a_job(database, dockerImage=image)
    supervisor = Supervisor(database, new_object_id(), ScriptedRunner(name="sandbox"))
    for _ in range(100):
        await supervisor.step_all()
        if (await status(database, job_id))[0] == "ERROR":
            break
    stage, message = await status(database, job_id)
    await supervisor.abandon()
    assert stage == "ERROR"
    assert message is not None
    assert "This hub has no image ada/tool:none that the creator of the job may read" in message


async def test_an_engine_gets_the_digest_and_a_login_that_is_good_for_the_image(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    digest = await store_image(database, repo_id, "1", layers=[LAYER], config=HERE)
    host = f"localhost:{database.hub.settings.server.port}"

    found = await engine_image(database, f"{host}/ada/tool:1")

    assert found is not None
    assert found[0] == f"{host}/ada/tool@{digest}"
    assert found[1].password not in repr(found[1])
    pulled = await client.get(
        "/v2/ada/tool/manifests/1", headers={"Authorization": f"Bearer {found[1].password}"}
    )
    assert pulled.status_code == 200


async def test_the_login_of_an_engine_lives_as_long_as_it_may_try(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    set_jobs(database, start_seconds=7200)
    await store_image(database, repo_id, "1", layers=[LAYER], config=HERE)
    name = f"localhost:{database.hub.settings.server.port}/ada/tool:1"
    found = await engine_image(database, name)
    assert found is not None
    login = {"Authorization": f"Bearer {found[1].password}"}

    async def read_after(seconds: int) -> int:
        clock.move(timedelta(seconds=seconds))
        try:
            return (await client.get("/v2/ada/tool/manifests/1", headers=login)).status_code
        finally:
            clock.reset()

    assert await read_after(7200) == 200
    assert await read_after(7200 + 301) == 401


async def test_an_engine_does_not_run_for_one_what_it_pulled_for_another(
    database: Database, repo_id: str
) -> None:
    await store_image(database, repo_id, "1", layers=[LAYER], config=HERE)
    name = f"localhost:{database.hub.settings.server.port}/ada/tool:1"

    with pytest.raises(CannotRun, match="may read"):
        await engine_image(database, name, owner="bob")
    assert await engine_image(database, "ubuntu") is None


async def test_a_job_is_one_download_of_its_image_also_when_it_is_tried_again(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str, tmp_path: Path
) -> None:
    await store_image(database, repo_id, "1", layers=[LAYER], config=HERE)
    image = f"localhost:{database.hub.settings.server.port}/ada/tool:1"
    first, second = [await job_of(database, "ada") for _ in range(2)]
    for job in (first, replace(first, attempt=2), second):
        # Another process looks after each attempt.
        puller = ImagePuller(database)
        await puller.pull(job, image, is_space=False, log_path=tmp_path / "log")
        await puller.close()

    assert await downloads_of(client, ada) == 2


async def test_what_an_engine_pulls_for_a_job_is_counted_once(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    await store_image(database, repo_id, "1", layers=[LAYER], config=HERE)
    host = f"localhost:{database.hub.settings.server.port}"
    found = await engine_image(database, f"{host}/ada/tool:1")
    assert found is not None

    login = {"Authorization": f"Bearer {found[1].password}"}
    await client.get("/v2/ada/tool/manifests/1", headers=login)
    await app.state.downloads.flush()

    assert await downloads_of(client, ada) == 1
