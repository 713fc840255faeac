"""A private repository and one that does not exist: the same response after the same statements."""

from dataclasses import replace
from typing import Any

import httpx2
import pytest

from hublet.accounts.records import Role
from hublet.core.config import Settings
from hublet.core.database import Database
from people import Headers, an_organization, sign_in
from repositories import a_push, a_repo, a_resource_group
from statements import Statements

# Of the same length, as a guess at a name would be.
HIDDEN, MISSING = "secret", "absent"
OID = "a" * 64
COMMIT = b'{"key": "header", "value": {"summary": "Try", "description": ""}}\n'
FILES = {"files": [{"path": "a.txt", "size": 1, "sample": ""}]}
OBJECTS = {"operation": "download", "objects": [{"oid": OID, "size": 1}]}
TALK = {"title": "Hello", "description": ""}
EVERYBODY = {"user": "ada", "status": "accepted"}

# With the name of an owner and of a repository; what has a body is sent with it.
ROUTES: dict[str, Any] = {
    "GET /api/models/{}": None,
    "GET /api/models/{}?expand=likes": None,
    "GET /api/models/{}/revision/main": None,
    "GET /api/models/{}/auth-check": None,
    "GET /api/models/{}/auth-check/write": None,
    "GET /api/models/{}/tree/main": None,
    "GET /api/models/{}/treesize/main": None,
    "GET /api/models/{}/commits/main": None,
    "POST /api/models/{}/paths-info/main": {"paths": ["a.txt"]},
    "GET /api/models/{}/refs": None,
    "GET /{}/resolve/main/a.txt": None,
    "HEAD /{}/resolve/main/a.txt": None,
    "GET /{}/raw/main/a.txt": None,
    "GET /api/resolve-cache/models/{}/main/a.txt": None,
    "GET /{}.git/info/refs?service=git-upload-pack": None,
    "GET /{}.git/info/refs?service=git-receive-pack": None,
    "POST /{}.git/git-upload-pack": b"0000",
    "POST /{}.git/git-receive-pack": b"0000",
    "POST /{}.git/info/lfs/objects/batch": OBJECTS,
    "GET /{}.git/info/lfs/locks": None,
    "GET /api/models/{}/lfs-files": None,
    "DELETE /api/models/{}/lfs-files/" + OID: None,
    "POST /api/models/{}/preupload/main": FILES,
    "POST /api/models/{}/commit/main": COMMIT,
    "POST /api/models/{}/branch/new": {},
    "DELETE /api/models/{}/branch/new": None,
    "POST /api/models/{}/tag/main": {"tag": "v1"},
    "DELETE /api/models/{}/tag/v1": None,
    "POST /api/models/{}/super-squash/main": {},
    "POST /api/models/{}/like": None,
    "DELETE /api/models/{}/like": None,
    "GET /api/models/{}/likers": None,
    "PUT /api/models/{}/settings": {"private": False},
    "GET /api/models/{}/resource-group": None,
    "POST /api/models/{}/resource-group": {"resourceGroupId": None},
    "POST /{}/ask-access": None,
    "POST /api/models/{}/user-access-request/cancel": None,
    "GET /api/models/{}/user-access-request/pending": None,
    "POST /api/models/{}/user-access-request/handle": EVERYBODY,
    "GET /api/models/{}/discussions": None,
    "POST /api/models/{}/discussions": TALK,
    "GET /api/models/{}/discussions/1": None,
    "DELETE /api/models/{}/discussions/1": None,
    "POST /api/models/{}/discussions/1/comment": {"comment": "Hello"},
    "POST /api/models/{}/discussions/1/ignore": {"ignore": True},
    "POST /api/models/{}/discussions/1/merge": None,
    "GET /api/buckets/{}": None,
    "DELETE /api/buckets/{}": None,
    "PUT /api/buckets/{}/settings": {"private": False},
    "GET /api/buckets/{}/tree": None,
    "GET /buckets/{}/resolve/a.txt": None,
    "PUT /api/buckets/{}/files/a.txt": b"hello",
    "DELETE /api/buckets/{}/files/a.txt": None,
    "POST /api/buckets/{}/paths-info": {"paths": ["a.txt"]},
    "POST /api/repos/move": {"fromRepo": "{}", "toRepo": "eve/mine"},
    "DELETE /api/repos/delete": {"name": "{}"},
}
PEOPLE = (
    "nobody",
    "a stranger",
    "an app that may not read",
    "a member who is not in the group",
)
# What differs between any two responses.
_OF_ONE_RESPONSE = {"x-request-id", "ratelimit", "date"}


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Every request looks up its token: whether one is remembered depends on the time."""
    return replace(settings, tokens=replace(settings.tokens, cache_seconds=0))


@pytest.fixture
async def callers(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> dict[str, Headers]:
    """People who may not see ada's and works' private repositories, which are not small."""
    works = await an_organization(database, "works", members={"ada": Role.admin, "bob": Role.write})
    group = await a_resource_group(database, works)
    for owner, more in (("ada", {}), ("works", {"resourceGroupId": group.id})):
        body = {"private": True} | more
        repo_id = await a_repo(client, ada, f"{owner}/{HIDDEN}", **body)
        card = {"license": "mit", "notes": ["x" * 1000] * 20}
        await a_push(database, repo_id, {"a.txt": b"hello"}, card=card, tags=["x"] * 100)
        response = await client.post(f"/api/buckets/{owner}/{HIDDEN}", headers=ada, json=body)
        assert response.status_code == 200, response.text
    await client.post(f"/api/models/ada/{HIDDEN}/discussions", headers=ada, json=TALK)
    signed_in = [
        await sign_in(database, "eve"),
        await sign_in(database, "ada", scopes=["profile"]),
        await sign_in(database, "bob"),
    ]
    return dict(zip(PEOPLE, [{}, *signed_in], strict=True))


async def ask(
    client: httpx2.AsyncClient, route: str, full_name: str, headers: Headers
) -> tuple[Any, ...]:
    """Return all of a response but the name, which stands in it, and what is of one response."""
    method, _, path = route.partition(" ")
    body = ROUTES[route]
    if isinstance(body, bytes):
        sent: dict[str, Any] = {"content": body}
    else:
        named = {k: full_name if v == "{}" else v for k, v in (body or {}).items()}
        sent = {} if body is None else {"json": named}
    response = await client.request(method, path.format(full_name), headers=headers, **sent)
    kept = [(k, v) for k, v in response.headers.items() if k not in _OF_ONE_RESPONSE]
    return (
        response.status_code,
        *((name, value.replace(full_name, "the name")) for name, value in kept),
        response.text.replace(full_name, "the name"),
    )


@pytest.mark.parametrize("who", PEOPLE)
async def test_nothing_tells_a_private_repository_from_a_missing_one(
    client: httpx2.AsyncClient,
    callers: dict[str, Headers],
    statements: Statements,
    who: str,
) -> None:
    headers = callers[who]
    owner = "works" if "member" in who else "ada"
    for route in ROUTES:
        seen = []
        for name in (HIDDEN, MISSING):
            statements.begin()
            answer = await ask(client, route, f"{owner}/{name}", headers)
            seen.append((answer, statements.noted))
        assert seen[0] == seen[1], route
        assert seen[0][0][0] in {401, 403, 404}, route
        if headers:
            assert seen[0][1], route
