"""The audit log of an organization."""

from datetime import timedelta
from urllib.parse import quote

import httpx2
import pytest

from hublet.accounts.organizations import audit_store
from hublet.accounts.records import OPERATOR, Role
from hublet.core import clock, ids
from hublet.core.clock import from_micros, now, wire
from hublet.core.database import Database
from hublet.tokens.records import TokenRole
from people import Headers, a_token, a_user, an_organization, sign_in
from workers import drain

PATH = "/api/organizations/engines/audit-log"


@pytest.fixture
async def engines(client: httpx2.AsyncClient, database: Database, ada: Headers) -> None:
    """An organization that ada founded through the API."""
    await client.post("/api/organizations", headers=ada, json={"name": "engines"})
    await a_user(database, "Bob")


async def set_role(client: httpx2.AsyncClient, who: Headers, role: str) -> None:
    path = "/api/organizations/engines/members/bob"
    assert (await client.put(path, headers=who, json={"role": role})).status_code == 200


async def read(client: httpx2.AsyncClient, who: Headers, query: str = "") -> list[str]:
    """Return the actions that a query finds."""
    response = await client.get(f"{PATH}?{query}", headers=who)
    assert response.status_code == 200
    return [line["action"] for line in response.json()]


@pytest.mark.usefixtures("engines")
async def test_a_line_tells_who_did_what_to_whom_from_where(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await set_role(client, ada, "write")

    response = await client.get(f"{PATH}?limit=1", headers=ada)

    [line] = response.json()
    assert line == {
        "id": line["id"],
        "at": line["at"],
        "action": "member.add",
        "actor": {"id": (await a_user(database, "ada")).id, "name": "ada"},
        "target": "Bob",
        "details": {"role": "write"},
        "address": "127.0.0.1",
    }


async def test_a_command_of_the_operator_has_neither_id_nor_address(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(database, "engines", members={"ada": Role.admin})

    [_, line] = (await client.get(PATH, headers=ada)).json()

    assert line == {
        "id": line["id"],
        "at": line["at"],
        "action": "organization.create",
        "actor": {"name": "operator"},
        "target": "engines",
        "details": {},
    }


@pytest.mark.usefixtures("engines")
async def test_the_newest_line_comes_first(client: httpx2.AsyncClient, ada: Headers) -> None:
    await set_role(client, ada, "write")
    await set_role(client, ada, "read")

    assert await read(client, ada) == [
        "member.role", "member.add", "member.add", "organization.create",
    ]  # fmt: skip


@pytest.mark.usefixtures("engines")
async def test_lines_can_be_found_by_action_and_actor(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await set_role(client, ada, "admin")
    bob = await sign_in(database, "bob")
    await set_role(client, bob, "read")

    assert await read(client, ada, "action=member.add") == ["member.add", "member.add"]
    assert await read(client, ada, "actor=bOB") == ["member.role"]
    assert await read(client, ada, "action=member.add&actor=bob") == []
    assert await read(client, ada, "action=member") == ["member.role", "member.add", "member.add"]
    assert await read(client, ada, "action=memb") == []
    assert await read(client, ada, "search=BO&action=member.add") == ["member.add"]
    assert await read(client, ada, "search=b%25b") == []


@pytest.mark.usefixtures("engines")
async def test_lines_can_be_found_by_time(client: httpx2.AsyncClient, ada: Headers) -> None:
    clock.move(timedelta(hours=1))
    between = quote(wire(now()))
    offset = quote((now()).astimezone().isoformat())
    clock.move(timedelta(hours=1))
    await set_role(client, ada, "write")

    assert await read(client, ada, f"since={between}") == ["member.add"]
    assert await read(client, ada, f"since={offset}") == ["member.add"]
    assert await read(client, ada, f"until={between}") == ["member.add", "organization.create"]
    assert await read(client, ada, f"since={between}&until={between}") == []
    assert len(await read(client, ada, "since=0001-01-01T00:00:00Z")) == 3


@pytest.mark.usefixtures("engines")
async def test_since_takes_the_moment_in_and_until_leaves_it_out(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    clock.move(timedelta(hours=1))
    await set_role(client, ada, "write")
    async with database.read() as conn:
        at = from_micros(await conn.fetch_value("SELECT max(at) FROM audit_log"))
    moment = quote(at.isoformat())

    assert await read(client, ada, f"since={moment}") == ["member.add"]
    assert await read(client, ada, f"until={moment}") == ["member.add", "organization.create"]


@pytest.mark.usefixtures("engines")
async def test_the_link_keeps_the_filters(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await set_role(client, ada, "admin")
    bob = await sign_in(database, "bob")
    for role in ("write", "read", "write", "contributor", "read"):
        await set_role(client, ada, role)
        await set_role(client, ada, "admin")
    await client.patch("/api/organizations/engines", headers=bob, json={"fullname": "Other"})

    found: list[str] = []
    pages = 0
    url: str | None = (
        f"{PATH}?action=member.role&actor=ada&since=2020-01-01T00:00:00%2B01:00&limit=4"
    )
    while url:
        response = await client.get(url, headers=ada)
        found += [line["id"] for line in response.json()]
        assert {line["action"] for line in response.json()} == {"member.role"}
        pages += 1
        url = response.links.get("next", {}).get("url")

    assert (pages, len(found)) == (3, 10)
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("since=yesterday", "since must be a timestamp such as 2026-11-15T01:44:56Z."),
        (
            "until=2026-11-15T01:44:56",
            "until must be a timestamp with a time zone, such as 2026-11-15T01:44:56Z.",
        ),
        ("limit=1000", "limit must be at most 100."),
        ("cursor=x", "cursor must be taken from the Link header of the page before."),
    ],
)
@pytest.mark.usefixtures("engines")
async def test_a_filter_that_cannot_be_is_refused(
    client: httpx2.AsyncClient, ada: Headers, query: str, sentence: str
) -> None:
    response = await client.get(f"{PATH}?{query}", headers=ada)

    assert (response.status_code, response.json()) == (400, {"error": sentence})


@pytest.mark.usefixtures("engines")
async def test_only_administrators_with_a_write_token_read_it(
    client: httpx2.AsyncClient, database: Database, ada: Headers, admin: Headers
) -> None:
    await set_role(client, ada, "write")
    bob = await sign_in(database, "bob")
    reading = await sign_in(database, "ada", role=TokenRole.read)
    scoped = await sign_in(database, "ada", scopes=["read-memberships"])

    answers = [
        await client.get(PATH, headers=headers) for headers in ({}, bob, admin, reading, scoped)
    ]

    assert [answer.status_code for answer in answers] == [401, 403, 403, 403, 403]
    assert answers[1].json() == {"error": "This needs the role admin in the organization engines."}


async def test_an_organization_reads_only_its_own_log(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(database, "engines", members={"ada": Role.admin})
    await an_organization(database, "looms", members={"bob": Role.admin})

    lines = (await client.get(PATH, headers=ada)).json()

    assert [line["target"] for line in lines] == ["ada", "engines"]


async def test_a_members_reported_token_is_logged(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(database, "engines", members={"ada": Role.admin, "bob": Role.read})
    value = await a_token(database, "bob")
    await client.post("/api/credentials/revoke", json={"credentials": [value]})

    await drain(database)

    [line, *_] = (await client.get(PATH, headers=ada)).json()
    assert (line["action"], line["actor"], line["target"], line["details"]["reason"]) == (
        "credential.revoke",
        {"name": "anonymous"},
        "bob's token",
        "reported",
    )


async def test_lines_of_two_nodes_in_the_same_second_are_in_their_order(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = [ids.ObjectIds(process=0xF_FFFF_FFFF), ids.ObjectIds(process=0)]
    for number in range(10):
        monkeypatch.setattr(ids, "_object_ids", nodes[number % 2])
        async with database.transaction() as conn:
            await audit_store.record_for_hub(conn, OPERATOR, "change", target=str(number))

    async with database.read() as conn:
        lines = await audit_store.list_of_hub(conn, sign_ins=False)
    assert [each.target for each in lines] == [str(number) for number in reversed(range(10))]
