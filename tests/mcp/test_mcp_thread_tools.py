"""Tools for threads, jobs and webhooks: the same rules as the API has."""

import asyncio

import httpx2
from fastapi import FastAPI
from mcp_types import CallToolResult

from assistants import ask, assistant, refused, switch_on
from hublet.accounts.records import Role
from hublet.core.database import Database
from hublet.mcp.records import SWITCHED_TOOLS
from people import Headers, an_organization, sign_in
from repositories import a_repo
from workers import drain

ALL = [tool.name for tool in SWITCHED_TOOLS]


async def test_discussions_are_opened_read_and_answered(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")
    bob = await sign_in(database, "bob")
    await switch_on(client, bob, *ALL)
    at = {"repo": "hf://ada/engine"}

    opened = await ask(
        app, bob, "hf_discussions_write", operation="open", title="It smokes", text="A lot.", **at
    )
    written = await ask(
        app, bob, "hf_discussions_write", operation="comment", num=opened["num"], text="More", **at
    )
    listed = await ask(app, None, "hf_discussions", **at)
    thread = await ask(app, None, "hf_discussions", num=opened["num"], **at)
    short = await refused(
        app, bob, "hf_discussions_write", operation="open", title="x", text="", **at
    )
    lost = await refused(app, bob, "hf_discussions_write", operation="comment", text="x", **at)

    assert [(each["title"], each["author"]) for each in listed["discussions"]] == [
        ("It smokes", "bob")
    ]
    assert [each["text"] for each in thread["events"]] == ["A lot.", "More"]
    assert thread["events"][-1]["id"] == written["comment_id"]
    assert short == "title must have at least 3 character(s)."
    assert lost == "num is needed to comment: the number of the discussion."


async def test_discussions_of_a_private_repository_are_not_found_by_strangers(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/secret", private=True)
    bob = await sign_in(database, "bob")
    await switch_on(client, bob, *ALL)
    at = {"repo": "hf://ada/secret"}

    for headers in (None, bob):
        assert "not found" in await refused(app, headers, "hf_discussions", **at)
    assert "not found" in await refused(
        app, bob, "hf_discussions_write", operation="open", title="Hello", text="x", **at
    )


async def test_notifications_are_listed_and_marked(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")
    bob = await sign_in(database, "bob")
    await client.post(
        "/api/models/ada/engine/discussions",
        headers=bob,
        json={"title": "It smokes", "description": "A lot."},
    )
    await drain(database)
    await switch_on(client, ada, *ALL)

    inbox = await ask(app, ada, "hf_notifications")
    [item] = inbox["notifications"]
    marked = await ask(app, ada, "hf_notifications_mark", ids=[item["id"]])
    after = await ask(app, ada, "hf_notifications")

    assert (item["title"], item["place"], item["num"]) == ("It smokes", "model ada/engine", 1)
    assert (inbox["unread"], marked["count"], after["notifications"]) == (1, 1, [])


async def test_the_inbox_is_closed_to_scopes_and_marking_to_readers(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await switch_on(client, ada, *ALL)
    scoped = await sign_in(database, "ada", scopes=["read-repos"])
    reader = await sign_in(database, "ada", role="read")  # type: ignore[arg-type]
    ids = ["0" * 24]

    assert "scopes do not reach it" in await refused(app, scoped, "hf_notifications")
    assert (await ask(app, reader, "hf_notifications"))["notifications"] == []
    assert "role write" in await refused(app, reader, "hf_notifications_mark", ids=ids)


async def test_jobs_are_run_waited_for_and_cancelled(
    app: FastAPI, client: httpx2.AsyncClient, ada: Headers
) -> None:
    await switch_on(client, ada, "hf_jobs")
    told: list[str] = []

    async def hear(_progress: float, _total: float | None, message: str | None) -> None:
        told.append(message or "")

    started = await ask(
        app, ada, "hf_jobs", operation="run", image="python:3.12", command=["python", "-V"]
    )
    job_id = started["jobs"][0]["id"]
    async with assistant(app, ada) as caller:
        waited = await caller.call_tool(
            "hf_jobs",
            {"operation": "wait", "job_id": job_id, "wait_seconds": 1},
            progress_callback=hear,
        )
    ended = await ask(app, ada, "hf_jobs", operation="cancel", job_id=job_id)
    listed = await ask(app, ada, "hf_jobs", operation="ps")

    assert isinstance(waited, CallToolResult)
    assert waited.structured_content["is_over"] is False
    assert told[0] == f"{job_id}: SCHEDULING"
    assert ended["jobs"][0]["id"] == job_id
    assert [each["id"] for each in listed["jobs"]] == [job_id]


async def test_jobs_are_refused_with_a_sentence(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await switch_on(client, ada, "hf_jobs")
    await an_organization(database, "engines", members={"root": Role.admin})

    async def refusal(**arguments: object) -> str:
        return await refused(app, ada, "hf_jobs", **arguments)

    assert await refusal(operation="logs") == "job_id is needed for logs."
    assert "dockerImage" in await refusal(operation="run")
    assert "flavor must be one of" in await refusal(operation="run", image="x", flavor="none")
    assert "0" * 24 in await refusal(operation="inspect", job_id="0" * 24)
    assert "engines" in await refusal(operation="ps", namespace="engines")
    assert "secrets is not a known field" in await refusal(operation="run", secrets={"A": "b"})


async def test_webhooks_are_listed_with_their_activity(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    watched = [{"type": "user", "name": "ada"}]
    body = {"url": "https://x.example/", "watched": watched, "domains": ["repo"], "secret": "s3"}
    made = await client.post("/api/settings/webhooks", headers=ada, json=body)
    webhook_id = made.json()["webhook"]["id"]
    await switch_on(client, ada, *ALL)
    await a_repo(client, ada, "ada/engine")
    await drain(database)

    listed = await ask(app, ada, "hf_webhooks")
    activity = await ask(app, ada, "hf_webhooks", operation="activity", webhook_id=webhook_id)
    delivery = activity["deliveries"][0]
    early = await refused(
        app, ada, "hf_webhooks_replay", webhook_id=webhook_id, delivery_id=delivery["id"]
    )
    lost = await refused(app, ada, "hf_webhooks", operation="activity", webhook_id="0" * 24)

    assert [each["id"] for each in listed["webhooks"]] == [webhook_id]
    assert "s3" not in str(listed)
    assert delivery["event"]["repo"]["name"] == "ada/engine"
    assert early
    assert "0" * 24 in lost


async def test_deliveries_of_a_state_are_found_behind_newer_ones(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    watched = [{"type": "user", "name": "ada"}]
    body = {"url": "https://x.example/", "watched": watched, "domains": ["repo"]}
    made = await client.post("/api/settings/webhooks", headers=ada, json=body)
    webhook_id = made.json()["webhook"]["id"]
    await switch_on(client, ada, "hf_webhooks")
    for name in ("ada/old", "ada/new"):
        await a_repo(client, ada, name)
    await drain(database)
    async with database.transaction() as conn:
        await conn.execute(
            "UPDATE webhook_deliveries SET state = 'failed'"
            " WHERE id = (SELECT min(id) FROM webhook_deliveries)"
        )

    failed = await ask(
        app,
        ada,
        "hf_webhooks",
        operation="activity",
        webhook_id=webhook_id,
        state="failed",
        limit=1,
    )

    assert [each["event"]["repo"]["name"] for each in failed["deliveries"]] == ["ada/old"]


async def test_many_calls_at_once_do_not_wait_for_each_other(app: FastAPI, ada: Headers) -> None:
    answers = await asyncio.gather(*(ask(app, ada, "hf_whoami") for _ in range(8)))

    assert {each["user"] for each in answers} == {"ada"}
