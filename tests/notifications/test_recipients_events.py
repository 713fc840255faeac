"""What in a discussion is worth an item, and where the item leads."""

import httpx2
import pytest

from community.discussions import a_discussion, a_pull_request, commit, get_discussion
from hublet.core.database import Database
from notifications.recipients import Stage, a_stage
from people import Headers, a_user, sign_in
from repositories import a_repo

EVERYBODY = {"bob": "participating", "wanda": "watched"}


@pytest.fixture
async def repo_id(client: httpx2.AsyncClient, ada: Headers) -> str:
    return await a_repo(client, ada, "ada/engine")


@pytest.fixture
async def stage(client: httpx2.AsyncClient, database: Database, repo_id: str) -> Stage:
    """A discussion that bob opened; ada owns the repository, wanda watches it."""
    address = await a_discussion(client, await sign_in(database, "bob"))
    return await _watched(await a_stage(client, database, address, repo_id=repo_id))


@pytest.fixture
async def pull_request(client: httpx2.AsyncClient, database: Database, repo_id: str) -> Stage:
    address = await a_pull_request(client, await sign_in(database, "bob"))
    return await _watched(await a_stage(client, database, address, repo_id=repo_id))


async def _watched(stage: Stage) -> Stage:
    await stage.watch("wanda", "repo", stage.repo_id)
    return stage


async def test_closing_and_opening_it_notifies_everybody(stage: Stage) -> None:
    for status in ("closed", "open"):
        event = (await stage.post("ada", "/status", status=status))["newStatus"]

        assert await stage.notified() == EVERYBODY
        assert await stage.leads_to("wanda") == event["id"]
        await stage.settle()


async def test_closing_it_with_a_comment_leads_to_the_comment(stage: Stage) -> None:
    await stage.post("ada", "/status", status="closed", comment="It does.")

    assert await stage.notified() == EVERYBODY
    events = (await get_discussion(stage.client, stage.address))["events"]
    assert [event["type"] for event in events] == ["comment", "comment", "status-change"]
    assert await stage.leads_to("wanda") == events[1]["id"]


async def test_another_title_notifies_nobody(stage: Stage) -> None:
    await stage.post("ada", "/title", title="It runs.")

    assert (await stage.notified(), await stage.mailed()) == ({}, {})


async def test_a_pin_notifies_nobody(stage: Stage) -> None:
    await stage.post("ada", "/pin", pinned=True)

    assert (await stage.notified(), await stage.mailed()) == ({}, {})


async def test_an_edited_comment_notifies_those_whom_it_mentions_anew(stage: Stage) -> None:
    for name in ("grace", "alan"):
        await stage.user_id(name)
    comment_id = await stage.comment("carol", "Look, @grace.")
    await stage.settle()

    await stage.post("carol", f"/comment/{comment_id}/edit", content="Look, @grace and @alan.")

    assert await stage.notified() == {"alan": "mentioned"}
    assert await stage.mailed() == {"alan": "discussions_participating"}
    assert await stage.leads_to("alan") == comment_id


@pytest.mark.parametrize(
    ("refusal", "notified"),
    [("thread", {}), ("repo", {"alan": "mentioned"})],
    ids=["a muted thread tells not even that", "a muted repository still does"],
)
async def test_who_is_mentioned_anew_and_muted(
    stage: Stage, refusal: str, notified: dict[str, str]
) -> None:
    comment_id = await stage.comment("carol", "Look.")
    await stage.settle()
    await stage.mute("alan", refusal)

    await stage.post("carol", f"/comment/{comment_id}/edit", content="Look, @alan.")

    assert await stage.notified() == notified


async def test_an_edit_that_mentions_nobody_anew_notifies_nobody(stage: Stage) -> None:
    comment_id = await stage.comment("carol", "Look.")
    await stage.settle()

    await stage.post("carol", f"/comment/{comment_id}/edit", content="Look here.")
    await stage.post("carol", f"/comment/{comment_id}/hide")

    assert (await stage.notified(), await stage.mailed()) == ({}, {})


async def test_a_push_to_a_pull_request_leads_to_its_first_commit(
    client: httpx2.AsyncClient, ada: Headers, pull_request: Stage
) -> None:
    await commit(client, ada, {"a.txt": "1"}, to="refs/pr/1", summary="One")

    assert await pull_request.notified() == EVERYBODY
    [noted] = [
        event
        for event in (await get_discussion(client, pull_request.address))["events"]
        if event["type"] == "commit"
    ]
    assert await pull_request.leads_to("wanda") == noted["id"]


async def test_a_merge_notifies_everybody(
    client: httpx2.AsyncClient, ada: Headers, pull_request: Stage
) -> None:
    await commit(client, ada, {"a.txt": "1"}, to="refs/pr/1")
    await pull_request.settle()

    await pull_request.post("ada", "/merge")

    assert await pull_request.notified() == EVERYBODY
    last = (await get_discussion(client, pull_request.address))["events"][-1]
    assert (last["type"], last["data"]) == ("status-change", {"status": "merged"})
    assert await pull_request.leads_to("wanda") == last["id"]


async def test_a_push_to_a_branch_is_no_item(
    client: httpx2.AsyncClient, ada: Headers, stage: Stage
) -> None:
    await commit(client, ada, {"a.txt": "1"})

    await stage.notified()
    async with stage.database.read() as conn:
        assert await conn.fetch_all("SELECT * FROM notifications") == []


async def test_one_item_however_much_happens_and_it_leads_to_the_first_unseen(
    stage: Stage,
) -> None:
    first = await stage.comment("carol", "One.")
    last = await stage.comment("carol", "Two.")

    await stage.notified()

    wanda = await stage.user_id("wanda")
    async with stage.database.read() as conn:
        rows = await conn.fetch_all(
            "SELECT event_id, last_event_id FROM notifications WHERE user_id = $1", wanda
        )
    assert [tuple(row) for row in rows] == [(first, last)]


async def test_what_is_deleted_before_the_worker_comes_notifies_nobody(
    client: httpx2.AsyncClient, database: Database, ada: Headers, stage: Stage
) -> None:
    await a_user(database, "carol")
    await stage.comment("carol")

    response = await client.delete(stage.address, headers=ada)

    assert response.status_code == 200
    assert (await stage.notified(), await stage.mailed()) == ({}, {})
