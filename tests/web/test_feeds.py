"""Atom feeds of a repository: commits, releases, discussions."""

from xml.etree import ElementTree as ET

import httpx2
import pytest

from hublet.core.database import Database
from login.login_pages import a_person, log_in
from people import Headers, sign_in
from repos.content import put
from repositories import a_ref
from web.file_pages import a_repo_with, get_page

ATOM = "{http://www.w3.org/2005/Atom}"


async def entries_of(
    client: httpx2.AsyncClient, path: str, headers: Headers | None = None
) -> dict[str, str]:
    """Return the links of a feed's entries by title."""
    response = await client.get(path, headers=headers or {})
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/atom+xml; charset=utf-8"
    root = ET.fromstring(response.content)
    return {
        entry.findtext(f"{ATOM}title", ""): entry.find(f"{ATOM}link").attrib["href"]  # type: ignore[union-attr]
        for entry in root.iter(f"{ATOM}entry")
    }


async def test_commits_of_a_branch_are_a_feed(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id, _ = await a_repo_with(client, database, ada, {"a": b"1"})
    commit = await put(database, repo_id, {"a": b"2"}, message="<b>& \x01 ]]>")
    await a_ref(database, repo_id, "refs/heads/feat/x", commit)

    main = await entries_of(client, "/ada/engine/commits/main.atom")
    branch = await entries_of(client, "/ada/engine/commits/feat%2Fx.atom")

    assert main["<b>&  ]]>"] == f"http://hub.test/ada/engine/commit/{commit}"
    assert list(main) == list(branch)


async def test_tags_are_a_feed_of_releases_newest_first(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id, old = await a_repo_with(client, database, ada, {"a": b"1"})
    new = await put(database, repo_id, {"a": b"2"}, at=1_800_000_000)
    await a_ref(database, repo_id, "refs/tags/v9", old)
    await a_ref(database, repo_id, "refs/tags/v10", new)

    assert await entries_of(client, "/ada/engine/tags.atom") == {
        "v10": "http://hub.test/ada/engine/tree/v10",
        "v9": "http://hub.test/ada/engine/tree/v9",
    }


async def test_discussions_are_a_feed(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo_with(client, database, ada, {"a": b"1"}, type="dataset")
    body = {"title": "Does it run?", "description": "On one card.", "pullRequest": False}
    await client.post("/api/datasets/ada/engine/discussions", headers=ada, json=body)

    assert await entries_of(client, "/datasets/ada/engine/discussions.atom") == {
        "Does it run? #1": "http://hub.test/datasets/ada/engine/discussions/1"
    }


@pytest.mark.parametrize("feed", ["commits/main.atom", "tags.atom", "discussions.atom"])
async def test_feeds_of_a_private_repository_are_for_its_readers(
    client: httpx2.AsyncClient, database: Database, feed: str
) -> None:
    await a_person(database, "ada")
    token = await sign_in(database, "ada")
    await a_repo_with(client, database, token, {"a": b"1"}, private=True)
    path = f"/ada/engine/{feed}"

    assert (await client.get(path)).status_code == 404
    assert (await client.get(path, headers=await sign_in(database, "grace"))).status_code == 404
    assert (await client.get(path, headers=token)).status_code == 200
    await log_in(client)
    assert (await client.get(path)).status_code == 200


async def test_a_branch_that_ends_like_a_feed_keeps_its_page(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id, commit = await a_repo_with(client, database, ada, {"a": b"1"})
    await a_ref(database, repo_id, "refs/heads/x.atom", commit)

    page = await get_page(client, "/ada/engine/commits/x.atom")

    assert page.links["Feed"] == "/ada/engine/commits/x.atom.atom"


async def test_a_feed_that_did_not_change_is_not_sent_again(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo_with(client, database, ada, {"a": b"1"})
    first = await client.get("/ada/engine/commits/main.atom")

    again = {"If-None-Match": first.headers["etag"]}
    second = await client.get("/ada/engine/commits/main.atom", headers=again)
    assert second.status_code == 304


async def test_pages_name_the_feeds_in_their_head(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo_with(client, database, ada, {"a": b"1"})

    page = await get_page(client, "/ada/engine/tree/main")

    feeds = page.root.all("link", rel="alternate", type="application/atom+xml")
    assert [link.attributes["href"] for link in feeds] == [
        "/ada/engine/commits/main.atom",
        "/ada/engine/tags.atom",
        "/ada/engine/discussions.atom",
    ]
    for link in feeds:
        assert (await client.get(link.attributes["href"])).status_code == 200
