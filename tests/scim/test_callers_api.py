"""Who may use SCIM, and the form in which others are refused."""

import json

import httpx2
import pytest

from hublet.accounts.records import OrganizationPlan, Role
from hublet.core.database import Database
from hublet.core.errors import TooManyRequests
from hublet.core.http.error_responses import hub_error_response
from hublet.tokens.records import TokenRole
from people import an_organization, sign_in
from scim.directories import USER, Directory, error_body

BOTH = pytest.mark.parametrize("kind", ["scim", "scim-provisioning"])


@BOTH
async def test_without_a_token_nobody_is_let_in(client: httpx2.AsyncClient, kind: str) -> None:
    response = await client.get(f"/api/organizations/acme/{kind}/v2/Users")

    assert response.status_code == 401
    assert response.headers["content-type"] == "application/scim+json"
    assert response.headers["www-authenticate"] == "Bearer"
    assert response.json() == error_body(
        401, "A token is needed: send it as `Authorization: Bearer <token>`."
    )


@BOTH
async def test_an_unknown_organization_is_not_found(
    client: httpx2.AsyncClient, database: Database, kind: str
) -> None:
    ada = await sign_in(database, "ada")

    response = await client.get(f"/api/organizations/nobody/{kind}/v2/Users", headers=ada)

    assert response.status_code == 404
    assert response.json() == error_body(404, "There is no organization nobody.")


@BOTH
@pytest.mark.parametrize("role", [None, Role.read, Role.contributor, Role.write])
async def test_only_owners_may(
    client: httpx2.AsyncClient, database: Database, kind: str, role: Role | None
) -> None:
    bob = await sign_in(database, "bob")
    members = {} if role is None else {"bob": role}
    await an_organization(database, "acme", plan=OrganizationPlan.enterprise_plus, members=members)

    response = await client.get(f"/api/organizations/acme/{kind}/v2/Users", headers=bob)

    assert response.status_code == 403
    assert response.json() == error_body(403, "This needs the role admin in the organization acme.")


@BOTH
@pytest.mark.parametrize(
    "token", [{"role": TokenRole.read}, {"scopes": ["manage-repos", "write-repos"]}]
)
async def test_the_token_must_be_one_that_may_write(
    client: httpx2.AsyncClient, database: Database, kind: str, token: dict[str, object]
) -> None:
    ada = await sign_in(database, "ada", **token)  # type: ignore[arg-type]
    await an_organization(
        database, "acme", plan=OrganizationPlan.enterprise_plus, members={"ada": Role.admin}
    )

    response = await client.get(f"/api/organizations/acme/{kind}/v2/Users", headers=ada)

    assert response.status_code == 403
    assert response.json() == error_body(403, "This needs a token with the role write.")


@BOTH
@pytest.mark.parametrize(
    "plan", [OrganizationPlan.free, OrganizationPlan.team, OrganizationPlan.enterprise]
)
async def test_the_plan_must_be_the_largest(
    client: httpx2.AsyncClient, database: Database, kind: str, plan: OrganizationPlan
) -> None:
    ada = await sign_in(database, "ada")
    await an_organization(database, "acme", plan=plan, members={"ada": Role.admin})

    response = await client.get(f"/api/organizations/acme/{kind}/v2/Users", headers=ada)

    assert response.status_code == 403
    assert response.json() == error_body(
        403,
        "SCIM users and groups need the plan enterprise-plus or a larger one, "
        "which acme does not have.",
    )


async def test_a_body_that_is_too_large_is_refused_in_the_form_of_the_protocol(
    invited: Directory,
) -> None:
    response = await invited.ask("POST", "/Users", content=b"x" * 11_000_000)

    assert response.status_code == 413
    assert response.json()["schemas"] == error_body(413, "")["schemas"]
    assert response.json()["detail"].startswith("The body must have at most ")


def test_a_limit_is_told_in_the_form_of_the_protocol() -> None:
    error = TooManyRequests("Later.", headers={"Retry-After": "5"})

    response = hub_error_response(error, path="/api/organizations/acme/scim/v2/Users")

    assert (response.status_code, response.media_type) == (429, "application/scim+json")
    assert response.headers["retry-after"] == "5"
    assert json.loads(bytes(response.body)) == error_body(429, "Later.")


@pytest.mark.parametrize(
    ("method", "path", "status", "detail"),
    [
        pytest.param("POST", "/Bulk", 501, "Bulk is not supported", id="bulk is not there"),
        pytest.param("GET", "/Me", 501, "/Me is not supported", id="nobody is Me"),
        pytest.param("GET", "/Cats", 404, "No resource type found at 'Cats'", id="no such type"),
        pytest.param(
            "PUT",
            "/Users",
            405,
            "The endpoint does not support this method",
            id="a list is not replaced",
        ),
        pytest.param(
            "DELETE",
            "/Schemas",
            405,
            "The endpoint does not support this method",
            id="schemas are read only",
        ),
    ],
)
async def test_what_does_not_exist_says_so(
    invited: Directory, method: str, path: str, status: int, detail: str
) -> None:
    response = await invited.ask(method, path)

    assert response.status_code == status
    assert response.json() == error_body(status, detail)


async def test_a_method_that_is_not_there_is_told_with_those_that_are(invited: Directory) -> None:
    response = await invited.ask("PUT", "/Users")

    assert response.headers["allow"] == "GET, POST"


async def test_a_body_must_be_json(invited: Directory) -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}
    response = await invited.ask("POST", "/Users", content=b"userName=ada", headers=form)

    assert response.status_code == 415
    assert response.json() == error_body(415, "The request body must be application/scim+json")


@pytest.mark.parametrize("media_type", ["application/scim+json", "application/json", None])
async def test_a_body_may_come_under_either_name_of_json(
    invited: Directory, media_type: str | None
) -> None:
    body = f'{{"schemas": ["{USER}"], "userName": "ada"}}'.encode()
    headers = {} if media_type is None else {"content-type": media_type}
    response = await invited.ask("POST", "/Users", content=body, headers=headers)

    assert response.status_code == 201
    assert response.headers["content-type"] == "application/scim+json"


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b"nil"])
async def test_a_body_that_is_no_object_is_refused(invited: Directory, body: bytes) -> None:
    response = await invited.ask("POST", "/Users", content=body)

    assert response.status_code == 400
    assert response.json()["scimType"] == "invalidSyntax"
