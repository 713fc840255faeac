"""The parameters of a request to an OAuth endpoint."""

import json

import pytest
from hypothesis import given, strategies

from hublet.core.errors import HubError
from hublet.oauth.auth import parse_parameters

FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(b"a=1&b=2", {"a": "1", "b": "2"}, id="two"),
        pytest.param(b"a=x%20y+z", {"a": "x y z"}, id="spaces"),
        pytest.param(b"a=&b", {}, id="without a value: left out"),
        pytest.param(b"a=%C3%A4", {"a": "ä"}, id="not ASCII"),
        pytest.param(b"resource=x&resource=y", {"resource": "x y"}, id="what may be repeated"),
        pytest.param(b"a=%F0%9F%98%80", {"a": "😀"}, id="a whole pair of surrogates"),
    ],
)
def test_a_form_is_read(body: bytes, expected: dict[str, str]) -> None:
    assert parse_parameters(FORM, body) == expected


texts = strategies.text()
values = strategies.recursive(
    strategies.none() | strategies.booleans() | strategies.floats() | texts,
    lambda inner: strategies.lists(inner) | strategies.dictionaries(texts, inner),
)


@given(
    content_type=strategies.sampled_from([FORM, "application/json", "", "text/plain"]),
    body=strategies.binary() | values.map(lambda value: json.dumps(value).encode()),
)
def test_whatever_comes_is_read_or_refused(content_type: str, body: bytes) -> None:
    try:
        parameters = parse_parameters(content_type, body)
    except HubError:
        return
    assert all(isinstance(value, str) and value for value in parameters.values())
    assert json.loads(json.dumps(parameters)) == parameters
