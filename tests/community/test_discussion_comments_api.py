"""Comments in discussions: writing, answering, editing and hiding them."""

from typing import Any

import httpx2
import pytest

from community.discussions import PATH, a_discussion, get_discussion, history_of
from community.public_threads import a_comment, author_card
from hublet.accounts.records import Role
from hublet.core.database import Database
from hublet.events import CommentCreated, CommentUpdated
from outbox_events import published_events
from people import Headers, a_user, an_organization, sign_in
from repositories import a_repo


@pytest.fixture
async def address(client: httpx2.AsyncClient, ada: Headers) -> str:
    """Where ada's discussion in her repository is."""
    await a_repo(client, ada, "ada/engine")
    return await a_discussion(client, ada)


@pytest.fixture
async def bob(database: Database) -> Headers:
    return await sign_in(database, "bob")


async def comment_at(client: httpx2.AsyncClient, address: str, place: int) -> dict[str, Any]:
    comment: dict[str, Any] = (await get_discussion(client, address))["events"][place]
    return comment


async def test_anybody_comments_in_a_public_repository(
    client: httpx2.AsyncClient, database: Database, address: str, bob: Headers
) -> None:
    response = await client.post(
        f"{address}/comment", headers=bob, json={"comment": "Ask @ada,\n\n<she> knows."}
    )

    author = author_card(await a_user(database, "bob"))
    event = response.json()["newMessage"]
    assert (response.status_code, event) == (
        200,
        {
            "id": event["id"],
            "type": "comment",
            "createdAt": event["createdAt"],
            "author": author,
            "data": {
                "edited": False,
                "hidden": False,
                "latest": {
                    "raw": "Ask @ada,\n\n<she> knows.",
                    "html": "<p>Ask @ada,</p>\n<p>&lt;she&gt; knows.</p>",
                    "updatedAt": event["createdAt"],
                    "author": author,
                },
                "history": [],
                "reactions": [],
            },
        },
    )
    found = await get_discussion(client, address)
    assert (found["events"][1], found["numComments"]) == (event, 2)
    [fact] = await published_events(database, CommentCreated)
    assert fact["thread"]["number"] == 1
    assert fact["mentioned_ids"] == [(await a_user(database, "ada")).id]
    assert fact["comment"]["content"] == "Ask @ada,\n\n<she> knows."


async def test_a_comment_answers_another(
    client: httpx2.AsyncClient, address: str, bob: Headers, ada: Headers
) -> None:
    first = await a_comment(client, bob, address)

    answer = await client.post(
        f"{address}/comment", headers=ada, json={"comment": "Good.", "replyTo": first}
    )

    assert answer.json()["newMessage"]["data"]["parentCommentId"] == first
    elsewhere = await a_discussion(client, ada)
    lost = await client.post(
        f"{elsewhere}/comment", headers=ada, json={"comment": "Good.", "replyTo": first}
    )
    assert (lost.status_code, lost.json()) == (
        400,
        {"error": "replyTo names no comment of this thread that can be answered."},
    )


@pytest.mark.parametrize("text", ["", " \n ", "x" * 65_537])
async def test_a_comment_says_something_and_ends(
    client: httpx2.AsyncClient, address: str, bob: Headers, text: str
) -> None:
    response = await client.post(f"{address}/comment", headers=bob, json={"comment": text})

    assert response.status_code == 400
    assert response.json()["error"].startswith("comment")


async def test_a_closed_discussion_can_still_be_answered(
    client: httpx2.AsyncClient, address: str, ada: Headers, bob: Headers
) -> None:
    await client.post(f"{address}/status", headers=ada, json={"status": "closed"})

    await a_comment(client, bob, address, "One more thing.")

    assert (await history_of(client, address))[-1] == ("comment", "One more thing.")


async def test_a_comment_is_edited_by_its_author(
    client: httpx2.AsyncClient, database: Database, address: str, bob: Headers
) -> None:
    first = await a_comment(client, bob, address, "One.")
    await client.post(f"{address}/comment/{first}/edit", headers=bob, json={"content": "Two."})

    response = await client.post(
        f"{address}/comment/{first}/edit", headers=bob, json={"content": "Three, @ada."}
    )

    author = author_card(await a_user(database, "bob"))
    comment = response.json()["updatedComment"]
    data = comment["data"]
    assert response.status_code == 200
    assert data == {
        "edited": True,
        "hidden": False,
        "latest": {
            "raw": "Three, @ada.",
            "html": "<p>Three, @ada.</p>",
            "updatedAt": data["latest"]["updatedAt"],
            "author": author,
        },
        "history": [
            {"raw": raw, "html": f"<p>{raw}</p>", "updatedAt": at["updatedAt"], "author": author}
            for raw, at in zip(["One.", "Two."], data["history"], strict=True)
        ],
        "reactions": [],
    }
    assert await comment_at(client, address, 1) == comment
    facts = await published_events(database, CommentUpdated)
    assert [fact["mentioned_ids"] for fact in facts] == [[], [(await a_user(database, "ada")).id]]


async def test_nobody_else_edits_a_comment(
    client: httpx2.AsyncClient, address: str, bob: Headers, ada: Headers
) -> None:
    first = await a_comment(client, bob, address, "One.")

    # The repository is ada's own.
    response = await client.post(
        f"{address}/comment/{first}/edit", headers=ada, json={"content": "Two."}
    )

    assert (response.status_code, response.json()) == (
        403,
        {"error": "You cannot edit this comment: it is somebody else's."},
    )
    assert (await history_of(client, address))[1] == ("comment", "One.")


@pytest.mark.parametrize("who", ["bob", "ada"])
async def test_a_comment_is_hidden_for_good(
    client: httpx2.AsyncClient, database: Database, address: str, who: str
) -> None:
    bob, hides = await sign_in(database, "bob"), await sign_in(database, who)
    first = await a_comment(client, bob, address, "One.")
    await client.post(f"{address}/comment/{first}/edit", headers=bob, json={"content": "Two."})

    response = await client.post(f"{address}/comment/{first}/hide", headers=hides)

    author = author_card(await a_user(database, "bob"))
    comment = response.json()["updatedComment"]
    hidden = "This comment has been hidden."
    assert response.status_code == 200
    assert comment["data"] == {
        "edited": True,
        "hidden": True,
        "hiddenBy": who,
        "latest": {
            "raw": hidden,
            "html": f"<p>{hidden}</p>",
            "updatedAt": comment["data"]["latest"]["updatedAt"],
            "author": author,
        },
        "history": [],
        "reactions": [],
    }
    assert await comment_at(client, address, 1) == comment
    edit = await client.post(f"{address}/comment/{first}/edit", headers=bob, json={"content": "3"})
    assert (edit.status_code, edit.json()) == (
        409,
        {"error": "This comment is hidden: it cannot be edited any more."},
    )
    fact = (await published_events(database, CommentUpdated))[-1]
    assert (fact["comment"]["hidden"], fact["comment"]["content"]) == (True, None)


async def test_strangers_do_not_hide_a_comment(
    client: httpx2.AsyncClient, database: Database, address: str, bob: Headers, ada: Headers
) -> None:
    await an_organization(database, "works", members={"ada": Role.admin, "bob": Role.read})
    await a_repo(client, ada, "works/loom")
    elsewhere = await a_discussion(client, ada, "/api/models/works/loom/discussions")

    for where in (address, elsewhere):
        comment = (await comment_at(client, where, 0))["id"]
        response = await client.post(f"{where}/comment/{comment}/hide", headers=bob)

        assert (response.status_code, response.json()) == (
            403,
            {"error": "You cannot hide this comment: it is somebody else's."},
        )


@pytest.mark.parametrize("action", ["edit", "hide"])
async def test_a_comment_of_another_discussion_is_not_found(
    client: httpx2.AsyncClient, address: str, ada: Headers, action: str
) -> None:
    elsewhere = await a_discussion(client, ada)
    comment = (await comment_at(client, elsewhere, 0))["id"]

    response = await client.post(
        f"{PATH}/1/comment/{comment}/{action}", headers=ada, json={"content": "Hello"}
    )

    assert (response.status_code, response.json()) == (
        404,
        {"error": f"There is no comment {comment} in this thread."},
    )
