"""Users as everybody may see them, and following them."""

import httpx2
import pytest

from account_responses import pages_of, user_card
from hublet.accounts.records import Role
from hublet.accounts.users import service as accounts
from hublet.core.clock import wire
from hublet.core.database import Database
from hublet.events import UserFollowed
from hublet.tokens.records import TokenRole
from outbox_events import published_events
from people import Headers, a_user, an_organization, sign_in

PUBLIC = ["overview", "followers", "following", "avatar"]


async def follow(client: httpx2.AsyncClient, who: Headers, name: str) -> None:
    assert (await client.post(f"/api/users/{name}/follow", headers=who)).status_code == 200


async def disable(database: Database, name: str) -> None:
    user = await a_user(database, name)
    async with database.transaction() as conn:
        await accounts.disable_user(conn, user)


async def test_anybody_sees_an_overview(client: httpx2.AsyncClient, database: Database) -> None:
    user = await a_user(database, "Ada")
    organization = await an_organization(database, "engines", members={"Ada": Role.read})

    response = await client.get("/api/users/ADA/overview")

    assert response.status_code == 200
    assert response.json() == user_card(user) | {
        "createdAt": wire(user.created_at),
        "numModels": 0,
        "numDatasets": 0,
        "numSpaces": 0,
        "numDiscussions": 0,
        "numPapers": 0,
        "numUpvotes": 0,
        "numLikes": 0,
        "numFollowers": 0,
        "numFollowing": 0,
        "orgs": [
            {
                "id": organization.id,
                "name": "engines",
                "fullname": "engines",
                "avatarUrl": f"http://hub.test/avatars/{organization.id}",
            }
        ],
    }


async def test_an_overview_counts_followers_and_tells_the_viewers_side(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    await follow(client, ada, "bob")

    seen_by_ada = (await client.get("/api/users/bob/overview", headers=ada)).json()
    seen_by_bob = (await client.get("/api/users/ada/overview", headers=bob)).json()

    keys = ("numFollowers", "numFollowing", "isFollowing")
    assert [seen_by_ada[key] for key in keys] == [1, 0, True]
    assert [seen_by_bob[key] for key in keys] == [0, 1, False]


async def test_following_again_changes_nothing_and_is_told_once(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    follower, followed = await a_user(database, "ada"), await a_user(database, "bob")

    for _ in range(2):
        response = await client.post("/api/users/BOB/follow", headers=ada)
        assert (response.status_code, response.json()) == (200, {})

    assert (await client.get("/api/users/bob/followers")).json() == [user_card(follower)]
    assert (await client.get("/api/users/ada/following")).json() == [user_card(followed)]
    assert await published_events(database, UserFollowed) == [
        {"follower_id": follower.id, "account_id": followed.id}
    ]


async def test_unfollowing_can_be_repeated(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_user(database, "bob")
    await follow(client, ada, "bob")

    for _ in range(2):
        response = await client.delete("/api/users/bob/follow", headers=ada)
        assert (response.status_code, response.json()) == (200, {})

    assert (await client.get("/api/users/bob/followers")).json() == []
    assert (await client.get("/api/users/ada/following")).json() == []


async def test_nobody_follows_oneself(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    response = await client.post("/api/users/Ada/follow", headers=ada)

    assert (response.status_code, response.json()) == (
        400,
        {"error": "You cannot follow yourself."},
    )
    assert await published_events(database, UserFollowed) == []


@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_following_needs_a_write_token(
    client: httpx2.AsyncClient, database: Database, method: str
) -> None:
    await a_user(database, "bob")
    reading = await sign_in(database, "ada", role=TokenRole.read)
    scoped = await sign_in(database, "ada", scopes=["webhooks"])

    answers = [
        await client.request(method, "/api/users/bob/follow", headers=headers)
        for headers in ({}, reading, scoped)
    ]

    assert [answer.status_code for answer in answers] == [401, 403, 403]
    assert answers[2].json() == {"error": "This needs a token with the role write."}


async def test_followers_and_following_come_page_by_page(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    names = [f"user-{number}" for number in range(5)]
    for name in names:
        await follow(client, await sign_in(database, name), "ada")
        await follow(client, ada, name)

    assert await pages_of(client, "/api/users/ada/followers?limit=2", "user") == [
        names[:2], names[2:4], names[4:],
    ]  # fmt: skip
    assert await pages_of(client, "/api/users/ada/following?limit=3", "user") == [
        names[:3], names[3:],
    ]  # fmt: skip


async def test_a_followed_organization_is_not_among_followed_users(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(database, "engines")
    await client.post("/api/organizations/engines/follow", headers=ada)

    assert (await client.get("/api/users/ada/following")).json() == []
    assert (await client.get("/api/users/ada/overview")).json()["numFollowing"] == 0


async def test_the_address_of_a_picture_is_told(
    client: httpx2.AsyncClient, database: Database
) -> None:
    user = await a_user(database, "ada")

    response = await client.get("/api/users/Ada/avatar")

    assert response.json() == {"avatarUrl": f"http://hub.test/avatars/{user.id}"}


@pytest.mark.parametrize("what", PUBLIC)
async def test_an_unknown_user_is_not_found(client: httpx2.AsyncClient, what: str) -> None:
    response = await client.get(f"/api/users/nobody/{what}")

    assert (response.status_code, response.json()) == (404, {"error": "There is no user nobody."})


async def test_an_organization_is_not_a_user(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_organization(database, "engines")

    assert (await client.get("/api/users/engines/overview")).status_code == 404


@pytest.mark.parametrize("what", PUBLIC)
async def test_a_disabled_user_is_there_for_administrators_only(
    client: httpx2.AsyncClient, database: Database, ada: Headers, admin: Headers, what: str
) -> None:
    await a_user(database, "bob")
    await disable(database, "bob")

    answers = [
        (await client.get(f"/api/users/bob/{what}", headers=headers)).status_code
        for headers in ({}, ada, admin)
    ]

    assert answers == [404, 404, 200]


async def test_a_disabled_user_neither_counts_nor_shows_as_a_follower(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    await follow(client, bob, "ada")
    await follow(client, ada, "bob")
    await disable(database, "bob")

    overview = (await client.get("/api/users/ada/overview")).json()

    assert (overview["numFollowers"], overview["numFollowing"]) == (0, 0)
    assert (await client.get("/api/users/ada/followers")).json() == []
    assert (await client.get("/api/users/ada/following")).json() == []


async def test_a_wrong_token_is_not_taken_for_none(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await a_user(database, "ada")

    response = await client.get(
        "/api/users/ada/overview", headers={"Authorization": "Bearer hf_wrong"}
    )

    assert response.status_code == 401
