"""Credentials at other registries: who may store them, and that nobody sees the secret again."""

import httpx2
import pytest

from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import Role
from hublet.core.database import Database
from hublet.registry import credentials
from hublet.tokens.records import TokenRole
from oauth.token_flows import an_app, tokens_of
from people import Headers, an_organization, sign_in

OWN = "/api/settings/registry-credentials"
HUB = "/api/admin/registry-credentials"
BODY = {"username": "robot", "secret": "s3cr3t-value"}


async def test_credentials_are_stored_listed_without_the_secret_and_removed(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    stored = await client.put(f"{OWN}/ghcr.io", headers=ada, json=BODY)
    listed = await client.get(OWN, headers=ada)
    assert [each["host"] for each in listed.json()] == ["ghcr.io"]
    assert "s3cr3t" not in stored.text + listed.text
    assert (await client.delete(f"{OWN}/ghcr.io", headers=ada)).status_code == 200
    again = await client.delete(f"{OWN}/ghcr.io", headers=ada)
    assert (again.status_code, again.json()["error"]) == (
        404,
        "There are no credentials for ghcr.io.",
    )


async def test_they_are_sealed_in_the_database(
    client: httpx2.AsyncClient, ada: Headers, database: Database
) -> None:
    await client.put(f"{OWN}/index.docker.io", headers=ada, json=BODY)
    async with database.read() as conn:
        [row] = await conn.fetch_all("SELECT owner_id, host, secret FROM registry_credentials")
        login = await credentials.find_login(conn, row["owner_id"], "docker.io")
    assert row["host"] == "docker.io"
    assert "s3cr3t" not in row["secret"]
    assert login == ("robot", "s3cr3t-value")


@pytest.mark.parametrize(
    ("host", "changes", "field"),
    [
        ("a b", {}, "host"),
        ("-x", {}, "host"),
        ("ghcr.io", {"username": "a:b"}, "username"),
        ("ghcr.io", {"secret": "two\nlines"}, "secret"),
    ],
)
async def test_what_is_not_valid_is_refused_with_its_field(
    client: httpx2.AsyncClient, ada: Headers, host: str, changes: dict[str, str], field: str
) -> None:
    response = await client.put(f"{OWN}/{host}", headers=ada, json=BODY | changes)
    assert response.status_code == 400
    assert response.json()["error"].startswith(f"{field}: it is not valid; ")


async def test_those_of_the_hub_are_for_administrators(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    assert (await client.put(f"{HUB}/ghcr.io", headers=ada, json=BODY)).status_code == 403
    assert (await client.get(HUB, headers=ada)).status_code == 403


ORG = "/api/organizations/navy/registry-credentials"
Request = tuple[str, str, object]
REQUESTS: list[Request] = [
    ("GET", "", None),
    ("PUT", "/ghcr.io", BODY),
    ("DELETE", "/ghcr.io", None),
]
each_request = pytest.mark.parametrize("request_", REQUESTS, ids=["list", "set", "remove"])


@pytest.fixture
async def navy(database: Database, ada: Headers) -> None:
    """An organization of ada's with a member, whose credentials for ghcr.io are stored."""
    assert ada
    await an_organization(database, "navy", members={"ada": Role.admin, "bob": Role.write})
    async with database.transaction() as conn:
        owner = await organizations.get(conn, "navy")
        await credentials.set_credential(
            conn, owner.id, "ghcr.io", username="robot", secret="s3cr3t"
        )


async def status_of(client: httpx2.AsyncClient, who: Headers, url: str, request: Request) -> int:
    method, path, body = request
    response = await client.request(method, url + path, headers=who, json=body)
    assert "s3cr3t" not in response.text
    return response.status_code


@each_request
async def test_those_of_an_organization_are_for_its_administrators(
    client: httpx2.AsyncClient, database: Database, ada: Headers, navy: None, request_: Request
) -> None:
    member, stranger = await sign_in(database, "bob"), await sign_in(database, "carol")
    root = await sign_in(database, "root", is_admin=True)
    for who, status in (({}, 401), (stranger, 403), (member, 403), (root, 403), (ada, 200)):
        assert await status_of(client, who, ORG, request_) == status
    assert navy is None


@each_request
async def test_a_token_without_the_whole_account_manages_no_credentials(
    client: httpx2.AsyncClient, database: Database, navy: None, request_: Request
) -> None:
    assert navy is None
    fine = await sign_in(database, "ada", scopes=["write-repos", "manage-repos"])
    reading = await sign_in(database, "ada", role=TokenRole.read)
    answer = await tokens_of(client, database, await an_app(database, scopes=["manage-repos"]))
    of_app = {"Authorization": f"Bearer {answer['access_token']}"}
    for url in (OWN, ORG, HUB):
        assert await status_of(client, fine, url, request_) == 403
        assert await status_of(client, of_app, url, request_) == 403
        if request_[0] != "GET":
            assert await status_of(client, reading, url, request_) == 403


async def test_an_organization_that_does_not_exist_is_404(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    path = "/api/organizations/nobody/registry-credentials"
    assert await status_of(client, ada, path, REQUESTS[0]) == 404


async def test_jobs_of_an_organization_use_its_own_and_no_member_sees_those_of_another(
    client: httpx2.AsyncClient, ada: Headers, navy: None
) -> None:
    assert navy is None
    await client.put(f"{OWN}/quay.io", headers=ada, json=BODY)

    assert [each["host"] for each in (await client.get(ORG, headers=ada)).json()] == ["ghcr.io"]
    assert [each["host"] for each in (await client.get(OWN, headers=ada)).json()] == ["quay.io"]


async def test_there_is_a_limit_that_a_change_does_not_meet(
    client: httpx2.AsyncClient, ada: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "MOST", 1)
    await client.put(f"{OWN}/ghcr.io", headers=ada, json=BODY)

    refused = await client.put(f"{OWN}/quay.io", headers=ada, json=BODY)
    changed = await client.put(f"{OWN}/ghcr.io", headers=ada, json=BODY | {"username": "other"})

    assert refused.status_code == 400
    assert "1" in refused.json()["error"]
    assert changed.json()["username"] == "other"


@pytest.mark.parametrize("field", ["username", "secret"])
@pytest.mark.parametrize("value", ["", "x" * 4097, None, 7])
async def test_an_empty_or_long_or_missing_field_is_refused_by_name(
    client: httpx2.AsyncClient, ada: Headers, field: str, value: object
) -> None:
    response = await client.put(f"{OWN}/ghcr.io", headers=ada, json=BODY | {field: value})
    assert response.status_code == 400
    assert response.json()["error"].startswith(field)
    assert "s3cr3t" not in response.text
