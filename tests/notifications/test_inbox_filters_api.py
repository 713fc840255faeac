"""What each filter of interface 4.1 lets through, alone and beside others."""

from dataclasses import dataclass
from datetime import timedelta, timezone
from typing import Any

import httpx2
import pytest

from community.public_threads import a_thread, thread_id
from hublet.accounts.records import Role
from hublet.core.clock import from_micros
from hublet.core.database import Database
from notifications.inboxes import (
    MENTIONED,
    PARTICIPATING,
    WATCHED,
    an_item,
    deliver,
    look,
    mark,
    rows_of,
)
from people import Headers, a_user, an_organization, sign_in
from repositories import a_repo

ALL = ["talk", "data", "other", "paper", "post", "own post", "blog", "own blog"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """Ada's inbox with one thread of each sort; in it are the ids of the threads by name."""

    client: httpx2.AsyncClient
    headers: Headers
    ids: dict[str, str]
    user_id: str
    database: Database

    async def names(self, **filters: Any) -> list[str]:
        """Return what is found, oldest first; the counts have to tell the same."""
        found = await look(self.client, self.headers, **filters)
        names = {thread: name for name, thread in self.ids.items()}
        shown = [names[_id_of(item)] for item in reversed(found["notifications"])]
        assert found["count"]["view"] == len(shown)
        return shown

    async def time_of(self, name: str) -> int:
        rows = await rows_of(self.database, self.user_id)
        found: int = next(r["updated_at"] for r in rows if r["thread_id"] == self.ids[name])
        return found


def _id_of(item: Any) -> str:
    part = {"repo": "discussion", "paper": "paperDiscussion", "community_blog": "blog"}
    found: str = item[part.get(item["type"], item["type"])]["id"]
    return found


async def talk(client: httpx2.AsyncClient, headers: Headers, path: str) -> str:
    body = {"title": "Does it run?", "description": "It should."}
    number = (await client.post(path, headers=headers, json=body)).json()["num"]
    found: str = (await client.get(f"{path}/{number}", headers=headers)).json()["id"]
    return found


@pytest.fixture
async def filled(client: httpx2.AsyncClient, database: Database, ada: Headers) -> Filled:
    bob = await sign_in(database, "bob")
    user, author = await a_user(database, "ada"), await a_user(database, "bob")
    model = await a_repo(client, ada, "ada/engine")
    dataset = await a_repo(client, ada, "ada/engine", type="dataset")
    other = await a_repo(client, ada, "ada/loom")
    ids = {
        "talk": await talk(client, bob, "/api/models/ada/engine/discussions"),
        "data": await talk(client, bob, "/api/datasets/ada/engine/discussions"),
        "other": await talk(client, bob, "/api/models/ada/loom/discussions"),
        "paper": await thread_id(client, await a_thread(client, ada, "paper")),
        "post": await thread_id(client, await a_thread(client, bob, "post")),
        "own post": await thread_id(client, await a_thread(client, ada, "post")),
        "blog": await thread_id(client, await a_thread(client, bob, "blog")),
        "own blog": await thread_id(client, await a_thread(client, ada, "blog")),
    }
    items = [
        (an_item(ids["talk"], place_id=model), WATCHED),
        (an_item(ids["data"], type="dataset", place_id=dataset), PARTICIPATING),
        (an_item(ids["other"], place_id=other), MENTIONED),
        (an_item(ids["paper"], type="paper"), WATCHED),
        (an_item(ids["post"], type="post", place_id=author.id), PARTICIPATING),
        (an_item(ids["own post"], type="post", place_id=user.id), MENTIONED),
        (an_item(ids["blog"], type="blog"), WATCHED),
        (an_item(ids["own blog"], type="blog"), PARTICIPATING),
    ]
    for item, involvement in items:
        await deliver(database, item, {user.id: involvement})
    return Filled(client=client, headers=ada, ids=ids, user_id=user.id, database=database)


FILTERS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "no filter: everything": ({}, ALL),
    "the defaults, said": ({"readStatus": "all", "mention": "all", "p": 0}, ALL),
    "a type of repository": ({"repoType": "model"}, ["talk", "other"]),
    "a type of which there is nothing": ({"repoType": "kernel"}, []),
    "a name that two types have": ({"repoName": "ada/engine"}, ["talk", "data"]),
    "a name in other letters": ({"repoName": "ADA/Engine"}, ["talk", "data"]),
    "type and name": ({"repoName": "ada/engine", "repoType": "dataset"}, ["data"]),
    "a name of another type": ({"repoName": "ada/loom", "repoType": "dataset"}, []),
    "a name without its owner": ({"repoName": "engine"}, []),
    "a name that nobody has": ({"repoName": "ada/nothing"}, []),
    "an empty name": ({"repoName": ""}, []),
    "an author": ({"postAuthor": "bob"}, ["post"]),
    "an author in other letters": ({"postAuthor": "ADA"}, ["own post"]),
    "an author whom nobody knows": ({"postAuthor": "nobody"}, []),
    "a paper by its arXiv id": ({"paperId": "2401.12345"}, ["paper"]),
    "a paper that is not here": ({"paperId": "2401.99999"}, []),
    "a slug": ({"articleId": "a-blog-to-talk-about"}, ["blog", "own blog"]),
    "a blog that is not here": ({"articleId": "nothing"}, []),
    "participating: mentions count as well": (
        {"mention": "participating"},
        ["data", "other", "post", "own post", "own blog"],
    ),
    "mentions": ({"mention": "mentions"}, ["other", "own post"]),
    "mentions in models": ({"mention": "mentions", "repoType": "model"}, ["other"]),
    "part taken in datasets": ({"mention": "participating", "repoType": "dataset"}, ["data"]),
    "in a name": ({"mention": "participating", "repoName": "ada/engine"}, ["data"]),
    "mentions by an author": ({"mention": "mentions", "postAuthor": "bob"}, []),
    "mentions in a paper": ({"mention": "mentions", "paperId": "2401.12345"}, []),
    "a model is no post": ({"repoType": "model", "postAuthor": "bob"}, []),
    "a model is no paper": ({"repoType": "model", "paperId": "2401.12345"}, []),
    "a place is no author": ({"repoName": "ada/engine", "postAuthor": "bob"}, []),
    "papers have no place": ({"repoName": "ada/loom", "paperId": "2401.12345"}, []),
    "papers are no blogs": ({"paperId": "2401.12345", "articleId": "a-blog-to-talk-about"}, []),
}


async def test_filters_let_through_what_they_name(filled: Filled) -> None:
    for what, (filters, expected) in FILTERS.items():
        assert await filled.names(**filters) == expected, what


async def test_papers_and_blogs_are_named_by_their_ids_too(filled: Filled) -> None:
    assert await filled.names(paperId=filled.ids["paper"].upper()) == ["paper"]
    assert await filled.names(articleId=filled.ids["blog"]) == ["blog"]
    assert await filled.names(articleId=filled.ids["paper"]) == []
    assert await filled.names(paperId=filled.ids["blog"]) == []


COUNTS: list[tuple[dict[str, Any], tuple[int, int, int]]] = [
    ({}, (8, 6, 8)),
    ({"readStatus": "unread"}, (6, 6, 8)),
    ({"repoType": "model"}, (2, 1, 2)),
    ({"repoType": "model", "readStatus": "unread"}, (1, 1, 2)),
    ({"repoName": "ada/engine"}, (2, 1, 2)),
    ({"repoName": "ada/engine", "readStatus": "unread"}, (1, 1, 2)),
    ({"mention": "participating", "readStatus": "unread"}, (4, 4, 5)),
    ({"mention": "mentions"}, (2, 2, 2)),
    ({"paperId": "2401.12345", "readStatus": "unread"}, (1, 1, 1)),
    ({"articleId": "a-blog-to-talk-about", "readStatus": "unread"}, (1, 1, 2)),
    ({"postAuthor": "nobody", "readStatus": "unread"}, (0, 0, 0)),
]


async def test_counts_tell_view_unread_and_all(filled: Filled) -> None:
    read = [filled.ids["talk"], filled.ids["own blog"]]
    assert await mark(filled.client, filled.headers, {"discussionIds": read}) == 2

    for filters, (view, unread, everything) in COUNTS:
        found = await look(filled.client, filled.headers, **filters)
        assert found["count"] == {"view": view, "unread": unread, "all": everything}, filters
        assert len(found["notifications"]) == view, filters


def written(micros: int) -> str:
    return from_micros(micros).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@pytest.mark.parametrize(
    ("filters", "last", "expected"),
    [
        pytest.param({}, "paper", ALL[:4], id="everything"),
        pytest.param({"repoType": "model"}, "talk", ["talk"], id="a type"),
        pytest.param({"repoName": "ada/engine"}, "talk", ["talk"], id="places"),
        pytest.param(
            {"mention": "participating"}, "post", ["data", "other", "post"], id="involved"
        ),
        pytest.param({"mention": "mentions"}, "post", ["other"], id="mentions"),
        pytest.param({"articleId": "a-blog-to-talk-about"}, "blog", ["blog"], id="threads"),
        pytest.param({"readStatus": "unread"}, "data", ["talk", "data"], id="unread"),
        pytest.param({"postAuthor": "bob"}, "paper", [], id="all of it is newer"),
    ],
)
async def test_nothing_is_shown_or_counted_that_changed_after_last_update(
    filled: Filled, filters: dict[str, Any], last: str, expected: list[str]
) -> None:
    moment = await filled.time_of(last)

    assert await filled.names(**filters, lastUpdate=written(moment)) == expected
    assert last not in await filled.names(**filters, lastUpdate=written(moment - 1))


async def test_a_time_of_another_zone_is_the_same_time(filled: Filled) -> None:
    moment = from_micros(await filled.time_of("data"))
    there = moment.astimezone(timezone(timedelta(hours=-5))).isoformat()

    assert there.endswith("-05:00")
    assert await filled.names(lastUpdate=there) == ["talk", "data"]


async def test_old_names_of_a_repository_are_followed(filled: Filled) -> None:
    moved = {"fromRepo": "ada/loom", "toRepo": "ada/jacquard"}
    await filled.client.post("/api/repos/move", headers=filled.headers, json=moved)

    assert await filled.names(repoName="ada/loom") == ["other"]
    assert await filled.names(repoName="ada/jacquard", repoType="model") == ["other"]
    assert await filled.names(repoName="ada/loom", repoType="dataset") == []


async def test_a_private_repository_that_is_hidden_has_no_name(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    root = await sign_in(database, "root")
    await an_organization(database, "acme", members={"root": Role.admin})
    repo_id = await a_repo(client, root, "acme/secret", private=True)
    thread = await talk(client, root, "/api/models/acme/secret/discussions")
    for name in ("ada", "root"):
        user = await a_user(database, name)
        await deliver(database, an_item(thread, place_id=repo_id), {user.id: WATCHED})

    nothing = await look(client, ada, repoName="acme/secret")
    assert nothing == await look(client, ada, repoName="acme/nothing")
    marking = {"repoName": "acme/secret", "applyToAll": "true"}
    assert await mark(client, ada, **marking) == 0
    assert (await look(client, root, repoName="acme/secret"))["count"]["all"] == 1
    assert await mark(client, root, **marking) == 1
