"""Booleans and times of requests are taken to the letter, everywhere."""

from collections.abc import Iterator
from inspect import signature
from typing import Any, get_args

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.params import Depends

from community.discussions import PATH, a_discussion
from hublet.core.schema import Schema
from people import Headers
from repositories import a_repo

NO_BOOLEANS: list[Any] = ["true", "yes", "1", 1, 0, 1.0, None, [], {}]
NO_TIMES: list[Any] = [5, 5.5, "5", "1763171096", "1763171096.5", "-1", "now", "", True, [], {}]

VOLUME = {"type": "bucket", "source": "ada/store", "mountPath": "/data"}
WEBHOOK: dict[str, Any] = {"watched": [{"type": "user", "name": "ada"}], "domains": ["repo"]}


def job(**fields: Any) -> dict[str, Any]:
    return {"dockerImage": "ubuntu", "command": ["true"], "flavor": "cpu-basic"} | fields


def body_schemas(app: FastAPI) -> Iterator[type[Schema]]:
    """Yield the schemas of the bodies of all routes."""
    for route in app.routes:
        endpoint = getattr(route, "endpoint", None)
        parameters = signature(endpoint).parameters.values() if endpoint else ()
        for annotation in [each.annotation for each in parameters]:
            parts = get_args(annotation) or (annotation,)
            if not any(isinstance(part, Depends) for part in parts):
                yield from (p for p in parts if isinstance(p, type) and issubclass(p, Schema))


def loose_booleans(core_schema: Any) -> Iterator[Any]:
    """Yield the booleans of a pydantic schema that take words and numbers."""
    if isinstance(core_schema, dict):
        if core_schema.get("type") == "bool" and not core_schema.get("strict"):
            yield core_schema
        parts: list[Any] = list(core_schema.values())
    else:
        parts = list(core_schema) if isinstance(core_schema, list | tuple) else []
    for part in parts:
        yield from loose_booleans(part)


async def test_no_body_of_any_route_takes_words_or_numbers_for_booleans(app: FastAPI) -> None:
    schemas = set(body_schemas(app))
    assert len(schemas) > 50
    for schema in schemas:
        schema.model_rebuild(force=True)
    loose = [s.__name__ for s in schemas if any(loose_booleans(s.__pydantic_core_schema__))]
    assert loose == []


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("POST", "/api/notifications/mark-as-read", {"read": ...}, "read"),
        (
            "PATCH",
            "/api/settings/notifications",
            {"notifications": {"job_status": ...}},
            "notifications.job_status",
        ),
        ("POST", "/api/settings/webhooks", WEBHOOK | {"job": job(ssh={"enabled": ...})}, "job"),
        (
            "POST",
            "/api/settings/webhooks",
            WEBHOOK | {"job": job(volumes=[VOLUME | {"readOnly": ...}])},
            "job",
        ),
        ("POST", "/api/jobs/ada", job(ssh={"enabled": ...}), "ssh.enabled"),
        (
            "POST",
            "/api/scheduled-jobs/ada",
            {"schedule": "@daily", "jobSpec": job(), "suspend": ...},
            "suspend",
        ),
        ("POST", PATH, {"title": "Does it run?", "pullRequest": ...}, "pullRequest"),
        ("POST", f"{PATH}/1/pin", {"pinned": ...}, "pinned"),
        ("POST", f"{PATH}/1/ignore", {"ignore": ...}, "ignore"),
        ("POST", "/api/repos/create", {"name": "loom", "private": ...}, "private"),
    ],
)
async def test_a_boolean_is_true_or_false(
    client: httpx2.AsyncClient,
    ada: Headers,
    method: str,
    path: str,
    body: dict[str, Any],
    field: str,
) -> None:
    await a_repo(client, ada, "ada/engine")
    await a_discussion(client, ada)

    for value in NO_BOOLEANS:
        sent = put_in(body, value)
        refused = await client.request(method, path, headers=ada, json=sent)
        assert refused.status_code == 400, (value, refused.text)
        assert field in refused.json()["error"]
        assert "must be true or false" in refused.json()["error"], value


def put_in(body: Any, value: Any) -> Any:
    """Return the body with the value where `...` stands."""
    if isinstance(body, dict):
        return {name: put_in(part, value) for name, part in body.items()}
    if isinstance(body, list):
        return [put_in(part, value) for part in body]
    return value if body is ... else body


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        (
            "PATCH",
            "/api/settings/notifications",
            {"notifications": {"product_updates_after": ...}},
            "notifications.product_updates_after",
        ),
        ("POST", "/api/settings/tokens", {"name": "ci", "expiresAt": ...}, "expiresAt"),
        (
            "POST",
            "/api/papers/index",
            {"arxivId": "2401.12345", "title": "Notes", "publishedAt": ...},
            "publishedAt",
        ),
    ],
)
async def test_a_time_in_a_body_is_written_out(
    client: httpx2.AsyncClient,
    ada: Headers,
    method: str,
    path: str,
    body: dict[str, Any],
    field: str,
) -> None:
    for value in NO_TIMES:
        refused = await client.request(method, path, headers=ada, json=put_in(body, value))
        assert refused.status_code == 400, (value, refused.text)
        assert (
            f"{field} must be a timestamp such as 2026-11-15T01:44:56Z."
            in (refused.json()["error"])
        )


@pytest.mark.parametrize("method", ["GET", "DELETE", "POST"])
async def test_a_time_in_a_query_is_written_out(
    client: httpx2.AsyncClient, ada: Headers, method: str
) -> None:
    path = "/api/notifications/mark-as-read" if method == "POST" else "/api/notifications"
    for value in NO_TIMES:
        if isinstance(value, str):
            refused = await client.request(
                method, path, headers=ada, params={"lastUpdate": value}, **_body(method)
            )
            assert (refused.status_code, refused.json()) == (
                400,
                {"error": "lastUpdate must be a timestamp such as 2026-11-15T01:44:56Z."},
            )


def _body(method: str) -> dict[str, Any]:
    return {"json": {}} if method == "POST" else {}


async def test_booleans_of_a_query_are_words(client: httpx2.AsyncClient, ada: Headers) -> None:
    await a_repo(client, ada, "ada/engine")
    await a_discussion(client, ada)

    # The public client sends 1.
    for value in ("1", "true", "false"):
        assert (await client.get(f"{PATH}/1", params={"diff": value})).status_code == 200
