"""Recorded requests of Okta and Entra ID, and the state they must lead to."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hublet.core.database import Database
from scim.directories import Directory, a_directory, a_person, role_of

FOLDER = Path(__file__).parent / "requests"


async def _replay(
    database: Database, directory: Directory, recording: str, *, name: str, account: str
) -> None:
    words = {"name": name}
    for step in json.loads((FOLDER / recording).read_text()):
        told = _filled(step, words)
        response = await directory.ask(
            told["method"], told["path"], **({"json": told["body"]} if "body" in told else {})
        )
        assert response.status_code == told["status"], (told["about"], response.text)
        body = response.json() if response.content else {}
        assert told.get("shown", {}).items() <= body.items(), (told["about"], body)
        if "keep" in told:
            words[told["keep"]] = body["id"]
        if "members" in told:
            shown = [member["value"] for member in body.get("members", [])]
            assert shown == told["members"], told["about"]
        if "role" in told:
            role = await role_of(database, directory.organization, account)
            assert role == told["role"], told["about"]


def _filled(step: dict[str, Any], words: dict[str, str]) -> dict[str, Any]:
    text = json.dumps(step)
    for word, value in words.items():
        text = text.replace(f"{{{word}}}", value)
    filled: dict[str, Any] = json.loads(text)
    return filled


@pytest.mark.parametrize("recording", ["okta.json", "entra.json"])
async def test_a_provider_keeps_an_invited_user(
    client: httpx2.AsyncClient, database: Database, recording: str
) -> None:
    await a_person(database, "ada", "ada@corp.test")
    directory = await a_directory(client, database)

    await _replay(database, directory, recording, name="ada@corp.test", account="ada")


@pytest.mark.parametrize("recording", ["okta.json", "entra.json"])
async def test_a_provider_keeps_a_managed_user(
    client: httpx2.AsyncClient, database: Database, recording: str
) -> None:
    directory = await a_directory(client, database, managed=True)

    await _replay(database, directory, recording, name="ada-lovelace", account="ada-lovelace")
