"""How a permission becomes what a token may do."""

import pytest

from hublet.oauth.errors import OAuthError
from hublet.oauth.scopes import (
    PERSONAL_SCOPES,
    confined_grants_of,
    format_scopes,
    grants_of,
    requested_scopes,
    scopes_from_json,
)
from hublet.tokens.records import ALL_SCOPES, Grants, Scope, ScopedGrant

ADA = ("a" * 24, "ada")
ENGINES = ("e" * 24, "engines")


def scopes(text: str) -> frozenset[Scope]:
    return frozenset(map(Scope, text.split()))


def grant(place: tuple[str, str], type_: str, text: str) -> ScopedGrant:
    return ScopedGrant(
        entity_id=place[0], entity_type=type_, entity_name=place[1], scopes=scopes(text)
    )


@pytest.mark.parametrize(
    ("given", "organizations", "expected"),
    [
        pytest.param(
            "openid profile", {}, Grants(everywhere=scopes("openid profile")), id="the person only"
        ),
        pytest.param(
            "openid",
            dict([ENGINES]),
            Grants(everywhere=scopes("openid"), scoped=(grant(ENGINES, "org", ""),)),
            id="a selected organization is named, with nothing in it",
        ),
        pytest.param(
            "read-repos",
            {},
            Grants(scoped=(grant(ADA, "user", "read-repos"),)),
            id="own repositories",
        ),
        pytest.param(
            "email read-billing webhooks",
            dict([ENGINES]),
            Grants(
                everywhere=scopes("email"),
                scoped=(
                    grant(ADA, "user", "read-billing webhooks"),
                    grant(ENGINES, "org", "read-billing webhooks"),
                ),
            ),
            id="own things and those of a selected organization",
        ),
    ],
)
def test_what_is_owned_is_reached_where_it_was_allowed(
    given: str, organizations: dict[str, str], expected: Grants
) -> None:
    assert grants_of(scopes(given), user=ADA, organizations=organizations) == expected


def test_every_scope_is_either_about_the_person_or_about_what_is_owned() -> None:
    assert (
        scopes("openid profile email read-memberships gated-repos write-discussions inference-api")
        == PERSONAL_SCOPES
    )
    everything = grants_of(ALL_SCOPES, user=ADA, organizations={})
    assert everything.everywhere | everything.scoped[0].scopes == ALL_SCOPES


@pytest.mark.parametrize(
    ("given", "everywhere"),
    [
        pytest.param("read-repos", "gated-repos", id="who reads also reads granted ones elsewhere"),
        pytest.param("manage-repos", "gated-repos", id="what includes reading does too"),
        pytest.param("gated-repos", "gated-repos", id="granted ones only"),
        pytest.param("openid email webhooks", "", id="nothing else reaches outside"),
    ],
)
def test_an_exchanged_token_stays_in_its_organization(given: str, everywhere: str) -> None:
    assert confined_grants_of(scopes(given), organization=ENGINES) == Grants(
        everywhere=scopes(everywhere), scoped=(grant(ENGINES, "org", given),)
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(None, "profile write-repos", id="nothing: all that is allowed"),
        pytest.param("", "profile write-repos", id="empty: the same"),
        pytest.param("offline_access", "profile write-repos", id="asks for nothing"),
        pytest.param("profile", "profile", id="fewer"),
        pytest.param("read-repos", "read-repos", id="what one includes"),
        pytest.param("profile profile", "profile", id="twice counts once"),
        pytest.param("manage-repos", None, id="more"),
        pytest.param("unknown", None, id="unknown"),
        pytest.param("profile ", None, id="a space at the end"),
        pytest.param("pro\\file", None, id="a character that no scope has"),
        pytest.param('"profile"', None, id="quotes"),
    ],
)
def test_what_a_request_may_ask_for(text: str | None, expected: str | None) -> None:
    allowed = scopes("profile write-repos")

    if expected is None:
        with pytest.raises(OAuthError) as refused:
            requested_scopes(text, allowed=allowed)
        assert refused.value.error == "invalid_scope"
        return
    assert format_scopes(requested_scopes(text, allowed=allowed)) == expected


def test_scopes_that_this_version_does_not_know_are_left_out() -> None:
    assert scopes_from_json('["email", "levitate"]') == scopes("email")
