"""Client ID metadata documents without the network: addresses, contents, and how long they last."""

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hublet.oauth.client_metadata.document import (
    MAX_REDIRECT_URIS,
    ClientDocument,
    broken_client_id_rule,
    read_document,
)
from hublet.oauth.client_metadata.fetcher import freshness
from hublet.oauth.errors import DocumentRefused
from hublet.tokens.records import ALL_SCOPES, Scope

HUB = "https://hub.example"
LOCAL_HUB = "http://localhost:8000"
SITE = "https://app.example/.well-known/oauth-cimd"


@pytest.mark.parametrize(
    "address",
    [
        SITE,
        "https://claude.example/oauth/client-metadata",
        "https://app.example:443/a",
        "https://app.example:1024/a",
        "https://app.example:65535/a",
        "https://app.example/a?version=2",
        "https://app.example/a..b/...",
        "https://[2001:db8::1]/a",
        f"https://app.example/{'x' * 480}",
    ],
)
def test_an_address_that_may_be_a_client_id(address: str) -> None:
    assert broken_client_id_rule(address, issuer=HUB) is None


_CHARACTERS = "An address has only the characters of RFC 3986, and no fragment (#)."
_HTTPS = "An address begins with https://."
_HOST = "An address begins with https:// and a host, without a user name."
_PATH = "A client id that is an address needs a path, as in /.well-known/oauth-cimd."
_DOTS = "A client id that is an address has no . and .. in its path."
_PORT = "The port of an address is 443, or 1024 and above."
_LENGTH = "An address has at most 500 characters."


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        pytest.param("http://app.example/a", _HTTPS, id="plain http"),
        pytest.param("http://localhost/a", _HTTPS, id="loopback, but the hub is not"),
        pytest.param("https://app.example", _PATH, id="no path"),
        pytest.param("https://app.example/", _PATH, id="the root alone"),
        pytest.param("https://app.example/?a=b", _PATH, id="the root with a query"),
        pytest.param("https://app.example/a#b", _CHARACTERS, id="a fragment"),
        pytest.param("https://u@app.example/a", _HOST, id="a user name"),
        pytest.param("https://u:p@app.example/a", _HOST, id="a password"),
        pytest.param("https://app.example/a/../b", _DOTS, id="two dots"),
        pytest.param("https://app.example/./b", _DOTS, id="one dot"),
        pytest.param("https://app.example/a/..", _DOTS, id="two dots at the end"),
        pytest.param("https://app.example/%2e%2E/b", _DOTS, id="encoded dots"),
        pytest.param("https://app.example/.%2e/b", _DOTS, id="one of them encoded"),
        pytest.param("https://app.example/a b", _CHARACTERS, id="a space"),
        pytest.param("https://app.example/a\n", _CHARACTERS, id="a line feed"),
        pytest.param("https://app.example/a\x7f", _CHARACTERS, id="DEL"),
        pytest.param("https://app.example\\a", _CHARACTERS, id="a backslash"),
        pytest.param("https://ä.example/a", _CHARACTERS, id="not ASCII"),
        pytest.param(f"https://app.example/{'x' * 481}", _LENGTH, id="too long"),
        pytest.param("HTTPS://app.example/a", _HOST, id="a scheme in capitals"),
        pytest.param("https:///a", _HOST, id="no host"),
        pytest.param("https://app.example:/a", _HOST, id="an empty port"),
        pytest.param("https://app.example:0443/a", _HOST, id="a zero before the port"),
        pytest.param("https://app.example:22/a", _PORT, id="a port of the machine"),
        pytest.param("https://app.example:1023/a", _PORT, id="the last of them"),
        pytest.param("https://app.example:65536/a", _PORT, id="no port"),
    ],
)
def test_an_address_that_is_no_client_id(address: str, reason: str) -> None:
    assert broken_client_id_rule(address, issuer=HUB) == reason


def test_a_hub_on_loopback_takes_documents_on_loopback() -> None:
    assert broken_client_id_rule("http://127.0.0.1:3000/a", issuer=LOCAL_HUB) is None
    assert broken_client_id_rule("http://app.example/a", issuer=LOCAL_HUB) == _HTTPS


@given(st.text(alphabet="htps:/[]@#?\\%2eE.a1\n ", max_size=40))
def test_any_text_gets_a_verdict(text: str) -> None:
    broken_client_id_rule(text, issuer=HUB)
    broken_client_id_rule(f"https://{text}", issuer=HUB)


# From here on: what a document says.

STATED: dict[str, Any] = {
    "client_id": SITE,
    "client_name": "Engine",
    "redirect_uris": ["https://app.example/cb", "http://localhost/cb"],
    "token_endpoint_auth_method": "none",
}


def read(stated: Any, *, issuer: str = HUB) -> ClientDocument:
    return read_document(SITE, json.dumps(stated).encode(), issuer=issuer)


def test_a_document_tells_about_its_app() -> None:
    links = {
        "client_uri": "https://app.example/about",
        "logo_uri": "https://cdn.example/logo.png",
        "scope": "openid webhooks",
    }

    assert read(STATED | links) == ClientDocument(
        name="Engine",
        redirect_uris=("https://app.example/cb", "http://localhost/cb"),
        scopes=frozenset({Scope.openid, Scope.webhooks}),
        client_uri="https://app.example/about",
        logo_uri="https://cdn.example/logo.png",
    )


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"unknown": {"a": [1]}}, id="fields that nobody knows"),
        pytest.param({"client_name#ja": "エンジン"}, id="other languages"),
        pytest.param({"grant_types": ["implicit", "authorization_code"]}, id="more grants"),
        pytest.param({"response_types": ["token", "code"]}, id="more responses"),
        pytest.param({"jwks": {"keys": [{"kty": "RSA", "n": "a", "e": "b"}]}}, id="a public key"),
        pytest.param({"scope": "of-another-service"}, id="scopes that nobody knows"),
        pytest.param(
            {
                "token_endpoint_auth_method": "private_key_jwt",
                "token_endpoint_auth_methods_supported": ["private_key_jwt", "none"],
            },
            id="none among others",
        ),
        pytest.param({"client_uri": "https://other.example/"}, id="a page of another site"),
        pytest.param({"client_uri": "http://app.example/"}, id="a page on plain http"),
        pytest.param({"logo_uri": "http://app.example/logo.png"}, id="a logo on plain http"),
        pytest.param({"logo_uri": "data:image/png;base64,AA"}, id="a logo in the document"),
        pytest.param({"logo_uri": 7}, id="no logo at all"),
    ],
)
def test_what_does_not_count_is_passed_over(more: dict[str, Any]) -> None:
    assert read(STATED | more) == ClientDocument(
        name="Engine",
        redirect_uris=("https://app.example/cb", "http://localhost/cb"),
        scopes=ALL_SCOPES,
        client_uri=None,
        logo_uri=None,
    )


def test_the_authentication_method_may_be_left_out() -> None:
    stated = {name: value for name, value in STATED.items() if "auth" not in name}

    assert read(stated).name == "Engine"


_METHOD = "token_endpoint_auth_method must be none."
_OWN_ID = "client_id must be the address of the document itself."
_URIS = f"redirect_uris must list 1 to {MAX_REDIRECT_URIS} URIs."


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param({"client_id": SITE + "/"}, _OWN_ID, id="another address"),
        pytest.param({"client_id": SITE.replace("app", "APP")}, _OWN_ID, id="other letters"),
        pytest.param({"client_id": None}, _OWN_ID, id="none"),
        pytest.param({"client_name": None}, "client_name must be a text.", id="no name"),
        pytest.param(
            {"client_name": "  "},
            "client_name: the name of an app has 1 to 100 characters.",
            id="a blank name",
        ),
        pytest.param(
            {"client_name": "x" * 101},
            "client_name: the name of an app has 1 to 100 characters.",
            id="a long name",
        ),
        pytest.param(
            {"client_name": "a\u202eb"},
            "client_name: the name of an app has no control characters and no invisible ones.",
            id="a name that turns around",
        ),
        pytest.param({"redirect_uris": []}, _URIS, id="no redirect URI"),
        pytest.param({"redirect_uris": ["https://a.io/"] * 101}, _URIS, id="too many"),
        pytest.param(
            {"redirect_uris": "https://a.io/"},
            "redirect_uris must be a list of texts.",
            id="redirect_uris as a text",
        ),
        pytest.param(
            {"redirect_uris": [7]}, "redirect_uris must be a list of texts.", id="a number"
        ),
        pytest.param(
            {"redirect_uris": ["https://a.io/", "http://a.io/"]},
            "redirect_uris[1]: http is only for localhost, 127.0.0.1 and [::1]; other hosts need https.",
            id="plain http",
        ),
        pytest.param({"token_endpoint_auth_method": "client_secret_basic"}, _METHOD, id="M5"),
        pytest.param({"token_endpoint_auth_method": None}, _METHOD, id="null"),
        pytest.param(
            {
                "token_endpoint_auth_method": "private_key_jwt",
                "token_endpoint_auth_methods_supported": ["private_key_jwt"],
            },
            _METHOD,
            id="none is not among them",
        ),
        pytest.param(
            {"client_secret": "x"},
            "client_secret: everybody can read it here, so there is none.",
            id="a secret",
        ),
        pytest.param(
            {"client_secret_expires_at": 0},
            "client_secret_expires_at: everybody can read it here, so there is none.",
            id="the end of a secret",
        ),
        pytest.param(
            {"grant_types": ["implicit"]},
            "grant_types must have authorization_code or the device code.",
            id="no grant left",
        ),
        pytest.param(
            {"grant_types": "authorization_code"},
            "grant_types must be a list of texts.",
            id="grant_types as a text",
        ),
        pytest.param(
            {"response_types": ["token"]}, "response_types must have code.", id="no response"
        ),
        pytest.param(
            {"jwks": {"keys": [{"kty": "RSA", "d": "x"}]}},
            "jwks must have no private key.",
            id="a private key",
        ),
        pytest.param(
            {"jwks": {"keys": [{"kty": "oct", "k": "x"}]}},
            "jwks must have no private key.",
            id="a shared key",
        ),
        pytest.param(
            {"scope": ["openid"]},
            "scope must be a text with blanks between the scopes.",
            id="scopes in a list",
        ),
    ],
)
def test_a_document_that_breaks_a_rule_is_refused(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(DocumentRefused) as refused:
        read(STATED | change)

    assert refused.value.reason == reason


_NOT_JSON = "The document must be JSON, with each name once."


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param(b"", _NOT_JSON, id="nothing"),
        pytest.param(b"<html>", _NOT_JSON, id="a page"),
        pytest.param(b"[]", "The document must be a JSON object.", id="a list"),
        pytest.param(b'{"a": 1, "a": 2}', _NOT_JSON, id="a name twice"),
        pytest.param(b'{"a": {"b": 1, "b": 2}}', _NOT_JSON, id="a name twice inside"),
        pytest.param(b'{"a": NaN}', _NOT_JSON, id="not a number"),
        pytest.param(b"[" * 60_000, _NOT_JSON, id="without end"),
        pytest.param(b'{"a": "\xff"}', _NOT_JSON, id="not UTF-8"),
        pytest.param('{"a": 1}'.encode("utf-16"), _NOT_JSON, id="UTF-16"),
        pytest.param(b'\xef\xbb\xbf{"a": 1}', _NOT_JSON, id="a mark of the byte order"),
    ],
)
def test_what_is_no_json_object_is_refused(body: bytes, reason: str) -> None:
    with pytest.raises(DocumentRefused) as refused:
        read_document(SITE, body, issuer=HUB)

    assert refused.value.reason == reason


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: (
    st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(STATED)), inner)
)))  # fmt: skip
def test_any_json_is_read_or_refused(stated: Any) -> None:
    whole = STATED | stated if isinstance(stated, dict) else stated
    with suppress(DocumentRefused):
        read(whole)


# From here on: how long a document is taken as it is.

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        pytest.param({}, 3600, id="nothing said"),
        pytest.param({"cache-control": "max-age=600"}, 600, id="what the site says"),
        pytest.param({"cache-control": "public, Max-Age=600"}, 600, id="among others"),
        pytest.param({"cache-control": 'max-age="600"'}, 600, id="in quotes"),
        pytest.param({"cache-control": "max-age=1"}, 60, id="too short"),
        pytest.param({"cache-control": "max-age=0"}, 60, id="none"),
        pytest.param({"cache-control": "max-age=9999999999"}, 86400, id="too long"),
        pytest.param({"cache-control": "no-store, max-age=600"}, 60, id="no-store"),
        pytest.param({"cache-control": "No-Cache"}, 60, id="no-cache"),
        pytest.param({"cache-control": "max-age=x"}, 3600, id="nonsense"),
        pytest.param({"cache-control": "x-max-age=5"}, 3600, id="something else"),
        pytest.param({"expires": "Sun, 15 Nov 2026 12:10:00 GMT"}, 600, id="Expires"),
        pytest.param({"expires": "Sun, 15 Nov 2026 12:10:00 -0000"}, 600, id="without a zone"),
        pytest.param({"expires": "Sun, 15 Nov 2020 12:10:00 GMT"}, 60, id="long ago"),
        pytest.param({"expires": "0"}, 60, id="a broken date"),
        pytest.param({"expires": "Sun, 15 Nov 2099 12:10:00 GMT"}, 86400, id="far away"),
        pytest.param(
            {"cache-control": "max-age=600", "expires": "0"}, 600, id="max-age before Expires"
        ),
    ],
)
def test_a_document_lasts_as_long_as_its_site_says(headers: dict[str, str], seconds: int) -> None:
    assert freshness(headers, now=NOON) == timedelta(seconds=seconds)
