"""The page of a job: why it failed, its figures, its log, and the stream that keeps it up to date."""

import asyncio
import re

import httpx2
import pytest
from fastapi import FastAPI

from hublet.accounts.records import Role
from hublet.core.clock import micros
from hublet.core.database import Database
from hublet.jobs.metrics import UsageLimits, append_sample, history_path
from hublet.jobs.records import JOBS, Usage
from hublet.web.jobs import job_stream
from jobs.jobs_api import an_attempt, run, set_row
from jobs.log_lines import log_path, say, set_stage, write
from login.login_pages import a_person, log_in
from patience import SOON_SECONDS
from people import Headers, an_organization, sign_in
from web.parsed_pages import HTML, Element, parse
from webhooks.event_streams import StreamClient, open_stream

LIMITS = UsageLimits(cpu_millicores=2000, memory_bytes=4 * 10**9)


@pytest.fixture
async def ada(client: httpx2.AsyncClient, database: Database) -> Headers:
    """Ada, signed in with a browser too."""
    await a_person(database, "ada")
    await log_in(client, "ada")
    return await sign_in(database, "ada")


async def a_job(client: httpx2.AsyncClient, ada: Headers, **body: object) -> str:
    job_id: str = (await run(client, ada, **body))["id"]
    return job_id


async def page_of(client: httpx2.AsyncClient, job_id: str, query: str = "") -> Element:
    response = await client.get(f"/jobs/ada/{job_id}{query}", headers=HTML)
    assert response.status_code == 200, response.text
    return parse(response)


def lines_in(page: Element) -> list[str]:
    return [each.text for each in page.one("div", id="log").all("div", class_="l")]


def numbers_in(page: Element) -> list[int]:
    lines = page.one("div", id="log").all("div", class_="l")
    return [int(each.attributes["data-n"]) for each in lines]


def keep(database: Database, job_id: str, *memory: int) -> None:
    """Let a job have used so much memory, one sample for each."""
    path = history_path(database.hub.settings.database.data_dir, job_id)
    path.parent.mkdir(parents=True, exist_ok=True)
    for number, used in enumerate(memory):
        usage = Usage(cpu_millicores=500, memory_bytes=used)
        append_sample(path, usage, LIMITS, at=micros() + number * 5_000_000)


async def test_a_failed_job_says_why_and_links_the_line(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    job_id = await a_job(client, ada, labels={"name": "train-engine"}, attempts=2)
    say(
        database, job_id, "step 1", "ValueError: <no> \x1b[31mdata\x1b[0m", "bye", "===== end ====="
    )
    await set_row(database, job_id, stage="ERROR", message="exit code 1", attempt=2)

    page = await page_of(client, job_id)

    notice = page.one("div", id="job-reason")
    assert "It failed after 2 attempts: exit code 1." in notice.text
    assert "ValueError: <no> data" in notice.text
    assert notice.one("a").attributes["href"] == f"/jobs/ada/{job_id}?from=1#L2"
    assert page.one("h1").text == "train-engine"
    assert page.one("dl", id="job-figures").text.startswith("Ran for")
    assert "Attempt2 of 2" in page.one("dl", id="job-figures").text
    assert lines_in(page) == ["step 1", "ValueError: <no> data", "bye", "===== end ====="]
    assert page.one("body").attributes["data-live"] == "/live"


@pytest.mark.parametrize(
    ("stage", "message", "sentence"),
    [
        ("SCHEDULING", "2 jobs before it", "It waits: 2 jobs before it."),
        ("CANCELED", None, "It was canceled."),
        ("ERROR", "Job timeout", "It was ended because it ran longer than its limit of 2 min."),
        ("ERROR", "out of memory (limit 4 GB)", "Run it again on hardware with more memory"),
    ],
)
async def test_the_reason_is_in_words(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    stage: str,
    message: str | None,
    sentence: str,
) -> None:
    job_id = await a_job(client, ada, timeoutSeconds=120)
    await set_row(database, job_id, stage=stage, message=message)

    assert sentence in (await page_of(client, job_id)).one("div", id="job-reason").text


async def test_everything_that_was_asked_for_is_shown_but_no_secret(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await client.post("/api/repos/create", headers=ada, json={"name": "box", "type": "bucket"})
    job_id = await a_job(
        client,
        ada,
        environment={"RATE": "3e-4"},
        secrets={"TOKEN": "s3cret-of-ada"},
        labels={"team": "engines"},
        volumes=[{"type": "bucket", "source": "ada/box", "mountPath": "/out"}],
        expose={"ports": [6006], "portsPublic": [6006]},
    )
    await an_attempt(database, job_id, started_at=micros(), reason=None)
    await set_stage(database, job_id, "RUNNING")

    response = await client.get(f"/jobs/ada/{job_id}", headers=HTML)

    page = parse(response)
    details = page.one("div", id="job-details").text
    for shown in ("RATE=3e-4", "TOKEN", "team=engines", "/out", "ada/box", "6006", "public"):
        assert shown in details, shown
    assert "s3cret-of-ada" not in response.text
    assert "Open :6006" in page.one("div", id="job-head").text
    head = page.one("div", id="job-head")
    assert [form.attributes["action"] for form in head.all("form")] == [
        f"/jobs/ada/{job_id}/run-again",
        f"/jobs/ada/{job_id}/cancel",
    ]
    assert f"/jobs/ada/new?from={job_id}" in {each.attributes["href"] for each in head.all("a")}


async def test_an_empty_log_says_what_it_waits_for(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    job_id = await a_job(client, ada)
    await set_row(database, job_id, message="the image is being prepared")

    page = await page_of(client, job_id)

    empty = page.one("p", class_="log-empty").text
    assert empty == "Waiting for the first line: the image is being prepared."
    await set_stage(database, job_id, "COMPLETED")
    assert (await page_of(client, job_id)).one(
        "p", class_="log-empty"
    ).text == "It printed nothing."


async def test_a_log_is_shown_from_its_end_in_ranges_and_by_search(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    job_id = await a_job(client, ada)
    say(database, job_id, *(f"step={number} \x1b[1mloss\x1b[0m=0.5" for number in range(1, 2501)))
    await set_stage(database, job_id, "COMPLETED")

    page = await page_of(client, job_id)
    assert numbers_in(page) == list(range(1501, 2501))
    assert len(page.all("div", class_="chunk")) == 5
    assert re.search("lines 1,501 . 2,500 of 2,500", page.text)

    page = await page_of(client, job_id, "?from=1001")
    assert numbers_in(page) == list(range(1001, 2001))
    links = {
        each.text: each.attributes["href"] for each in page.one("section", class_="logbox").all("a")
    }
    assert links["Earlier lines"] == f"/jobs/ada/{job_id}?from=1#log"
    assert links["Later lines"] == f"/jobs/ada/{job_id}?from=2001#log"

    page = await page_of(client, job_id, links["Show all"].removeprefix(f"/jobs/ada/{job_id}"))
    assert numbers_in(page) == list(range(1, 2501))

    page = await page_of(client, job_id, "?q=STEP%3D77+loss%3D0")
    assert lines_in(page) == ["77step=77 loss=0.5"]
    assert page.one("div", class_="l").one("a").attributes["href"].endswith("?from=1#L77")
    assert "1 line of 2,500 with “STEP=77 loss=0”" in page.text
    assert "None of 2,500 lines" in (await page_of(client, job_id, "?q=%3Cb%3E")).text


async def test_the_log_is_downloaded_as_it_was_printed(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    job_id = await a_job(client, ada)
    printed = [f"\x1b[32mline\x1b[0m {number} é" for number in range(9000)]
    say(database, job_id, *printed)

    response = await client.get(f"/jobs/ada/{job_id}/log")

    assert response.text == "".join(f"{line}\n" for line in printed)
    assert response.headers["content-disposition"] == f'attachment; filename="{job_id}.log"'
    assert response.headers["content-type"] == "text/plain; charset=utf-8"


async def test_plots_are_drawn_from_what_was_kept_and_lead_to_the_log(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    job_id = await a_job(client, ada)
    keep(database, job_id, 10**9, 3_999_000_000, 2 * 10**9)
    say(database, job_id, "before", seconds_ago=60)
    say(database, job_id, "then", seconds_ago=-5)
    await set_stage(database, job_id, "COMPLETED")

    page = await page_of(client, job_id)

    labels = [each.attributes["aria-label"] for each in page.one("div", id="job-plots").all("svg")]
    assert labels == [
        "Processor: last 50 %, highest 50 %; limit 200 %",
        "Memory: last 2 GB, highest 4 GB; limit 4 GB",
    ]
    peak = page.one("p", class_="peak").one("a").attributes["href"]
    found = await client.get(f"/jobs/ada/{job_id}{peak}")
    assert found.status_code == 303
    assert found.headers["location"] == f"/jobs/ada/{job_id}?from=1#L2"


@pytest.mark.parametrize("end", ["", "/log", "/stream"])
async def test_what_is_not_for_the_viewer_is_not_there(
    client: httpx2.AsyncClient, database: Database, ada: Headers, end: str
) -> None:
    grace = await sign_in(database, "grace")
    await an_organization(database, "engines", members={"grace": Role.admin})
    made = await run(client, grace, path="/api/jobs/engines", labels={"name": "hidden-work"})
    say(database, made["id"], "secret line")

    private = await client.get(f"/jobs/engines/{made['id']}{end}", headers=HTML)
    absent = await client.get(f"/jobs/engines/{'f' * 24}{end}", headers=HTML)
    elsewhere = await client.get(f"/jobs/nobody/{'f' * 24}{end}", headers=HTML)

    assert private.status_code == absent.status_code == elsewhere.status_code == 404
    masked = {
        re.sub('(/|%2F)jobs[^"\' ]*|name="form_token" value="[0-9a-f]*"', "", each.text)
        for each in (private, absent, elsewhere)
    }
    assert len(masked) == 1
    assert "hidden-work" not in private.text


async def test_a_member_who_may_only_read_has_no_buttons(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    grace = await sign_in(database, "grace")
    await an_organization(database, "engines", members={"grace": Role.admin, "ada": Role.read})
    made = await run(client, grace, path="/api/jobs/engines")

    response = await client.get(f"/jobs/engines/{made['id']}", headers=HTML)

    assert response.status_code == 200
    assert parse(response).one("div", id="job-head").all("form") == []


# ---------------------------------------------------------------- the stream


async def cookies_of(client: httpx2.AsyncClient) -> Headers:
    return {"cookie": "; ".join(f"{name}={value}" for name, value in client.cookies.items())}


async def lines_of(listener: StreamClient, count: int) -> list[tuple[int, str]]:
    """Return so many lines of the stream, each with its number."""
    found: list[tuple[int, str]] = []
    async with asyncio.timeout(SOON_SECONDS):
        while len(found) < count:
            block = await listener.block()
            assert block is not None, "The stream has ended."
            if block.get("event") == "lines":
                pattern = r'data-n="(\d+)"[^>]*><span>(.*?)</span></div>'
                found += [(int(n), text) for n, text in re.findall(pattern, block["data"])]
                assert int(block["id"]) == found[-1][0]
    return found


async def next_event(listener: StreamClient, name: str) -> str:
    async with asyncio.timeout(SOON_SECONDS):
        while True:
            block = await listener.block()
            assert block is not None, "The stream has ended."
            if block.get("event") == name:
                return block["data"]


async def test_a_stream_goes_on_after_the_line_that_the_page_has(
    client: httpx2.AsyncClient, app: FastAPI, database: Database, ada: Headers
) -> None:
    job_id, cookies = await a_job(client, ada), await cookies_of(client)
    say(database, job_id, *(f"line {number}" for number in range(1, 2001)))
    path = f"/jobs/ada/{job_id}/stream"

    async with open_stream(app, path, cookies, since="500") as behind:
        assert await lines_of(behind, 1500) == [(n, f"line {n}") for n in range(501, 2001)]
        async with open_stream(app, path, cookies, since="2000") as other:
            say(database, job_id, "<b>new</b>", "newer")
            new = [(2001, "&lt;b&gt;new&lt;/b&gt;"), (2002, "newer")]
            assert await lines_of(behind, 2) == new
            assert await lines_of(other, 2) == new
    # After a restart of the hub nothing is known but the number of the last line.
    app.state.job_feeds = job_stream.JobFeeds(database, app.state.job_logs)
    say(database, job_id, "newest")
    async with open_stream(app, path, cookies, since="2001") as again:
        assert await lines_of(again, 2) == [(2002, "newer"), (2003, "newest")]


async def test_half_a_line_is_not_sent(
    client: httpx2.AsyncClient, app: FastAPI, database: Database, ada: Headers
) -> None:
    job_id = await a_job(client, ada)
    log = log_path(database, job_id)
    write(log, b"1 one\n2 tw")
    async with open_stream(app, f"/jobs/ada/{job_id}/stream", await cookies_of(client)) as listener:
        assert await lines_of(listener, 1) == [(1, "one")]
        write(log, b"o\n")
        assert await lines_of(listener, 1) == [(2, "two")]


async def test_pages_of_one_job_share_one_reader(
    client: httpx2.AsyncClient,
    app: FastAPI,
    database: Database,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job_id, cookies = await a_job(client, ada), await cookies_of(client)
    rendered: list[int] = []
    monkeypatch.setattr(
        job_stream, "render_lines", lambda lines: rendered.append(len(lines)) or "x" * len(lines)
    )
    path = f"/jobs/ada/{job_id}/stream"
    async with (
        open_stream(app, path, cookies) as first,
        open_stream(app, path, cookies) as second,
    ):
        say(database, job_id, "one", "two", "three")
        for listener in (first, second):
            assert await next_event(listener, "lines") == "xxx"

    assert sum(rendered) == 3
    assert app.state.job_feeds.open_jobs == []


async def test_stage_plots_and_unread_count_come_with_the_lines(
    client: httpx2.AsyncClient,
    app: FastAPI,
    database: Database,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(job_stream, "PERIOD_SECONDS", 0.01)
    job_id = await a_job(client, ada)
    async with open_stream(app, f"/jobs/ada/{job_id}/stream", await cookies_of(client)) as listener:
        assert await next_event(listener, "unread") == "0"
        keep(database, job_id, 10**9)
        assert "Memory: last 1 GB" in await next_event(listener, "plots")
        async with database.transaction() as conn:
            await conn.execute("UPDATE jobs SET version = 77 WHERE id = $1", job_id)
            conn.wake(JOBS)
        assert await next_event(listener, "changed") == "77"


async def test_who_is_taken_out_of_the_organization_hears_no_more(
    client: httpx2.AsyncClient, app: FastAPI, database: Database, ada: Headers
) -> None:
    grace = await sign_in(database, "grace")
    await an_organization(database, "engines", members={"grace": Role.admin, "ada": Role.read})
    made = await run(client, grace, path="/api/jobs/engines")
    path = f"/jobs/engines/{made['id']}/stream"
    async with open_stream(app, path, await cookies_of(client)) as listener:
        gone = await client.delete("/api/organizations/engines/members/ada", headers=grace)
        assert gone.status_code == 200, gone.text
        assert await listener.ends()
