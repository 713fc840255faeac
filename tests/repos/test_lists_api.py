"""Lists of repositories."""

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest

from hublet.accounts.records import OrganizationPlan, Role
from hublet.core.database import Database
from people import Headers, an_organization, sign_in
from repositories import a_push, a_repo, a_resource_group

MODELS = "/api/models"


async def names(
    client: httpx2.AsyncClient, query: str = "", headers: Headers | None = None
) -> list[str]:
    response = await client.get(f"{MODELS}?{query}", headers=headers or {})
    assert response.status_code == 200, response.text
    return [repo["id"] for repo in response.json()]


async def test_a_list_shows_what_is_cheap_to_know(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    card = {"license": "mit", "pipeline_tag": "summarization"}
    sha = await a_push(database, repo_id, {"README.md": b""}, card=card, tags=["license:mit"])

    [found] = (await client.get(MODELS)).json()
    [with_card] = (await client.get(f"{MODELS}?full=true")).json()
    [also] = (await client.get(f"{MODELS}?cardData=true")).json()
    [expanded] = (await client.get(f"{MODELS}?expand=sha&expand[]=likes")).json()

    assert found == {
        "_id": repo_id,
        "id": "ada/engine",
        "author": "ada",
        "sha": sha,
        "createdAt": found["createdAt"],
        "lastModified": found["lastModified"],
        "private": False,
        "gated": False,
        "disabled": False,
        "downloads": 0,
        "likes": 0,
        "tags": ["license:mit"],
        "pipeline_tag": "summarization",
    }
    assert also == found | {"cardData": card}
    assert with_card == also | {"siblings": [{"rfilename": "README.md"}]}
    assert expanded == {"_id": repo_id, "id": "ada/engine", "sha": sha, "likes": 0}


async def test_each_type_has_its_list(client: httpx2.AsyncClient, ada: Headers) -> None:
    for type_ in ("model", "dataset", "space", "kernel"):
        await a_repo(client, ada, f"ada/a-{type_}", type=type_)

    for type_ in ("model", "dataset", "space", "kernel"):
        [found] = (await client.get(f"/api/{type_}s")).json()
        assert found["id"] == f"ada/a-{type_}"


async def _three(client: httpx2.AsyncClient, database: Database, ada: Headers) -> list[str]:
    """Three models, of which the second has most likes, the first most downloads and no trend."""
    ids = [await a_repo(client, ada, f"ada/{name}") for name in ("one", "two", "three")]
    async with database.transaction() as conn:
        for repo_id, likes, downloads in zip(ids, (1, 9, 1), (5, 0, 0), strict=True):
            await conn.execute(
                "UPDATE repos SET likes = $2, downloads = $3, trending_score = $4 WHERE id = $1",
                repo_id, likes, downloads, 10 - downloads,
            )  # fmt: skip
    await a_push(database, ids[0], {"a": b""})
    return ids


ORDERS = [
    pytest.param("", ["three", "two", "one"], id="newest first"),
    pytest.param("sort=createdAt", ["three", "two", "one"], id="by creation"),
    pytest.param("sort=lastModified", ["one", "three", "two"], id="by change"),
    pytest.param("sort=likes", ["two", "three", "one"], id="by likes"),
    pytest.param("sort=trendingScore", ["three", "two", "one"], id="by trend"),
    pytest.param("sort=downloads", ["one", "three", "two"], id="by downloads"),
    pytest.param("sort=likes&direction=-1", ["two", "three", "one"], id="downwards"),
    pytest.param("sort=likes&direction=1", ["one", "three", "two"], id="upwards"),
]


@pytest.mark.parametrize(("query", "order"), ORDERS)
async def test_a_list_has_an_order_and_pages_keep_it(
    client: httpx2.AsyncClient, database: Database, ada: Headers, query: str, order: list[str]
) -> None:
    await _three(client, database, ada)
    url, paged = f"{MODELS}?{query}&limit=1&author=ada", list[str]()

    whole = await names(client, query)
    while url:
        response = await client.get(url)
        paged += [repo["id"] for repo in response.json()]
        url = response.links.get("next", {}).get("url", "")
        assert not url or ("author", "ada") in parse_qsl(urlsplit(url).query)
        assert not url or url.startswith("http://hub.test/api/models?")

    assert whole == paged == [f"ada/{name}" for name in order]


async def test_a_larger_limit_than_a_page_has_is_cut(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")
    async with database.transaction() as conn:
        await conn.execute_many(
            """
            INSERT INTO repos (id, type, owner_id, name, name_key, visibility, creator_id, tags,
                               created_at, updated_at)
            SELECT $1, type, owner_id, $1, $1, visibility, creator_id, tags, $2, $2 FROM repos
            WHERE name = 'engine'
            """,
            [(f"{number:024x}", number) for number in range(1, 1001)],
        )

    first = await client.get(f"{MODELS}?limit=5000&expand=sha")
    second = await client.get(first.links["next"]["url"])

    assert (len(first.json()), len(second.json())) == (1000, 1)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        pytest.param("search=eng", ["ada/engine"], id="a part of the name"),
        pytest.param("search=ENG", ["ada/engine"], id="in any case"),
        pytest.param("search=ada/e", ["ada/engine"], id="a part with the slash"),
        pytest.param("search=da", ["ada/per_cent", "ada/engine"], id="a part of the owner"),
        pytest.param("search=da&search=gin", ["ada/engine"], id="two parts"),
        pytest.param("search=r_c", ["ada/per_cent"], id="an underscore is itself"),
        pytest.param("search=%25", [], id="a percent sign is itself"),
        pytest.param("search=%5C", [], id="a backslash is itself"),
        pytest.param("author=ADA&search=eng", ["ada/engine"], id="of an author"),
        pytest.param("author=bob", ["bob/motor"], id="of another author"),
        pytest.param("author=nobody", [], id="of nobody"),
        pytest.param("filter=license:mit", ["ada/engine"], id="a tag"),
        pytest.param("filter=License:MIT", ["ada/engine"], id="a tag in any case"),
        pytest.param("filter=license", [], id="a part of a tag"),
        pytest.param("filter=license:mit&filter=caf%C3%A9", ["ada/engine"], id="two tags"),
        pytest.param("filter=license:mit&filter=torch", [], id="one tag of two"),
        pytest.param("filter=say%20%22hi%22", ["bob/motor"], id="a tag with quotes"),
        pytest.param("pipeline_tag=torch", ["bob/motor"], id="a task"),
        pytest.param("gated=true", ["bob/motor"], id="gated"),
        pytest.param("gated=false", ["ada/per_cent", "ada/engine"], id="not gated"),
    ],
)
async def test_a_list_is_filtered(
    client: httpx2.AsyncClient, database: Database, ada: Headers, query: str, found: list[str]
) -> None:
    bob = await sign_in(database, "bob")
    engine = await a_repo(client, ada, "ada/engine")
    await a_push(database, engine, {"a": b""}, tags=["license:mit", "café"])
    motor = await a_repo(client, bob, "bob/motor")
    await a_push(database, motor, {"a": b""}, tags=["torch", 'say "hi"'])
    await client.put("/api/models/bob/motor/settings", headers=bob, json={"gated": "auto"})
    await a_repo(client, ada, "ada/per_cent")

    assert await names(client, query) == found


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        pytest.param(
            "sort=colour",
            "sort must be one of 'createdAt', 'lastModified', 'likes', 'downloads' or "
            "'trendingScore'.",
            id="an unknown order",
        ),
        pytest.param("direction=2", "direction must be one of '-1' or '1'.", id="a direction"),
        pytest.param("limit=0", "limit must be at least 1.", id="no limit"),
        pytest.param(
            "cursor=abc",
            "cursor must be taken from the Link header of the page before.",
            id="a cursor that is none",
        ),
    ],
)
async def test_a_bad_question_is_refused(
    client: httpx2.AsyncClient, query: str, sentence: str
) -> None:
    response = await client.get(f"{MODELS}?{query}")

    assert (response.status_code, response.json()) == (400, {"error": sentence})


async def test_a_cursor_of_another_list_is_refused(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    for name in ("one", "two"):
        await a_repo(client, ada, f"ada/{name}")
    own = await client.get("/api/settings/repositories?limit=1", headers=ada)
    cursor = dict(parse_qsl(urlsplit(own.links["next"]["url"]).query))["cursor"]

    response = await client.get(MODELS, params={"cursor": cursor})

    assert response.status_code == 400


@pytest.fixture
async def acme(client: httpx2.AsyncClient, database: Database, ada: Headers) -> Headers:
    """An organization with a public and a private repository, in a group and outside of it."""
    members = {
        "ada": Role.admin,
        "reader": Role.read,
        "contributor": Role.contributor,
        "writer": Role.write,
        "rocketeer": Role.read,
        "boss": Role.admin,
    }
    acme = await an_organization(database, "acme", plan=OrganizationPlan.team, members=members)
    group = await a_resource_group(database, acme, members={"rocketeer": Role.read})
    await a_resource_group(database, acme, "boats", members={"writer": Role.write})
    for visibility in ("public", "private"):
        await a_repo(client, ada, f"acme/{visibility}", visibility=visibility)
        await a_repo(
            client, ada, f"acme/{visibility}-group", visibility=visibility, resourceGroupId=group.id
        )
        await a_repo(client, ada, f"ada/{visibility}", visibility=visibility)
    return ada


PUBLIC = {"acme/public", "acme/public-group", "ada/public"}
INSIDE = PUBLIC | {"acme/private"}
VIEWERS = [
    pytest.param(None, PUBLIC, id="nobody in particular"),
    pytest.param("stranger", PUBLIC, id="a stranger"),
    pytest.param("reader", INSIDE, id="a reader"),
    pytest.param("contributor", INSIDE, id="a contributor"),
    pytest.param("writer", INSIDE, id="a writer in another group"),
    pytest.param("rocketeer", INSIDE | {"acme/private-group"}, id="a member of the group"),
    pytest.param("boss", INSIDE | {"acme/private-group"}, id="an administrator"),
    pytest.param("ada", INSIDE | {"acme/private-group", "ada/private"}, id="the owner"),
]


@pytest.mark.parametrize(("viewer", "expected"), VIEWERS)
@pytest.mark.parametrize("sort", ["createdAt", "likes"])
async def test_everybody_sees_exactly_what_they_may_see(
    client: httpx2.AsyncClient,
    database: Database,
    acme: Headers,
    *,
    viewer: str | None,
    expected: set[str],
    sort: str,
) -> None:
    headers = await sign_in(database, viewer) if viewer else {}

    listed = await names(client, f"sort={sort}", headers)
    paged = list[str]()
    url = f"{MODELS}?limit=2&sort={sort}"
    while url:
        response = await client.get(url, headers=headers)
        paged += [repo["id"] for repo in response.json()]
        url = response.links.get("next", {}).get("url", "")
    by_name = {
        name
        for name in INSIDE | {"acme/private-group", "ada/private"}
        if (await client.get(f"{MODELS}/{name}", headers=headers)).status_code == 200
    }

    assert set(listed) == by_name == expected
    assert paged == listed


@pytest.mark.parametrize(
    ("scopes", "more"),
    [
        pytest.param(["read-repos"], {"ada/private", "acme/private", "acme/private-group"}, id="r"),
        pytest.param(["contribute-repos"], set[str](), id="what the token did not create"),
        pytest.param(["gated-repos"], set[str](), id="gated repositories"),
        pytest.param(["profile"], set[str](), id="another scope"),
    ],
)
async def test_a_token_lists_what_its_scopes_reach(
    client: httpx2.AsyncClient,
    database: Database,
    acme: Headers,
    scopes: list[str],
    more: set[str],
) -> None:
    token = await sign_in(database, "ada", scopes=scopes)

    assert set(await names(client, "", token)) == PUBLIC | more


async def test_a_token_lists_what_it_created(
    client: httpx2.AsyncClient, database: Database, acme: Headers
) -> None:
    app = await sign_in(database, "ada", scopes=["contribute-repos"])
    other = await sign_in(database, "ada", scopes=["contribute-repos"])
    await a_repo(client, app, "ada/mine", private=True)

    assert set(await names(client, "", app)) == PUBLIC | {"ada/mine"}
    assert set(await names(client, "", other)) == PUBLIC


async def test_a_protected_space_is_listed_to_its_members(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/app", type="space", visibility="protected")

    anonymous = await client.get("/api/spaces")
    own = await client.get("/api/spaces", headers=ada)

    assert (anonymous.json(), len(own.json())) == ([], 1)


async def _own(client: httpx2.AsyncClient, path: str, headers: Headers) -> list[dict[str, Any]]:
    response = await client.get(path, headers=headers)
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()
    return found


async def test_the_own_list_has_all_types_and_their_sizes(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine", private=True)
    await a_repo(client, ada, "ada/box", type="bucket")
    await a_push(database, repo_id, {"a": b""})

    box, engine = await _own(client, "/api/settings/repositories", ada)

    assert engine == {
        "id": "ada/engine",
        "type": "model",
        "visibility": "private",
        "updatedAt": engine["updatedAt"],
        "storage": 7,
        "storagePercent": 100.0,
    }
    assert (box["id"], box["type"], box["storage"], box["storagePercent"]) == (
        "ada/box",
        "bucket",
        0,
        0.0,
    )


async def test_the_own_list_comes_page_by_page(client: httpx2.AsyncClient, ada: Headers) -> None:
    for type_ in ("model", "dataset", "bucket"):
        for name in ("one", "two"):
            await a_repo(client, ada, f"ada/{name}", type=type_)
    url, paged = "/api/settings/repositories?limit=1", list[str]()

    while url:
        response = await client.get(url, headers=ada)
        paged += [f"{repo['type']} {repo['id']}" for repo in response.json()]
        url = response.links.get("next", {}).get("url", "")

    assert paged == [
        f"{type_} ada/{name}" for type_ in ("bucket", "dataset", "model") for name in ("one", "two")
    ]


@pytest.mark.parametrize(
    ("viewer", "expected"),
    [
        pytest.param("reader", {"public", "public-group", "private"}, id="a member"),
        pytest.param(
            "rocketeer", {"public", "public-group", "private", "private-group"}, id="in the group"
        ),
        pytest.param(
            "boss", {"public", "public-group", "private", "private-group"}, id="an administrator"
        ),
    ],
)
async def test_members_list_what_they_may_see_of_an_organization(
    client: httpx2.AsyncClient, database: Database, acme: Headers, viewer: str, expected: set[str]
) -> None:
    headers = await sign_in(database, viewer)

    found = await _own(client, "/api/organizations/acme/settings/repositories", headers)

    assert {repo["id"] for repo in found} == {f"acme/{name}" for name in expected}


async def test_the_lists_of_owners_are_for_those_who_belong_there(
    client: httpx2.AsyncClient, database: Database, acme: Headers
) -> None:
    stranger = await sign_in(database, "stranger")
    narrow = await sign_in(database, "ada", scopes=["webhooks"])
    path = "/api/organizations/acme/settings/repositories"

    answers = [
        await client.get(path, headers=stranger),
        await client.get(path, headers=narrow),
        await client.get("/api/settings/repositories", headers=narrow),
        await client.get("/api/settings/repositories"),
        await client.get("/api/organizations/nobody/settings/repositories", headers=acme),
    ]

    assert [answer.status_code for answer in answers] == [403, 403, 403, 401, 404]


async def test_a_cursor_of_another_list_does_not_fit_the_own_list(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    for name in ("one", "two"):
        await a_repo(client, ada, f"ada/{name}")
    listed = await client.get(f"{MODELS}?limit=1")
    cursor = dict(parse_qsl(urlsplit(listed.links["next"]["url"]).query))["cursor"]

    response = await client.get(
        "/api/settings/repositories", headers=ada, params={"cursor": cursor}
    )

    assert response.status_code == 400


async def test_overviews_count_what_everybody_may_see(
    client: httpx2.AsyncClient, database: Database, acme: Headers
) -> None:
    await a_repo(client, acme, "ada/data", type="dataset")
    await client.post("/api/datasets/ada/data/like", headers=acme)
    await client.post("/api/models/ada/private/like", headers=acme)

    ada = (await client.get("/api/users/ada/overview")).json()
    organization = (await client.get("/api/organizations/acme/overview")).json()

    counted = ("numModels", "numDatasets", "numSpaces")
    assert [ada[name] for name in (*counted, "numLikes")] == [1, 1, 0, 1]
    assert [organization[name] for name in counted] == [2, 0, 0]
