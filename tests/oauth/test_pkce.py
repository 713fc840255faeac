"""Proof Key for Code Exchange: the method S256 and no other."""

import pytest

from hublet.oauth.authorize.codes import challenge_of, is_challenge, is_verifier, verifier_matches

# RFC 7636, appendix B.
VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


def test_the_example_of_the_rfc() -> None:
    assert challenge_of(VERIFIER) == CHALLENGE
    assert verifier_matches(VERIFIER, CHALLENGE)
    assert not verifier_matches(VERIFIER, CHALLENGE[:-1] + "N")
    assert not verifier_matches(CHALLENGE, CHALLENGE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a" * 42, False, id="42 characters"),
        pytest.param("a" * 43, True, id="43 characters"),
        pytest.param("a" * 128, True, id="128 characters"),
        pytest.param("a" * 129, False, id="129 characters"),
        pytest.param("aA0-._~" * 7, True, id="the whole alphabet"),
        pytest.param("a" * 43 + "+", False, id="another character"),
        pytest.param("a" * 43 + "\n", False, id="a line feed"),
        pytest.param("ä" * 43, False, id="not ASCII"),
        pytest.param("", False, id="empty"),
    ],
)
def test_what_can_be_a_verifier(text: str, *, expected: bool) -> None:
    assert is_verifier(text) is expected
    assert verifier_matches(text, challenge_of(text)) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(CHALLENGE, True, id="43 characters of base64url"),
        pytest.param(CHALLENGE + "=", False, id="padded"),
        pytest.param(CHALLENGE[:-1], False, id="42 characters"),
        pytest.param(CHALLENGE[:-1] + "+", False, id="plain Base64"),
    ],
)
def test_what_can_be_a_challenge(text: str, *, expected: bool) -> None:
    assert is_challenge(text) is expected
