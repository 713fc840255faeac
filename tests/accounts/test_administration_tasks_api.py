"""Tasks that failed too often and wait for an administrator."""

import httpx2
import pytest

from hublet.core import queue
from hublet.core.clock import from_micros, wire
from hublet.core.database import Database
from people import Headers

PATH = "/api/admin/tasks"

_AT = 1_700_000_000_000_000


async def park(database: Database, task_id: str, *, minutes: int) -> None:
    async with database.transaction() as conn:
        await conn.execute(
            "INSERT INTO tasks (id, kind, slow, body, created_at, due_at, attempts, error, parked_at)"
            " VALUES ($1, 'mail.send', $2, '{}', 0, 0, 7, 'It broke.', $3)",
            task_id, False, _AT + minutes * 60_000_000,
        )  # fmt: skip


async def parked(client: httpx2.AsyncClient, admin: Headers) -> list[str]:
    return [task["id"] for task in (await client.get(PATH, headers=admin)).json()]


async def test_parked_tasks_are_listed_oldest_first(
    client: httpx2.AsyncClient, database: Database, admin: Headers
) -> None:
    await park(database, "second", minutes=2)
    await park(database, "first", minutes=1)

    response = await client.get(PATH, headers=admin)

    assert response.status_code == 200
    assert response.json() == [
        {
            "id": task_id,
            "kind": "mail.send",
            "attempts": 7,
            "error": "It broke.",
            "parkedAt": wire(from_micros(_AT + minutes * 60_000_000)),
        }
        for task_id, minutes in (("first", 1), ("second", 2))
    ]


async def test_one_task_gets_a_fresh_start(
    client: httpx2.AsyncClient, database: Database, admin: Headers
) -> None:
    await park(database, "first", minutes=1)
    await park(database, "second", minutes=2)

    answers = [
        await client.post(f"{PATH}/retry", headers=admin, json={"id": "first"}) for _ in range(2)
    ]

    assert [answer.json() for answer in answers] == [{"count": 1}, {"count": 0}]
    assert await parked(client, admin) == ["second"]


async def test_a_parked_task_is_dropped_once(
    client: httpx2.AsyncClient, database: Database, admin: Headers
) -> None:
    await park(database, "first", minutes=1)

    answers = [await client.delete(f"{PATH}/first", headers=admin) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [200, 404]
    assert answers[1].json() == {"error": "There is no parked task first."}
    assert await parked(client, admin) == []


async def test_all_tasks_get_a_fresh_start(
    client: httpx2.AsyncClient, database: Database, admin: Headers
) -> None:
    await park(database, "first", minutes=1)
    await park(database, "second", minutes=2)

    response = await client.post(f"{PATH}/retry", headers=admin, json={})

    assert response.json() == {"count": 2}
    assert await parked(client, admin) == []
    async with database.read() as conn:
        assert await queue.count_parked(conn) == 0


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"id": ""}, "id must have at least 1 character(s)."),
        ({"kind": "mail.send"}, "kind is not a known field."),
    ],
)
async def test_a_retry_that_names_no_task_is_refused(
    client: httpx2.AsyncClient,
    database: Database,
    admin: Headers,
    body: dict[str, str],
    sentence: str,
) -> None:
    await park(database, "first", minutes=1)

    response = await client.post(f"{PATH}/retry", headers=admin, json=body)

    assert (response.status_code, response.json()) == (400, {"error": sentence})
    assert await parked(client, admin) == ["first"]
