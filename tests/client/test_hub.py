"""The client against a server that says what a hub, or something else, might say."""

import json
import socket
from typing import Any

import pytest

from client.scripted_server import ScriptedResponse, scripted_server
from hublet import __version__
from hublet.client import ClientError, Hub, InvalidEndpoint, NotReachable, Refused, path_of
from hublet.client.hub import read_endpoint

TOKEN = "hf_secret"


def test_a_request_says_who_asks_and_what_for() -> None:
    with scripted_server(ScriptedResponse(body=b'{"a": 1}')) as hub:
        answer = Hub(endpoint=hub.address, token=TOKEN).post(
            "/api/things", {"name": "Größe"}, query={"on": True, "tag": ["a", "b"], "off": None}
        )

    [asked] = hub.asked
    assert answer == {"a": 1}
    assert (asked.method, asked.path) == ("POST", "/api/things?on=true&tag=a&tag=b")
    assert json.loads(asked.body) == {"name": "Größe"}
    assert asked.headers["authorization"] == f"Bearer {TOKEN}"
    assert asked.headers["content-type"] == "application/json"
    assert asked.headers["user-agent"] == f"hublet/{__version__}"


@pytest.mark.parametrize("method", ["get", "post", "put", "patch", "delete"])
def test_every_method_is_there(method: str) -> None:
    with scripted_server(ScriptedResponse()) as hub:
        getattr(Hub(endpoint=hub.address), method)("/api/things")

    [asked] = hub.asked
    assert (asked.method.lower(), asked.body) == (method, b"")
    assert "authorization" not in asked.headers
    assert asked.headers.get("content-length", "0") == "0"


def test_a_form_goes_without_the_token() -> None:
    with scripted_server(ScriptedResponse()) as hub:
        Hub(endpoint=hub.address, token=TOKEN).post_form("/oauth/token", {"a": "b c"})

    [asked] = hub.asked
    assert asked.body == b"a=b+c"
    assert asked.headers["content-type"] == "application/x-www-form-urlencoded"
    assert "authorization" not in asked.headers


def test_an_answer_without_a_body_is_nothing() -> None:
    with scripted_server(ScriptedResponse(status=204, body=b"")) as hub:
        assert Hub(endpoint=hub.address).delete("/api/things") is None


@pytest.mark.parametrize(
    ("said", "status", "sentence", "code"),
    [
        pytest.param(
            ScriptedResponse(status=404, body=b'{"error": "There is no webhook 1."}'),
            404, "There is no webhook 1.", None,
            id="the hub's own sentence",
        ),
        pytest.param(
            ScriptedResponse(status=404, body=b'{"error": "Gone."}', headers={"X-Error-Code": "RepoNotFound"}),
            404, "Gone.", "RepoNotFound",
            id="with a code",
        ),
        pytest.param(
            ScriptedResponse(status=400, body=b'{"error": "slow_down", "error_description": "Too fast."}'),
            400, "Too fast.", "slow_down",
            id="of an OAuth endpoint",
        ),
        pytest.param(
            ScriptedResponse(status=400, body=b'{"error": ["One.", "Two."]}'), 400, "One. Two.", None,
            id="several sentences",
        ),
        pytest.param(
            ScriptedResponse(status=502, body=b"<html>", kind="text/html", headers={"X-Error-Message": "Bad."}),
            502, "Bad.", None,
            id="only in a header",
        ),
        pytest.param(
            ScriptedResponse(status=400, body=b'{"error": "a\\u001b[31m\\nb"}'),
            400, "a\N{REPLACEMENT CHARACTER}[31m b", None,
            id="nothing moves the cursor",
        ),
    ],
)  # fmt: skip
def test_a_refusal_is_told_as_the_hub_tells_it(
    said: ScriptedResponse, status: int, sentence: str, code: str | None
) -> None:
    with scripted_server(said) as hub, pytest.raises(Refused) as refused:
        Hub(endpoint=hub.address, token=TOKEN).get("/api/things")

    error = refused.value
    assert (error.status, error.sentence, error.code) == (status, sentence, code)
    assert str(error) == sentence


def test_a_refusal_without_words_says_the_status() -> None:
    with (
        scripted_server(ScriptedResponse(status=502, body=b"[]")) as hub,
        pytest.raises(Refused) as refused,
    ):
        Hub(endpoint=hub.address).get("/")

    assert refused.value.sentence == f"The hub at {hub.address} answered 502 Bad Gateway."


def test_what_else_a_refusal_says_is_kept() -> None:
    said = ScriptedResponse(status=429, headers={"X-Request-Id": "req-1", "Retry-After": "12"})
    with scripted_server(said) as hub, pytest.raises(Refused) as refused:
        Hub(endpoint=hub.address).get("/")

    assert (refused.value.request_id, refused.value.retry_after) == ("req-1", 12)


def test_a_redirect_is_told_and_the_token_stays() -> None:
    with scripted_server(ScriptedResponse()) as other:
        target = f"{other.address}/elsewhere"
        said = ScriptedResponse(status=307, body=b"", headers={"Location": target})
        with scripted_server(said) as hub, pytest.raises(Refused) as refused:
            Hub(endpoint=hub.address, token=TOKEN).get("/")

    assert refused.value.sentence == (
        f"{hub.address} leads on to {target}: name that address instead."
    )
    assert other.asked == []


def test_pages_are_fetched_from_the_hub_that_was_asked() -> None:
    """The hub calls itself by another name, and only as many pages as are wanted are fetched."""
    link = {"Link": '<https://hub.test/api/things?cursor=2&x=y>; rel="next"'}
    with scripted_server(
        ScriptedResponse(body=b"[1, 2]", headers=link), ScriptedResponse(body=b"[3]")
    ) as hub:
        items = Hub(endpoint=hub.address, token=TOKEN).pages("/api/things", {"x": "y"})
        first = next(items)
        asked_so_far = len(hub.asked)
        rest = list(items)

    assert (first, asked_so_far, rest) == (1, 1, [2, 3])
    assert [each.path for each in hub.asked] == ["/api/things?x=y", "/api/things?cursor=2&x=y"]
    assert {each.headers["authorization"] for each in hub.asked} == {f"Bearer {TOKEN}"}


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        pytest.param(
            ScriptedResponse(body=b"<html>", kind="text/html"),
            "what answers sent text/html, not JSON",
            id="another server",
        ),
        pytest.param(
            ScriptedResponse(body=b"{", length=9), "the connection broke", id="cut in the middle"
        ),
    ],
)
def test_what_is_no_answer_of_a_hub_is_told(said: ScriptedResponse, reason: str) -> None:
    with scripted_server(said) as hub, pytest.raises(NotReachable) as failed:
        Hub(endpoint=hub.address, token=TOKEN).get("/")

    assert failed.value.reason == reason


def test_nobody_at_the_address_is_told_with_what_to_do() -> None:
    with pytest.raises(NotReachable) as failed:
        Hub(endpoint="http://127.0.0.1:1", token=TOKEN).get("/")

    assert str(failed.value) == (
        "No hub answers at http://127.0.0.1:1 (connection refused). Is it running? Start one "
        "with `hublet serve`, or name another one with --endpoint or HUBLET_ENDPOINT."
    )


def test_silence_is_not_waited_for_without_end() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(NotReachable) as failed:
            Hub(endpoint=address, timeout=0.05).get("/")

    assert failed.value.reason == "no answer in time"


def test_a_server_that_closes_at_once_is_told() -> None:
    with scripted_server() as hub, pytest.raises(NotReachable) as failed:
        Hub(endpoint=hub.address).get("/")

    assert failed.value.reason == "the connection broke"


@pytest.mark.parametrize("token", ["hf_secret\n", "hf_secret\x00", "hf_sécret"])
def test_a_token_that_is_none_is_not_sent_and_not_told(token: str) -> None:
    with pytest.raises(ClientError) as failed:
        Hub(endpoint="http://127.0.0.1:1", token=token).get("/")

    assert str(failed.value) == "The token has characters that no token has."


def test_a_hub_is_shown_without_its_token() -> None:
    assert TOKEN not in repr(Hub(endpoint="http://127.0.0.1:1", token=TOKEN))


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        ("https://hub.example.com", "https://hub.example.com"),
        (" http://127.0.0.1:8000/ ", "http://127.0.0.1:8000"),
        ("http://[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_an_endpoint_is_read(text: str, endpoint: str) -> None:
    assert read_endpoint(text) == endpoint


@pytest.mark.parametrize(
    "text",
    [
        "hub.example.com", "ftp://hub.example.com", "http://", "http://ada:secret@hub.test",
        "http://hub.test/path", "http://hub.test?x", "http://hub.test#x", "http://hub.test:x",
        "http://[::1", "http://hub.\x1btest",
    ],
)  # fmt: skip
def test_what_is_no_endpoint_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(InvalidEndpoint) as refused:
        read_endpoint(text)

    assert "secret" not in str(refused.value)


def test_names_in_a_path_stay_names() -> None:
    assert path_of("/api/{owner}/x", owner="a/b?c") == "/api/a%2Fb%3Fc/x"


def test_a_proxy_is_not_asked_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")

    with scripted_server(ScriptedResponse()) as hub:
        answer: Any = Hub(endpoint=hub.address).get("/")

    assert answer == {}


def test_a_proxy_is_asked_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted_server(ScriptedResponse(body=b'{"by": "proxy"}')) as proxy:
        monkeypatch.setenv("http_proxy", proxy.address)
        answer: Any = Hub(endpoint="http://hub.invalid").get("/api/things")

    assert answer == {"by": "proxy"}
    assert proxy.asked[0].path == "http://hub.invalid/api/things"
