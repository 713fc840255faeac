"""Who says to send a request: the header, the body, or nobody."""

from base64 import b64encode

import pytest

from hublet.oauth.clients import ClientCredentials, read_credentials
from hublet.oauth.errors import OAuthError


def basic(text: str) -> list[str]:
    return ["Basic " + b64encode(text.encode()).decode()]


@pytest.mark.parametrize(
    ("authorization", "parameters", "pairs"),
    [
        pytest.param([], {}, [("", None)], id="nobody"),
        pytest.param([], {"client_id": "a"}, [("a", None)], id="the client id"),
        pytest.param([], {"client_id": "a", "client_secret": "s"}, [("a", "s")], id="in the body"),
        pytest.param(basic("a:s"), {}, [("a", "s")], id="in the header"),
        pytest.param(basic("a:s"), {"client_id": "a"}, [("a", "s")], id="named twice"),
        pytest.param(
            basic("a:%25+%3A%20%C3%A4"),
            {},
            [("a", "% : ä"), ("a", "%25+%3A%20%C3%A4")],
            id="encoded, or meant as it stands",
        ),
        pytest.param(basic("a:b:c"), {}, [("a", "b:c")], id="a colon in the secret"),
        pytest.param(
            basic("https%3A%2F%2Fa.test%2Fx:s"),
            {"client_id": "https://a.test/x"},
            [("https://a.test/x", "s"), ("https%3A%2F%2Fa.test%2Fx", "s")],
            id="an address as the client id",
        ),
    ],
)
def test_what_is_said(
    authorization: list[str], parameters: dict[str, str], pairs: list[tuple[str, str | None]]
) -> None:
    presented = read_credentials(authorization, parameters)

    assert presented.pairs() == pairs
    assert presented.is_given is bool(authorization or parameters)
    assert presented.by_header is bool(authorization)


@pytest.mark.parametrize(
    ("authorization", "parameters", "error"),
    [
        pytest.param(
            basic("a:s"), {"client_secret": "s"}, "invalid_request", id="two ways at once"
        ),
        pytest.param(basic("a:s"), {"client_id": "b"}, "invalid_request", id="another app"),
        pytest.param(basic("a:s") * 2, {}, "invalid_request", id="two headers"),
        pytest.param([], {"client_secret": "s"}, "invalid_request", id="a secret of nobody"),
        pytest.param(["Bearer x"], {}, "invalid_client", id="another scheme"),
        pytest.param(["Basic a"], {}, "invalid_client", id="not Base64"),
        pytest.param(basic("a"), {}, "invalid_client", id="no colon"),
        pytest.param([""], {}, "invalid_client", id="an empty header"),
    ],
)
def test_what_is_refused(authorization: list[str], parameters: dict[str, str], error: str) -> None:
    with pytest.raises(OAuthError) as refused:
        read_credentials(authorization, parameters)

    assert refused.value.error == error


def test_nobody_has_no_client_id() -> None:
    assert not ClientCredentials().is_given
