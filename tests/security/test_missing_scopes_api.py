"""Tokens of people and of apps that hold every scope but the one that is needed."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import httpx2
import pytest

from community.collection_scenes import a_collection
from hublet.accounts.records import Organization, OrganizationPlan, Role
from hublet.core.database import Database
from hublet.tokens.records import Scope, with_included
from oauth.token_flows import an_app, bearer, tokens_of
from people import Headers, an_organization, sign_in
from repos.commits import file, header, ndjson
from repos.content import put
from repositories import a_repo
from search.quick_searches import in_step
from sql.datasets import CSV, a_dataset

COLLECTION = "/api/collections/{collection}"
OPEN = "/api/collections/{open}"
MODEL = "/api/models/ada/engine"
PUBLISHERS = f"{MODEL}/trusted-publishers"
ROWS = "/api/datasets/ada/rows"
ENGINES = "/api/organizations/engines"
PUBLISHER = {
    "provider": "github",
    "issuer": "https://token.actions.githubusercontent.com",
    "claims": {"repository": "acme/engine"},
}


class Route(NamedTuple):
    """A request, the answer to a token without the scope, and the one to a token with it alone."""

    method: str
    path: str
    body: dict[str, Any] | None = None
    without: int = 403
    # None: other tests see the answer, which takes a process.
    allowed: int | None = 200


def _read(*paths: str, allowed: int | None = 200) -> list[Route]:
    """Routes that hide from a token without the scope what is private."""
    return [Route("GET", path, without=404, allowed=allowed) for path in paths]


# In the order of the requests: what is deleted comes last.
NEEDED = {
    "collections to read": (Scope.read_collections, _read(COLLECTION)),
    "collections to write": (
        Scope.write_collections,
        [
            Route("POST", "/api/collections", {"title": "New", "namespace": "ada"}),
            Route("PATCH", COLLECTION, {"title": "Other"}),
            Route("POST", f"{COLLECTION}/items", {"item": {"type": "model", "id": "ada/open"}}),
            Route("DELETE", COLLECTION),
        ],
    ),
    "votes for collections": (
        Scope.write_discussions,
        [Route("POST", f"{OPEN}/upvote"), Route("DELETE", f"{OPEN}/upvote")],
    ),
    "trusted publishers": (
        Scope.manage_repos,
        [
            Route("GET", PUBLISHERS),
            Route("POST", PUBLISHERS, PUBLISHER, allowed=409),
            Route("GET", f"{PUBLISHERS}/{{publisher}}"),
            Route("PUT", f"{PUBLISHERS}/{{publisher}}", PUBLISHER),
            Route("DELETE", f"{PUBLISHERS}/{{publisher}}"),
        ],
    ),
    "rows of a dataset": (
        Scope.read_repos,
        [
            *_read(f"{ROWS}/first-rows", f"{ROWS}/schema", f"{ROWS}/statistics", allowed=None),
            *_read(f"{ROWS}/parquet/default/train/0.parquet", allowed=None),
            *_read(f"{ROWS}/parquet", f"{ROWS}/parquet/default/train", f"{ROWS}/sql-console/views"),
            Route("POST", f"{ROWS}/sql-console/query", {"sql": "FROM train"}, without=404),
        ],
    ),
    "what content states": (
        Scope.read_repos,
        _read(
            f"{ROWS}/leaderboard",
            f"{MODEL}/safetensors-metadata/main/model.safetensors",
            f"{MODEL}/notebook/main/tour.ipynb",
        ),
    ),
}
# What no scope reaches: it is for a token with the role write.
OF_ACCOUNTS = {
    "tools for assistants": [
        Route("GET", "/api/settings/mcp"),
        Route("PATCH", "/api/settings/mcp", {"builtInTools": []}),
    ],
    "networks": [
        Route("GET", f"{ENGINES}/settings/network-security"),
        Route("PATCH", f"{ENGINES}/settings/network-security", {"ipRanges": ["192.0.2.0/24"]}),
    ],
    "tokens of members": [
        Route("GET", f"{ENGINES}/settings/tokens"),
        Route("POST", f"{ENGINES}/settings/tokens/{{token}}/revoke"),
    ],
    "the audit log": [
        Route("GET", f"{ENGINES}/audit-log"),
        Route("GET", f"{ENGINES}/audit-log/export"),
    ],
    "domains and who may join": [
        Route("PUT", f"{ENGINES}/settings/email-domains/example.com", {"role": "read"}),
        Route("GET", f"{ENGINES}/settings/email-domains"),
        Route("DELETE", f"{ENGINES}/settings/email-domains/example.com"),
        Route("GET", f"{ENGINES}/join-requests"),
        Route("GET", f"{ENGINES}/invitations"),
    ],
}

TENSORS = b'{"wheel": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}'
WEIGHTS = len(TENSORS).to_bytes(8, "little") + TENSORS + bytes(4)
RESULT = "- dataset:\n    id: ada/open\n    task_id: spelling\n  value: 0.9\n"
NDJSON = {"content-type": "application/x-ndjson"}
FINE_GRAINED = "a fine-grained token"
KINDS = pytest.mark.parametrize("kind", [FINE_GRAINED, "an app's token"])


@pytest.fixture
async def engines(database: Database) -> Organization:
    return await an_organization(
        database,
        "engines",
        plan=OrganizationPlan.enterprise,
        members={"ada": Role.admin, "bob": Role.write},
    )


async def a_credential(
    client: httpx2.AsyncClient,
    database: Database,
    kind: str,
    scopes: Iterable[Scope],
    organization_ids: Sequence[str] = (),
) -> Headers:
    """Return the headers of a request by ada with these scopes, by her own token or by an app's."""
    if kind == FINE_GRAINED:
        return await sign_in(database, "ada", scopes=sorted(scopes))
    app = await an_app(database, scopes=sorted(scopes))
    given = await tokens_of(client, database, app, organization_ids=organization_ids)
    return bearer(given["access_token"])


def all_but(scope: Scope) -> set[Scope]:
    """Return every scope that does not include this one."""
    return {each for each in Scope if scope not in with_included(frozenset({each}))}


async def send(
    client: httpx2.AsyncClient, who: Headers, route: Route, names: Mapping[str, str]
) -> int:
    path = route.path.format_map(names)
    return (await client.request(route.method, path, headers=who, json=route.body)).status_code


async def private_things(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> dict[str, str]:
    """Make a collection, a dataset and a model of ada for her alone; return what routes name."""
    await a_repo(client, ada, "ada/open")
    await a_dataset(client, database, ada, {"train.csv": CSV}, private=True)
    model = await a_repo(client, ada, "ada/engine", private=True)
    await put(database, model, {"tour.ipynb": b"{}", "model.safetensors": WEIGHTS})
    publisher = await client.post(PUBLISHERS, headers=ada, json=PUBLISHER)
    collection = await a_collection(client, ada, private=True)
    return {
        "collection": collection["slug"],
        "open": (await a_collection(client, ada, "Open"))["slug"],
        "publisher": publisher.json()["id"],
    }


@KINDS
@pytest.mark.parametrize("group", NEEDED)
async def test_only_the_scope_that_is_needed_opens_a_route(
    client: httpx2.AsyncClient, database: Database, ada: Headers, group: str, kind: str
) -> None:
    scope, routes = NEEDED[group]
    names = await private_things(client, database, ada)
    without = await a_credential(client, database, kind, all_but(scope))
    allowed = await a_credential(client, database, kind, {scope})

    for route in routes:
        assert await send(client, without, route, names) == route.without, route
        if route.allowed is not None:
            assert await send(client, allowed, route, names) == route.allowed, route


@KINDS
@pytest.mark.parametrize("group", OF_ACCOUNTS)
async def test_no_scope_opens_what_is_of_the_account(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    engines: Organization,
    group: str,
    kind: str,
) -> None:
    await sign_in(database, "bob")
    listed = (await client.get(f"{ENGINES}/settings/tokens", headers=ada)).json()
    names = {"token": next(each["_id"] for each in listed if each["user"] == "bob")}
    scoped = await a_credential(client, database, kind, Scope, [engines.id])

    for route in OF_ACCOUNTS[group]:
        assert await send(client, scoped, route, names) == route.without, route
        assert await send(client, ada, route, names) == route.allowed, route


@KINDS
async def test_private_texts_and_results_are_left_out_without_the_scope(
    client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str
) -> None:
    await a_repo(client, ada, "ada/open", type="dataset")
    await a_repo(client, ada, "ada/engine", private=True)
    files = ndjson(header(), file("README.md", "tide"), file(".eval_results/x.yaml", RESULT))
    await client.post(f"{MODEL}/commit/main", headers=ada | NDJSON, content=files)
    thread = {"title": "Sea", "description": "tide"}
    await client.post(f"{MODEL}/discussions", headers=ada, json=thread)
    await in_step(database)
    without = await a_credential(client, database, kind, all_but(Scope.read_repos))
    reading = await a_credential(client, database, kind, {Scope.read_repos})

    async def count(path: str, who: Headers) -> int:
        response = await client.get(path, headers=who)
        assert response.status_code == 200, response.text
        return len(response.json())

    for path, seen in (
        ("/api/search/full-text?q=tide", 2),
        ("/api/datasets/ada/open/leaderboard", 1),
        ("/api/models?author=ada", 1),
    ):
        assert [await count(path, who) for who in (without, reading)] == [0, seen], path
