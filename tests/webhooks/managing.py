"""Webhooks for tests, one line each, through the API."""

from typing import Any

import httpx2

from people import Headers

PATH = "/api/settings/webhooks"
URL = "https://example.com/hook"
WATCHED = [{"type": "user", "name": "ada"}]
BODY = {"watched": WATCHED, "url": URL}
JOB_ID = "0123456789abcdef01234567"
IMAGE_JOB = {"dockerImage": "ubuntu", "flavor": "cpu-basic"}


async def create(
    client: httpx2.AsyncClient, headers: Headers, *, path: str = PATH, **body: Any
) -> Any:
    """Return a new webhook of a user called ada; name only what the test is about."""
    target = {} if {"job", "jobSourceId"} & body.keys() else {"url": URL}
    response = await client.post(path, headers=headers, json={"watched": WATCHED} | target | body)
    assert response.status_code == 200, response.text
    return response.json()["webhook"]


async def update(client: httpx2.AsyncClient, headers: Headers, webhook_id: str, **body: Any) -> Any:
    response = await client.post(f"{PATH}/{webhook_id}", headers=headers, json=body)
    assert response.status_code == 200, response.text
    return response.json()["webhook"]


async def show(client: httpx2.AsyncClient, headers: Headers, webhook_id: str) -> Any:
    response = await client.get(f"{PATH}/{webhook_id}", headers=headers)
    assert response.status_code == 200, response.text
    return response.json()["webhook"]


async def refusal(
    client: httpx2.AsyncClient, headers: Headers, body: Any, *, path: str = PATH
) -> tuple[int, Any]:
    """Return the status and the sentence with which a body is refused."""
    response = await client.post(path, headers=headers, json=body)
    return response.status_code, response.json().get("error")
