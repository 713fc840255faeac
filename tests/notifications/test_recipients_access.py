"""Nobody hears of what they may not see, and what somebody may not see any more leaves."""

from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from community.discussions import a_discussion
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import (
    OPERATOR,
    Organization,
    OrganizationPlan,
    ResourceGroupRecord,
    Role,
)
from hublet.accounts.resource_groups import service as group_members
from hublet.core.database import Database
from hublet.notifications.recipients import cleanup
from notifications.inboxes import kept_counts, true_counts
from notifications.recipients import Stage, a_stage
from people import Headers, a_user, an_organization, sign_in
from repositories import a_repo, a_resource_group

SETTINGS = "/api/models/lab/engine/settings"
GROUP = "/api/models/lab/engine/resource-group"

# All but boss, who acts.
PEOPLE = ("chief", "insider", "writer", "stranger")


@pytest.fixture
async def lab(database: Database) -> Organization:
    members = {
        "boss": Role.admin,
        "chief": Role.admin,
        "insider": Role.read,
        "writer": Role.write,
    }
    return await an_organization(database, "lab", plan=OrganizationPlan.team, members=members)


@pytest.fixture
async def boss(database: Database, lab: Organization) -> Headers:
    return await sign_in(database, "boss")


@pytest.fixture
async def group(database: Database, lab: Organization) -> ResourceGroupRecord:
    return await a_resource_group(database, lab, members={"insider": Role.read})


@pytest.fixture
async def stage(client: httpx2.AsyncClient, database: Database, boss: Headers) -> Stage:
    """A discussion in a public repository of the lab that all people watch."""
    repo_id = await a_repo(client, boss, "lab/engine")
    address = await a_discussion(client, boss, "/api/models/lab/engine/discussions")
    stage = await a_stage(client, database, address, repo_id=repo_id)
    for name in PEOPLE:
        await stage.watch(name, "repo", repo_id)
    return stage


async def make_private(client: httpx2.AsyncClient, boss: Headers) -> None:
    response = await client.put(SETTINGS, headers=boss, json={"private": True})
    assert response.status_code == 200, response.text


async def put_in_group(
    client: httpx2.AsyncClient, boss: Headers, group: ResourceGroupRecord
) -> None:
    response = await client.post(GROUP, headers=boss, json={"resourceGroupId": group.id})
    assert response.status_code == 200, response.text


async def right(database: Database) -> bool:
    return await kept_counts(database) == await true_counts(database)


async def test_a_public_repository_notifies_everybody(stage: Stage) -> None:
    await stage.comment("boss")

    assert set(await stage.notified()) == set(PEOPLE)


async def test_a_private_one_by_members(
    client: httpx2.AsyncClient, stage: Stage, boss: Headers
) -> None:
    await make_private(client, boss)

    await stage.comment("boss", "Do you hear me, @stranger?")

    assert set(await stage.notified()) == {"chief", "insider", "writer"}
    assert set(await stage.mailed()) == {"chief", "insider", "writer"}


async def test_one_in_a_resource_group_by_its_members_and_administrators(
    client: httpx2.AsyncClient, stage: Stage, boss: Headers, group: ResourceGroupRecord
) -> None:
    await make_private(client, boss)
    await put_in_group(client, boss, group)

    await stage.comment("boss")

    assert set(await stage.notified()) == {"chief", "insider"}


async def test_who_took_part_is_not_notified_any_more_when_the_repository_is_private(
    client: httpx2.AsyncClient, stage: Stage, boss: Headers
) -> None:
    await stage.comment("stranger", "Hello, @writer.")
    await stage.settle()
    await make_private(client, boss)

    await stage.comment("boss")

    assert await stage.notified() == {
        "chief": "watched",
        "insider": "watched",
        "writer": "mentioned",
    }


async def test_the_repository_counts_as_it_is_when_the_worker_comes(
    client: httpx2.AsyncClient, stage: Stage, boss: Headers
) -> None:
    await stage.comment("boss")
    await make_private(client, boss)

    assert "stranger" not in await stage.notified()
    assert "stranger" not in await stage.mailed()


async def test_a_repository_that_becomes_private_leaves_the_inboxes_of_strangers(
    client: httpx2.AsyncClient, database: Database, stage: Stage, boss: Headers
) -> None:
    await stage.comment("boss")
    await stage.notified()

    await make_private(client, boss)

    assert set(await stage.notified()) == {"chief", "insider", "writer"}
    assert await right(database)


async def test_another_setting_takes_nothing_away(
    client: httpx2.AsyncClient, stage: Stage, boss: Headers
) -> None:
    await stage.comment("boss")
    await stage.notified()

    await client.put(SETTINGS, headers=boss, json={"gated": "auto"})

    assert set(await stage.notified()) == set(PEOPLE)


async def test_a_repository_that_joins_a_group_leaves_the_inboxes_of_others(
    client: httpx2.AsyncClient,
    database: Database,
    stage: Stage,
    boss: Headers,
    group: ResourceGroupRecord,
) -> None:
    await make_private(client, boss)
    await stage.comment("boss")
    await stage.notified()

    await put_in_group(client, boss, group)

    assert set(await stage.notified()) == {"chief", "insider"}
    assert await right(database)


async def test_a_private_repository_with_another_owner_leaves_the_inboxes_of_the_old_ones(
    client: httpx2.AsyncClient, database: Database, stage: Stage, boss: Headers
) -> None:
    await an_organization(database, "mill", members={"boss": Role.admin, "writer": Role.read})
    await make_private(client, boss)
    await stage.comment("boss")
    await stage.notified()

    body = {"fromRepo": "lab/engine", "toRepo": "mill/engine", "type": "model"}
    assert (await client.post("/api/repos/move", headers=boss, json=body)).status_code == 200

    assert set(await stage.notified()) == {"writer"}
    assert await right(database)


async def test_another_name_takes_nothing_away(
    client: httpx2.AsyncClient, stage: Stage, boss: Headers
) -> None:
    await make_private(client, boss)
    await stage.comment("boss")
    await stage.notified()

    body = {"fromRepo": "lab/engine", "toRepo": "lab/mill", "type": "model"}
    assert (await client.post("/api/repos/move", headers=boss, json=body)).status_code == 200

    assert set(await stage.notified()) == {"chief", "insider", "writer"}


async def test_a_deleted_repository_leaves_every_inbox(
    client: httpx2.AsyncClient, database: Database, stage: Stage, boss: Headers
) -> None:
    await stage.comment("boss")
    await stage.notified()

    body = {"name": "lab/engine"}
    await client.request("DELETE", "/api/repos/delete", headers=boss, json=body)

    assert await stage.notified() == {}
    assert (await kept_counts(database), await true_counts(database)) == ({}, {})


async def test_a_deleted_discussion_leaves_every_inbox_and_its_neighbours_stay(
    client: httpx2.AsyncClient, database: Database, stage: Stage, boss: Headers
) -> None:
    address = await a_discussion(client, boss, "/api/models/lab/engine/discussions")
    await stage.comment("boss")
    await stage.notified()

    assert (await client.delete(address, headers=boss)).status_code == 200

    assert set(await stage.notified()) == set(PEOPLE)
    async with database.read() as conn:
        rows = await conn.fetch_all("SELECT DISTINCT thread_id FROM notifications")
    assert [row["thread_id"] for row in rows] == [stage.thread_id]
    assert await right(database)


Ending = Callable[[Database, Organization, ResourceGroupRecord], Awaitable[None]]


async def leave_the_organization(
    database: Database, lab: Organization, _group: ResourceGroupRecord
) -> None:
    user = await a_user(database, "insider")
    async with database.transaction() as conn:
        await organizations.remove_member(conn, OPERATOR, lab, user)


async def leave_the_group(
    database: Database, _lab: Organization, group: ResourceGroupRecord
) -> None:
    user = await a_user(database, "insider")
    async with database.transaction() as conn:
        await group_members.remove_member(conn, OPERATOR, group, user)


async def step_down(database: Database, lab: Organization, _group: ResourceGroupRecord) -> None:
    user = await a_user(database, "chief")
    async with database.transaction() as conn:
        await organizations.set_member(conn, OPERATOR, lab, user, Role.write)


@pytest.mark.parametrize(
    ("end", "name", "kept"),
    [
        pytest.param(
            leave_the_organization, "insider", {"lab/open"}, id="who leaves the organization"
        ),
        pytest.param(
            leave_the_group, "insider", {"lab/hall", "lab/open"}, id="who leaves the resource group"
        ),
        pytest.param(
            step_down, "chief", {"lab/hall", "lab/open"}, id="who is an administrator no more"
        ),
    ],
)
async def test_what_they_may_not_see_any_more_leaves_the_inbox_of(
    client: httpx2.AsyncClient,
    database: Database,
    *,
    stage: Stage,
    boss: Headers,
    lab: Organization,
    group: ResourceGroupRecord,
    monkeypatch: pytest.MonkeyPatch,
    end: Ending,
    name: str,
    kept: set[str],
) -> None:
    monkeypatch.setattr(cleanup, "REPOS", 1)
    settings: dict[str, dict[str, Any]] = {
        "lab/hall": {"private": True},
        "lab/open": {"private": False},
        "lab/other": {"private": True, "resourceGroupId": group.id},
    }
    ids = {repo: await a_repo(client, boss, repo, **body) for repo, body in settings.items()}
    for repo in ids:
        await a_discussion(client, boss, f"/api/models/{repo}/discussions")
    await make_private(client, boss)
    await put_in_group(client, boss, group)
    await stage.comment("boss")
    assert set(await stage.notified()) == {"chief", "insider"}

    await end(database, lab, group)

    assert set(await stage.notified()) == {"chief", "insider"} - {name}
    assert await places_of(database, name) == {ids[repo] for repo in kept}
    assert await right(database)


async def places_of(database: Database, name: str) -> set[str]:
    user = await a_user(database, name)
    async with database.read() as conn:
        rows = await conn.fetch_all(
            "SELECT place_id FROM notifications WHERE user_id = $1", user.id
        )
    return {row["place_id"] for row in rows}


async def test_another_role_that_sees_as_much_takes_nothing_away(
    client: httpx2.AsyncClient,
    database: Database,
    stage: Stage,
    boss: Headers,
    lab: Organization,
) -> None:
    await make_private(client, boss)
    await stage.comment("boss")
    await stage.notified()

    user = await a_user(database, "chief")
    async with database.transaction() as conn:
        await organizations.set_member(conn, OPERATOR, lab, user, Role.read)

    assert set(await stage.notified()) == {"chief", "insider", "writer"}
