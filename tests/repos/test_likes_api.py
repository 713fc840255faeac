"""Liking repositories."""

import asyncio

import httpx2

from hublet.core.database import Database
from hublet.events import RepoLiked
from outbox_events import published_events
from people import Headers, a_user, sign_in
from repositories import a_repo, disable

LIKE, LIKERS = "/api/models/ada/engine/like", "/api/models/ada/engine/likers"


async def likes_of(client: httpx2.AsyncClient) -> int:
    count: int = (await client.get("/api/models/ada/engine?expand=likes")).json()["likes"]
    return count


async def test_a_like_is_counted_once_and_taken_back_once(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    await a_repo(client, ada, "ada/engine")

    answers = [await client.post(LIKE, headers=who) for who in (bob, bob, ada)]
    liked = await likes_of(client)
    answers += [await client.delete(LIKE, headers=who) for who in (bob, bob)]

    assert [(answer.status_code, answer.json()) for answer in answers] == [(200, {})] * 5
    assert (liked, await likes_of(client)) == (2, 1)
    events = await published_events(database, RepoLiked)
    assert [event["repo"]["name"] for event in events] == ["ada/engine", "ada/engine"]
    assert events[0]["user_id"] == (await a_user(database, "bob")).id


async def test_likes_at_the_same_moment_are_all_counted(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    people = [await sign_in(database, f"user-{number}") for number in range(5)]
    await a_repo(client, ada, "ada/engine")

    await asyncio.gather(*(client.post(LIKE, headers=who) for who in [*people, *people]))

    assert await likes_of(client) == 5


async def test_likers_come_page_by_page_without_disabled_users(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")
    for name in ("one", "two", "three"):
        await client.post(LIKE, headers=await sign_in(database, name))
    await disable(database, "two")

    first = await client.get(f"{LIKERS}?limit=1")
    second = await client.get(first.links["next"]["url"])

    [one], [three] = first.json(), second.json()
    assert one == {
        "_id": (await a_user(database, "one")).id,
        "user": "one",
        "fullname": "one",
        "avatarUrl": one["avatarUrl"],
        "isPro": False,
        "type": "user",
    }
    assert three["user"] == "three"
    assert "link" not in second.headers


async def test_a_users_likes_are_listed_newest_first(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    for type_ in ("model", "dataset", "space"):
        await a_repo(client, ada, "ada/engine", type=type_)
        await client.post(f"/api/{type_}s/ada/engine/like", headers=ada)

    first = await client.get("/api/users/ada/likes?limit=2")
    second = await client.get(first.links["next"]["url"])

    found = [*first.json(), *second.json()]
    assert [like["repo"] for like in found] == [
        {"name": "ada/engine", "type": type_} for type_ in ("space", "dataset", "model")
    ]
    assert {frozenset(like) for like in found} == {frozenset({"createdAt", "repo"})}
    assert "link" not in second.headers


async def test_private_repositories_are_liked_in_silence(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine", private=True)
    await client.post(LIKE, headers=ada)

    assert (await client.get("/api/users/ada/likes", headers=ada)).json() == []
    assert (await client.get("/api/users/ada/likes")).json() == []


async def test_what_cannot_be_seen_cannot_be_liked(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine", private=True)
    bob = await sign_in(database, "bob")

    answers = [
        await client.post(LIKE, headers=bob),
        await client.delete(LIKE, headers=bob),
        await client.get(LIKERS, headers=bob),
    ]

    assert [answer.headers["x-error-code"] for answer in answers] == ["RepoNotFound"] * 3


async def test_a_like_needs_a_full_token(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")
    narrow = await sign_in(database, "ada", scopes=["manage-repos"])

    answers = [await client.post(LIKE, headers=headers) for headers in ({}, narrow)]

    assert [answer.status_code for answer in answers] == [401, 403]


async def test_likes_of_nobody_are_not_found(client: httpx2.AsyncClient) -> None:
    assert (await client.get("/api/users/nobody/likes")).status_code == 404


async def test_a_bad_cursor_is_refused(client: httpx2.AsyncClient, ada: Headers) -> None:
    for name in ("one", "two"):
        await a_repo(client, ada, f"ada/{name}")
    listed = await client.get("/api/settings/repositories?limit=1", headers=ada)
    cursor = httpx2.URL(listed.links["next"]["url"]).params["cursor"]

    response = await client.get("/api/users/ada/likes", params={"cursor": cursor})

    assert response.status_code == 400


async def test_likes_go_with_the_repository(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")
    await client.post(LIKE, headers=ada)

    await client.request("DELETE", "/api/repos/delete", headers=ada, json={"name": "engine"})

    assert (await client.get("/api/users/ada/likes")).json() == []
    async with database.read() as conn:
        assert await conn.fetch_value("SELECT count(*) FROM likes") == 0
