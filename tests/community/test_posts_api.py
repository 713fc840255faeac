"""Posts: writing, reading, listing and deleting them."""

import httpx2
import pytest

from community.public_threads import a_comment, a_thread, author_card
from hublet.accounts.users import service as accounts
from hublet.core.database import Database
from hublet.events import ThreadCreated, ThreadDeleted
from hublet.tokens.records import TokenRole
from outbox_events import published_events
from people import Headers, a_user, sign_in

PATH = "/api/posts"


async def test_a_post_is_published_under_its_authors_name(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await a_user(database, "bob")
    response = await client.post(
        PATH, headers=ada, json={"title": "The engine", "content": "It works, @bob!"}
    )

    assert response.status_code == 200
    post = response.json()
    user = await a_user(database, "ada")
    assert post == {
        "id": post["id"],
        "slug": post["slug"],
        "title": "The engine",
        "rawContent": "It works, @bob!",
        "author": author_card(user),
        "publishedAt": post["publishedAt"],
        "updatedAt": post["publishedAt"],
        "numComments": 0,
    }
    assert len(post["slug"]) == 15
    assert post["slug"].isdigit()
    assert (await client.get(f"{PATH}/ADA/{post['slug']}")).json() == post
    (fact,) = await published_events(database, ThreadCreated)
    assert (fact["mentioned_ids"], fact["actor_id"], fact["comment"]) == ([bob.id], user.id, None)
    assert {
        name: fact["thread"][name] for name in ("id", "kind", "title", "slug", "author_id")
    } == {
        "id": post["id"],
        "kind": "post",
        "title": "The engine",
        "slug": post["slug"],
        "author_id": user.id,
    }


async def test_a_post_without_a_title_is_called_by_its_first_line(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    titles = {
        "\n  First  line \nsecond": "First line",
        # Only titles that are given need three characters.
        "Hi": "Hi",
        "x" * 200: "x" * 200,
        "x" * 201: "x" * 199 + "…",
    }
    for content, title in titles.items():
        post = (await client.post(PATH, headers=ada, json={"content": content})).json()
        assert (post["title"], post["rawContent"]) == (title, content)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({}, "content is required."),
        ({"content": ""}, "content must have at least 1 character(s)."),
        ({"content": " \n "}, "content: must say something, blanks alone do not count."),
        ({"content": "x" * 20_001}, "content must have at most 20000 characters."),
        ({"content": "x", "title": " ab "}, "title must have at least 3 character(s)."),
        ({"content": "x", "title": "x" * 201}, "title must have at most 200 characters."),
        (
            {"content": "x", "title": "two\nlines"},
            "title: must be a single line without control characters.",
        ),
        ({"content": "x", "slug": "own"}, "slug is not a known field."),
        ({"content": "x\x00"}, "The body: text must not contain the NUL character."),
    ],
)
async def test_a_post_that_breaks_a_rule_is_refused(
    client: httpx2.AsyncClient, ada: Headers, body: dict[str, object], sentence: str
) -> None:
    response = await client.post(PATH, headers=ada, json=body)

    assert (response.status_code, response.json()) == (400, {"error": sentence})


async def test_a_post_needs_a_full_token(client: httpx2.AsyncClient, database: Database) -> None:
    reader = await sign_in(database, "ada", role=TokenRole.read)
    scoped = await sign_in(database, "ada", scopes=["write-discussions"])

    for headers in (reader, scoped):
        response = await client.post(PATH, headers=headers, json={"content": "x"})
        assert (response.status_code, response.json()) == (
            403,
            {"error": "This needs a token with the role write."},
        )
    assert (await client.post(PATH, json={"content": "x"})).status_code == 401


async def test_posts_are_listed_newest_first(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    for headers, text in ((ada, "one"), (bob, "two"), (ada, "three")):
        await client.post(PATH, headers=headers, json={"content": text})

    async def listed(query: str) -> tuple[list[str], int]:
        body = (await client.get(f"{PATH}?{query}")).json()
        return [post["rawContent"] for post in body["socialPosts"]], body["numTotalItems"]

    assert await listed("") == (["three", "two", "one"], 3)
    assert await listed("skip=1&limit=1") == (["two"], 3)
    assert await listed("author=Ada") == (["three", "one"], 2)
    assert await listed("author=nobody") == ([], 0)


async def test_a_list_has_bounds(client: httpx2.AsyncClient) -> None:
    for query in ("limit=0", "limit=101", "skip=-1", "skip=1000001"):
        assert (await client.get(f"{PATH}?{query}")).status_code == 400


async def test_a_deleted_post_is_gone_with_its_comments(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    address = await a_thread(client, ada, "post")
    await a_comment(client, ada, address)

    response = await client.delete(address, headers=ada)

    assert (response.status_code, response.json()) == (200, {})
    slug = address.rpartition("/")[2]
    for path in (address, f"{address}/comments"):
        gone = await client.get(path)
        assert (gone.status_code, gone.json()) == (
            404,
            {"error": f"There is no post ada/{slug}, or you cannot see it."},
        )
    (fact,) = await published_events(database, ThreadDeleted)
    assert (fact["thread"]["slug"], fact["thread"]["kind"]) == (slug, "post")


async def test_only_its_author_and_hub_administrators_delete_a_post(
    client: httpx2.AsyncClient, database: Database, ada: Headers, admin: Headers
) -> None:
    address = await a_thread(client, ada, "post")
    bob = await sign_in(database, "bob")

    refused = await client.delete(address, headers=bob)

    assert (refused.status_code, refused.json()) == (
        403,
        {"error": "You cannot delete this post: it is somebody else's."},
    )
    assert (await client.delete(address, headers=admin)).status_code == 200


async def test_blogs_and_posts_are_not_found_among_each_other(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    blog = await a_thread(client, ada, "blog")

    assert (await client.get(blog.replace("/api/blog", PATH))).status_code == 404
    assert (await client.get(PATH)).json() == {"socialPosts": [], "numTotalItems": 0}
    post = await a_thread(client, ada, "post")
    assert (await client.get(post.replace(PATH, "/api/blog"))).status_code == 404
    assert len((await client.get("/api/blog")).json()) == 1


async def test_the_posts_of_a_disabled_user_stay_readable(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    address = await a_thread(client, ada, "post")
    before = (await client.get(address)).json()
    async with database.transaction() as conn:
        await accounts.disable_user(conn, await accounts.get_user(conn, "ada"))

    assert (await client.get(address)).json() == before
    assert (await client.get(PATH)).json()["socialPosts"] == [before]
