"""Unexpected errors are rendered in the form of SCIM."""

from typing import NoReturn

import httpx2
import pytest
from fastapi import FastAPI

from hublet.app import with_edge
from hublet.core.database import Database
from hublet.scim.users import store
from scim.directories import a_directory, error_body


async def test_an_unexpected_error_has_the_form_of_scim(
    app: FastAPI, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> NoReturn:
        raise RuntimeError("hf_secret detail")

    monkeypatch.setattr(store, "count_of", broken)

    # Not held against the description: no answer of ours promises a 500.
    transport = httpx2.ASGITransport(app=with_edge(app))
    async with httpx2.AsyncClient(transport=transport, base_url="http://hub.test") as client:
        directory = await a_directory(client, database)
        response = await directory.ask("GET", "/Users")

    assert response.headers["content-type"] == "application/scim+json"
    assert response.status_code == 500
    assert response.json() == error_body(
        500,
        "Something went wrong on our side. Tell the operator the request id "
        f"{response.headers['x-request-id']}.",
    )
