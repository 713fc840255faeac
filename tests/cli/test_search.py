"""The command that searches, against a running hub."""

import json
import time

import pytest

from cli.hublet_command import Hublet, Outcome
from patience import SOON_SECONDS
from processes import Server

pytestmark = pytest.mark.full


def found_soon(ask: Hublet, *arguments: str) -> Outcome:
    """Search until something is found: a worker writes the index after each change."""
    give_up = time.monotonic() + SOON_SECONDS
    while not (found := ask("search", *arguments)).out.strip() and time.monotonic() < give_up:
        time.sleep(0.1)
    return found


def test_names_and_texts_are_found(ask: Hublet, server: Server) -> None:
    with server.client(server.token) as client:
        made = client.post("/api/repos/create", json={"name": "zeppelin", "type": "model"})
        name = made.json()["name"]
        talk = {"title": "Altitude", "description": "How high does the gondola go?"}
        assert client.post(f"/api/models/{name}/discussions", json=talk).status_code == 200

    named = found_soon(ask, "zeppelin", "--type", "model")
    text = found_soon(ask, "gondola", "high", "--full-text", "--type", "discussion")
    quiet = ask("search", "zeppelin", "--type", "model", "--quiet", "--namespace", "nobody")
    data = json.loads(ask("search", "gondola", "--full-text", "--json").out)

    assert named.out.split() == ["type", "name", "model", name]
    assert text.out.split()[:5] == ["type", "title", "text", "discussion", "Altitude"]
    assert quiet.out == ""
    assert (data[0]["num"], data[0]["type"]) == (1, "discussion")


def test_what_makes_no_sense_is_refused(ask: Hublet) -> None:
    assert "--type discussion is not possible" in ask("search", "steam", "--type", "discussion").err
    assert (
        "--type user is not possible with --full-text"
        in ask("search", "a", "--full-text", "--type", "user").err
    )
    assert "--limit is at most 20" in ask("search", "steam", "--limit", "21").err
    assert "leave it out" in ask("search", "a", "--full-text", "--namespace", "ada").err
