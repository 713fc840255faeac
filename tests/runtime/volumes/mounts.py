"""Volumes for tests: a job that mounts them, and its attempt without anything that runs."""

from pathlib import Path
from typing import Any

import httpx2

from hublet.core.database import Database
from hublet.jobs import store
from hublet.jobs.records import JobRecord
from hublet.runtime.volumes.preparation import prepare
from hublet.runtime.volumes.records import PreparedAttempt
from hublet.runtime.volumes.write_back import write_back
from jobs.jobs_api import run
from people import Headers, a_user

BOX = "/api/buckets/ada/box"


async def a_job(
    client: httpx2.AsyncClient, database: Database, who: Headers, *volumes: dict[str, Any]
) -> JobRecord:
    """A job of ada that mounts these."""
    created = await run(client, who, volumes=list(volumes))
    return await job_of(database, created["id"])


async def job_of(database: Database, job_id: str) -> JobRecord:
    owner = await a_user(database, "ada")
    async with database.read() as conn:
        job = await store.find(conn, job_id, owner_id=owner.id)
    assert job is not None
    return job


def attempt_of(database: Database, job: JobRecord, number: int = 1) -> Path:
    data_dir = database.hub.settings.database.data_dir
    return data_dir / "jobs" / job.id[:2] / job.id / f"attempt-{number}"


async def prepared(database: Database, job: JobRecord, number: int = 1) -> PreparedAttempt:
    return await prepare(database, job, folder=attempt_of(database, job, number))


async def mounted(database: Database, job: JobRecord, number: int = 1) -> Path:
    """The folder that the only volume of a job became."""
    (bind,) = (await prepared(database, job, number)).binds
    return bind.source


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, as somebody who follows no link sees it."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


async def a_bucket(client: httpx2.AsyncClient, who: Headers, **files: str) -> None:
    """A bucket ada/box; two underscores in a name stand for a slash."""
    response = await client.post(BOX, headers=who, json={"private": True})
    assert response.status_code == 200, response.text
    for name, content in files.items():
        await put_file(client, who, name.replace("__", "/"), content)


async def put_file(client: httpx2.AsyncClient, who: Headers, path: str, content: str) -> None:
    response = await client.put(f"{BOX}/files/{path}", headers=who, content=content.encode())
    assert response.status_code == 200, response.text


def bucket(**changes: Any) -> dict[str, Any]:
    return {"type": "bucket", "source": "ada/box", "mountPath": "/box"} | changes


def model(**changes: Any) -> dict[str, Any]:
    return {"type": "model", "source": "ada/engine", "mountPath": "/data"} | changes


async def after(database: Database, job: JobRecord) -> list[str]:
    """Let the attempt have ended; return what the log says could not be written back."""
    folder = attempt_of(database, job)
    log = folder.with_name("log")
    before = log.read_text() if log.exists() else ""
    await write_back(database, job, folder=folder, log=log, has_begun=True)
    lines = log.read_text().removeprefix(before).splitlines() if log.exists() else []
    return [line.partition(" ")[2] for line in lines]


async def in_bucket(client: httpx2.AsyncClient, who: Headers) -> dict[str, str]:
    listed = await client.get(f"{BOX}/tree?recursive=true", headers=who)
    assert listed.status_code == 200, listed.text
    paths = [entry["path"] for entry in listed.json()]
    return {path: await _content(client, who, path) for path in paths}


async def _content(client: httpx2.AsyncClient, who: Headers, path: str) -> str:
    response = await client.get(f"{BOX}/files/{path}", headers=who)
    assert response.status_code == 200, response.text
    return response.text
