"""The authorization request: what is refused on a page, what is told to the app, what gives a code."""

from datetime import timedelta
from urllib.parse import urlencode

import httpx2
import pytest

from hublet.core import clock
from hublet.core.database import Database
from hublet.oauth.authorize import codes
from hublet.tokens.records import Scope
from oauth.browser_flows import (
    CALLBACK,
    CHALLENGE,
    ISSUER,
    an_app,
    answer_consent,
    authorization_parameters,
    redirect_parameters,
    request_authorization,
    signed_in,
    text_of,
)


async def test_an_allowed_request_gives_the_app_a_code(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database)
    session = await signed_in(client, database)

    told = redirect_parameters(
        await answer_consent(client, await request_authorization(client, nonce="n1"))
    )

    assert told == {"code": told["code"], "state": "s1", "iss": ISSUER}
    async with database.transaction() as conn:
        [code] = await codes.lock(conn, [told["code"]])
    assert code is not None
    content = code.content
    assert (content.permission.user_id, content.permission.app_id) == (session.user_id, app.id)
    assert content.permission.scopes == {Scope.openid, Scope.profile}
    assert content.permission.organization_ids == frozenset()
    assert (content.redirect_uri, content.challenge, content.nonce) == (CALLBACK, CHALLENGE, "n1")
    assert (content.session_id, content.authenticated_at) == (session.id, session.authenticated_at)
    assert content.address == "127.0.0.1"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        pytest.param({"client_id": None}, "client_id: exactly one is needed.", id="no client id"),
        pytest.param(
            {"client_id": "warp"}, "client_id: No app has this client id.", id="unknown client id"
        ),
        pytest.param(
            {"client_id": "loo\x7fm"}, "client_id: exactly one is needed.", id="control character"
        ),
        pytest.param(
            {"redirect_uri": None}, "redirect_uri: exactly one is needed.", id="no redirect URI"
        ),
        pytest.param(
            {"redirect_uri": ""}, "redirect_uri: exactly one is needed.", id="empty redirect URI"
        ),
        pytest.param(
            {"redirect_uri": "https://app.example/other"},
            "redirect_uri: https://app.example/other is not one that the app registered. "
            "The path differs: /callback is registered, /other was asked for.",
            id="another path",
        ),
        pytest.param(
            {"redirect_uri": "https://evil.example/callback", "response_type": "token"},
            "redirect_uri: https://evil.example/callback is not one that the app registered. "
            "The host differs: app.example is registered, evil.example was asked for.",
            id="another host, whatever else is wrong",
        ),
        pytest.param(
            {"redirect_uri": f"{CALLBACK}\r\nX: 1"},
            "redirect_uri: https://app.example/callback X: 1 is not one that the app registered. "
            "The requested redirect URI has a character that no URI may have.",
            id="line break",
        ),
    ],
)
async def test_nobody_is_sent_anywhere_before_the_redirect_uri_is_proven(
    client: httpx2.AsyncClient, database: Database, changes: dict[str, str | None], sentence: str
) -> None:
    await an_app(database)
    await signed_in(client, database)

    response = await request_authorization(client, **changes)

    assert response.status_code == 400
    assert "location" not in response.headers
    assert sentence in text_of(response)


@pytest.mark.parametrize("name", ["client_id", "redirect_uri"])
async def test_where_it_goes_must_not_be_said_twice(
    client: httpx2.AsyncClient, database: Database, name: str
) -> None:
    await an_app(database)
    await signed_in(client, database)
    query = urlencode(
        [*authorization_parameters().items(), (name, authorization_parameters()[name])]
    )

    response = await client.get(f"/oauth/authorize?{query}")

    assert response.status_code == 400
    assert f"{name}: exactly one is needed." in text_of(response)


@pytest.mark.parametrize(
    ("changes", "error", "description"),
    [
        pytest.param(
            {"response_type": None}, "invalid_request", "response_type is required.", id="none"
        ),
        pytest.param(
            {"response_type": "token"},
            "unsupported_response_type",
            "response_type must be code.",
            id="token",
        ),
        pytest.param(
            {"response_type": "id_token"},
            "unsupported_response_type",
            "response_type must be code.",
            id="id_token",
        ),
        pytest.param(
            {"response_type": "code token"},
            "unsupported_response_type",
            "response_type must be code.",
            id="code token",
        ),
        pytest.param(
            {"response_mode": "form_post"},
            "invalid_request",
            "response_mode must be query.",
            id="another response mode",
        ),
        pytest.param(
            {"request": "e30."}, "request_not_supported", "request is not supported.", id="Z9"
        ),
        pytest.param(
            {"request_uri": "https://app.example/r"},
            "request_uri_not_supported",
            "request_uri is not supported.",
            id="by reference",
        ),
        pytest.param(
            {"registration": "{}"},
            "registration_not_supported",
            "registration is not supported.",
            id="registration on the way",
        ),
        pytest.param(
            {"resource": "https://other.example"},
            "invalid_target",
            "resource must be an address of this hub.",
            id="foreign resource",
        ),
        pytest.param(
            {"resource": "http://hub.test.evil.example/"},
            "invalid_target",
            "resource must be an address of this hub.",
            id="resource that begins alike",
        ),
        pytest.param(
            {"code_challenge_method": "plain"},
            "invalid_request",
            "code_challenge_method must be S256.",
            id="P1",
        ),
        pytest.param(
            {"code_challenge": None, "code_challenge_method": None},
            "invalid_request",
            "code_challenge is required for an app without a secret.",
            id="P2",
        ),
        pytest.param(
            {"code_challenge": None},
            "invalid_request",
            "code_challenge_method needs a code_challenge.",
            id="method alone",
        ),
        pytest.param(
            {"code_challenge_method": None},
            "invalid_request",
            "code_challenge_method must be S256.",
            id="P3",
        ),
        pytest.param(
            {"code_challenge": "x" * 42},
            "invalid_request",
            "code_challenge must be the SHA-256 of the verifier in base64url.",
            id="too short",
        ),
        pytest.param(
            {"code_challenge": "x" * 42 + "="},
            "invalid_request",
            "code_challenge must be the SHA-256 of the verifier in base64url.",
            id="padding",
        ),
        pytest.param(
            {"scope": "openid fly"},
            "invalid_scope",
            "scope has a name that is no scope of this hub.",
            id="unknown",
        ),
        pytest.param(
            {"scope": "openid jobs"},
            "invalid_scope",
            "scope: jobs goes beyond what the app may have.",
            id="not of this app",
        ),
        pytest.param(
            {"nonce": "n" * 513},
            "invalid_request",
            "nonce must have at most 512 printable characters.",
            id="long nonce",
        ),
        pytest.param(
            {"nonce": "a\nb"},
            "invalid_request",
            "nonce must have at most 512 printable characters.",
            id="nonce of two lines",
        ),
        pytest.param(
            {"prompt": "none login"},
            "invalid_request",
            "prompt: none stands alone.",
            id="none and more",
        ),
        pytest.param(
            {"prompt": "create"},
            "invalid_request",
            "prompt must be of none, login, consent and select_account.",
            id="unknown prompt",
        ),
        pytest.param(
            {"max_age": "-1"},
            "invalid_request",
            "max_age must be a number of seconds.",
            id="negative max_age",
        ),
        pytest.param(
            {"orgIds": "acme"},
            "invalid_request",
            "orgIds must be ids of organizations, separated by commas.",
            id="malformed",
        ),
        pytest.param(
            {"orgIds": ",".join(f"{number:024x}" for number in range(21))},
            "invalid_request",
            "orgIds must have at most 20 organizations.",
            id="too many",
        ),
    ],
)
async def test_what_else_is_wrong_is_told_to_the_app(
    client: httpx2.AsyncClient,
    database: Database,
    changes: dict[str, str | None],
    error: str,
    description: str,
) -> None:
    await an_app(database)
    await signed_in(client, database)

    response = await request_authorization(client, **changes)

    assert redirect_parameters(response) == {
        "error": error,
        "error_description": description,
        "state": "s1",
        "iss": ISSUER,
    }


@pytest.mark.parametrize(
    "name",
    ["response_type", "scope", "nonce", "code_challenge", "code_challenge_method", "prompt"],
)
async def test_a_repeated_parameter_is_refused(
    client: httpx2.AsyncClient, database: Database, name: str
) -> None:
    await an_app(database)
    await signed_in(client, database)
    parameters = authorization_parameters() | {"nonce": "n", "prompt": "consent"}
    query = urlencode([*parameters.items(), (name, parameters[name])])

    told = redirect_parameters(await client.get(f"/oauth/authorize?{query}"))

    assert told["error"] == "invalid_request"
    assert told["error_description"] == f"{name} must not be repeated."


async def test_of_two_states_none_is_returned(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_app(database)

    told = redirect_parameters(
        await client.get(f"/oauth/authorize?{urlencode(authorization_parameters())}&state=s2")
    )

    assert told == {
        "error": "invalid_request",
        "error_description": "state must not be repeated.",
        "iss": ISSUER,
    }


@pytest.mark.parametrize(
    "state",
    [
        pytest.param("", id="empty"),
        pytest.param('{"nonce":"é","redirectUri":"/?a=b&c"}' + "x" * 4096, id="4 KiB of JSON"),
        pytest.param("☃ 100% +&=#", id="unicode and punctuation"),
        pytest.param("s" * 8192, id="as long as it may be"),
    ],
)
async def test_the_state_comes_back_as_it_was(
    client: httpx2.AsyncClient, database: Database, state: str
) -> None:
    await an_app(database)
    await signed_in(client, database)

    told = redirect_parameters(
        await answer_consent(client, await request_authorization(client, state=state))
    )

    assert told["state"] == state


async def test_a_state_beyond_8_kib_is_refused(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_app(database)

    told = redirect_parameters(await request_authorization(client, state="é" * 4097))

    assert told == {
        "error": "invalid_request",
        "error_description": "state must have at most 8192 bytes.",
        "iss": ISSUER,
    }


async def test_without_a_state_none_comes_back(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_app(database)
    await signed_in(client, database)

    told = redirect_parameters(
        await answer_consent(client, await request_authorization(client, state=None))
    )

    assert told == {"code": told["code"], "iss": ISSUER}


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param(
            {
                "login_hint": "ada",
                "ui_locales": "fr",
                "display": "page",
                "acr_values": "1",
                "claims_locales": "fr",
                "foo": "bar",
            },
            id="Z7",
        ),
        pytest.param({"resource": ISSUER}, id="the hub itself"),
        pytest.param({"resource": f"{ISSUER}/mcp"}, id="an address of the hub"),
        pytest.param({"response_mode": "query"}, id="the response mode that is used anyway"),
        pytest.param({"scope": "openid openid offline_access"}, id="twice, and offline_access"),
        pytest.param({"signed_in_after": "1"}, id="signed in later than that"),
    ],
)
async def test_what_changes_nothing_is_accepted(
    client: httpx2.AsyncClient, database: Database, changes: dict[str, str | None]
) -> None:
    await an_app(database)
    await signed_in(client, database)

    response = await request_authorization(client, **changes)

    assert response.status_code == 200
    assert "Allow Loom?" in text_of(response)


async def test_without_a_scope_all_of_the_app_are_meant(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_app(database)
    await signed_in(client, database)

    page = await request_authorization(client, scope=None)

    assert Scope.read_repos.sentence in text_of(page)


async def test_an_app_with_a_secret_may_do_without_pkce(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_app(database, with_secret=True)
    await signed_in(client, database)

    page = await request_authorization(client, code_challenge=None, code_challenge_method=None)

    assert "code" in redirect_parameters(await answer_consent(client, page))


@pytest.mark.parametrize(
    ("registered", "requested"),
    [
        pytest.param("http://localhost/cb", "http://localhost:49282/cb", id="L1"),
        pytest.param("http://[::1]/cb", "http://[::1]:5/cb", id="L3"),
        pytest.param("myapp://callback", "myapp://callback", id="L15"),
        pytest.param("com.ex.app:/cb", "com.ex.app:/cb", id="L17"),
        pytest.param("http://localhost/cb?a=1", "http://localhost:1/cb?a=1", id="L20"),
    ],
)
async def test_the_answer_goes_where_the_request_said(
    client: httpx2.AsyncClient, database: Database, registered: str, requested: str
) -> None:
    await an_app(database, redirect_uris=[registered])
    await signed_in(client, database)

    response = await answer_consent(
        client, await request_authorization(client, redirect_uri=requested)
    )

    assert response.status_code == 303
    joint = "&" if "?" in requested else "?"
    assert response.headers["location"].startswith(f"{requested}{joint}code=")
    assert "state=s1" in response.headers["location"]


@pytest.mark.parametrize(
    ("dynamic_query", "status"),
    [
        pytest.param(True, 200, id="the app opted in"),
        pytest.param(False, 400, id="the app did not"),
    ],
)
async def test_the_python_helpers_bring_a_query_along(
    client: httpx2.AsyncClient, database: Database, *, dynamic_query: bool, status: int
) -> None:
    # Client contract 4.6.
    requested = f"{CALLBACK}?_target_url=%2F%3Fa%3Db"
    await an_app(database, dynamic_query=dynamic_query)
    await signed_in(client, database)

    page = await request_authorization(client, redirect_uri=requested)

    assert page.status_code == status
    if dynamic_query:
        told = redirect_parameters(await answer_consent(client, page), requested)
        assert told["_target_url"] == "/?a=b"
        assert told["state"] == "s1"


@pytest.mark.parametrize(
    "query",
    [
        pytest.param("a=b\r\nSet-Cookie: c=d", id="line break"),
        pytest.param("a=b c", id="blank"),
        pytest.param("a=é", id="letter that is not encoded"),
        pytest.param("code=mine", id="parameter of the answer"),
    ],
)
async def test_not_every_query_may_be_brought_along(
    client: httpx2.AsyncClient, database: Database, query: str
) -> None:
    await an_app(database, dynamic_query=True)
    await signed_in(client, database)

    response = await request_authorization(client, redirect_uri=f"{CALLBACK}?{query}")

    assert response.status_code == 400
    assert "is not one that the app registered." in text_of(response)


async def test_a_form_is_taken_as_a_link(client: httpx2.AsyncClient, database: Database) -> None:
    await an_app(database)
    await signed_in(client, database)

    sent_on = await client.post("/oauth/authorize", data=authorization_parameters())
    page = await client.get(sent_on.headers["location"])

    assert sent_on.status_code == 303
    assert "Allow Loom?" in text_of(page)


async def test_a_broken_form_stays_here(client: httpx2.AsyncClient) -> None:
    response = await client.post("/oauth/authorize", content=b"client_id=%ff")

    assert response.status_code == 400
    assert "The request of the app cannot be read: it is not valid UTF-8." in text_of(response)


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        pytest.param("client_id=%ff", "it is not valid UTF-8", id="no text"),
        pytest.param("a=&" * 101, "it has more than 100 parameters", id="too many"),
        pytest.param("a=" + "x" * 32768, "it has more than 32768 bytes", id="too long"),
    ],
)
async def test_what_cannot_be_read_is_refused(
    client: httpx2.AsyncClient, query: str, sentence: str
) -> None:
    response = await client.get(f"/oauth/authorize?{query}")

    assert response.status_code == 400
    assert f"The request of the app cannot be read: {sentence}." in text_of(response)


async def test_who_is_not_signed_in_comes_back_after_the_login(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_app(database)

    response = await request_authorization(client, state="a b&c")

    assert response.status_code == 303
    login = httpx2.URL(response.headers["location"])
    assert (login.path, set(login.params)) == ("/login", {"next"})
    await signed_in(client, database)
    page = await client.get(login.params["next"])
    assert redirect_parameters(await answer_consent(client, page))["state"] == "a b&c"


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"prompt": "login"}, id="prompt login"),
        pytest.param({"prompt": "select_account"}, id="prompt select_account"),
        pytest.param({"max_age": "0"}, id="max_age 0"),
    ],
)
async def test_who_is_signed_in_is_asked_once_more_and_only_once(
    client: httpx2.AsyncClient, database: Database, changes: dict[str, str | None]
) -> None:
    await an_app(database)
    await signed_in(client, database)

    response = await request_authorization(client, **changes)
    login = httpx2.URL(response.headers["location"])
    await signed_in(client, database)
    page = await client.get(login.params["next"])

    assert (login.path, login.params["again"]) == ("/login", "1")
    assert page.status_code == 200
    assert "Allow Loom?" in text_of(page)


async def test_who_skips_the_login_is_sent_there_again(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_app(database)
    await signed_in(client, database)

    response = await request_authorization(client, signed_in_after="9999999999")

    assert httpx2.URL(response.headers["location"]).path == "/login"


async def test_a_recent_login_is_recent_enough(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_app(database)
    await signed_in(client, database)

    response = await request_authorization(client, max_age="10000")

    assert response.status_code == 200


async def test_prompt_consent_outlives_the_login(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_app(database)
    await signed_in(client, database)
    await answer_consent(client, await request_authorization(client))
    clock.move(timedelta(seconds=5))

    login = httpx2.URL(
        (await request_authorization(client, prompt="login consent")).headers["location"]
    )
    before = await client.get(login.params["next"])
    await signed_in(client, database)
    after = await client.get(login.params["next"])

    assert httpx2.URL(before.headers["location"]).path == "/login"
    assert "Allow Loom?" in text_of(after)


class TestPromptNone:
    """Z4."""

    async def test_nobody_is_signed_in(
        self, client: httpx2.AsyncClient, database: Database
    ) -> None:
        await an_app(database)

        told = redirect_parameters(await request_authorization(client, prompt="none"))

        assert told == {
            "error": "login_required",
            "error_description": "The person has to sign in.",
            "state": "s1",
            "iss": ISSUER,
        }

    async def test_nothing_was_agreed_to(
        self, client: httpx2.AsyncClient, database: Database
    ) -> None:
        await an_app(database)
        await signed_in(client, database)

        told = redirect_parameters(await request_authorization(client, prompt="none"))

        assert told == {
            "error": "consent_required",
            "error_description": "The person has to agree.",
            "state": "s1",
            "iss": ISSUER,
        }

    async def test_everything_was_agreed_to(
        self, client: httpx2.AsyncClient, database: Database
    ) -> None:
        await an_app(database)
        await signed_in(client, database)
        await answer_consent(client, await request_authorization(client))

        told = redirect_parameters(await request_authorization(client, prompt="none"))

        assert told == {"code": told["code"], "state": "s1", "iss": ISSUER}

    async def test_the_login_is_too_old(
        self, client: httpx2.AsyncClient, database: Database
    ) -> None:
        await an_app(database)
        await signed_in(client, database)
        await answer_consent(client, await request_authorization(client))

        told = redirect_parameters(await request_authorization(client, prompt="none", max_age="0"))

        assert told["error"] == "login_required"


async def test_no_parameter_becomes_part_of_a_page(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_app(database, name="<b>Loom</b>")
    await signed_in(client, database)

    pages = [
        await request_authorization(client),
        await request_authorization(client, redirect_uri="https://app.example/<script>"),
        await request_authorization(client, client_id="<script>"),
    ]

    assert [("<b>" in page.text or "<script>" in page.text) for page in pages] == [False] * 3
