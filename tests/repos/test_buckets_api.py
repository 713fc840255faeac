"""Buckets, and containers, as such."""

from typing import Any

import httpx2
import pytest

from hublet.accounts.records import OrganizationPlan, Role
from hublet.core.database import Database
from hublet.events import RepoConfigUpdated, RepoCreated, RepoDeleted
from hublet.tokens.records import TokenRole
from outbox_events import published_events
from people import Headers, an_organization, sign_in

KINDS = ["buckets", "containers"]

each_kind = pytest.mark.parametrize("kind", KINDS)


async def create(
    client: httpx2.AsyncClient, headers: Headers, full_name: str, **body: object
) -> None:
    response = await client.post(f"/api/buckets/{full_name}", headers=headers, json=body)
    assert response.status_code == 200, response.text


async def names(
    client: httpx2.AsyncClient, headers: Headers, namespace: str, **query: str
) -> list[str]:
    response = await client.get(f"/api/buckets/{namespace}", headers=headers, params=query)
    assert response.status_code == 200, response.text
    return [bucket["id"] for bucket in response.json()]


@each_kind
async def test_a_bucket_is_created_shown_and_deleted(
    client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str
) -> None:
    path = f"/api/{kind}/ada/box"

    created = await client.post(path, headers=ada, json={"visibility": "private", "region": "eu"})
    fetched = await client.get(path, headers=ada)
    deleted = await client.delete(path, headers=ada)
    gone = await client.get(path, headers=ada)

    assert created.json() == {
        "url": f"http://hub.test/{kind}/ada/box",
        "name": "ada/box",
        "id": created.json()["id"],
    }
    assert fetched.json() == {
        "id": "ada/box",
        "author": "ada",
        "private": True,
        "visibility": "private",
        "createdAt": fetched.json()["createdAt"],
        "updatedAt": fetched.json()["createdAt"],
        "size": 0,
        "totalFiles": 0,
        **({"downloads": 0, "tagCount": 0, "images": []} if kind == "containers" else {}),
    }
    assert (deleted.status_code, deleted.json()) == (200, {})
    assert (gone.status_code, gone.headers["x-error-code"]) == (404, "RepoNotFound")
    [event, _] = await published_events(database, RepoCreated, RepoDeleted)
    assert (event["repo"]["type"], event["repo"]["private"]) == (kind.removesuffix("s"), True)


async def test_a_container_and_a_bucket_may_have_one_name(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    for kind in KINDS:
        created = await client.post(f"/api/{kind}/ada/box", headers=ada, json={})
        assert created.status_code == 200

    await client.delete("/api/containers/ada/box", headers=ada)

    assert (await client.get("/api/buckets/ada/box", headers=ada)).status_code == 200


async def test_me_is_the_callers_own_namespace(client: httpx2.AsyncClient, ada: Headers) -> None:
    created = await client.post("/api/buckets/me/box", headers=ada)

    assert created.json()["url"] == "http://hub.test/buckets/ada/box"
    assert await names(client, ada, "me") == ["ada/box"]
    assert (await client.get("/api/buckets/me")).status_code == 401


async def test_a_taken_name_is_a_conflict_that_tells_the_address(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await create(client, ada, "ada/box")

    again = await client.post("/api/buckets/me/BOX", headers=ada, json={})

    assert (again.status_code, again.json()) == (
        409,
        {
            "error": "A bucket repository called ada/BOX already exists.",
            "url": "http://hub.test/buckets/ada/BOX",
        },
    )


async def test_who_sees_a_new_bucket(client: httpx2.AsyncClient, ada: Headers) -> None:
    bodies: list[dict[str, Any]] = [
        {},
        {"private": False},
        {"visibility": "public"},
        {"private": True},
        {"visibility": "private"},
    ]

    strange = []
    for number, body in enumerate(bodies):
        await create(client, ada, f"ada/box{number}", **body)
        strange.append((await client.get(f"/api/buckets/ada/box{number}")).status_code)

    assert strange == [200, 200, 200, 404, 404]


async def test_what_cannot_be_created_is_refused(client: httpx2.AsyncClient, ada: Headers) -> None:
    under = "You cannot create a repository under"
    refusals: list[tuple[str, dict[str, Any], int, str]] = [
        (
            "ada/box",
            {"visibility": "protected"},
            400,
            "visibility must be one of 'public' or 'private'.",
        ),
        (
            "ada/box",
            {"visibility": "public", "private": True},
            400,
            "private and visibility contradict each other.",
        ),
        ("ada/box", {"size": 3}, 400, "size is not a known field."),
        (
            "ada/-box",
            {},
            400,
            "This is no name for a repository: it does not start or end with '-' or '.'.",
        ),
        (
            "bob/box",
            {},
            403,
            f"{under} bob: it is neither you nor one of your organizations.",
        ),
    ]

    for path, body, status, sentence in refusals:
        response = await client.post(f"/api/buckets/{path}", headers=ada, json=body)
        assert (response.status_code, response.json()) == (status, {"error": sentence})


async def test_only_who_manages_a_bucket_deletes_it(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await create(client, ada, "ada/box")
    writing = await sign_in(database, "ada", scopes=["write-repos"])
    bob = await sign_in(database, "bob")

    statuses = [
        (await client.delete("/api/buckets/ada/box", headers=headers)).status_code
        for headers in ({}, writing, bob)
    ]

    assert statuses == [401, 403, 403]
    assert (await client.get("/api/buckets/ada/box")).status_code == 200


async def test_a_private_bucket_does_not_exist_for_strangers(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await create(client, ada, "ada/box", private=True)
    bob = await sign_in(database, "bob")

    for method, path in [
        ("GET", ""),
        ("DELETE", ""),
        ("GET", "/tree"),
        ("GET", "/tree/a"),
        ("GET", "/files/a"),
        ("PUT", "/files/a"),
        ("DELETE", "/files/a"),
        ("POST", "/paths-info"),
        ("POST", "/batch"),
    ]:
        content = b'{"paths": []}' if path == "/paths-info" else b'{"type":"deleteFile","path":"a"}'
        response = await client.request(
            method, f"/api/buckets/ada/box{path}", headers=bob, content=content
        )
        assert response.status_code == 404, (method, path)
        assert response.headers["x-error-code"] == "RepoNotFound"


async def test_a_list_shows_what_the_caller_may_see_and_no_containers(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await create(client, ada, "ada/secret", private=True)
    await create(client, ada, "ada/open")
    await client.post("/api/containers/ada/other", headers=ada, json={})
    bob = await sign_in(database, "bob")
    blind = await sign_in(database, "ada", scopes=["webhooks"])

    assert await names(client, ada, "ada") == ["ada/secret", "ada/open"]
    assert await names(client, bob, "Ada") == ["ada/open"]
    assert await names(client, {}, "ada") == ["ada/open"]
    assert await names(client, blind, "ada") == ["ada/open"]


async def test_a_token_that_created_a_bucket_sees_it_in_the_list(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await create(client, ada, "ada/secret", private=True)
    contributing = await sign_in(database, "ada", scopes=["contribute-repos"])
    await create(client, contributing, "ada/created", private=True)

    assert await names(client, contributing, "ada") == ["ada/created"]


async def test_members_see_the_private_buckets_of_an_organization_and_of_their_groups(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    members = {"ada": Role.admin, "bob": Role.read, "eve": Role.read}
    await an_organization(database, "engines", plan=OrganizationPlan.team, members=members)
    groups = "/api/organizations/engines/resource-groups"
    group_id = (await client.post(groups, headers=ada, json={"name": "inner"})).json()["id"]
    await client.put(f"{groups}/{group_id}/members/eve", headers=ada, json={"role": "read"})
    await create(client, ada, "engines/all", private=True)
    await create(client, ada, "engines/inner", private=True, resourceGroupId=group_id)

    seen = {
        name: await names(client, await sign_in(database, name), "engines")
        for name in ("ada", "bob", "eve", "zoe")
    }

    assert seen == {
        "ada": ["engines/all", "engines/inner"],
        "bob": ["engines/all"],
        "eve": ["engines/all", "engines/inner"],
        "zoe": [],
    }


async def test_a_list_is_searched_by_name(client: httpx2.AsyncClient, ada: Headers) -> None:
    for name in ("a_b", "axb", "zoo"):
        await create(client, ada, f"ada/{name}")

    # Letters of any case; marks of patterns are meant as they are.
    found = {text: await names(client, ada, "ada", search=text) for text in ("A", "a_b", "%", "!")}

    assert found == {"A": ["ada/a_b", "ada/axb"], "a_b": ["ada/a_b"], "%": [], "!": []}


async def test_a_long_list_comes_in_pages_that_keep_the_search(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    for name in ("a1", "b", "a2", "a3"):
        await create(client, ada, f"ada/{name}")

    first = await client.get("/api/buckets/ada?search=a&limit=2", headers=ada)
    link = first.links["next"]["url"]
    second = await client.get(link, headers=ada)

    assert link.startswith("http://hub.test/api/buckets/ada?search=a&limit=2&cursor=")
    assert [bucket["id"] for bucket in first.json()] == ["ada/a1", "ada/a2"]
    assert [bucket["id"] for bucket in second.json()] == ["ada/a3"]
    assert "link" not in second.headers


async def test_nobodys_buckets_are_not_found(client: httpx2.AsyncClient, ada: Headers) -> None:
    response = await client.get("/api/buckets/nobody", headers=ada)

    assert (response.status_code, response.json()) == (
        404,
        {"error": "There is no user or organization nobody."},
    )


async def test_a_moved_bucket_is_found_at_its_old_address(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await create(client, ada, "ada/box")
    await client.put("/api/buckets/ada/box/files/a", headers=ada, content=b"one")
    body = {"fromRepo": "ada/box", "toRepo": "ada/chest", "type": "bucket"}
    await client.post("/api/repos/move", headers=ada, json=body)

    fetched = await client.get("/api/buckets/ada/box", headers=ada)
    resolved = await client.get("/buckets/ada/box/resolve/a", follow_redirects=True)

    assert fetched.status_code == 307
    assert fetched.headers["location"] == "/api/buckets/ada/chest"
    assert resolved.content == b"one"


async def test_a_reading_token_creates_nothing(
    client: httpx2.AsyncClient, database: Database
) -> None:
    reading = await sign_in(database, "ada", role=TokenRole.read)

    response = await client.post("/api/buckets/ada/box", headers=reading, json={})

    assert response.status_code == 403


@each_kind
async def test_who_sees_a_bucket_can_be_changed(
    client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str
) -> None:
    path = f"/api/{kind}/ada/box"
    await client.post(path, headers=ada, json={})
    writing = await sign_in(database, "ada", scopes=["write-repos"])

    hidden = await client.put(f"{path}/settings", headers=ada, json={"private": True})
    strange = await client.get(path)
    refused = await client.put(f"{path}/settings", headers=writing, json={"private": False})
    fetched = await client.put(f"{path}/settings", headers=ada, json={"visibility": "public"})

    assert (hidden.json()["private"], hidden.json()["visibility"]) == (True, "private")
    assert (strange.status_code, refused.status_code) == (404, 403)
    assert fetched.json()["private"] is False
    events = await published_events(database, RepoConfigUpdated)
    assert [event["updated_config"] for event in events] == [
        {"private": True, "visibility": "private"},
        {"private": False, "visibility": "public"},
    ]


async def test_an_administrator_puts_a_bucket_into_a_resource_group(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(
        database, "engines", plan=OrganizationPlan.team, members={"ada": Role.admin}
    )
    groups = "/api/organizations/engines/resource-groups"
    group_id = (await client.post(groups, headers=ada, json={"name": "inner"})).json()["id"]
    await create(client, ada, "engines/box")
    path = "/api/buckets/engines/box/resource-group"

    before = await client.get(path, headers=ada)
    put = await client.post(path, headers=ada, json={"resourceGroupId": group_id})
    after = await client.get(path, headers=ada)

    assert before.json() == {"resourceGroup": None}
    assert put.json() == after.json() == {"resourceGroup": {"id": group_id, "name": "inner"}}


@each_kind
@pytest.mark.parametrize(("said", "private"), [({}, True), ({"private": False}, False)])
async def test_a_bucket_is_as_private_as_its_organization_says_unless_its_creator_says(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    kind: str,
    said: dict[str, Any],
    *,
    private: bool,
) -> None:
    await an_organization(database, "engines", members={"ada": Role.admin})
    default = {"defaultVisibility": "private"}
    await client.patch("/api/organizations/engines", headers=ada, json=default)

    await client.post(f"/api/{kind}/engines/box", headers=ada, json=said)

    shown = await client.get(f"/api/{kind}/engines/box", headers=ada)
    other = await client.get(f"/api/{kind}/engines/box", headers=await sign_in(database, "bob"))
    assert (shown.json()["private"], other.status_code) == (private, 404 if private else 200)
