"""What an app asks for, as requests write it."""

from dataclasses import replace

import pytest

from hublet.core.clock import from_micros
from hublet.oauth.errors import OAuthError
from hublet.oauth.records import AppKind, OAuthApp
from hublet.oauth.scopes import format_scopes, requested_scopes, scopes_requested_by
from hublet.tokens.records import ALL_SCOPES, Scope

APP = OAuthApp(
    id="1",
    client_id="loom",
    kind=AppKind.registered,
    name="Loom",
    scopes=frozenset({Scope.openid, Scope.profile, Scope.manage_repos}),
    token_seconds=1,
    created_at=from_micros(0),
    updated_at=from_micros(0),
)


@pytest.mark.parametrize(
    ("kind", "scopes", "asked"),
    [
        pytest.param(AppKind.registered, APP.scopes, APP.scopes, id="as it was registered"),
        pytest.param(AppKind.first_party, ALL_SCOPES, ALL_SCOPES, id="the command line"),
        pytest.param(
            AppKind.dynamic, ALL_SCOPES, {Scope.openid, Scope.profile}, id="one that came by itself"
        ),
        pytest.param(
            AppKind.document, {Scope.openid}, {Scope.openid}, id="no more than its document says"
        ),
    ],
)
def test_an_app_that_names_no_scope_gets_what_suits_its_kind(
    kind: AppKind, scopes: frozenset[Scope], asked: frozenset[Scope]
) -> None:
    app = replace(APP, kind=kind, scopes=frozenset(scopes))

    assert scopes_requested_by(app, None) == asked
    assert scopes_requested_by(app, "openid") == {Scope.openid}


@pytest.mark.parametrize(
    ("text", "scopes"),
    [
        pytest.param("openid profile", {Scope.openid, Scope.profile}, id="two"),
        pytest.param("openid openid", {Scope.openid}, id="twice the same"),
        pytest.param("offline_access openid", {Scope.openid}, id="offline access is for free"),
        pytest.param("read-repos", {Scope.read_repos}, id="what an allowed one includes"),
    ],
)
def test_scopes_are_words(text: str, scopes: set[Scope]) -> None:
    assert requested_scopes(text, allowed=APP.scopes) == scopes


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("openid  profile", id="two spaces"),
        pytest.param("openid,profile", id="a comma"),
        pytest.param(" openid", id="a space before"),
        pytest.param("everything", id="no scope"),
        pytest.param("jobs", id="not allowed"),
        pytest.param('"', id="a quote"),
    ],
)
def test_what_is_no_allowed_scope_is_refused(text: str) -> None:
    with pytest.raises(OAuthError) as refused:
        requested_scopes(text, allowed=APP.scopes)

    assert refused.value.error == "invalid_scope"


def test_scopes_are_written_in_the_order_of_the_interface() -> None:
    assert format_scopes({Scope.webhooks, Scope.openid, Scope.email}) == "openid email webhooks"
