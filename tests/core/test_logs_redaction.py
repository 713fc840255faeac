import time
from typing import Any

import pytest

from hublet.core.logs import redact, redact_text

TOKEN = "hf_" + "a1B2" * 12


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        pytest.param(f"sent {TOKEN}.", "sent hf_***.", id="a token"),
        pytest.param(f"hf_oauth_{'a' * 49}", "hf_***", id="a token with its kind"),
        pytest.param(f"q%3D{TOKEN} x%20{TOKEN}", "q%3Dhf_*** x%20hf_***", id="an encoded URL"),
        pytest.param(f"old_{TOKEN}", "old_hf_***", id="a token after an underscore"),
        pytest.param("hf_hub_download", "hf_hub_download", id="a short word is no token"),
        pytest.param("shelf_" + "a" * 30, "shelf_" + "a" * 30, id="a longer word is no token"),
        pytest.param("Bearer my.own=", "Bearer ***", id="a bearer token of any form"),
        pytest.param("'bearer a1', more", "'bearer ***', more", id="a bearer token in quotes"),
        pytest.param("Bearer%20a1b2", "Bearer%20***", id="an encoded bearer token"),
        pytest.param("basic YWRhOmxvdmU=", "basic ***", id="basic credentials"),
        pytest.param("Bearer token-of-ada", "Bearer ***", id="a token that begins like a word"),
        pytest.param(
            "A bearer token is needed.", "A bearer token is needed.", id="prose stays readable"
        ),
        pytest.param(
            "at https://ada:pa@ss@hub/x and", "at https://ada:***@hub/x and", id="a URL password"
        ),
        pytest.param("redis://:pw@cache", "redis://:***@cache", id="a URL password without user"),
        pytest.param("http://hub:80/@ada", "http://hub:80/@ada", id="a port is no password"),
        pytest.param("Cookie: a=1; b=2\nHost: x", "Cookie: ***\nHost: x", id="a header line"),
        pytest.param("Authorization: Digest a", "Authorization: ***", id="any authorization"),
        pytest.param("/?code=1&access_token=a&b=c", "/?code=1&access_token=***&b=c", id="a query"),
        pytest.param("Login(password='a b', n=1)", "Login(password=***, n=1)", id="a call"),
        pytest.param("{'client_secret': 'a\\'b'}", "{'client_secret': ***}", id="a dictionary"),
        pytest.param('{"accessToken": "a\\"b"}', '{"accessToken": ***}', id="a JSON text"),
        pytest.param("{'password': b'a'}", "{'password': ***}", id="bytes"),
        pytest.param("The token: it is bad", "The token: it is bad", id="a colon in prose"),
        pytest.param("nothing to hide", "nothing to hide", id="no secret"),
    ],
)
def test_secrets_in_text_are_masked(text: str, masked: str) -> None:
    assert redact_text(text) == masked


@pytest.mark.parametrize(
    ("event", "masked"),
    [
        pytest.param({"password": "a"}, {"password": "***"}, id="a key"),
        pytest.param({"Set-Cookie": "a"}, {"Set-Cookie": "***"}, id="a header"),
        pytest.param({"hubSecretKey": [1]}, {"hubSecretKey": "***"}, id="part of a key"),
        pytest.param({"token": None}, {"token": None}, id="a secret that is not there"),
        pytest.param(
            {"token_id": "a", "token_count": 1, "secret_name": TOKEN},
            {"token_id": "a", "token_count": 1, "secret_name": "hf_***"},
            id="what a secret is called by",
        ),
        pytest.param(
            {"a": {"b": [{"authorization": "x", "n": 1}], "c": TOKEN}},
            {"a": {"b": [{"authorization": "***", "n": 1}], "c": "hf_***"}},
            id="nested values",
        ),
        pytest.param(
            {"headers": [(b"cookie", b"a"), (b"host", b"hub"), (b"x", TOKEN.encode())]},
            {"headers": [["cookie", "***"], ["host", "hub"], ["x", "hf_***"]]},
            id="headers as pairs of bytes",
        ),
        pytest.param({"a": {TOKEN: 1}}, {"a": {"hf_***": 1}}, id="a token as a key"),
        pytest.param(
            {"a": True, "b": 1, "c": 0.5, "d": None, "e": {"x"}},
            {"a": True, "b": 1, "c": 0.5, "d": None, "e": ["x"]},
            id="plain values stay",
        ),
        pytest.param(
            {"error": ValueError(f"no {TOKEN}")},
            {"error": "ValueError('no hf_***')"},
            id="an exception as a value",
        ),
    ],
)
def test_secrets_in_records_are_masked(event: dict[str, Any], masked: dict[str, Any]) -> None:
    assert redact(None, "info", event) == masked


def test_a_record_that_contains_itself_is_cut() -> None:
    loop: dict[str, Any] = {"password": "hunter2"}
    loop["loop"] = loop

    text = str(redact(None, "info", loop))

    assert len(text) < 500
    assert "hunter2" not in text


@pytest.mark.parametrize(
    "part", ["token", "token=", "password='", "a.", "://", "://a:", "bearer ", "hf_", "%20", "@"]
)
def test_a_long_text_from_a_stranger_costs_little(part: str) -> None:
    text = part * (200_000 // len(part))

    begin = time.thread_time()
    redact_text(text)

    assert time.thread_time() - begin < 1
