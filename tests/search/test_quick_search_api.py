"""The quick search: its answer, what words find, in which order, and its filters."""

from typing import Any

import httpx2
import pytest

from hublet.accounts.records import Role
from hublet.core.database import Database
from people import Headers, an_organization, sign_in
from repositories import a_push, a_repo
from search.quick_searches import PATH, in_step, names, quick_search


async def test_the_answer_has_every_kind(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(database, "engines", members={"ada": Role.admin})
    engineer = await sign_in(database, "engineer")
    for kind in ("model", "dataset", "space", "bucket", "kernel", "container"):
        await a_repo(client, ada, f"ada/engine-{kind}", type=kind)
    paper = {"id": "2401.12345", "title": "On engines", "authors": ["A"], "summary": "S"}
    await client.post("/api/papers/index", headers=engineer, json=paper)
    await in_step(database)

    result = await quick_search(client, q="engin")

    ids = {"orgs": result["orgs"][0].pop("_id"), "users": result["users"][0].pop("_id")}
    assert result == {
        "q": "engin",
        "models": [{"id": "ada/engine-model", "private": False, "trendingWeight": 0}],
        "modelsCount": 1,
        "datasets": [{"id": "ada/engine-dataset", "private": False, "trendingWeight": 0}],
        "datasetsCount": 1,
        "spaces": [
            {"id": "ada/engine-space", "private": False, "emoji": "🚀", "trendingWeight": 0}
        ],
        "spacesCount": 1,
        "orgs": [
            {
                "name": "engines",
                "fullname": "engines",
                "avatarUrl": f"http://hub.test/avatars/{ids['orgs']}",
            }
        ],
        "users": [
            {
                "user": "engineer",
                "fullname": "engineer",
                "avatarUrl": f"http://hub.test/avatars/{ids['users']}",
            }
        ],
        "papers": [{"id": "2401.12345"}],
        "papersCount": 1,
        "collections": [],
        "collectionsCount": 0,
        "buckets": [{"id": "ada/engine-bucket", "private": False}],
        "bucketsCount": 1,
        "kernels": [{"id": "ada/engine-kernel", "private": False}],
        "kernelsCount": 1,
    }


async def test_a_body_asks_the_same(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")
    await in_step(database)

    asked = await client.post(PATH, json={"q": "eng", "type": ["model", "collection"], "limit": 3})

    assert asked.status_code == 200
    assert asked.json() == await quick_search(client, q="eng", type=["model"])


README = b"""---
license: mit
---
# Tides
Predicts the *ebb* of the [sea](https://example.com/elsewhere).
"""


@pytest.mark.parametrize(
    ("q", "expected"),
    [
        pytest.param("analytical", ["ada/Analytical-Engine"], id="a word of the name"),
        pytest.param("a", ["ada/Analytical-Engine"], id="one letter"),
        pytest.param("ana", ["ada/Analytical-Engine"], id="a beginning"),
        pytest.param("analytica", ["ada/Analytical-Engine"], id="a long beginning"),
        pytest.param("nalytical", ["ada/Analytical-Engine"], id="a mistyped word"),
        pytest.param("ENGÏNE", ["ada/Analytical-Engine"], id="other case and accents"),
        pytest.param("engine analytical", ["ada/Analytical-Engine"], id="words in any order"),
        pytest.param("analyticalengine", ["ada/Analytical-Engine"], id="the name in one word"),
        pytest.param("ada/analytical-engine", ["ada/Analytical-Engine"], id="the full name"),
        pytest.param("ada eng", ["ada/Analytical-Engine"], id="owner and a beginning"),
        pytest.param("engine motor", [], id="one word of two is not enough"),
        pytest.param("difference", [], id="a word that is not there"),
        pytest.param("weather", ["ada/Analytical-Engine"], id="a tag"),
        pytest.param("license:mit", ["ada/Analytical-Engine"], id="a tag with its prefix"),
        pytest.param("babbage", ["ada/Analytical-Engine"], id="the title of the card"),
        pytest.param("ebb", ["ada/Analytical-Engine"], id="a word of the README"),
        pytest.param("ebb engine", ["ada/Analytical-Engine"], id="of the README and the name"),
        pytest.param("elsewhere", [], id="an address in the README"),
        pytest.param("nlp", [], id="too short to be mistyped"),
    ],
)
async def test_words_find_a_repository(
    client: httpx2.AsyncClient, database: Database, ada: Headers, q: str, expected: list[str]
) -> None:
    engine = await a_repo(client, ada, "ada/Analytical-Engine")
    card = {"pretty_name": "Babbage"}
    tags = ["weather", "license:mit", "nlq"]
    await a_push(database, engine, {"README.md": README}, card=card, tags=tags)
    await a_repo(client, await sign_in(database, "bob"), "bob/motor")
    await in_step(database)

    assert await names(client, q) == expected


async def test_names_come_before_texts_and_the_liked_before_others(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    for name in ("tide-old", "tide-liked", "tide", "tide-new"):
        await a_repo(client, ada, f"ada/{name}")
        # Tasks may run in any order, and the order of the index is that of its documents.
        await in_step(database)
    other = await a_repo(client, ada, "ada/moon")
    await a_push(database, other, {"README.md": b"All about the tide."})
    for name in ("tide-liked", "moon"):
        await client.post(f"/api/models/ada/{name}/like", headers=bob)
    await in_step(database)

    assert await names(client, "tide") == [
        "ada/tide", "ada/tide-liked", "ada/tide-new", "ada/tide-old", "ada/moon",
    ]  # fmt: skip


async def test_without_words_the_liked_and_the_newest_come_first(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    for name in ("one", "two", "three"):
        await a_repo(client, ada, f"ada/{name}")
        await in_step(database)
    await client.post("/api/models/ada/one/like", headers=ada)
    await in_step(database)

    assert await names(client, "") == ["ada/one", "ada/three", "ada/two"]


async def test_limits_and_counts(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    for number in range(4):
        await a_repo(client, ada, f"ada/engine-{number}")
    await in_step(database)

    result = await quick_search(client, q="engine", limit=2)

    assert (len(result["models"]), result["modelsCount"]) == (2, 4)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param({"namespace": "bob"}, {"bob/engine"}, id="of an owner"),
        pytest.param({"namespace": "nobody"}, set[str](), id="of nobody"),
        pytest.param({"exclude": "models/bob/engine"}, {"ada/engine", "acme/engine"}, id="all but"),
        pytest.param({"reposFilter": "own"}, {"ada/engine"}, id="one's own"),
        pytest.param({"reposFilter": "own_orgs"}, {"acme/engine"}, id="of one's organizations"),
        pytest.param(
            {"reposFilter": ["own", "own_orgs"]}, {"ada/engine", "acme/engine"}, id="of either"
        ),
        pytest.param({"reposFilter": "skip_gated"}, {"ada/engine", "acme/engine"}, id="no gates"),
        pytest.param({"reposFilter": "skip_disabled"}, None, id="nothing is disabled"),
        pytest.param({"library": "torch"}, {"ada/engine"}, id="of a library"),
        pytest.param({"lang": "fr", "pipelines": "translation"}, {"ada/engine"}, id="two tags"),
        pytest.param({"lang": "de"}, set[str](), id="in another language"),
        pytest.param({"type": ["dataset", "collection"]}, set[str](), id="of another kind"),
    ],
)
async def test_filters(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    query: dict[str, Any],
    expected: set[str] | None,
) -> None:
    await an_organization(database, "acme", members={"ada": Role.write})
    bob = await sign_in(database, "bob")
    engine = await a_repo(client, ada, "ada/engine")
    await a_push(database, engine, {"a": b""}, tags=["torch", "fr", "translation"])
    await a_repo(client, ada, "acme/engine")
    await a_repo(client, bob, "bob/engine")
    await client.put("/api/models/bob/engine/settings", headers=bob, json={"gated": "auto"})
    await in_step(database)

    everything = {"ada/engine", "acme/engine", "bob/engine"}
    assert set(await names(client, "engine", ada, **query)) == (
        everything if expected is None else expected
    )


async def test_organizations_can_be_one_s_own(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(database, "engine-makers", members={"ada": Role.read})
    await an_organization(database, "engine-users")
    await in_step(database)

    own = await names(client, "engine", ada, kind="orgs", orgsFilter="own")

    assert own == ["engine-makers"]
    assert len(await names(client, "engine", ada, kind="orgs")) == 2


async def test_organizations_can_be_those_that_one_does_not_watch(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(database, "engine-makers", members={"ada": Role.read})
    await an_organization(database, "engine-users")
    await in_step(database)

    unwatched = await names(client, "engine", ada, kind="orgs", orgsFilter="unwatched")

    assert unwatched == ["engine-users"]
    assert len(await names(client, "engine", kind="orgs", orgsFilter="unwatched")) == 2


async def test_repositories_can_be_those_that_were_opened_to_one(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    for name in ("ada/engine", "ada/engine-closed", "bob/engine-own"):
        await a_repo(client, bob if name.startswith("bob") else ada, name)
        if name.startswith("ada"):
            settings = f"/api/models/{name}/settings"
            await client.put(settings, headers=ada, json={"gated": "auto"})
    await client.post("/ada/engine/ask-access", headers=bob)
    await in_step(database)

    opened = await names(client, "engine", bob, reposFilter="granted_access")
    both = await names(client, "engine", bob, reposFilter=["granted_access", "own"])

    assert opened == ["ada/engine"]
    assert set(both) == {"ada/engine", "bob/engine-own"}
    assert await names(client, "engine", reposFilter="granted_access") == []


async def test_several_tasks_are_alternatives(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    for task in ("translation", "summarization", "fill-mask"):
        repo = await a_repo(client, ada, f"ada/engine-{task}")
        await a_push(database, repo, {"README.md": b""}, tags=[task])
    await in_step(database)

    for tasks in (["translation", "summarization"], ["translation, summarization"]):
        found = await names(client, "engine", pipelines=tasks)
        assert set(found) == {"ada/engine-translation", "ada/engine-summarization"}


async def test_who_takes_part_comes_first_for_those_who_see_it(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    people = {name: await sign_in(database, name) for name in ("anna", "annette")}
    await in_step(database)
    usual = await names(client, "ann", ada, kind="users")
    root, body = "/api/models/ada/engine", {"title": "Noise", "description": "Hear!"}
    await a_repo(client, ada, "ada/engine")
    await client.post(f"{root}/discussions", headers=people[usual[-1]], json=body)
    places: list[dict[str, Any]] = [{"repoName": "ada/engine", "repoType": "model"}]
    async with database.read() as conn:
        places.append({"discussionId": await conn.fetch_value("SELECT id FROM threads")})

    first = [await names(client, "ann", ada, kind="users", **place) for place in places]
    await client.put(f"{root}/settings", headers=ada, json={"private": True})
    others = [await names(client, "ann", kind="users", **place) for place in places]

    assert first == [usual[::-1]] * 2
    assert others == [usual] * 2


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        pytest.param("limit=0", "limit must be at least 1.", id="no limit"),
        pytest.param("limit=21", "limit must be at most 20.", id="too many"),
        pytest.param(
            f"q={'x' * 1001}", "q must have at most 1000 characters.", id="a very long query"
        ),
    ],
)
async def test_a_bad_question_is_refused(
    client: httpx2.AsyncClient, query: str, sentence: str
) -> None:
    response = await client.get(f"{PATH}?{query}")

    assert (response.status_code, response.json()) == (400, {"error": sentence})


@pytest.mark.parametrize("query", ["type=colour", "reposFilter=mine", "exclude=engine"])
async def test_an_unknown_value_is_refused(client: httpx2.AsyncClient, query: str) -> None:
    response = await client.get(f"{PATH}?{query}")

    assert response.status_code == 400
    assert query.partition("=")[0] in response.json()["error"]


async def test_an_invalid_token_is_no_anonymous_caller(client: httpx2.AsyncClient) -> None:
    response = await client.get(PATH, headers={"Authorization": "Bearer hf_wrong"})

    assert response.status_code == 401
