"""Names without an owner: no repository has one, so every route says that there is none."""

import re

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute

from hublet.core.pages import PageRoute
from hublet.repos.auth import ANY_REPO, GIT_REPO, ROOT_REPO
from people import Headers
from repositories import a_repo

GONE = (404, "RepoNotFound", {"error": "Repository not found"})


def routes_below(app: FastAPI, prefix: str) -> list[tuple[str, str]]:
    """The methods and the ends of all addresses that begin with the name of a repository."""
    return [
        (method, re.sub(r"{[^}]*}", "x", route.path.removeprefix(prefix)))
        for route in app.routes
        # Pages are for people, who get a page.
        if isinstance(route, APIRoute) and not isinstance(route, PageRoute)
        if route.path.startswith(prefix + "/")
        for method in route.methods
    ]


def told(response: httpx2.Response) -> tuple[int, str, object]:
    return response.status_code, response.headers["x-error-code"], response.json()


async def test_every_route_of_a_repository_says_that_there_is_none(
    client: httpx2.AsyncClient, app: FastAPI, ada: Headers
) -> None:
    ends = routes_below(app, GIT_REPO) + routes_below(app, ANY_REPO)

    assert {end.split("/")[1] for _, end in ends} >= {"like", "tree", "commits", "discussions"}
    for method, end in ends:
        response = await client.request(method, f"/api/models/gpt2{end}", headers=ada)
        assert told(response) == GONE, (method, end)


async def test_so_does_every_route_at_the_root(
    client: httpx2.AsyncClient, app: FastAPI, ada: Headers
) -> None:
    ends = routes_below(app, ROOT_REPO)

    assert {end.split("/")[1] for _, end in ends} >= {"resolve", "raw", "info", "git-upload-pack"}
    for method, end in ends:
        if method in {"GET", "POST"}:
            response = await client.request(method, f"/gpt2{end}", headers=ada)
            assert told(response) == GONE, (method, end)


@pytest.mark.parametrize("kind", ["models", "datasets", "spaces", "kernels"])
@pytest.mark.parametrize("end", ["", "/tree/main", "/commits/main", "/refs", "/discussions"])
async def test_nobody_needs_a_token_to_be_told(
    client: httpx2.AsyncClient, kind: str, end: str
) -> None:
    assert told(await client.get(f"/api/{kind}/gpt2{end}")) == GONE


async def test_a_wrong_token_is_told_first(client: httpx2.AsyncClient) -> None:
    wrong = {"Authorization": "Bearer hf_wrong"}

    read = await client.get("/api/models/gpt2/tree/main", headers=wrong)
    written = await client.post("/api/models/gpt2/like")

    assert (read.status_code, written.status_code) == (401, 401)


async def test_downloads_of_every_type_say_so(client: httpx2.AsyncClient) -> None:
    for path in ("gpt2", "datasets/gpt2", "spaces/gpt2", "kernels/gpt2"):
        assert told(await client.get(f"/{path}/resolve/main/a/b.txt")) == GONE
        assert (await client.head(f"/{path}/resolve/main/a.txt")).status_code == 404


async def test_a_repository_that_is_called_like_an_end_is_found(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    for name in ("tree", "discussions", "resolve"):
        await a_repo(client, ada, f"ada/{name}")

        assert (await client.get(f"/api/models/ada/{name}")).status_code == 200
        assert (await client.get(f"/api/models/ada/{name}/refs")).status_code == 200
        assert (await client.get(f"/api/models/ada/{name}/discussions")).status_code == 200
        file = await client.get(f"/ada/{name}/resolve/main/.gitattributes")
        assert file.status_code == 200


@pytest.mark.parametrize("path", ["buckets/store", "buckets/ada/store", "containers/store"])
async def test_a_bucket_that_is_missing_cannot_be_deleted(
    client: httpx2.AsyncClient, ada: Headers, path: str
) -> None:
    assert told(await client.delete(f"/api/{path}", headers=ada)) == GONE


async def test_other_addresses_are_still_nothing(client: httpx2.AsyncClient) -> None:
    for path in ("/gpt2/nothing/main", "/api/models/gpt2/nothing/main", "/api/nothing/tree/main"):
        assert "x-error-code" not in (await client.get(path)).headers
