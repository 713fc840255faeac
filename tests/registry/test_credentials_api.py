"""Credentials at other registries: who may store them, and that nobody sees the secret again."""

import httpx2
import pytest

from hublet.core.database import Database
from hublet.registry import credentials
from people import Headers

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
