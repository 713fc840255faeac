"""Collections among the hits: found by title, owner and description, only by who may see them."""

import httpx2

from community.collection_scenes import PATH, a_collection
from hublet.accounts.records import OrganizationPlan, Role
from hublet.core.database import Database
from people import Headers, an_organization, sign_in
from repositories import a_resource_group
from search.quick_searches import in_step, quick_search


async def titles(client: httpx2.AsyncClient, q: str, headers: Headers | None = None) -> set[str]:
    result = await quick_search(client, headers, q=q, type="collection")
    assert result["collectionsCount"] == len(result["collections"])
    return {hit["title"] for hit in result["collections"]}


async def test_a_collection_is_found_by_who_may_see_it(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    members = {"ada": Role.admin, "reader": Role.read, "rocketeer": Role.read}
    acme = await an_organization(database, "acme", plan=OrganizationPlan.team, members=members)
    group = await a_resource_group(database, acme, members={"rocketeer": Role.read})
    open_ = await a_collection(client, ada, "Tide open", description="Engines of the sea")
    await a_collection(client, ada, "Tide closed", private=True)
    await a_collection(client, ada, "Tide inside", namespace="acme", private=True)
    await a_collection(
        client, ada, "Tide group", namespace="acme", private=True, resourceGroupId=group.id
    )
    await in_step(database)

    result = await quick_search(client, q="engines")
    assert result["collections"] == [
        {
            "_id": open_["slug"][-24:],
            "title": "Tide open",
            "description": "Engines of the sea",
            "slug": open_["slug"],
        }
    ]
    public, inside = {"Tide open"}, {"Tide open", "Tide inside"}
    everything = inside | {"Tide closed", "Tide group"}
    assert await titles(client, "tide") == public
    assert await titles(client, "tide", await sign_in(database, "reader")) == inside
    in_group = await sign_in(database, "rocketeer")
    assert await titles(client, "tide", in_group) == inside | {"Tide group"}
    assert await titles(client, "tidde", ada) == everything
    scoped = await sign_in(database, "ada", scopes=["read-repos"])
    assert await titles(client, "tide", scoped) == public
    reading = await sign_in(database, "ada", scopes=["read-collections"])
    assert await titles(client, "tide", reading) == everything
    assert await titles(client, "tide acme", ada) == {"Tide inside", "Tide group"}


async def test_a_hit_follows_its_collection(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    slug = (await a_collection(client, ada))["slug"]
    await client.patch(f"{PATH}/{slug}", headers=ada, json={"title": "Gears"})
    await in_step(database)
    assert (await titles(client, "wheels"), await titles(client, "gea")) == (set(), {"Gears"})

    await client.patch(f"{PATH}/{slug}", headers=ada, json={"private": True})
    # Before the index knows.
    assert await titles(client, "gears") == set()
    await client.delete(f"{PATH}/{slug}", headers=ada)
    await in_step(database)
    assert await titles(client, "gears", ada) == set()
