"""Emoji on comments of discussions, papers, posts and blogs: the same rules for all four."""

import asyncio
from typing import Any

import httpx2
import pytest

from account_responses import pages_of
from community.discussions import PATH, a_discussion, disable_discussions, get_discussion
from community.public_threads import KINDS, a_comment, a_thread, author_card
from hublet.community.threads import store as threads
from hublet.core.database import Database
from hublet.events import EmojiAdded, EmojiRemoved
from hublet.tokens.records import TokenRole
from notifications.recipients import a_stage
from outbox_events import published_events
from people import Headers, a_user, sign_in
from repositories import a_repo, disable
from webhooks.watchers import a_watcher, list_triggered

EMOJI = [
    "fire", "rocket", "eyes", "heart", "hugs", "cool", "plus", "brain", "thumbsup", "handshake",
    "sad", "mindblown",
]  # fmt: skip

every_kind = pytest.mark.parametrize("kind", ["discussion", *KINDS])


async def open_thread(client: httpx2.AsyncClient, headers: Headers, kind: str) -> str:
    """Open a thread of this kind; return its address."""
    if kind != "discussion":
        return await a_thread(client, headers, kind)
    await a_repo(client, headers, "ada/engine")
    return await a_discussion(client, headers)


async def last_comment(client: httpx2.AsyncClient, address: str) -> dict[str, Any]:
    if address.startswith(PATH):
        events: list[dict[str, Any]] = (await get_discussion(client, address))["events"]
        return events[-1]
    comments: list[dict[str, Any]] = (await client.get(f"{address}/comments")).json()
    return comments[-1]


def count(reaction: str, *users: str) -> dict[str, Any]:
    return {"reaction": reaction, "users": list(users), "count": len(users)}


@every_kind
async def test_reactions_are_counted_listed_and_taken_back(
    client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str
) -> None:
    bob = await sign_in(database, "bob")
    address = await open_thread(client, ada, kind)
    comment = await a_comment(client, ada, address)
    reactions = f"{address}/comment/{comment}/reactions"

    await client.post(f"{reactions}/heart", headers=bob)
    await client.post(f"{reactions}/fire", headers=bob)
    added = await client.post(f"{reactions}/fire", headers=ada)

    both = [count("fire", "bob", "ada"), count("heart", "bob")]
    assert (added.status_code, added.json()) == (200, {"reactions": both})
    assert (await last_comment(client, address))["data"]["reactions"] == both
    listed = (await client.get(reactions)).json()
    person = author_card(await a_user(database, "bob"))
    assert listed[0] == {"reaction": "heart", "user": person, "createdAt": listed[0]["createdAt"]}
    assert await pages_of(client, f"{reactions}?limit=2", "reaction") == [
        ["heart", "fire"],
        ["fire"],
    ]
    removed = await client.delete(f"{reactions}/fire", headers=bob)
    left = [count("fire", "ada"), count("heart", "bob")]
    assert (removed.status_code, removed.json()) == (200, {"reactions": left})
    assert (await last_comment(client, address))["data"]["reactions"] == left


@every_kind
async def test_doing_it_again_changes_and_publishes_nothing(
    client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str
) -> None:
    address = await open_thread(client, ada, kind)
    comment = await a_comment(client, ada, address)
    path = f"{address}/comment/{comment}/reactions/eyes"
    before = await client.get(address)

    for _ in range(2):
        added = await client.post(path, headers=ada)
        assert (added.status_code, added.json()["reactions"]) == (200, [count("eyes", "ada")])
    for _ in range(2):
        removed = await client.delete(path, headers=ada)
        assert (removed.status_code, removed.json()) == (200, {"reactions": []})

    user = await a_user(database, "ada")
    for event_type in (EmojiAdded, EmojiRemoved):
        (event,) = await published_events(database, event_type)
        assert (event["comment_id"], event["reaction"], event["actor_id"]) == (
            comment,
            "eyes",
            user.id,
        )
        assert event["thread"]["kind"] == kind
    assert (await client.get(address)).json() == before.json()


@every_kind
async def test_a_user_gives_each_emoji_of_the_list_and_no_other(
    client: httpx2.AsyncClient, ada: Headers, kind: str
) -> None:
    address = await open_thread(client, ada, kind)
    reactions = f"{address}/comment/{await a_comment(client, ada, address)}/reactions"

    for name in EMOJI:
        await client.post(f"{reactions}/{name}", headers=ada)

    shown = (await last_comment(client, address))["data"]["reactions"]
    assert shown == [count(name, "ada") for name in EMOJI]
    for other in ("thumbsdown", "FIRE", "🔥", "x" * 500):
        for method in ("POST", "DELETE"):
            refused = await client.request(method, f"{reactions}/{other}", headers=ada)
            assert refused.status_code == 400
            assert refused.json()["error"].startswith("reaction must be one of 'fire', 'rocket'")


@every_kind
async def test_a_hidden_comment_loses_its_emoji_and_takes_no_more(
    client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str
) -> None:
    bob = await sign_in(database, "bob")
    address = await open_thread(client, ada, kind)
    comment = f"{address}/comment/{await a_comment(client, bob, address)}"
    await client.post(f"{comment}/reactions/fire", headers=bob)

    hidden = await client.post(f"{comment}/hide", headers=bob)

    assert hidden.json()["updatedComment"]["data"]["reactions"] == []
    assert (await client.get(f"{comment}/reactions")).json() == []
    refused = await client.post(f"{comment}/reactions/heart", headers=ada)
    assert (refused.status_code, refused.json()) == (
        409,
        {"error": "This comment is hidden: nobody can react to it any more."},
    )
    taken_back = await client.delete(f"{comment}/reactions/fire", headers=bob)
    assert (taken_back.status_code, taken_back.json()) == (200, {"reactions": []})
    assert await published_events(database, EmojiRemoved) == []


@every_kind
async def test_only_comments_of_the_thread_are_reacted_to(
    client: httpx2.AsyncClient, ada: Headers, kind: str
) -> None:
    address = await open_thread(client, ada, kind)
    blog = (
        await client.post("/api/blog", headers=ada, json={"title": "Else", "content": "x"})
    ).json()
    elsewhere = await a_comment(client, ada, f"/api/blog/ada/{blog['slug']}")

    for comment in (elsewhere, "0" * 24, "nonsense"):
        reactions = f"{address}/comment/{comment}/reactions"
        for method, path in (
            ("GET", reactions),
            ("POST", f"{reactions}/fire"),
            ("DELETE", f"{reactions}/fire"),
        ):
            lost = await client.request(method, path, headers=ada)
            assert (lost.status_code, lost.json()) == (
                404,
                {"error": f"There is no comment {comment} in this thread."},
            )


@every_kind
async def test_reacting_needs_its_scope(
    client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str
) -> None:
    address = await open_thread(client, ada, kind)
    path = f"{address}/comment/{await a_comment(client, ada, address)}/reactions/fire"
    readers = (
        await sign_in(database, "bob", role=TokenRole.read),
        await sign_in(database, "bob", scopes=["write-repos"]),
    )
    writer = await sign_in(database, "bob", scopes=["write-discussions"])

    for method in ("POST", "DELETE"):
        assert (await client.request(method, path)).status_code == 401
        for reader in readers:
            refused = await client.request(method, path, headers=reader)
            assert refused.status_code == 403
            assert "write-discussions" in refused.json()["error"]
        assert (await client.request(method, path, headers=writer)).status_code == 200


@every_kind
async def test_all_who_react_at_the_same_moment_are_counted(
    client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str
) -> None:
    address = await open_thread(client, ada, kind)
    path = f"{address}/comment/{await a_comment(client, ada, address)}/reactions/fire"
    people = [await sign_in(database, f"user{number}") for number in range(6)]

    answers = await asyncio.gather(
        *(client.post(path, headers=headers) for headers in people for _ in range(2))
    )

    assert {answer.status_code for answer in answers} == {200}
    (fire,) = (await last_comment(client, address))["data"]["reactions"]
    assert (fire["count"], len(set(fire["users"]))) == (6, 6)
    assert len(await published_events(database, EmojiAdded)) == 6


async def test_a_comment_names_the_first_twenty_users_and_counts_all(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    address = await a_thread(client, ada, "post")
    reactions = f"{address}/comment/{await a_comment(client, ada, address)}/reactions"
    names = [f"user{number}" for number in range(21)]
    for name in names:
        await client.post(f"{reactions}/plus", headers=await sign_in(database, name))

    (plus,) = (await last_comment(client, address))["data"]["reactions"]
    assert (plus["users"], plus["count"]) == (names[:20], 21)
    assert len((await client.get(reactions)).json()) == 21


async def test_the_emoji_of_a_disabled_user_stay(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    address = await a_thread(client, ada, "post")
    path = f"{address}/comment/{await a_comment(client, ada, address)}/reactions/sad"
    await client.post(path, headers=bob)

    await disable(database, "bob")

    assert (await last_comment(client, address))["data"]["reactions"] == [count("sad", "bob")]
    assert (await client.delete(path, headers=bob)).status_code == 401


async def test_a_list_of_discussions_tells_of_their_emoji(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")
    first, _ = await a_discussion(client, ada, title="First"), await a_discussion(client, ada)
    bob, eve = await sign_in(database, "bob"), await sign_in(database, "eve")
    opening = (await last_comment(client, first))["id"]
    answer = await a_comment(client, ada, first)
    for who, comment, name in (
        (bob, opening, "sad"), (bob, answer, "heart"), (eve, answer, "heart"),
    ):  # fmt: skip
        await client.post(f"{first}/comment/{comment}/reactions/{name}", headers=who)

    found = (await client.get(PATH, params={"sort": "reactions"})).json()["discussions"]

    assert [(each["num"], each["topReactions"], each["numReactionUsers"]) for each in found] == [
        (1, [{"reaction": "heart", "count": 2}, {"reaction": "sad", "count": 1}], 2),
        (2, [], 0),
    ]


async def test_a_private_repository_shows_no_reactions_to_strangers(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine", private=True)
    address = await a_discussion(client, ada)
    comment = (await get_discussion(client, address, ada))["events"][0]["id"]
    reactions = f"{address}/comment/{comment}/reactions"
    bob = await sign_in(database, "bob")

    assert (await client.get(reactions)).status_code in {401, 404}
    assert (await client.get(reactions, headers=bob)).status_code == 404
    for method in ("POST", "DELETE"):
        assert (await client.request(method, f"{reactions}/fire", headers=bob)).status_code == 404
    assert (await client.post(f"{reactions}/fire", headers=ada)).status_code == 200
    assert (await client.get(reactions, headers=ada)).json()[0]["reaction"] == "fire"


async def test_a_closed_discussion_takes_reactions_and_a_disabled_one_gives_them_back(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    address = await a_discussion(client, ada)
    path = f"{address}/comment/{await a_comment(client, ada, address)}/reactions/fire"
    await client.post(f"{address}/status", headers=ada, json={"status": "closed"})
    assert (await client.post(path, headers=ada)).status_code == 200

    await disable_discussions(database, repo_id)

    refused = await client.post(path.replace("fire", "heart"), headers=ada)
    assert (refused.status_code, refused.json()) == (
        403,
        {"error": "Discussions are disabled in ada/engine."},
    )
    assert (await client.delete(path, headers=ada)).json() == {"reactions": []}


async def test_a_reaction_notifies_nobody_and_triggers_no_webhook(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    address = await a_discussion(client, ada)
    comment = await a_comment(client, ada, address)
    stage = await a_stage(client, database, address, repo_id=repo_id)
    await stage.watch("sam", "repo", repo_id)
    await stage.settle()
    webhook = await a_watcher(database, await stage.user_id("sam"), repo_id)

    await stage.post("bob", f"/comment/{comment}/reactions/fire")

    assert (await stage.notified(), await stage.mailed()) == ({}, {})
    assert await list_triggered(database, webhook) == []
    async with database.read() as conn:
        taking_part = await threads.list_participants(conn, stage.thread_id)
    assert [each.user_id for each in taking_part] == [await stage.user_id("ada")]


async def test_emoji_go_with_their_thread(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    address = await a_thread(client, ada, "blog")
    comment = await a_comment(client, ada, address)
    await client.post(f"{address}/comment/{comment}/reactions/fire", headers=ada)

    await client.delete(address, headers=ada)

    async with database.read() as conn:
        assert await conn.fetch_value("SELECT count(*) FROM comment_emoji") == 0
