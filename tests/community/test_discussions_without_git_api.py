"""Discussions on buckets and containers, which have no git and so no pull requests."""

import httpx2
import pytest

from community.discussions import a_discussion, get_discussion, history_of
from community.public_threads import a_comment
from hublet.core.database import Database
from notifications.inboxes import look
from people import Headers, a_user, sign_in
from repositories import a_repo
from webhooks.watchers import a_watcher, list_triggered, payloads
from workers import drain

pytestmark = pytest.mark.parametrize("type_", ["bucket", "container"])


@pytest.fixture
async def path(client: httpx2.AsyncClient, ada: Headers, type_: str) -> str:
    """Where the discussions of ada's bucket or container are."""
    await a_repo(client, ada, "ada/store", type=type_)
    return f"/api/{type_}s/ada/store/discussions"


async def test_a_discussion_is_opened_listed_changed_and_deleted(
    client: httpx2.AsyncClient, database: Database, ada: Headers, path: str, type_: str
) -> None:
    bob = await sign_in(database, "bob")

    opened = await client.post(path, headers=bob, json={"title": "Too full?", "description": "Hm."})

    url = f"http://hub.test/{type_}s/ada/store/discussions/1"
    assert (opened.status_code, opened.json()) == (
        200,
        {"num": 1, "url": url, "pullRequest": False},
    )
    address = f"{path}/1"
    comment = await a_comment(client, ada, address, "No.")
    for action, body in (
        ("title", {"title": "Not full"}),
        ("pin", {"pinned": True}),
        (f"comment/{comment}/edit", {"content": "Not yet."}),
        (f"comment/{comment}/reactions/eyes", {}),
        ("ignore", {"ignore": True}),
        ("status", {"status": "closed", "comment": "Done."}),
    ):
        answer = await client.post(f"{address}/{action}", headers=ada, json=body)
        assert answer.status_code == 200, answer.text
    assert await history_of(client, address) == [
        ("comment", "Hm."),
        ("comment", "Not yet."),
        ("title-change", {"from": "Too full?", "to": "Not full"}),
        ("pinning-change", {"pinned": True}),
        ("comment", "Done."),
        ("status-change", {"status": "closed"}),
    ]
    (item,) = (await client.get(path)).json()["discussions"]
    assert (item["repo"], item["numReactionUsers"]) == ({"name": "ada/store", "type": type_}, 1)
    hidden = await client.post(f"{address}/comment/{comment}/hide", headers=ada)
    assert hidden.json()["updatedComment"]["data"]["hidden"]
    assert (await client.delete(address, headers=ada)).status_code == 200
    assert (await client.get(address)).status_code == 404


async def test_there_are_no_pull_requests(
    client: httpx2.AsyncClient, ada: Headers, path: str, type_: str
) -> None:
    refused = await client.post(path, headers=ada, json={"title": "Merge me", "pullRequest": True})

    assert (refused.status_code, refused.json()) == (
        400,
        {"error": f"pullRequest: a {type_} has no git and so no pull requests; open a discussion."},
    )
    address = await a_discussion(client, ada, path)
    merged = await client.post(f"{address}/merge", headers=ada)
    deleted = await client.delete(f"{address}/ref", headers=ada)
    for answer in (merged, deleted):
        assert (answer.status_code, answer.json()) == (
            409,
            {"error": "Discussion 1 is no pull request."},
        )


async def test_its_owner_is_notified_and_webhooks_are_triggered(
    client: httpx2.AsyncClient, database: Database, ada: Headers, path: str, type_: str
) -> None:
    user = await a_user(database, "ada")
    webhook = await a_watcher(database, user.id, user.id, domains=("discussion",))

    await a_discussion(client, await sign_in(database, "bob"), path)
    await drain(database)

    (item,) = (await look(client, ada, repoType=type_, repoName="ada/store"))["notifications"]
    assert item["repo"] == {"name": "ada/store", "type": type_}
    assert item["discussion"]["num"] == 1
    (triggered,) = await list_triggered(database, webhook)
    assert (triggered["scope"], triggered["action"]) == ("discussion", "create")
    url = f"http://hub.test/api/{type_}s/ada/store/discussions/1"
    assert url.encode() in (await payloads(database))[-1]


async def test_a_private_one_is_discussed_only_by_those_who_see_it(
    client: httpx2.AsyncClient, database: Database, ada: Headers, path: str, type_: str
) -> None:
    await a_repo(client, ada, "ada/vault", type=type_, private=True)
    private = f"/api/{type_}s/ada/vault/discussions"
    address = await a_discussion(client, ada, private)
    bob = await sign_in(database, "bob")

    assert (await get_discussion(client, address, ada))["num"] == 1
    for method, where in (("GET", private), ("GET", address), ("POST", f"{address}/comment")):
        body = {"json": {"comment": "x"}} if method == "POST" else {}
        lost = await client.request(method, where, headers=bob, **body)
        assert lost.status_code == 404
    reader = await sign_in(database, "bob", scopes=["read-repos"])
    refused = await client.post(path, headers=reader, json={"title": "Too full?"})
    assert refused.status_code == 403


async def test_its_discussions_can_be_switched_off(
    client: httpx2.AsyncClient, ada: Headers, path: str
) -> None:
    settings = path.replace("discussions", "settings")
    changed = await client.put(settings, headers=ada, json={"discussionsDisabled": True})
    assert changed.status_code == 200

    refused = await client.post(path, headers=ada, json={"title": "Too full?"})

    assert (refused.status_code, refused.json()) == (
        403,
        {"error": "Discussions are disabled in ada/store."},
    )
