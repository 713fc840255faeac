"""`/oauth/userinfo`: what an app learns, scope by scope."""

from typing import Any

import httpx2
import pytest

from hublet.accounts.records import OrganizationPlan, Role
from hublet.accounts.users import service as accounts
from hublet.core.database import Database
from hublet.oauth.id_tokens import claims_of
from hublet.tokens.records import Scope
from people import Headers, a_token, a_user, an_organization, sign_in

PATH = "/oauth/userinfo"


async def a_known_user(database: Database) -> dict[str, str]:
    """Ada with an address and two organizations; return the ids by name."""
    engines = await an_organization(
        database, "engines", plan=OrganizationPlan.enterprise, members={"ada": Role.write}
    )
    looms = await an_organization(database, "looms", members={"ada": Role.read})
    user = await a_user(database, "ada")
    async with database.transaction() as conn:
        await accounts.add_email(conn, user, "ada@example.com", verified=True)
    return {"ada": user.id, "engines": engines.id, "looms": looms.id}


def shown_organization(ids: dict[str, str], name: str, **more: Any) -> dict[str, Any]:
    return {
        "sub": ids[name],
        "name": name,
        "preferred_username": name,
        "picture": f"http://hub.test/avatars/{ids[name]}",
        **more,
    }


async def test_each_scope_adds_what_it_grants(
    client: httpx2.AsyncClient, database: Database
) -> None:
    ids = await a_known_user(database)
    scopes: list[str] = []
    seen: list[dict[str, Any]] = []

    for scope in ("openid", "profile", "email", "read-billing", "read-memberships"):
        scopes.append(scope)
        headers = await sign_in(database, "ada", scopes=scopes)
        response = await client.get(PATH, headers=headers)
        assert response.status_code == 200
        known: dict[str, Any] = {}
        for earlier in seen:
            known |= earlier
        new = {k: v for k, v in response.json().items() if known.get(k) != v}
        seen.append(new)

    assert seen == [
        {"sub": ids["ada"]},
        {
            "name": "ada",
            "preferred_username": "ada",
            "profile": "http://hub.test/ada",
            "picture": f"http://hub.test/avatars/{ids['ada']}",
            "isPro": False,
            "orgs": [],
        },
        {"email": "ada@example.com", "email_verified": True},
        {"canPay": False},
        {
            "orgs": [
                shown_organization(ids, "engines", plan="enterprise", roleInOrg="write"),
                shown_organization(ids, "looms", roleInOrg="read"),
            ]
        },
    ]


async def test_selected_organizations_are_shown_by_name_and_with_what_the_scopes_add(
    database: Database,
) -> None:
    ids = await a_known_user(database)
    named = frozenset({Scope.openid, Scope.profile})

    async with database.read() as conn:
        by_name = await claims_of(conn, ids["ada"], named, [ids["looms"]])
        with_billing = await claims_of(
            conn, ids["ada"], named | {Scope.read_billing}, [ids["looms"]]
        )

    assert by_name["orgs"] == [shown_organization(ids, "looms")]
    assert with_billing["orgs"] == [shown_organization(ids, "looms", canPay=False)]


async def test_a_token_without_openid_is_refused(
    client: httpx2.AsyncClient, database: Database
) -> None:
    headers = await sign_in(database, "ada", scopes=["profile"])

    refused = [await client.get(PATH, headers=headers), await client.post(PATH, headers=headers)]

    for response in refused:
        assert response.status_code == 403
        assert response.headers["WWW-Authenticate"] == (
            'Bearer error="insufficient_scope", scope="openid"'
        )


async def test_the_token_may_stand_in_a_form(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    value = await a_token(database, "ada", scopes=["openid"])

    by_form = await client.post(PATH, data={"access_token": value})
    by_header = await client.post(PATH, headers=ada)

    assert by_form.status_code == 200
    assert set(by_form.json()) == {"sub"}
    assert by_header.json()["preferred_username"] == "ada"


@pytest.mark.parametrize(
    ("arguments", "challenge"),
    [
        pytest.param({}, "Bearer", id="no token"),
        pytest.param({"params": {"access_token": "hf_x"}}, "Bearer", id="in the address"),
        pytest.param(
            {"headers": {"Authorization": "Bearer hf_x"}},
            'Bearer error="invalid_token"',
            id="an unknown one",
        ),
    ],
)
async def test_who_shows_no_token_that_works_is_challenged(
    client: httpx2.AsyncClient, arguments: dict[str, Any], challenge: str
) -> None:
    for method in ("GET", "POST"):
        response = await client.request(method, PATH, **arguments)

        assert response.status_code == 401
        assert response.headers["WWW-Authenticate"] == challenge


@pytest.mark.parametrize(("boundary", "status"), [("; boundary=x", 401), ("", 400)])
async def test_a_broken_form_is_no_token(
    client: httpx2.AsyncClient, boundary: str, status: int
) -> None:
    response = await client.post(
        PATH,
        content=b"--x\r\nbroken",
        headers={"Content-Type": f"multipart/form-data{boundary}"},
    )

    assert response.status_code == status
