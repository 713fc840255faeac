"""Waiting for a person: how a command polls, and what it makes of each answer."""

import json
from urllib.parse import parse_qs

import pytest

from client.scripted_server import ScriptedResponse, scripted_server
from hublet.client import Hub, Refused
from hublet.client.device_login import CLIENT_ID, DeviceLogin, start, wait
from hublet.client.errors import LoginFailed
from hublet.core.clock import micros
from hublet.oauth.records import COMMAND_LINE_CLIENT_ID

LOGIN = DeviceLogin(user_code="BCDF-GHJK", address="http://hub.test/device", device_code="dc_1")
GRANTED = ScriptedResponse(
    body=json.dumps({"access_token": "hf_a", "refresh_token": "hf_r", "expires_in": 3600}).encode()
)


def refused(code: str, status: int = 400) -> ScriptedResponse:
    body = {"error": code, "error_description": f"It is {code}."}
    return ScriptedResponse(status=status, body=json.dumps(body).encode())


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long it would have waited each time."""
    waited: list[float] = []
    monkeypatch.setattr("hublet.client.device_login.pause", waited.append)
    return waited


def test_the_app_is_the_one_that_every_hub_knows() -> None:
    assert CLIENT_ID == COMMAND_LINE_CLIENT_ID


def test_a_login_begins_with_what_a_person_is_shown() -> None:
    told = {"device_code": "dc_1", "user_code": "BCDF-GHJK", "verification_uri": "http://x/device"}
    whole = told | {"verification_uri_complete": "http://x/y", "interval": 7, "expires_in": 60}
    with scripted_server(
        *(ScriptedResponse(body=json.dumps(each).encode()) for each in (told, whole))
    ) as hub:
        bare, full = (start(Hub(endpoint=hub.address)) for _ in range(2))

    assert (bare.address, bare.interval, bare.life) == ("http://x/device", 5, 900)
    assert (full.address, full.interval, full.life) == ("http://x/y", 7, 60)
    assert [(each.path, each.body) for each in hub.asked] == [
        ("/oauth/device", f"client_id={CLIENT_ID}".encode())
    ] * 2


def test_it_polls_until_somebody_allowed_it(waits: list[float]) -> None:
    pending, faulty = refused("authorization_pending"), ScriptedResponse(status=503)
    page = ScriptedResponse(body=b"<html>", kind="text/html")
    answers = (pending, refused("slow_down"), faulty, page, GRANTED)
    with scripted_server(*answers) as hub:
        tokens = wait(Hub(endpoint=hub.address), LOGIN)

    assert (tokens.access_token, tokens.refresh_token) == ("hf_a", "hf_r")
    assert tokens.expires_at is not None
    assert 3590 < tokens.expires_at - micros() // 1_000_000 <= 3600
    assert waits == [5, 5, 10, 10, 10]
    assert parse_qs(hub.asked[0].body.decode()) == {
        "grant_type": ["urn:ietf:params:oauth:grant-type:device_code"],
        "device_code": ["dc_1"],
        "client_id": [CLIENT_ID],
    }


@pytest.mark.parametrize(
    ("said", "error", "sentence"),
    [
        pytest.param(
            refused("access_denied"), LoginFailed, "The login was refused in the browser.",
            id="somebody refuses",
        ),
        pytest.param(
            refused("expired_token"), LoginFailed,
            "The code has expired: nobody allowed this login in time. Log in again.",
            id="nobody allows it",
        ),
        pytest.param(
            refused("invalid_client", 401), Refused, "It is invalid_client.", id="anything else"
        ),
    ],
)  # fmt: skip
def test_what_ends_it_is_told(
    said: ScriptedResponse, error: type[Exception], sentence: str
) -> None:
    with scripted_server(said) as hub, pytest.raises(error) as ended:
        wait(Hub(endpoint=hub.address), LOGIN)

    assert str(ended.value) == sentence


def test_no_token_and_no_code_is_shown() -> None:
    with scripted_server(GRANTED) as hub:
        tokens = wait(Hub(endpoint=hub.address), LOGIN)

    assert "dc_1" not in repr(LOGIN)
    assert "hf_" not in repr(tokens)
