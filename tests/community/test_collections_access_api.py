"""Who sees and changes which collections: visitors, members, groups, tokens with and without scopes."""

from typing import Any

import httpx2
import pytest

from community.collection_scenes import PATH, a_collection, an_item, items_of, titles_in
from hublet.accounts.records import Organization, OrganizationPlan, Role
from hublet.core.database import Database
from hublet.tokens import service as tokens
from hublet.tokens.format import TokenKind
from hublet.tokens.records import Grants, Scope, ScopedGrant, TokenRole
from people import Headers, a_user, an_organization, sign_in
from repositories import a_repo, a_resource_group

PUBLIC = {"Ada open", "Acme open"}
INSIDE = PUBLIC | {"Acme closed"}
EVERYTHING = INSIDE | {"Ada closed", "Acme grouped"}
MEMBERS = {
    "ada": Role.admin,
    "reader": Role.read,
    "contributor": Role.contributor,
    "writer": Role.write,
    "rocketeer": Role.read,
}


@pytest.fixture
async def acme(client: httpx2.AsyncClient, database: Database, ada: Headers) -> Organization:
    """An organization and a person, each with open and closed collections, one in a group."""
    acme = await an_organization(database, "acme", plan=OrganizationPlan.team, members=MEMBERS)
    group = await a_resource_group(database, acme, members={"rocketeer": Role.write})
    await a_collection(client, ada, "Ada open")
    await a_collection(client, ada, "Ada closed", private=True)
    await a_collection(client, ada, "Acme open", namespace="acme")
    await a_collection(client, ada, "Acme closed", namespace="acme", private=True)
    await a_collection(
        client, ada, "Acme grouped", namespace="acme", private=True, resourceGroupId=group.id
    )
    return acme


async def slugs_of(client: httpx2.AsyncClient, headers: Headers) -> dict[str, str]:
    listed = (await client.get(PATH, headers=headers)).json()
    return {each["title"]: each["slug"] for each in listed}


async def _token(database: Database, grants: Grants) -> Headers:
    """Return the headers of an app to which ada granted this."""
    user = await a_user(database, "ada")
    async with database.transaction() as conn:
        _, value = await tokens.issue(
            conn,
            user_id=user.id,
            name="app",
            kind=TokenKind.oauth,
            role=TokenRole.fine_grained,
            grants=grants,
        )
    return {"Authorization": f"Bearer {value}"}


@pytest.mark.parametrize(
    ("viewer", "seen", "changed"),
    [
        pytest.param(None, PUBLIC, set[str](), id="anonymous"),
        pytest.param("stranger", PUBLIC, set[str](), id="a stranger"),
        pytest.param("reader", INSIDE, set[str](), id="a reader"),
        pytest.param("contributor", INSIDE, set[str](), id="a contributor"),
        pytest.param("writer", INSIDE, {"Acme open", "Acme closed"}, id="a writer"),
        pytest.param(
            "rocketeer", INSIDE | {"Acme grouped"}, {"Acme grouped"}, id="a member of the group"
        ),
        pytest.param("ada", EVERYTHING, EVERYTHING, id="the owner"),
    ],
)
async def test_everybody_sees_and_changes_what_they_may(  # noqa: PLR0917 - fixtures
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    acme: Organization,
    viewer: str | None,
    seen: set[str],
    changed: set[str],
) -> None:
    headers = await sign_in(database, viewer) if viewer else {}
    slugs = await slugs_of(client, ada)

    assert set(await titles_in(client, headers)) == seen
    for title, slug in slugs.items():
        read = await client.get(f"{PATH}/{slug}", headers=headers)
        update = await client.patch(f"{PATH}/{slug}", headers=headers, json={"theme": "blue"})
        expected = 200 if title in changed else 403 if title in seen else 404
        assert read.status_code == (200 if title in seen else 404), title
        assert update.status_code == (401 if viewer is None else expected), title


@pytest.mark.parametrize(
    ("scopes", "seen", "status"),
    [
        pytest.param(["read-collections"], EVERYTHING, 403, id="read-collections"),
        pytest.param(["write-collections"], EVERYTHING, 200, id="write-collections"),
        pytest.param(["manage-repos", "write-discussions"], PUBLIC, 403, id="other scopes"),
    ],
)
async def test_a_fine_grained_token_does_what_its_scopes_say(  # noqa: PLR0917 - fixtures
    client: httpx2.AsyncClient,
    database: Database,
    acme: Organization,
    ada: Headers,
    scopes: list[str],
    seen: set[str],
    status: int,
) -> None:
    token = await sign_in(database, "ada", scopes=scopes)
    slugs = await slugs_of(client, ada)
    body = {"title": "New", "namespace": "ada"}

    assert set(await titles_in(client, token)) == seen
    update = await client.patch(f"{PATH}/{slugs['Ada open']}", headers=token, json={"title": "X"})
    created = await client.post(PATH, headers=token, json=body)
    deleted = await client.delete(f"{PATH}/{slugs['Acme open']}", headers=token)
    assert [each.status_code for each in (update, created, deleted)] == [status] * 3


async def test_an_app_reaches_only_the_owners_it_was_granted(
    client: httpx2.AsyncClient, database: Database, acme: Organization, ada: Headers
) -> None:
    user = await a_user(database, "ada")
    grant = ScopedGrant(
        entity_id=user.id,
        entity_type="user",
        entity_name="ada",
        scopes=frozenset({Scope.write_collections}),
    )
    token = await _token(database, Grants(scoped=(grant,)))
    slugs = await slugs_of(client, ada)
    change = {"theme": "green"}

    assert set(await titles_in(client, token)) == PUBLIC | {"Ada closed"}
    own = await client.patch(f"{PATH}/{slugs['Ada closed']}", headers=token, json=change)
    other = await client.patch(f"{PATH}/{slugs['Acme open']}", headers=token, json=change)
    hidden = await client.patch(f"{PATH}/{slugs['Acme closed']}", headers=token, json=change)
    body = {"title": "New", "namespace": "acme"}
    created = await client.post(PATH, headers=token, json=body)
    assert [own.status_code, other.status_code, hidden.status_code] == [200, 403, 404]
    assert created.json() == {
        "error": "You cannot create collections in acme: the token lacks the scope "
        "write-collections."
    }


async def test_an_app_without_the_scope_sees_what_everybody_sees(
    client: httpx2.AsyncClient, database: Database, acme: Organization, ada: Headers
) -> None:
    token = await _token(database, Grants(everywhere=frozenset({Scope.read_repos})))
    slugs = await slugs_of(client, ada)

    assert set(await titles_in(client, token)) == PUBLIC
    hidden = await client.get(f"{PATH}/{slugs['Ada closed']}", headers=token)
    voted = await client.post(f"{PATH}/{slugs['Ada open']}/upvote", headers=token)
    assert (hidden.status_code, voted.status_code) == (404, 403)


@pytest.mark.parametrize(
    ("creator", "namespace", "status"),
    [("contributor", "acme", 200), ("reader", "acme", 403), ("stranger", "acme", 403),
     ("ada", "bob", 403), ("ada", "nobody", 403)],
)  # fmt: skip
async def test_where_people_create_collections(
    client: httpx2.AsyncClient,
    database: Database,
    acme: Organization,
    creator: str,
    namespace: str,
    status: int,
) -> None:
    headers = await sign_in(database, creator)
    await a_user(database, "bob")
    body = {"title": "New", "namespace": namespace}
    created = await client.post(PATH, headers=headers, json=body)

    assert created.status_code == status
    if status == 200:
        slug = created.json()["slug"]
        own = await client.patch(f"{PATH}/{slug}", headers=headers, json={"title": "Mine"})
        assert own.json()["data"]["title"] == "Mine"


async def test_what_a_reader_may_not_see_is_left_out_everywhere(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    inner = (await a_collection(client, ada, "Inner"))["slug"]
    secret = (await a_collection(client, ada, "Secret", private=True))["slug"]
    slug = (await a_collection(client, ada))["slug"]
    for name in ("a", "hidden", "b"):
        await a_repo(client, ada, f"ada/{name}", private=name == "hidden")
        await an_item(client, ada, slug, "model", f"ada/{name}", note=f"About {name}")
        await an_item(client, ada, inner, "model", f"ada/{name}")
    await an_item(client, ada, slug, "collection", secret)
    shown = await an_item(client, ada, slug, "collection", inner)

    assert len(shown["items"]) == 5
    assert await items_of(client, slug) == ["ada/a", "ada/b", inner[-24:]]
    read = await client.get(f"{PATH}/{slug}")
    assert "hidden" not in read.text
    assert "Secret" not in read.text
    assert (shown["items"][-1]["numberItems"], read.json()["items"][-1]["numberItems"]) == (3, 2)
    listed = (await client.get(PATH, params={"owner": "ada", "q": "wheels"})).json()
    assert [item["id"] for item in listed[0]["items"]] == ["ada/a", "ada/b", inner[-24:]]
    assert await titles_in(client, item="models/ada/hidden") == []
    assert set(await titles_in(client, ada, item="models/ada/hidden")) == {"Wheels", "Inner"}


async def test_a_writer_moves_items_among_those_that_they_see(
    client: httpx2.AsyncClient, database: Database, acme: Organization, ada: Headers
) -> None:
    writer = await sign_in(database, "writer")
    slug = (await slugs_of(client, ada))["Acme open"]
    for name in ("a", "hidden", "b", "c"):
        await a_repo(client, ada, f"ada/{name}", private=name == "hidden")
        shown = await an_item(client, ada, slug, "model", f"ada/{name}")
    ids = {item["id"]: item["_id"] for item in shown["items"]}
    moved: dict[str, Any] = {"position": 1}

    await client.patch(f"{PATH}/{slug}/items/{ids['ada/c']}", headers=writer, json=moved)
    refused = await client.patch(
        f"{PATH}/{slug}/items/{ids['ada/hidden']}", headers=writer, json=moved
    )
    assert await items_of(client, slug, writer) == ["ada/a", "ada/c", "ada/b"]
    assert await items_of(client, slug, ada) == ["ada/a", "ada/hidden", "ada/c", "ada/b"]
    assert refused.status_code == 404


async def test_a_title_that_the_creator_cannot_see_is_free(
    client: httpx2.AsyncClient, database: Database, acme: Organization
) -> None:
    writer = await sign_in(database, "writer")

    await a_collection(client, writer, "Acme grouped", namespace="acme")


async def test_administrators_put_collections_into_groups(
    client: httpx2.AsyncClient, database: Database, acme: Organization, ada: Headers
) -> None:
    group = await a_resource_group(database, acme, "boats", members={"writer": Role.write})
    slugs = await slugs_of(client, ada)
    path = f"{PATH}/{slugs['Acme closed']}/resource-group"
    reader, writer = await sign_in(database, "reader"), await sign_in(database, "writer")
    body = {"resourceGroupId": group.id}

    assert (await client.get(path, headers=ada)).status_code == 404
    assert (await client.post(path, headers=writer, json=body)).status_code == 403
    put = await client.post(path, headers=ada, json=body)
    assert put.json() == {
        "id": slugs["Acme closed"][-24:],
        "slug": slugs["Acme closed"],
        "title": "Acme closed",
        "private": True,
        "addedBy": (await a_user(database, "ada")).id,
    }
    assert (await client.get(path, headers=writer)).json() == {"id": group.id, "name": "boats"}
    assert "Acme closed" not in await titles_in(client, reader)
    in_use = await client.delete(f"/api/organizations/acme/resource-groups/{group.id}", headers=ada)
    assert in_use.status_code == 409
    out = await client.post(path, headers=ada, json={"resourceGroupId": None})
    assert out.status_code == 200
    assert "Acme closed" in await titles_in(client, reader)
    own = f"{PATH}/{slugs['Ada open']}/resource-group"
    assert (await client.post(own, headers=ada, json=body)).status_code == 400


async def test_the_audit_log_of_an_organization_names_its_collections(
    client: httpx2.AsyncClient, acme: Organization, ada: Headers
) -> None:
    slug = (await slugs_of(client, ada))["Acme open"]
    await client.patch(f"{PATH}/{slug}", headers=ada, json={"private": True})
    await client.delete(f"{PATH}/{slug}", headers=ada)
    log = await client.get("/api/organizations/acme/audit-log", headers=ada)

    lines = [line for line in log.json() if line["action"].startswith("collection.")]
    assert [line["action"] for line in lines] == [
        "collection.delete", "collection.update", *["collection.create"] * 3
    ]  # fmt: skip


async def test_an_organization_decides_who_sees_what_is_new(
    client: httpx2.AsyncClient, database: Database, acme: Organization, ada: Headers
) -> None:
    async with database.transaction() as conn:
        await conn.execute(
            "UPDATE organizations SET default_visibility = 'private' WHERE id = $1", acme.id
        )

    assert (await a_collection(client, ada, "New", namespace="acme"))["private"] is True
    assert (await a_collection(client, ada, "Open", namespace="acme", private=False))[
        "private"
    ] is False


async def test_an_administrator_of_the_hub_deletes_what_is_public(
    client: httpx2.AsyncClient, database: Database, acme: Organization, ada: Headers
) -> None:
    root = await sign_in(database, "root", is_admin=True)
    slugs = await slugs_of(client, ada)

    public = await client.delete(f"{PATH}/{slugs['Ada open']}", headers=root)
    private = await client.delete(f"{PATH}/{slugs['Ada closed']}", headers=root)
    assert (public.status_code, private.status_code) == (200, 404)
