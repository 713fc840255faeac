"""What a job prints, as somebody follows it."""

import asyncio
import threading
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest
from fastapi import FastAPI

from hublet.core.database import Database, DatabaseUnavailable, Reader, Row
from hublet.jobs import store
from hublet.jobs.errors import JobNotFound
from hublet.jobs.logs import routes, watcher
from hublet.jobs.logs.reader import PIECE_BYTES, LogPiece, read_piece, sizes_of
from hublet.jobs.logs.routes import LogRequest
from hublet.jobs.logs.watcher import LogWatcher
from jobs.jobs_api import PATH, run
from jobs.log_lines import events_in, log_path, say, set_stage
from patience import SOON_SECONDS
from people import Headers, sign_in
from scratch_database import wait_until
from webhooks.event_streams import StreamClient, open_stream


async def a_job(client: httpx2.AsyncClient, ada: Headers) -> str:
    job_id: str = (await run(client, ada))["id"]
    return job_id


async def logs(client: httpx2.AsyncClient, ada: Headers, job_id: str, query: str = "") -> str:
    """Return the whole stream of a job that is over."""
    async with asyncio.timeout(SOON_SECONDS):
        response = await client.get(f"{PATH}/{job_id}/logs{query}", headers=ada)
    assert response.status_code == 200, response.text
    return response.text


async def heard(ear: StreamClient, count: int) -> list[dict[str, Any]]:
    blocks = [await ear.block() for _ in range(count)]
    assert None not in blocks, "The stream has ended."
    return events_in("".join(f"data: {block['data']}\n\n" for block in blocks if block))


async def hears_nothing(ear: StreamClient) -> bool:
    try:
        await ear.block(within=0.5)
    except TimeoutError:
        return True
    return False


async def test_a_job_that_is_over_is_told_whole_and_the_stream_ends(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    job_id = await a_job(client, ada)
    said = say(database, job_id, "===== Job started at 1 =====", "one", "", 'é "\u2028')
    said += say(database, job_id, *(f"line {number}" for number in range(5000)))
    await set_stage(database, job_id, "COMPLETED")

    first = await logs(client, ada, job_id)

    assert events_in(first) == said
    assert await logs(client, ada, job_id) == first


async def test_the_answer_is_a_stream_that_nobody_keeps(
    app: FastAPI, client: httpx2.AsyncClient, ada: Headers
) -> None:
    job_id = await a_job(client, ada)
    async with open_stream(app, f"{PATH}/{job_id}/logs", ada) as ear:
        pass

    assert ear.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert (ear.headers["cache-control"], ear.headers["x-accel-buffering"]) == ("no-store", "no")


@pytest.mark.parametrize("stage", ["COMPLETED", "ERROR", "CANCELED", "DELETED"])
async def test_a_job_that_never_printed_anything_has_an_empty_log(
    client: httpx2.AsyncClient, database: Database, ada: Headers, stage: str
) -> None:
    job_id = await a_job(client, ada)
    await set_stage(database, job_id, stage)

    assert await logs(client, ada, job_id) == ""


async def test_a_tail_is_the_end_of_what_there_is(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    job_id = await a_job(client, ada)
    said = say(database, job_id, "one", "two", "three")
    await set_stage(database, job_id, "ERROR")

    assert events_in(await logs(client, ada, job_id, "?tail=2")) == said[1:]
    assert events_in(await logs(client, ada, job_id, "?tail=0")) == []
    assert events_in(await logs(client, ada, job_id, "?tail=2147483647")) == said


@pytest.mark.parametrize(
    ("tail", "sentence"),
    [
        ("-1", "tail must be at least 0."),
        ("2147483648", "tail must be at most 2147483647."),
        ("x", "tail must be an integer."),
    ],
)
async def test_a_tail_is_a_number_of_lines(
    client: httpx2.AsyncClient, ada: Headers, tail: str, sentence: str
) -> None:
    job_id = await a_job(client, ada)

    response = await client.get(f"{PATH}/{job_id}/logs?tail={tail}", headers=ada)

    assert (response.status_code, response.json()) == (400, {"error": sentence})


async def test_who_follows_hears_each_line_until_the_job_is_over(
    app: FastAPI,
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Only the bell tells that the job is over.
    monkeypatch.setattr(watcher, "_BACK_STOP_SECONDS", 60.0)
    job_id = await a_job(client, ada)
    async with open_stream(app, f"{PATH}/{job_id}/logs", ada) as ear:
        assert await hears_nothing(ear)
        await set_stage(database, job_id, "RUNNING")
        said = say(database, job_id, "one", "two")
        assert await heard(ear, 2) == said
        assert await hears_nothing(ear)
        said += say(database, job_id, "three")
        assert await heard(ear, 1) == said[2:]
        await set_stage(database, job_id, "COMPLETED")
        assert await ear.block() is None

    assert events_in(await logs(client, ada, job_id)) == said


async def test_what_was_printed_before_the_end_is_told_before_the_end(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    job_id = await a_job(client, ada)
    async with open_stream(app, f"{PATH}/{job_id}/logs", ada) as ear:
        assert await hears_nothing(ear)
        said = say(database, job_id, *(str(number) for number in range(20_000)))
        await set_stage(database, job_id, "COMPLETED")
        assert await heard(ear, len(said)) == said
        assert await ear.block() is None


async def test_the_end_is_noticed_though_nobody_tells(
    app: FastAPI,
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watcher, "_BACK_STOP_SECONDS", 0.2)
    job_id = await a_job(client, ada)
    async with open_stream(app, f"{PATH}/{job_id}/logs", ada) as ear:
        assert await hears_nothing(ear)
        async with database.transaction() as conn:
            await conn.execute("UPDATE jobs SET stage = 'CANCELED' WHERE id = $1", job_id)
        assert await ear.block() is None


async def test_nobody_else_reads_it(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    job_id = await a_job(client, ada)
    bob = await sign_in(database, "bob")
    sentence = {"error": f"There is no job {job_id}, or you cannot see it."}

    for path in (PATH, "/api/jobs/bob", "/api/jobs/nobody"):
        response = await client.get(f"{path}/{job_id}/logs", headers=bob)
        assert (response.status_code, response.json()) == (404, sentence)
    without = await sign_in(database, "ada", scopes=["webhooks"])
    assert (await client.get(f"{PATH}/{job_id}/logs", headers=without)).status_code == 403
    assert (await client.get(f"{PATH}/{job_id}/logs")).status_code == 401


async def test_a_silent_stream_gives_signs_of_life_and_ends_with_the_access(
    app: FastAPI,
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert routes.KEEP_ALIVE_SECONDS == 30
    monkeypatch.setattr(routes, "KEEP_ALIVE_SECONDS", 0.3)
    job_id = await a_job(client, ada)
    async with open_stream(app, f"{PATH}/{job_id}/logs", ada) as ear:
        assert await ear.block() == {"": "keep-alive"}
        assert await ear.block() == {"": "keep-alive"}
        async with database.transaction() as conn:
            await conn.execute("DELETE FROM tokens")
        assert await ear.ends()


async def test_many_followers_cost_one_look(
    app: FastAPI,
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = {"files": 0, "stages": 0}
    list_over = store.list_finished

    def counted_sizes(paths: Any) -> list[int]:
        looks["files"] += 1
        return sizes_of(paths)

    async def counted_stages(*given: Any) -> set[str]:
        looks["stages"] += 1
        return await list_over(*given)

    job_id = await a_job(client, ada)
    monkeypatch.setattr(watcher, "sizes_of", counted_sizes)
    monkeypatch.setattr(store, "list_finished", counted_stages)
    async with AsyncExitStack() as stack:
        path = f"{PATH}/{job_id}/logs"
        ears = [await stack.enter_async_context(open_stream(app, path, ada)) for _ in range(50)]
        looks.update(files=0, stages=0)
        await asyncio.sleep(1)
        assert 0 < looks["files"] <= 12
        assert looks["stages"] <= 3
        said = say(database, job_id, "to all")
        assert [await heard(ear, 1) for ear in ears] == [said] * 50


async def test_when_nobody_follows_nobody_looks(database: Database, tmp_path: Path) -> None:
    looking = LogWatcher(database)
    with looking.follow("a" * 24) as first, looking.follow("a" * 24) as second:
        await asyncio.wait_for(first.changed.wait(), SOON_SECONDS)
        await asyncio.wait_for(second.changed.wait(), SOON_SECONDS)
        assert first.is_over
        assert second.is_over
    task = looking._polling  # noqa: SLF001 - what is asked is whether it ends
    assert task is not None
    await asyncio.wait_for(task, SOON_SECONDS)

    with looking.follow("b" * 24) as again:
        await asyncio.wait_for(again.changed.wait(), SOON_SECONDS)


async def test_who_comes_while_the_stages_are_asked_for_is_not_over(database: Database) -> None:
    followed = ["a" * 24]

    class Busy:
        async def fetch_all(self, *_: object) -> list[Row]:
            # As on PostgreSQL, where others get on with their work meanwhile.
            followed.append("b" * 24)
            return []

    assert await store.list_finished(cast("Reader", Busy()), followed) == {"a" * 24}


async def nothing() -> None:
    """Everybody may."""


async def test_a_slow_reader_holds_a_place_in_the_file_and_nothing_else(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    places, threads = list[int](), set[str]()

    def counted(log: Path, start: int, *, is_over: bool) -> LogPiece:
        places.append(start)
        threads.add(threading.current_thread().name)
        return read_piece(log, start, is_over=is_over)

    monkeypatch.setattr(routes, "read_piece", counted)
    job_id = await a_job(client, ada)
    say(database, job_id, *("x" * 100 for _ in range(20_000)))
    asked = LogRequest(job_id=job_id, log=log_path(database, job_id), tail=None, is_over=False)
    stopping = asyncio.Event()
    told = routes.follow_log(LogWatcher(database), asked, check_access=nothing, stopping=stopping)

    first = await anext(told)
    await asyncio.sleep(0.3)
    assert places == [0]
    assert len(first) < 4 * PIECE_BYTES
    await anext(told)
    assert len(places) == 2
    assert threading.main_thread().name not in threads
    await told.aclose()


async def test_what_is_printed_while_the_job_ends_is_told(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job_id = await a_job(client, ada)
    looking, said = LogWatcher(database), list[dict[str, Any]]()

    def read_and_end(log: Path, start: int, *, is_over: bool) -> LogPiece:
        piece = read_piece(log, start, is_over=is_over)
        if not said:
            # Just after this look at the file, and just before the next at the stage.
            said.extend(say(database, job_id, "the last words"))
            looking._followed[job_id].notify(is_over=True)  # noqa: SLF001 - in the very moment
        return piece

    monkeypatch.setattr(routes, "read_piece", read_and_end)
    asked = LogRequest(job_id=job_id, log=log_path(database, job_id), tail=None, is_over=False)
    told = routes.follow_log(looking, asked, check_access=nothing, stopping=asyncio.Event())

    async with asyncio.timeout(SOON_SECONDS):
        assert events_in("".join([piece async for piece in told])) == said


async def test_a_job_that_never_stops_printing_is_not_read_on_without_access(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(routes, "KEEP_ALIVE_SECONDS", 0.2)
    job_id = await a_job(client, ada)

    async def refuse() -> None:
        raise JobNotFound(job_id)

    say(database, job_id, "the first")
    asked = LogRequest(job_id=job_id, log=log_path(database, job_id), tail=None, is_over=False)
    told = routes.follow_log(
        LogWatcher(database), asked, check_access=refuse, stopping=asyncio.Event()
    )

    async def read_on() -> None:
        async for _ in told:
            say(database, job_id, "and on")
            await asyncio.sleep(0.05)

    async with asyncio.timeout(SOON_SECONDS):
        with pytest.raises(JobNotFound):
            await read_on()


async def test_a_hub_that_stops_ends_the_stream(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    job_id = await a_job(client, ada)
    asked = LogRequest(job_id=job_id, log=log_path(database, job_id), tail=None, is_over=False)
    stopping = asyncio.Event()
    told = routes.follow_log(LogWatcher(database), asked, check_access=nothing, stopping=stopping)

    asyncio.get_running_loop().call_later(0.1, stopping.set)

    async with asyncio.timeout(SOON_SECONDS):
        assert [piece async for piece in told] == []


async def test_a_database_that_is_away_for_a_moment_does_not_end_the_stream(
    app: FastAPI,
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failed = list[int]()
    list_over = store.list_finished

    async def failing(*given: Any) -> set[str]:
        if not failed:
            failed.append(1)
            raise DatabaseUnavailable("away")
        return await list_over(*given)

    monkeypatch.setattr(store, "list_finished", failing)
    monkeypatch.setattr(watcher, "_BACK_STOP_SECONDS", 0.2)
    job_id = await a_job(client, ada)
    async with open_stream(app, f"{PATH}/{job_id}/logs", ada) as ear:

        async def has_failed() -> bool:
            return bool(failed)

        await wait_until(has_failed)
        said = say(database, job_id, "still here")
        assert await heard(ear, 1) == said
        await set_stage(database, job_id, "COMPLETED")
        assert await ear.block() is None
