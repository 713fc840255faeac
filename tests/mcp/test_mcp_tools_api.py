"""Which tools a user chose for assistants."""

from typing import Any

import httpx2
import pytest

from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import OPERATOR, OrganizationPlan, Role
from hublet.core.database import Database
from hublet.mcp.records import DEFAULT_TOOLS
from hublet.tokens.records import TokenRole
from people import Headers, a_user, an_organization, sign_in
from repositories import a_push, a_repo, a_resource_group

PATH = "/api/settings/mcp"
NOTHING: dict[str, Any] = {"builtInTools": [], "spaceTools": []}
AT_FIRST: dict[str, Any] = {"builtInTools": list(DEFAULT_TOOLS), "spaceTools": []}


async def tools(client: httpx2.AsyncClient, headers: Headers) -> Any:
    response = await client.get(PATH, headers=headers)
    assert response.status_code == 200, response.text
    return response.json()


async def choose(client: httpx2.AsyncClient, headers: Headers, **chosen: Any) -> Any:
    response = await client.patch(PATH, headers=headers, json=chosen)
    assert response.status_code == 200, response.text
    return response.json()


async def names(client: httpx2.AsyncClient, headers: Headers) -> list[str]:
    return [each["name"] for each in (await tools(client, headers))["spaceTools"]]


async def test_at_first_there_are_the_tools_that_change_nothing(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    assert await tools(client, ada) == AT_FIRST
    assert await choose(client, ada) == AT_FIRST
    assert await choose(client, ada, builtInTools=[]) == NOTHING


async def test_what_is_chosen_is_shown_in_its_order(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    draw = await a_repo(client, ada, "ada/Draw_it.v2", type="space")
    await a_push(database, draw, {"README.md": b"x"}, card={"emoji": "🎨"})
    count = await a_repo(client, ada, "ada/count", type="space")

    chosen = await choose(
        client,
        ada,
        builtInTools=["space_search", "a-b.C"],
        spaceTools=["ada/draw_it.v2", "ada/count"],
    )

    assert chosen == {
        "builtInTools": ["space_search", "a-b.C"],
        "spaceTools": [
            {"_id": draw, "name": "ada/Draw_it.v2", "emoji": "🎨", "subdomain": "ada-draw-it-v2"},
            {"_id": count, "name": "ada/count", "emoji": "🚀", "subdomain": "ada-count"},
        ],
    }
    assert await tools(client, ada) == chosen


async def test_what_is_left_out_stays_and_what_is_given_replaces(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    for name in ("one", "two"):
        await a_repo(client, ada, f"ada/{name}", type="space")
    await choose(client, ada, builtInTools=["a", "b"], spaceTools=["ada/one", "ada/two"])

    await choose(client, ada, builtInTools=["c"])
    assert (await tools(client, ada))["builtInTools"] == ["c"]
    assert await names(client, ada) == ["ada/one", "ada/two"]

    await choose(client, ada, spaceTools=["ada/two"])
    assert (await tools(client, ada))["builtInTools"] == ["c"]
    assert await names(client, ada) == ["ada/two"]

    assert await choose(client, ada, builtInTools=[], spaceTools=[]) == NOTHING


async def test_two_names_of_one_space_are_one_tool(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/old", type="space")
    await rename(client, ada, "ada/old", "ada/new")

    await choose(client, ada, spaceTools=["ada/old", "ada/NEW", "ada/old"])

    assert await names(client, ada) == ["ada/new"]


async def rename(client: httpx2.AsyncClient, headers: Headers, old: str, new: str) -> None:
    response = await client.post(
        "/api/repos/move", headers=headers, json={"fromRepo": old, "toRepo": new, "type": "space"}
    )
    assert response.status_code == 200, response.text


async def test_a_rename_is_followed(client: httpx2.AsyncClient, ada: Headers) -> None:
    await a_repo(client, ada, "ada/old", type="space")
    await choose(client, ada, spaceTools=["ada/old"])

    await rename(client, ada, "ada/old", "ada/new")

    (space,) = (await tools(client, ada))["spaceTools"]
    assert (space["name"], space["subdomain"]) == ("ada/new", "ada-new")


async def test_a_deleted_space_leaves_the_list(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    for name in ("one", "two"):
        await a_repo(client, ada, f"ada/{name}", type="space")
    await choose(client, ada, spaceTools=["ada/one", "ada/two"])

    await client.request(
        "DELETE", "/api/repos/delete", headers=ada, json={"name": "ada/one", "type": "space"}
    )

    assert await names(client, ada) == ["ada/two"]
    async with database.read() as conn:
        assert await conn.fetch_value("SELECT count(*) FROM mcp_space_tools") == 1


async def test_a_space_that_becomes_private_leaves_the_lists_of_strangers(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    await a_repo(client, bob, "bob/one", type="space")
    await choose(client, ada, spaceTools=["bob/one"])
    await choose(client, bob, spaceTools=["bob/one"])

    await client.put("/api/spaces/bob/one/settings", headers=bob, json={"private": True})

    assert (await names(client, ada), await names(client, bob)) == ([], ["bob/one"])


async def test_spaces_of_an_organization_follow_its_members_and_groups(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    engines = await an_organization(
        database,
        "engines",
        plan=OrganizationPlan.team,
        members={"ada": Role.write, "root": Role.admin},
    )
    root = await sign_in(database, "root")
    rockets = await a_resource_group(database, engines, members={})
    await a_repo(client, root, "engines/one", type="space", private=True)
    await a_repo(
        client, root, "engines/two", type="space", private=True, resourceGroupId=rockets.id
    )
    await choose(client, root, spaceTools=["engines/one", "engines/two"])
    await choose(client, ada, spaceTools=["engines/one"])
    hidden = await client.patch(PATH, headers=ada, json={"spaceTools": ["engines/two"]})
    async with database.transaction() as conn:
        user = await a_user(database, "ada")
        await organizations.remove_member(conn, OPERATOR, engines, user)

    assert hidden.status_code == 404
    assert await names(client, root) == ["engines/one", "engines/two"]
    assert await names(client, ada) == []


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("ada/nothing", id="there is no such space"),
        pytest.param("ada/model", id="it is no space"),
        pytest.param("bob/secret", id="it is private to somebody else"),
    ],
)
async def test_a_space_that_cannot_be_seen_is_named_and_nothing_is_changed(
    client: httpx2.AsyncClient, database: Database, ada: Headers, name: str
) -> None:
    bob = await sign_in(database, "bob")
    await a_repo(client, bob, "bob/secret", type="space", private=True)
    await a_repo(client, ada, "ada/model")
    await a_repo(client, ada, "ada/space", type="space")
    before = await choose(client, ada, builtInTools=["a"], spaceTools=["ada/space"])

    response = await client.patch(
        PATH, headers=ada, json={"builtInTools": ["b"], "spaceTools": ["ada/space", name]}
    )

    assert (response.status_code, response.json()) == (
        404,
        {"error": f"spaceTools[1]: there is no space {name}, or you cannot see it."},
    )
    assert await tools(client, ada) == before


@pytest.mark.parametrize(
    ("body", "error"),
    [
        pytest.param(
            {"builtInTools": ["a", "a"]},
            "builtInTools: each tool is to be named once.",
            id="a tool is named twice",
        ),
        pytest.param(
            {"builtInTools": ["a b"]},
            "builtInTools[0] must match ^[A-Za-z0-9_.-]+$.",
            id="a tool's name has a blank",
        ),
        pytest.param(
            {"builtInTools": [""]},
            "builtInTools[0] must match ^[A-Za-z0-9_.-]+$.",
            id="a tool's name is empty",
        ),
        pytest.param(
            {"builtInTools": ["a" * 129]},
            "builtInTools[0] must have at most 128 characters.",
            id="a tool's name is too long",
        ),
        pytest.param(
            {"builtInTools": [f"t{n}" for n in range(101)]},
            "builtInTools must have at most 100 items.",
            id="too many tools",
        ),
        pytest.param(
            {"spaceTools": ["ada/x"] * 101},
            "spaceTools must have at most 100 items.",
            id="too many spaces",
        ),
        pytest.param(
            {"spaceTools": ["space"]},
            "spaceTools[0] must match ^[^/]+/[^/]+$.",
            id="a space without an owner",
        ),
        pytest.param(
            {"spaceTools": "ada/x"}, "spaceTools must be an array.", id="a space is no list"
        ),
        pytest.param(
            {"builtInTools": None}, "builtInTools must be an array.", id="nothing is no list"
        ),
        pytest.param({"tools": []}, "tools is not a known field.", id="an unknown field"),
    ],
)
async def test_bad_input_is_refused_by_name(
    client: httpx2.AsyncClient, ada: Headers, body: dict[str, Any], error: str
) -> None:
    before = await choose(client, ada, builtInTools=["kept"])

    response = await client.patch(PATH, headers=ada, json=body)

    assert (response.status_code, response.json()) == (400, {"error": error})
    assert await tools(client, ada) == before


async def test_a_hundred_tools_are_not_too_many(client: httpx2.AsyncClient, ada: Headers) -> None:
    many = [f"t{n}" for n in range(100)]

    assert await choose(client, ada, builtInTools=many) == {"builtInTools": many, "spaceTools": []}


async def test_everybody_has_tools_of_their_own(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    await a_repo(client, ada, "ada/one", type="space")
    await choose(client, ada, builtInTools=["a"], spaceTools=["ada/one"])
    await choose(client, bob, builtInTools=["b"])

    assert await tools(client, bob) == {"builtInTools": ["b"], "spaceTools": []}
    assert await names(client, ada) == ["ada/one"]


async def test_reading_needs_a_full_token_and_changing_one_that_may_write(
    client: httpx2.AsyncClient, database: Database
) -> None:
    reader = await sign_in(database, "ada", role=TokenRole.read)
    scoped = await sign_in(database, "ada", scopes=["read-repos", "manage-repos"])

    assert await tools(client, reader) == AT_FIRST
    assert (await client.patch(PATH, headers=reader, json={})).status_code == 403
    assert (await client.get(PATH, headers=scoped)).status_code == 403
    assert (await client.patch(PATH, headers=scoped, json={})).status_code == 403
    assert (await client.get(PATH)).status_code == 401
    assert (await client.patch(PATH, json={})).status_code == 401
