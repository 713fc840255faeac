"""Who may administer the hub."""

import httpx2
import pytest

from hublet.core.database import Database
from hublet.tokens.records import TokenRole
from people import Headers, an_organization, sign_in

PATH = "/api/admin/users"

OPERATIONS: list[tuple[str, str, object]] = [
    ("GET", PATH, None),
    ("POST", PATH, {"name": "eve"}),
    ("PATCH", f"{PATH}/bob", {"isAdmin": True}),
    ("PUT", f"{PATH}/bob/password", {"password": "a new password"}),
    ("GET", f"{PATH}/bob/tokens", None),
    ("POST", f"{PATH}/bob/tokens", {"name": "x", "role": "write"}),
    ("DELETE", f"{PATH}/bob/tokens/1", None),
    ("GET", "/api/admin/organizations", None),
    ("POST", "/api/admin/organizations", {"name": "engines"}),
    ("PUT", "/api/admin/organizations/engines/plan", {"plan": "team"}),
    ("PUT", "/api/admin/organizations/engines/members/bob", {"role": "admin"}),
    ("DELETE", "/api/admin/organizations/engines/members/bob", None),
    ("GET", "/api/admin/tasks", None),
    ("POST", "/api/admin/tasks/retry", {}),
]


@pytest.mark.parametrize(("method", "path", "body"), OPERATIONS)
async def test_only_administrators_with_a_write_token_administer(
    client: httpx2.AsyncClient, database: Database, method: str, path: str, body: object
) -> None:
    callers: list[Headers] = [
        {},
        await sign_in(database, "bob"),
        await sign_in(database, "root", is_admin=True, role=TokenRole.read),
        await sign_in(database, "root", scopes=["read-memberships"]),
    ]

    answers = [
        await client.request(method, path, headers=headers, json=body) for headers in callers
    ]

    assert [answer.status_code for answer in answers] == [401, 403, 403, 403]
    sentence = "This needs a hub administrator's token with the role write."
    assert {answer.json()["error"] for answer in answers[1:]} == {sentence}


@pytest.mark.parametrize(
    ("method", "path", "body"), [entry for entry in OPERATIONS if "/bob" in entry[1]]
)
async def test_an_unknown_user_is_not_found(
    client: httpx2.AsyncClient,
    database: Database,
    admin: Headers,
    method: str,
    path: str,
    body: object,
) -> None:
    await an_organization(database, "engines")

    response = await client.request(method, path, headers=admin, json=body)

    assert (response.status_code, response.json()) == (404, {"error": "There is no user bob."})
