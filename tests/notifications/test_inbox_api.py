"""The inbox as it is read: the four shapes of items, pages, counts, versions."""

from typing import Any

import httpx2
import pytest

from community.discussions import a_discussion, a_pull_request, get_discussion
from community.public_threads import a_comment, a_thread
from hublet.accounts.records import Role, User
from hublet.core.clock import from_micros
from hublet.core.database import Database
from hublet.core.ids import new_object_id
from hublet.notifications.records import HUB
from hublet.tokens.records import TokenRole
from notifications.inboxes import (
    INBOX,
    MENTIONED,
    WATCHED,
    add_posts,
    an_item,
    deliver,
    kept_counts,
    look,
    rows_of,
    true_counts,
)
from people import Headers, a_user, an_organization, sign_in
from repositories import a_repo

EMPTY = {"notifications": [], "count": {"view": 0, "unread": 0, "all": 0}, "start": 0}


def person(user: User) -> dict[str, str]:
    return {"_id": user.id, "avatar": f"http://hub.test/avatars/{user.id}", "user": user.name}


async def newest_time(database: Database, user_id: str) -> str:
    moment = from_micros((await rows_of(database, user_id))[0]["updated_at"])
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


async def in_inbox(
    client: httpx2.AsyncClient, database: Database, headers: Headers, address: str, **item: Any
) -> str:
    """Put the thread at this address into ada's inbox; return its id."""
    thread = (await client.get(address, headers=headers)).json()
    found: str = thread.get("discussionId") or thread["id"]
    await deliver(database, an_item(found, **item), {(await a_user(database, "ada")).id: WATCHED})
    return found


async def test_an_inbox_that_never_got_anything_is_empty(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    assert await look(client, ada) == EMPTY


async def test_a_discussion_is_shown_with_its_repository_and_who_took_part(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob, cleo = await sign_in(database, "bob"), await sign_in(database, "cleo")
    repo_id = await a_repo(client, ada, "ada/engine")
    address = await a_discussion(client, bob, description="What do you think, @dora?")
    await client.post(f"{address}/comment", headers=cleo, json={"comment": "It does."})
    found = await in_inbox(client, database, ada, address, place_id=repo_id, event_id="e" * 24)

    user = await a_user(database, "ada")
    assert await look(client, ada) == {
        "notifications": [
            {
                "type": "repo",
                "updatedAt": await newest_time(database, user.id),
                "read": False,
                "discussionEventId": "e" * 24,
                "repo": {"name": "ada/engine", "type": "model"},
                "discussion": {
                    "num": 1,
                    "title": "Does it run?",
                    "status": "open",
                    "id": found,
                    "isPullRequest": False,
                    "participating": [
                        person(await a_user(database, "bob")),
                        person(await a_user(database, "cleo")),
                    ],
                },
            }
        ],
        "count": {"view": 1, "unread": 1, "all": 1},
        "start": 0,
    }


async def test_a_pull_request_is_shown_as_one_and_with_todays_names(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    address = await a_pull_request(client, ada)
    await in_inbox(client, database, ada, address, place_id=repo_id)
    moved = {"fromRepo": "ada/engine", "toRepo": "ada/motor"}
    await client.post("/api/repos/move", headers=ada, json=moved)

    (item,) = (await look(client, ada))["notifications"]
    assert item["repo"] == {"name": "ada/motor", "type": "model"}
    assert (item["discussion"]["isPullRequest"], item["discussion"]["status"]) == (True, "draft")
    assert "discussionEventId" not in item


async def test_a_paper_is_shown_by_the_id_of_its_thread(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    address = await a_thread(client, ada, "paper")
    found = await in_inbox(client, database, ada, address, type="paper")

    user = await a_user(database, "ada")
    assert (await look(client, ada))["notifications"] == [
        {
            "type": "paper",
            "updatedAt": await newest_time(database, user.id),
            "read": False,
            "paper": {"_id": found, "title": "Notes on the Engine"},
            "paperDiscussion": {"id": found, "participating": [person(user)], "paperId": found},
        }
    ]


async def test_a_post_is_shown_with_its_author(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    address = await a_thread(client, bob, "post")
    await a_comment(client, ada, address)
    author = await a_user(database, "bob")
    found = await in_inbox(client, database, ada, address, type="post", place_id=author.id)

    user = await a_user(database, "ada")
    assert (await look(client, ada))["notifications"] == [
        {
            "type": "post",
            "updatedAt": await newest_time(database, user.id),
            "read": False,
            "post": {
                "id": found,
                "slug": address.rpartition("/")[2],
                "authorName": "bob",
                "title": "A post to talk about",
                "participating": [person(author), person(user)],
            },
        }
    ]


async def test_a_blog_is_shown_under_its_owner(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    address = await a_thread(client, ada, "blog")
    found = await in_inbox(client, database, ada, address, type="blog")

    user = await a_user(database, "ada")
    assert (await look(client, ada))["notifications"] == [
        {
            "type": "community_blog",
            "updatedAt": await newest_time(database, user.id),
            "read": False,
            "blog": {
                "id": found,
                "slug": "a-blog-to-talk-about",
                "title": "A blog to talk about",
                "canonical": False,
                "authorName": "ada",
                "participating": [person(user)],
            },
        }
    ]


async def a_message(database: Database, user_id: str, title: str = "A webhook rests") -> str:
    """Let the hub tell a user something."""
    message_id = new_object_id()
    async with database.transaction() as conn:
        await conn.execute(
            """
            INSERT INTO messages (id, user_id, kind, title, body, created_at)
            VALUES ($1, $2, 'webhook', $3, 'It failed.', 1)
            """,
            message_id, user_id, title,
        )  # fmt: skip
    item = an_item(message_id, type="post", place_id=HUB)
    await deliver(database, item, {user_id: MENTIONED})
    return message_id


async def test_a_message_of_the_hub_is_a_post_of_the_hub(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    user = await a_user(database, "ada")
    message_id = await a_message(database, user.id)

    found = await look(client, ada, postAuthor="Hublet")
    assert found["notifications"] == [
        {
            "type": "post",
            "updatedAt": await newest_time(database, user.id),
            "read": False,
            "post": {
                "id": message_id,
                "slug": message_id,
                "authorName": "hublet",
                "title": "A webhook rests",
                "participating": [],
            },
        }
    ]


async def test_who_is_merely_mentioned_does_not_participate(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_user(database, "dora")
    address = await a_thread(client, ada, "post", text="Look at this, @dora.")
    await in_inbox(client, database, ada, address, type="post")

    (item,) = (await look(client, ada))["notifications"]
    assert [each["user"] for each in item["post"]["participating"]] == ["ada"]


async def test_of_many_who_took_part_the_first_hundred_are_shown(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    address = await a_thread(client, ada, "post")
    found = await in_inbox(client, database, ada, address, type="post")
    async with database.transaction() as conn:
        await conn.execute_many(
            """
            INSERT INTO users (id, name, fullname, type, is_admin, created_at)
            VALUES ($1, $2, '', 'user', FALSE, 1)
            """,
            [(f"{number:024x}", f"person-{number}") for number in range(150)],
        )
        await conn.execute_many(
            """
            INSERT INTO thread_participants (thread_id, user_id, commented, since)
            VALUES ($1, $2, TRUE, $3)
            """,
            [(found, f"{number:024x}", 1000 - number) for number in range(150)],
        )

    (item,) = (await look(client, ada))["notifications"]
    names = [each["user"] for each in item["post"]["participating"]]
    assert names == [f"person-{number}" for number in range(149, 49, -1)]


async def many(database: Database, number: int) -> None:
    """Put so many posts into ada's inbox, in the order of their titles."""
    user = await a_user(database, "ada")
    for each in await add_posts(database, user.id, number):
        await deliver(database, an_item(each, type="post", place_id=user.id), {user.id: WATCHED})


async def test_pages_have_25_items_newest_first_and_end_quietly(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await many(database, 60)

    pages = [await look(client, ada, p=p) for p in range(4)]
    titles = [[each["post"]["title"] for each in page["notifications"]] for page in pages]
    assert titles[0] == [f"Post {place}" for place in range(59, 34, -1)]
    assert titles[1] == [f"Post {place}" for place in range(34, 9, -1)]
    assert titles[2] == [f"Post {place}" for place in range(9, -1, -1)]
    assert titles[3] == []
    assert [page["start"] for page in pages] == [0, 25, 50, 75]
    assert {tuple(page["count"].values()) for page in pages} == {(60, 60, 60)}

    last = await look(client, ada, p=9007199254740991)
    assert (last["notifications"], last["count"]["view"]) == ([], 60)
    assert last["start"] == 9007199254740991 * 25


async def test_the_version_of_an_unchanged_page_is_enough(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await many(database, 1)
    first = await client.get(INBOX, headers=ada)
    held = ada | {"If-None-Match": first.headers["etag"]}
    again = await client.get(INBOX, headers=held)
    await many(database, 1)
    changed = await client.get(INBOX, headers=held)

    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    for answer in (first, again):
        assert answer.headers["x-poll-interval"] == "60"
        assert answer.headers["cache-control"] == "private, no-cache"
    assert changed.status_code == 200
    assert changed.headers["etag"] != first.headers["etag"]
    assert len(changed.json()["notifications"]) == 2


async def test_nobody_sees_what_is_in_anothers_inbox(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await many(database, 3)

    assert await look(client, await sign_in(database, "bob")) == EMPTY


async def test_a_thread_that_is_gone_leaves_the_inbox(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    user = await a_user(database, "ada")
    await many(database, 2)
    for _ in range(60):
        await deliver(database, an_item(place_id=new_object_id()), {user.id: WATCHED})

    found = await look(client, ada)
    assert [each["post"]["title"] for each in found["notifications"]] == ["Post 1", "Post 0"]
    assert found["count"] == {"view": 2, "unread": 2, "all": 2}
    assert len(await rows_of(database, user.id)) == 2
    assert await kept_counts(database) == await true_counts(database)


async def test_what_the_user_may_not_see_any_more_leaves_the_inbox(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    root = await sign_in(database, "root")
    organization = await an_organization(
        database, "acme", members={"root": Role.admin, "ada": Role.read}
    )
    repo_id = await a_repo(client, root, "acme/engine", private=True)
    path = "/api/models/acme/engine/discussions"
    user = await a_user(database, "ada")
    for _ in range(30):
        number = (await get_discussion(client, await a_discussion(client, root, path), root))["id"]
        await deliver(database, an_item(number, place_id=repo_id), {user.id: WATCHED})
    assert (await look(client, ada))["count"]["all"] == 30

    async with database.transaction() as conn:
        await conn.execute(
            "DELETE FROM memberships WHERE organization_id = $1 AND user_id = $2",
            organization.id, user.id,
        )  # fmt: skip
    assert await look(client, ada) == EMPTY
    assert await rows_of(database, user.id) == []
    assert await kept_counts(database) == {}


async def test_a_private_repository_of_ones_own_is_seen(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine", private=True)
    address = await a_discussion(client, ada)
    await in_inbox(client, database, ada, address, place_id=repo_id)

    assert (await look(client, ada))["count"]["all"] == 1


async def test_no_token_reads_nothing(client: httpx2.AsyncClient) -> None:
    assert (await client.get(INBOX)).status_code == 401


async def test_a_token_with_the_role_read_reads(
    client: httpx2.AsyncClient, database: Database
) -> None:
    assert await look(client, await sign_in(database, "ada", role=TokenRole.read)) == EMPTY


async def test_no_scope_reaches_the_inbox(client: httpx2.AsyncClient, database: Database) -> None:
    headers = await sign_in(database, "ada", scopes=["manage-repos", "write-discussions"])
    response = await client.get(INBOX, headers=headers)

    assert response.status_code == 403
    assert response.json() == {
        "error": "This needs a token with the role read or write; scopes do not reach it."
    }


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("p=-1", "p must be at least 0."),
        ("p=1.5", "p must be an integer."),
        ("p=two", "p must be an integer."),
        ("p=", "p must be an integer."),
        ("p=9007199254740992", "p must be at most 9007199254740991."),
        ("readStatus=read", "readStatus must be one of 'all' or 'unread'."),
        (
            "repoType=user",
            (
                "repoType must be one of 'model', 'dataset', 'space', 'kernel', 'bucket' or "
                "'container'."
            ),
        ),
        ("mention=me", "mention must be one of 'all', 'participating' or 'mentions'."),
        ("lastUpdate=5", "lastUpdate must be a timestamp such as 2026-11-15T01:44:56Z."),
        (
            "lastUpdate=2026-11-15T01:44:56",
            "lastUpdate must be a timestamp with a time zone, such as 2026-11-15T01:44:56Z.",
        ),
        (
            "p=x&mention=y",
            "p must be an integer. mention must be one of 'all', 'participating' or 'mentions'.",
        ),
    ],
)
async def test_filters_that_make_no_sense_are_refused_alike_everywhere(
    client: httpx2.AsyncClient, ada: Headers, query: str, sentence: str
) -> None:
    requests = [
        ("GET", f"{INBOX}?{query}"),
        ("DELETE", f"{INBOX}?applyToAll=true&{query}"),
        ("POST", f"{INBOX}/mark-as-read?applyToAll=true&{query}"),
    ]
    for method, address in requests:
        response = await client.request(method, address, headers=ada)
        assert (response.status_code, response.json()) == (400, {"error": sentence}), method


async def test_what_is_no_filter_means_nothing_and_the_last_of_several_counts(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await many(database, 1)

    response = await client.get(f"{INBOX}?limit=3&p=7&p=0", headers=ada)
    assert len(response.json()["notifications"]) == 1
