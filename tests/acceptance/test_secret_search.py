"""The search for secrets finds what it must find, or finding nothing would mean nothing."""

import base64

import pytest

from acceptance.secret_search import find_secrets

SECRET = "k3nv-8wqd?ypx2>hm7t"


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(f"password={SECRET};".encode(), id="as it is"),
        pytest.param(b"?p=k3nv-8wqd%3Fypx2%3Ehm7t&", id="in an address"),
        pytest.param(SECRET.encode().hex().encode(), id="in hexadecimal"),
        pytest.param(SECRET.encode().hex().upper().encode(), id="in upper case"),
        pytest.param(base64.b64encode(f"ada:{SECRET}".encode()), id="in a Basic header"),
        pytest.param(base64.b64encode(f"root:{SECRET}!".encode()), id="amid other bytes"),
        pytest.param(base64.urlsafe_b64encode(f"bob-a:{SECRET}".encode()), id="in base64url"),
    ],
)
def test_a_secret_is_found_in_every_spelling(content: bytes) -> None:
    assert find_secrets({"the password": SECRET}, {"a file": content}) != []


def test_other_text_is_not_taken_for_the_secret() -> None:
    content = f"{SECRET[:-1]} {SECRET[1:]} {SECRET.upper()}".encode()

    assert find_secrets({"the password": SECRET}, {"a file": content}) == []
