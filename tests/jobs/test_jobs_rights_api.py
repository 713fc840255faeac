"""Who sees jobs and who may change them: users, members by role, resource groups, scopes."""

from itertools import product
from typing import Any

import httpx2
import pytest

from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import OPERATOR, OrganizationPlan, Role
from hublet.accounts.users import service as accounts
from hublet.core.database import Database
from hublet.jobs.access import get_access_of_creator, get_creator
from hublet.jobs.errors import NamespaceNotFound
from hublet.tokens import service as tokens
from hublet.tokens.records import Grants, Scope, ScopedGrant, TokenRole
from jobs.jobs_api import BODY, run
from people import Headers, a_user, an_organization, sign_in
from repositories import a_resource_group

ENGINES = "/api/jobs/engines"
CHANGES: list[tuple[str, str, Any]] = [
    ("POST", "/cancel", None),
    ("POST", "/duplicate", None),
    ("PUT", "/labels", {"labels": {}}),
    ("PUT", "/expose", {"ports": []}),
    ("DELETE", "", None),
]
LOOKS: list[tuple[str, str, Any]] = [("GET", "", None), ("GET", "/events", None)]


async def ask(
    client: httpx2.AsyncClient, who: Headers, path: str, *, method: str = "GET", body: Any = None
) -> tuple[int, str]:
    response = await client.request(method, path, headers=who, json=body)
    return response.status_code, response.json().get("error", "")


async def test_a_job_of_somebody_else_is_not_found(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    job = await run(client, ada)
    bob = await sign_in(database, "bob", is_admin=True)

    # Neither where it is, nor under one's own name.
    for name, (method, what, body) in product(("ada", "bob", "nobody"), CHANGES + LOOKS):
        path = f"/api/jobs/{name}/{job['id']}{what}"
        found = await ask(client, bob, path, method=method, body=body)
        assert found == (404, f"There is no job {job['id']}, or you cannot see it."), path


@pytest.mark.parametrize("name", ["ada", "engines", "nobody"])
async def test_strangers_have_no_jobs_under_a_name(
    client: httpx2.AsyncClient, database: Database, name: str
) -> None:
    await an_organization(database, "engines", members={"ada": Role.admin})
    bob = await sign_in(database, "bob")

    sentence = f"{name} is neither you nor one of your organizations."
    assert await ask(client, bob, f"/api/jobs/{name}") == (404, sentence)
    assert await ask(client, bob, f"/api/jobs/{name}/count") == (404, sentence)
    run_there = await ask(client, bob, f"/api/jobs/{name}", method="POST", body=BODY)
    assert run_there == (404, sentence)


async def test_the_name_may_be_written_in_any_case(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    job = await run(client, ada, path="/api/jobs/ADA")
    assert job["owner"]["name"] == "ada"


@pytest.mark.parametrize(
    ("role", "may_run"),
    [(Role.read, False), (Role.contributor, True), (Role.write, True), (Role.admin, True)],
)
async def test_members_see_and_contributors_run(
    client: httpx2.AsyncClient, database: Database, ada: Headers, role: Role, *, may_run: bool
) -> None:
    organization = await an_organization(
        database, "engines", members={"ada": Role.admin, "bob": role}
    )
    job = await run(client, ada, path=ENGINES)
    bob = await sign_in(database, "bob")

    listed = (await client.get(ENGINES, headers=bob)).json()
    assert [each["id"] for each in listed] == [job["id"]]
    assert listed[0]["owner"] == {"id": organization.id, "name": "engines"}
    assert listed[0]["createdBy"]["name"] == "ada"
    status, sentence = await ask(client, bob, ENGINES, method="POST", body=BODY)
    needed = "This needs the role contributor in the organization engines."
    assert (status, sentence) == ((200, "") if may_run else (403, needed))


@pytest.mark.parametrize("role", [Role.read, Role.contributor])
async def test_who_may_not_write_changes_no_job_of_others(
    client: httpx2.AsyncClient, database: Database, ada: Headers, role: Role
) -> None:
    await an_organization(database, "engines", members={"ada": Role.admin, "bob": role})
    job = await run(client, ada, path=ENGINES)
    bob = await sign_in(database, "bob")

    for method, what, body in CHANGES:
        path = f"{ENGINES}/{job['id']}{what}"
        sentence = "This needs the role write in the organization engines."
        assert await ask(client, bob, path, method=method, body=body) == (403, sentence)


@pytest.mark.parametrize(("role", "creator"), [(Role.contributor, "bob"), (Role.write, "ada")])
async def test_contributors_change_their_own_jobs_and_writers_all(
    client: httpx2.AsyncClient, database: Database, ada: Headers, role: Role, creator: str
) -> None:
    await an_organization(database, "engines", members={"ada": Role.admin, "bob": role})
    bob = await sign_in(database, "bob")
    job = await run(client, {"ada": ada, "bob": bob}[creator], path=ENGINES)

    for method, what, body in CHANGES[:4]:
        path = f"{ENGINES}/{job['id']}{what}"
        assert await ask(client, bob, path, method=method, body=body) == (200, "")


async def test_a_contributor_who_only_reads_now_changes_not_even_their_own_job(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    members = {"ada": Role.admin, "bob": Role.contributor}
    organization = await an_organization(database, "engines", members=members)
    bob = await sign_in(database, "bob")
    job = await run(client, bob, path=ENGINES)
    async with database.transaction() as conn:
        user = await accounts.get_user(conn, "bob")
        await organizations.set_member(conn, OPERATOR, organization, user, Role.read)

    sentence = "This needs the role write in the organization engines."
    path = f"{ENGINES}/{job['id']}/cancel"
    assert await ask(client, bob, path, method="POST") == (403, sentence)
    assert (await ask(client, bob, f"{ENGINES}/{job['id']}"))[0] == 200


async def test_who_has_left_the_organization_sees_nothing_of_its_jobs(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(database, "engines", members={"ada": Role.admin, "bob": Role.contributor})
    bob = await sign_in(database, "bob")
    job = await run(client, bob, path=ENGINES)
    await client.delete("/api/organizations/engines/members/bob", headers=ada)

    assert (await ask(client, bob, f"{ENGINES}/{job['id']}"))[0] == 404


async def test_in_a_resource_group_the_role_there_decides(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    members = {"ada": Role.admin, "bob": Role.write, "eve": Role.read}
    organization = await an_organization(
        database, "engines", plan=OrganizationPlan.team, members=members
    )
    group = await a_resource_group(database, organization, members={"eve": Role.contributor})
    group_id = group.id
    bob, eve = await sign_in(database, "bob"), await sign_in(database, "eve")

    job = await run(client, eve, path=ENGINES, resourceGroupId=group_id.upper())
    assert job["resourceGroupId"] == group_id
    refused = await ask(
        client, bob, ENGINES, method="POST", body=BODY | {"resourceGroupId": group_id}
    )
    assert refused == (403, "This needs the role contributor in the resource group.")

    for who, count in ((ada, 1), (eve, 1), (bob, 0)):
        assert len((await client.get(ENGINES, headers=who)).json()) == count
        assert (await client.get(f"{ENGINES}/count", headers=who)).json() == {"count": count}
        assert (await ask(client, who, f"{ENGINES}/{job['id']}"))[0] == (200 if count else 404)
    for who, status in ((ada, 200), (eve, 200), (bob, 404)):
        path = f"{ENGINES}/{job['id']}/cancel"
        assert (await ask(client, who, path, method="POST"))[0] == status


async def test_a_role_in_a_resource_group_is_none_without_one_in_the_organization(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    organization = await an_organization(
        database, "engines", plan=OrganizationPlan.team, members={"ada": Role.admin}
    )
    bob = await sign_in(database, "bob")
    group = await a_resource_group(database, organization, members={"bob": Role.admin})
    job = await run(client, ada, path=ENGINES, resourceGroupId=group.id)

    body = BODY | {"resourceGroupId": group.id}
    assert (await ask(client, bob, ENGINES, method="POST", body=body))[0] == 404
    assert (await ask(client, bob, f"{ENGINES}/{job['id']}"))[0] == 404
    assert (await ask(client, bob, f"{ENGINES}/count"))[0] == 404
    # A creator in whose name the hub starts jobs has no more access than that.
    async with database.read() as conn:
        creator = await get_creator(conn, (await accounts.get_user(conn, "bob")).id)
        with pytest.raises(NamespaceNotFound):
            await get_access_of_creator(conn, creator, organization.id)


async def test_only_groups_of_the_organization_are_taken(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(
        database, "engines", plan=OrganizationPlan.team, members={"ada": Role.admin}
    )
    unknown = BODY | {"resourceGroupId": "0" * 24}

    assert (await ask(client, ada, ENGINES, method="POST", body=unknown))[0] == 404
    assert await ask(client, ada, "/api/jobs/ada", method="POST", body=unknown) == (
        400,
        "resourceGroupId: only organizations have resource groups.",
    )


async def test_a_token_needs_the_scope_jobs(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    job = await run(client, ada)
    without = await sign_in(database, "ada", scopes=["read-repos"])
    with_it = await sign_in(database, "ada", scopes=["jobs"])

    for path in ("/api/jobs/ada", f"/api/jobs/ada/{job['id']}"):
        assert await ask(client, without, path) == (403, "The token lacks the scope jobs.")
        assert (await client.get(path, headers=with_it)).status_code == 200


async def test_a_scope_for_one_owner_does_not_reach_another(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    organization = await an_organization(database, "engines", members={"ada": Role.admin})
    user = await a_user(database, "ada")
    grant = ScopedGrant(
        entity_id=organization.id,
        entity_type="org",
        entity_name="engines",
        scopes=frozenset({Scope.jobs}),
    )
    async with database.transaction() as conn:
        _, value = await tokens.issue(
            conn,
            user_id=user.id,
            name="narrow",
            role=TokenRole.fine_grained,
            grants=Grants(scoped=(grant,)),
        )
    narrow = {"Authorization": f"Bearer {value}"}

    assert (await client.get(ENGINES, headers=narrow)).status_code == 200
    assert await ask(client, narrow, "/api/jobs/ada") == (403, "The token lacks the scope jobs.")


async def test_without_a_token_there_are_no_jobs(client: httpx2.AsyncClient) -> None:
    assert (await client.get("/api/jobs/ada")).status_code == 401


async def test_a_program_asks_what_the_caller_may_do_with_jobs(
    client: httpx2.AsyncClient, database: Database
) -> None:
    organization = await an_organization(
        database, "engines", members={"ada": Role.write, "bob": Role.read}
    )
    ada, bob = [await sign_in(database, name) for name in ("ada", "bob")]
    eve = await sign_in(database, "eve")
    job = await run(client, ada, path=ENGINES)

    async def check(who: Headers, path: str) -> int:
        return (await client.post(f"{ENGINES}{path}", headers=who)).status_code

    reading = [await check(who, "/auth-check/read") for who in (ada, bob, eve, {})]
    running = [await check(who, "/auth-check/write") for who in (ada, bob, eve, {})]
    seeing = [await check(who, f"/{job['id']}/auth-check/read") for who in (ada, bob, eve)]
    changing = [await check(who, f"/{job['id']}/auth-check/write") for who in (ada, bob, eve)]
    allowed = await client.post(f"{ENGINES}/auth-check/read", headers=ada)

    assert (reading, running) == ([200, 200, 404, 401], [200, 403, 404, 401])
    assert (seeing, changing) == ([200, 200, 404], [200, 403, 404])
    assert await check(ada, "/auth-check/all") == 400
    user = await a_user(database, "ada")
    assert allowed.json() == {
        "namespace": {"id": organization.id, "name": "engines"},
        "user": {"id": user.id, "name": "ada"},
    }
