"""Names that an operator imports although they break the rules, as those of a test suite."""

from typing import Any

import httpx2
import pytest

from hublet.accounts.errors import InvalidName
from hublet.accounts.names import check_imported_name
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import OPERATOR
from hublet.accounts.users import service as accounts
from hublet.core.database import Database
from people import Headers, sign_in
from repositories import a_push, a_repo

USER, ORGANIZATION = "__DUMMY_HUB_USER__", "valid_org_hub"


@pytest.fixture
async def dummy(database: Database) -> Headers:
    """A user and an organization of the public client's own tests."""
    async with database.transaction() as conn:
        user = await accounts.create_user(conn, USER, any_name=True)
        await organizations.create(conn, OPERATOR, ORGANIZATION, owner=user, any_name=True)
    return await sign_in(database, USER)


@pytest.mark.parametrize("owner", [USER, ORGANIZATION])
async def test_what_they_own_works_in_every_kind_of_route(
    client: httpx2.AsyncClient, database: Database, dummy: Headers, owner: str
) -> None:
    for type_ in ("model", "dataset", "space", "kernel"):
        repo_id = await a_repo(client, dummy, f"{owner}/engine", type=type_)
        await a_push(database, repo_id, {"a.txt": b"hello"})
        prefix = "" if type_ == "model" else f"{type_}s/"
        api, page = f"/api/{type_}s/{owner}/engine", f"/{prefix}{owner}/engine"
        talk = {"title": "Hello", "description": ""}
        asked: list[tuple[str, str, Any]] = [
            ("GET", api, None),
            ("GET", f"{api}/tree/main", None),
            ("GET", f"{api}/refs", None),
            ("POST", f"{api}/branch/new", {}),
            ("POST", f"{api}/discussions", talk),
            ("GET", f"{page}/resolve/main/a.txt", None),
            ("GET", f"{page}.git/info/refs?service=git-upload-pack", None),
        ]
        for method, path, body in asked:
            response = await client.request(method, path, headers=dummy, json=body)
            assert response.status_code == 200, (method, path, response.text)
    bucket = await client.post(f"/api/buckets/{owner}/store", headers=dummy, json={})
    jobs = await client.get(f"/api/jobs/{owner}", headers=dummy)
    assert (bucket.status_code, jobs.status_code) == (200, 200)


async def test_they_are_shown_as_others_are(
    client: httpx2.AsyncClient, database: Database, dummy: Headers
) -> None:
    seen = (await client.get("/api/whoami-v2", headers=dummy)).json()
    watched = [{"type": "user", "name": USER}, {"type": "org", "name": ORGANIZATION}]
    hook = {"watched": watched, "domains": ["repo"], "url": "https://example.com/"}
    answers = [
        await client.get(f"/api/users/{USER}/overview"),
        await client.get(f"/api/organizations/{ORGANIZATION}/overview"),
        await client.get(f"/api/models?author={USER}"),
        await client.post("/api/settings/webhooks", headers=dummy, json=hook),
    ]

    assert (seen["name"], [each["name"] for each in seen["orgs"]]) == (USER, [ORGANIZATION])
    assert [answer.status_code for answer in answers] == [200] * 4


@pytest.mark.parametrize(
    "name", ["", "a/b", "a b", "..", ".a", "a.", "ä", "a\n", "x" * 97, "a" * 24, "settings", "Api"]
)
def test_a_name_that_no_address_can_hold_is_refused(name: str) -> None:
    with pytest.raises(InvalidName):
        check_imported_name(name)
