"""Discussions: opening, showing, renaming, closing, pinning, muting and deleting them."""

import asyncio
from typing import Any

import httpx2
import pytest

from community.discussions import (
    PATH,
    a_discussion,
    a_pull_request,
    disable_discussions,
    get_discussion,
    history_of,
)
from community.public_threads import author_card
from hublet.accounts.records import Role
from hublet.community.threads import store as threads
from hublet.core.database import Database
from hublet.events import ThreadCreated, ThreadDeleted, ThreadUpdated
from hublet.tokens.records import TokenRole
from outbox_events import published_events
from people import Headers, a_user, an_organization, sign_in
from repositories import a_repo

pytestmark = pytest.mark.usefixtures("repo_id")


@pytest.fixture
async def repo_id(client: httpx2.AsyncClient, ada: Headers) -> str:
    return await a_repo(client, ada, "ada/engine")


@pytest.mark.parametrize("type_", ["model", "dataset", "space", "kernel"])
async def test_a_discussion_is_opened_in_each_type_with_git(
    client: httpx2.AsyncClient, database: Database, ada: Headers, type_: str
) -> None:
    await a_repo(client, ada, "ada/loom", type=type_)
    bob = await sign_in(database, "bob")
    path = f"/api/{type_}s/ada/loom/discussions"

    response = await client.post(
        path, headers=bob, json={"title": "Does it run?", "description": "Tell me, @ada."}
    )

    prefix = "" if type_ == "model" else f"{type_}s/"
    url = f"http://hub.test/{prefix}ada/loom/discussions/1"
    assert (response.status_code, response.json()) == (
        200,
        {"num": 1, "url": url, "pullRequest": False},
    )
    author = author_card(await a_user(database, "bob"))
    found = await get_discussion(client, f"{path}/1")
    at, comment = found["createdAt"], found["events"][0]
    assert found == {
        "id": found["id"],
        "num": 1,
        "title": "Does it run?",
        "status": "open",
        "createdAt": at,
        "updatedAt": found["updatedAt"],
        "isPullRequest": False,
        "pinned": False,
        "numComments": 1,
        "author": author,
        "repo": {"name": "ada/loom", "type": type_},
        "events": [
            {
                "id": comment["id"],
                "type": "comment",
                "createdAt": comment["createdAt"],
                "author": author,
                "data": {
                    "edited": False,
                    "hidden": False,
                    "latest": {
                        "raw": "Tell me, @ada.",
                        "html": "<p>Tell me, @ada.</p>",
                        "updatedAt": comment["createdAt"],
                        "author": author,
                    },
                    "history": [],
                    "reactions": [],
                },
            }
        ],
    }


async def test_opening_one_is_told_with_its_first_message(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    bob = await sign_in(database, "bob")

    address = await a_discussion(client, bob, description="Tell me, @ada and @nobody.")

    found = await get_discussion(client, address)
    bobs_id, adas_id = (await a_user(database, "bob")).id, (await a_user(database, "ada")).id
    [fact] = await published_events(database, ThreadCreated)
    assert fact["thread"]["repo"]["id"] == repo_id
    assert fact == {
        "thread": {
            "id": found["id"],
            "kind": "discussion",
            "title": "Does it run?",
            "author_id": bobs_id,
            "repo": fact["thread"]["repo"],
            "number": 1,
            "is_pull_request": False,
            "status": "open",
            "pinned": False,
            "base": None,
            "merge_commit_id": None,
            "paper_id": None,
            "slug": None,
        },
        "comment": {
            "id": found["events"][0]["id"],
            "author_id": bobs_id,
            "hidden": False,
            "content": "Tell me, @ada and @nobody.",
            "parent_id": None,
        },
        "mentioned_ids": [adas_id],
        "actor_id": bobs_id,
    }
    async with database.read() as conn:
        parts = await threads.list_participants(conn, found["id"])
    assert {p.user_id: set(p.parts) for p in parts} == {adas_id: {"mentioned"}, bobs_id: {"opened"}}


@pytest.mark.parametrize(
    ("body", "error"),
    [
        pytest.param({}, "title is required.", id="no title"),
        pytest.param(
            {"title": " a\nb"[:3]}, "title must have at least 3 character(s).", id="short title"
        ),
        pytest.param(
            {"title": "x" * 201}, "title must have at most 200 characters.", id="long title"
        ),
        pytest.param(
            {"title": "Fine", "description": "x" * 65_537},
            "description must have at most 65536 characters.",
            id="long description",
        ),
        pytest.param(
            {"title": "Fine", "colour": "red"}, "colour is not a known field.", id="another field"
        ),
        pytest.param(
            {"title": "Fine", "pullRequest": "perhaps"},
            "pullRequest must be true or false.",
            id="no boolean",
        ),
    ],
)
async def test_what_is_wrong_with_a_new_one_is_named(
    client: httpx2.AsyncClient, ada: Headers, body: dict[str, Any], error: str
) -> None:
    response = await client.post(PATH, headers=ada, json=body)

    assert (response.status_code, response.json()) == (400, {"error": error})


async def test_blanks_around_a_title_do_not_count(client: httpx2.AsyncClient, ada: Headers) -> None:
    address = await a_discussion(client, ada, title="  Does it run?\n")

    assert (await get_discussion(client, address))["title"] == "Does it run?"


async def test_numbers_are_given_once_and_none_is_left_out(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    opening = [
        a_pull_request(client, ada) if n % 2 else a_discussion(client, ada) for n in range(9)
    ]

    addresses = await asyncio.gather(*opening)

    assert sorted(addresses) == [f"{PATH}/{number}" for number in range(1, 10)]


@pytest.mark.parametrize("pull_request", [False, True])
async def test_a_discussion_needs_a_token_that_may_discuss(
    client: httpx2.AsyncClient, database: Database, *, pull_request: bool
) -> None:
    reader = await sign_in(database, "bob", role=TokenRole.read)
    body = {"title": "Does it run?", "description": "", "pullRequest": pull_request}

    anonymous = await client.post(PATH, json=body)
    reading = await client.post(PATH, headers=reader, json=body)

    assert anonymous.status_code == 401
    assert (reading.status_code, reading.json()) == (
        403,
        {
            "error": "You cannot do this with ada/engine: "
            "the token lacks the scope write-discussions."
        },
    )


@pytest.mark.parametrize(
    ("method", "rest", "body"),
    [
        pytest.param("GET", "", None, id="listing"),
        pytest.param("POST", "", {"title": "Hello", "description": ""}, id="opening"),
        pytest.param("GET", "/1", None, id="reading"),
        pytest.param("POST", "/1/comment", {"comment": "Hello"}, id="commenting"),
        pytest.param("POST", "/1/title", {"title": "Hello"}, id="renaming"),
        pytest.param("POST", "/1/status", {"status": "closed"}, id="closing"),
        pytest.param("POST", "/1/pin", {"pinned": True}, id="pinning"),
        pytest.param("POST", "/1/ignore", {"ignore": True}, id="muting"),
        pytest.param("POST", "/1/merge", None, id="merging"),
        pytest.param("DELETE", "/1/ref", None, id="deleting the ref"),
        pytest.param("DELETE", "/1", None, id="deleting"),
    ],
)
async def test_in_a_private_repository_there_is_nothing_for_strangers(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    method: str,
    rest: str,
    body: dict[str, Any] | None,
) -> None:
    await a_repo(client, ada, "ada/secret", private=True)
    path = "/api/models/ada/secret/discussions"
    await a_pull_request(client, ada, path)
    bob = await sign_in(database, "bob")

    response = await client.request(method, path + rest, headers=bob, json=body)

    assert (response.status_code, response.headers["x-error-code"]) == (404, "RepoNotFound")


async def test_discussing_in_private_needs_no_scope_to_read(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/secret", private=True)
    path = "/api/models/ada/secret/discussions"
    narrow = await sign_in(database, "ada", scopes=["write-discussions"])
    stranger = await sign_in(database, "bob", scopes=["write-discussions"])
    body = {"title": "Does it run?", "description": ""}

    answers = [
        await client.post(path, headers=narrow, json=body),
        await client.post(f"{path}/1/comment", headers=narrow, json={"comment": "Yes."}),
        await client.post(path, headers=narrow, json=body | {"pullRequest": True}),
        await client.get(f"{path}/1", headers=narrow),
        await client.post(path, headers=stranger, json=body),
    ]

    assert [answer.status_code for answer in answers] == [200, 200, 404, 404, 404]


async def test_those_who_cannot_see_the_repository_are_not_mentioned(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(database, "works", members={"ada": Role.admin, "carol": Role.read})
    await a_repo(client, ada, "works/secret", private=True)
    await a_user(database, "bob")

    await a_discussion(
        client, ada, "/api/models/works/secret/discussions", description="@bob @carol"
    )

    [fact] = await published_events(database, ThreadCreated)
    assert fact["mentioned_ids"] == [(await a_user(database, "carol")).id]


@pytest.mark.parametrize("number", ["2", "2147483647"])
async def test_a_discussion_that_is_not_there_is_not_found(
    client: httpx2.AsyncClient, ada: Headers, number: str
) -> None:
    await a_discussion(client, ada)

    response = await client.get(f"{PATH}/{number}")

    assert (response.status_code, response.json()) == (
        404,
        {"error": f"There is no discussion {number} in ada/engine."},
    )


@pytest.mark.parametrize("number", ["0", "-1", "one", "2147483648"])
async def test_what_is_no_number_is_refused(client: httpx2.AsyncClient, number: str) -> None:
    assert (await client.get(f"{PATH}/{number}")).status_code == 400


async def test_where_discussions_are_disabled_nobody_opens_or_answers_one(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    address = await a_discussion(client, ada)
    comment = (await get_discussion(client, address))["events"][0]["id"]
    await disable_discussions(database, repo_id)

    refused = [
        await client.post(PATH, headers=ada, json={"title": "Hello", "description": ""}),
        await client.post(
            PATH, headers=ada, json={"title": "Hello", "description": "", "pullRequest": True}
        ),
        await client.post(f"{address}/comment", headers=ada, json={"comment": "Hello"}),
        await client.post(
            f"{address}/comment/{comment}/edit", headers=ada, json={"content": "Hello"}
        ),
        await client.post(
            f"{address}/status", headers=ada, json={"status": "closed", "comment": "Bye"}
        ),
    ]
    closed = await client.post(f"{address}/status", headers=ada, json={"status": "closed"})

    error = {"error": "Discussions are disabled in ada/engine."}
    assert [(r.status_code, r.json()) for r in refused] == [(403, error)] * len(refused)
    assert closed.status_code == 200
    assert [kind for kind, _ in await history_of(client, address)] == ["comment", "status-change"]


async def test_its_author_renames_it(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    address = await a_discussion(client, bob)

    response = await client.post(f"{address}/title", headers=bob, json={"title": "It runs."})

    event = response.json()["newTitle"]
    assert response.json() == {
        "newTitle": {
            "id": event["id"],
            "type": "title-change",
            "createdAt": event["createdAt"],
            "author": author_card(await a_user(database, "bob")),
            "data": {"from": "Does it run?", "to": "It runs."},
        }
    }
    found = await get_discussion(client, address)
    assert (found["title"], found["events"][1]) == ("It runs.", event)
    [fact] = await published_events(database, ThreadUpdated)
    assert (fact["changed"], fact["thread"]["title"], fact["actor_id"]) == (
        ["title"],
        "It runs.",
        (await a_user(database, "bob")).id,
    )
    assert fact["event_id"] == event["id"]
    again = await client.post(f"{address}/title", headers=ada, json={"title": "It runs."})
    assert (again.status_code, again.json()) == (
        409,
        {"error": "This discussion has that title already."},
    )


async def test_it_is_closed_with_a_comment_and_opened_again(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    address = await a_discussion(client, bob)

    closed = await client.post(
        f"{address}/status", headers=ada, json={"status": "closed", "comment": "It does."}
    )
    again = await client.post(f"{address}/status", headers=ada, json={"status": "closed"})
    opened = await client.post(f"{address}/status", headers=bob, json={"status": "open"})

    event = closed.json()["newStatus"]
    assert closed.json() == {
        "newStatus": {
            "id": event["id"],
            "type": "status-change",
            "createdAt": event["createdAt"],
            "author": author_card(await a_user(database, "ada")),
            "data": {"status": "closed"},
        }
    }
    assert (again.status_code, again.json()) == (
        409,
        {"error": "This discussion is closed already."},
    )
    assert opened.json()["newStatus"]["data"] == {"status": "open"}
    assert await history_of(client, address) == [
        ("comment", "It should."),
        ("comment", "It does."),
        ("status-change", {"status": "closed"}),
        ("status-change", {"status": "open"}),
    ]
    facts = await published_events(database, ThreadUpdated)
    assert [(f["changed"], f["thread"]["status"], f["event_id"]) for f in facts] == [
        (["status"], "closed", event["id"]),
        (["status"], "open", opened.json()["newStatus"]["id"]),
    ]


async def test_a_discussion_cannot_become_a_draft(client: httpx2.AsyncClient, ada: Headers) -> None:
    address = await a_discussion(client, ada)

    for status in ("draft", "merged"):
        response = await client.post(f"{address}/status", headers=ada, json={"status": status})

        assert response.status_code == 400


async def test_it_is_pinned_and_let_go(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    address = await a_discussion(client, ada)

    answers = [
        await client.post(f"{address}/pin", headers=ada, json={"pinned": pinned})
        for pinned in (True, True, False)
    ]

    assert [answer.json() for answer in answers] == [
        {"pinned": True},
        {"pinned": True},
        {"pinned": False},
    ]
    assert (await history_of(client, address))[1:] == [
        ("pinning-change", {"pinned": True}),
        ("pinning-change", {"pinned": False}),
    ]
    facts = await published_events(database, ThreadUpdated)
    events = (await get_discussion(client, address))["events"]
    assert [(f["changed"], f["thread"]["pinned"], f["event_id"]) for f in facts] == [
        (["pinned"], True, events[1]["id"]),
        (["pinned"], False, events[2]["id"]),
    ]


@pytest.mark.parametrize(
    ("method", "rest", "body", "error"),
    [
        pytest.param(
            "POST",
            "/title",
            {"title": "Mine now"},
            "You cannot rename this discussion: "
            "only its author and those who may write to the repository can.",
            id="renaming",
        ),
        pytest.param(
            "POST",
            "/status",
            {"status": "closed"},
            "You cannot close this discussion: "
            "only its author and those who may write to the repository can.",
            id="closing",
        ),
        pytest.param(
            "POST",
            "/status",
            {"status": "open"},
            "You cannot open this discussion: "
            "only its author and those who may write to the repository can.",
            id="opening",
        ),
        pytest.param(
            "POST",
            "/pin",
            {"pinned": True},
            "You cannot do this with ada/engine: you have no write access to it.",
            id="pinning",
        ),
        pytest.param(
            "DELETE",
            "",
            None,
            "You cannot do this with ada/engine: you have no write access to it.",
            id="deleting",
        ),
    ],
)
async def test_others_cannot_change_it(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    method: str,
    rest: str,
    *,
    body: dict[str, Any] | None,
    error: str,
) -> None:
    address = await a_discussion(client, ada)
    before = await get_discussion(client, address)
    bob = await sign_in(database, "bob")

    response = await client.request(method, address + rest, headers=bob, json=body)

    assert (response.status_code, response.json()) == (403, {"error": error})
    assert await get_discussion(client, address) == before


async def test_those_who_may_write_change_what_others_opened(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(
        database, "works", members={"ada": Role.admin, "carol": Role.write, "bob": Role.read}
    )
    await a_repo(client, ada, "works/loom")
    bob, carol = await sign_in(database, "bob"), await sign_in(database, "carol")
    address = await a_discussion(client, bob, "/api/models/works/loom/discussions")

    answers = [
        await client.post(f"{address}/title", headers=carol, json={"title": "It runs."}),
        await client.post(f"{address}/status", headers=carol, json={"status": "closed"}),
        await client.post(f"{address}/pin", headers=carol, json={"pinned": True}),
        await client.delete(address, headers=carol),
    ]

    assert [answer.status_code for answer in answers] == [200, 200, 200, 200]


async def test_changes_at_the_same_time_are_all_kept(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    for number in range(1, 4):
        address = await a_discussion(client, ada)

        await asyncio.gather(
            client.post(f"{address}/title", headers=ada, json={"title": "It runs."}),
            client.post(f"{address}/status", headers=ada, json={"status": "closed"}),
            client.post(f"{address}/pin", headers=ada, json={"pinned": True}),
        )

        found = await get_discussion(client, f"{PATH}/{number}")
        assert (found["title"], found["status"], found["pinned"]) == ("It runs.", "closed", True)


async def test_it_is_deleted_with_its_comments(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    address = await a_discussion(client, ada)

    deleted = await client.delete(address, headers=ada)

    assert (deleted.status_code, deleted.json()) == (200, {})
    assert (await client.get(address)).status_code == 404
    assert (await client.delete(address, headers=ada)).status_code == 404
    [fact] = await published_events(database, ThreadDeleted)
    assert (fact["thread"]["number"], fact["actor_id"]) == (1, (await a_user(database, "ada")).id)
    async with database.read() as conn:
        assert await conn.fetch_value("SELECT count(*) FROM comments") == 0
    assert await a_discussion(client, ada) == f"{PATH}/2"


async def test_it_is_muted_and_heard_again(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    address = await a_discussion(client, ada)
    thread_id = (await get_discussion(client, address))["id"]

    async def muted() -> set[str]:
        async with database.read() as conn:
            return await threads.list_muted(conn, thread_id)

    first = await client.post(f"{address}/ignore", headers=bob)
    assert (first.status_code, first.json()) == (200, {"ignore": True})
    assert await muted() == {(await a_user(database, "bob")).id}
    await client.post(f"{address}/ignore", headers=bob, json={"ignore": True})
    second = await client.post(f"{address}/ignore", headers=bob, json={"ignore": False})
    assert second.json() == {"ignore": False}
    assert await muted() == set()


async def test_it_goes_with_its_repository(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_discussion(client, ada)
    await a_pull_request(client, ada)

    await client.request("DELETE", "/api/repos/delete", headers=ada, json={"name": "engine"})

    async with database.read() as conn:
        assert await conn.fetch_value("SELECT count(*) FROM threads") == 0
        assert await conn.fetch_value("SELECT count(*) FROM repo_refs") == 0
    assert await published_events(database, ThreadDeleted) == []


async def test_it_follows_a_repository_that_moves(client: httpx2.AsyncClient, ada: Headers) -> None:
    await a_discussion(client, ada)
    moved = {"fromRepo": "ada/engine", "toRepo": "ada/motor", "type": "model"}
    await client.post("/api/repos/move", headers=ada, json=moved)

    response = await client.get(f"{PATH}/1")

    new = "/api/models/ada/motor/discussions/1"
    assert (response.status_code, response.headers["location"]) == (307, new)
    assert (await get_discussion(client, new))["repo"] == {"name": "ada/motor", "type": "model"}
