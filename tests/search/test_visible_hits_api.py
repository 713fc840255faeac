"""Who finds what: the whole matrix of owners, members, groups, strangers and tokens."""

import httpx2
import pytest

from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import OPERATOR, OrganizationPlan, Role
from hublet.accounts.users import service as accounts
from hublet.core.database import Database
from hublet.search import store
from hublet.tokens import service as tokens
from hublet.tokens.records import Grants, Scope, ScopedGrant, TokenRole
from people import Headers, a_user, an_organization, sign_in
from repositories import a_push, a_repo, a_resource_group, disable
from search.quick_searches import in_step, names, quick_search

PUBLIC = {"acme/tide-public", "acme/tide-public-group", "ada/tide-public"}
INSIDE = PUBLIC | {"acme/tide-private"}
GROUP = {"acme/tide-private-group"}
OWN = {"ada/tide-private"}
EVERYTHING = INSIDE | GROUP | OWN


@pytest.fixture
async def acme(client: httpx2.AsyncClient, database: Database, ada: Headers) -> Headers:
    """An organization with public and private repositories, in a group and outside of it."""
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
        name = f"tide-{visibility}"
        await a_repo(client, ada, f"acme/{name}", visibility=visibility)
        await a_repo(
            client, ada, f"acme/{name}-group", visibility=visibility, resourceGroupId=group.id
        )
        await a_repo(client, ada, f"ada/{name}", visibility=visibility)
    await in_step(database)
    return ada


@pytest.mark.parametrize(
    ("viewer", "expected"),
    [
        pytest.param(None, PUBLIC, id="nobody in particular"),
        pytest.param("stranger", PUBLIC, id="a stranger"),
        pytest.param("root", PUBLIC, id="an administrator of the hub"),
        pytest.param("reader", INSIDE, id="a reader"),
        pytest.param("contributor", INSIDE, id="a contributor"),
        pytest.param("writer", INSIDE, id="a writer in another group"),
        pytest.param("rocketeer", INSIDE | GROUP, id="a member of the group"),
        pytest.param("boss", INSIDE | GROUP, id="an administrator of the organization"),
        pytest.param("ada", EVERYTHING, id="the owner"),
    ],
)
async def test_everybody_finds_exactly_what_they_may_see(
    client: httpx2.AsyncClient,
    database: Database,
    acme: Headers,
    viewer: str | None,
    expected: set[str],
) -> None:
    headers = await sign_in(database, viewer, is_admin=viewer == "root") if viewer else {}

    result = await quick_search(client, headers, q="tide")
    by_two_words = await names(client, "tide private", headers)
    mistyped = await names(client, "tidde", headers)

    assert {hit["id"] for hit in result["models"]} == set(mistyped) == expected
    assert result["modelsCount"] == len(expected)
    assert set(by_two_words) == {name for name in expected if "private" in name}


@pytest.mark.parametrize(
    ("scopes", "more"),
    [
        pytest.param(["read-repos"], EVERYTHING, id="read-repos"),
        pytest.param(["manage-repos"], EVERYTHING, id="what includes read-repos"),
        pytest.param(["contribute-repos"], set[str](), id="what the token did not create"),
        pytest.param(["gated-repos"], set[str](), id="gated repositories"),
        pytest.param(["profile"], set[str](), id="another scope"),
    ],
)
async def test_a_token_finds_what_its_scopes_reach(
    client: httpx2.AsyncClient,
    database: Database,
    acme: Headers,
    scopes: list[str],
    more: set[str],
) -> None:
    token = await sign_in(database, "ada", scopes=scopes)

    assert set(await names(client, "tide", token)) == PUBLIC | more
    assert (await quick_search(client, token, q="tide"))["modelsCount"] == len(PUBLIC | more)


@pytest.mark.parametrize("role", [TokenRole.read, TokenRole.write])
async def test_a_token_without_scopes_finds_what_its_user_sees(
    client: httpx2.AsyncClient, database: Database, acme: Headers, role: TokenRole
) -> None:
    token = await sign_in(database, "ada", role=role)

    assert set(await names(client, "tide", token)) == EVERYTHING


async def test_a_token_for_one_owner_finds_what_that_owner_has(
    client: httpx2.AsyncClient, database: Database, acme: Headers
) -> None:
    ada = await a_user(database, "ada")
    grant = ScopedGrant(
        entity_id=ada.id,
        entity_type="user",
        entity_name="ada",
        scopes=frozenset({Scope.read_repos}),
    )
    async with database.transaction() as conn:
        _, value = await tokens.issue(
            conn, user_id=ada.id, name="own", role=TokenRole.fine_grained,
            grants=Grants(scoped=(grant,)),
        )  # fmt: skip

    token = {"Authorization": f"Bearer {value}"}

    assert set(await names(client, "tide", token)) == PUBLIC | OWN


async def test_a_token_finds_what_it_created_among_much_that_it_did_not(
    client: httpx2.AsyncClient, database: Database, acme: Headers
) -> None:
    app = await sign_in(database, "ada", scopes=["contribute-repos"])
    other = await sign_in(database, "ada", scopes=["contribute-repos"])
    await a_repo(client, app, "ada/tide-app", private=True)
    await in_step(database)

    assert set(await names(client, "tide", app)) == PUBLIC | {"ada/tide-app"}
    assert set(await names(client, "tide", app, limit=1)) == {"ada/tide-app"}
    assert set(await names(client, "tide", other)) == PUBLIC


async def test_what_is_one_s_own_is_found_among_much_that_is_public(
    client: httpx2.AsyncClient, database: Database, ada: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "MOST_CANDIDATES", 5)
    monkeypatch.setattr(store, "_MOST_PUBLIC", 3)
    await a_repo(client, ada, "ada/deep-engine", private=True)
    bob = await sign_in(database, "bob")
    for number in range(6):
        await a_repo(client, bob, f"bob/deep-engine-{number}")
    await in_step(database)

    found = await names(client, "deep engine", ada)

    assert "ada/deep-engine" in found
    assert len(found) == 4


async def test_a_former_member_finds_nothing_inside(
    client: httpx2.AsyncClient, database: Database, acme: Headers
) -> None:
    reader = await sign_in(database, "reader")
    async with database.transaction() as conn:
        organization = await organizations.get(conn, "acme")
        user = await accounts.get_user(conn, "reader")
        await organizations.remove_member(conn, OPERATOR, organization, user)

    assert set(await names(client, "tide", reader)) == PUBLIC


async def test_a_private_name_is_no_suggestion_for_strangers(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/zeppelin", private=True)
    await in_step(database)

    stranger = await quick_search(client, await sign_in(database, "stranger"), q="zeppelinn")
    narrow = await quick_search(
        client, await sign_in(database, "ada", scopes=["contribute-repos"]), q="zeppelinn"
    )

    assert stranger["models"] == narrow["models"] == []
    assert stranger["modelsCount"] == narrow["modelsCount"] == 0
    assert await names(client, "zeppelinn", ada) == ["ada/zeppelin"]


async def test_a_protected_space_is_found_by_its_members(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/app", type="space", visibility="protected")
    await in_step(database)

    assert await names(client, "app", kind="spaces") == []
    assert await names(client, "app", ada, kind="spaces") == ["ada/app"]


async def test_a_gated_repository_is_found_by_its_name_and_not_by_its_text(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    gated = await a_repo(client, ada, "ada/gated-tide")
    await client.put("/api/models/ada/gated-tide/settings", headers=ada, json={"gated": "manual"})
    await a_push(database, gated, {"README.md": b"Its ballast is lead."}, tags=["weather"])
    await in_step(database)

    assert await names(client, "gated") == await names(client, "weather") == ["ada/gated-tide"]
    assert await names(client, "ballast") == await names(client, "ballast", ada) == []


async def test_a_new_gate_hides_the_text_at_once(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo = await a_repo(client, ada, "ada/tide")
    await a_push(database, repo, {"README.md": b"Its ballast is lead."})
    await in_step(database)
    assert await names(client, "ballast") == ["ada/tide"]

    await client.put("/api/models/ada/tide/settings", headers=ada, json={"gated": "auto"})

    assert await names(client, "ballast") == []
    await in_step(database)
    assert await names(client, "ballast") == []
    assert await names(client, "tide") == ["ada/tide"]


async def test_what_became_private_is_hidden_before_the_index_knows(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/tide")
    await in_step(database)

    await client.put("/api/models/ada/tide/settings", headers=ada, json={"private": True})

    assert await names(client, "tide") == []


async def test_disabled_users_are_not_found(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_user(database, "tidekeeper")
    await in_step(database)
    assert await names(client, "tidekeeper", kind="users") == ["tidekeeper"]

    await disable(database, "tidekeeper")

    assert await names(client, "tidekeeper", kind="users") == []
    await in_step(database)
    assert await names(client, "tidekeeper", kind="users") == []
