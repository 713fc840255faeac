"""The load of the benchmark `oauth`."""

import pytest
from benchmarks.oauth_cases import CASES, Case
from benchmarks.oauth_load import VALUE


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_value_stands_in_the_request_once_and_its_length_is_told(case: Case) -> None:
    for request in (case.request("YXBw"), case.their_request("YXBw")):
        head, _, body = request.bytes_with("a-value").partition(b"\r\n\r\n")

        assert (head + body).count(b"a-value") == 1
        assert VALUE.encode() not in head + body
        assert (f"content-length: {len(body)}".encode() in head) == bool(body)


def test_a_request_is_a_form_that_the_app_signs() -> None:
    [case] = [each for each in CASES if each.name == "introspection"]

    assert case.request("YXBw").bytes_with("a-value") == (
        b"POST /oauth/introspect HTTP/1.1\r\n"
        b"host: hub.test\r\nuser-agent: benchmarks\r\naccept: */*\r\n"
        b"authorization: Basic YXBw\r\n"
        b"content-type: application/x-www-form-urlencoded\r\ncontent-length: 13\r\n\r\n"
        b"token=a-value"
    )
