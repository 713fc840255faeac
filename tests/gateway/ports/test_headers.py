"""Heads on their way to a job and back, and hosts that name one."""

from dataclasses import replace

import pytest

from hublet.core.config import Settings
from hublet.gateway.errors import AmbiguousRequest
from hublet.gateway.ports.exchange import encode_chunk
from hublet.gateway.ports.headers import (
    ProxyRequest,
    body_length,
    response_headers,
    without_cookies,
)
from hublet.gateway.ports.hosts import PortHosts
from hublet.gateway.records import JobPort

JOB = "0123456789abcdef01234567"


def a_request(*headers: tuple[bytes, bytes]) -> ProxyRequest:
    return ProxyRequest(method=b"POST", target=b"/", headers=list(headers))


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        pytest.param([], 0, id="no body"),
        pytest.param([(b"content-length", b"0")], 0, id="an empty one"),
        pytest.param([(b"content-length", b"12")], 12, id="a length"),
        pytest.param([(b"transfer-encoding", b" Chunked ")], None, id="chunks"),
    ],
)
def test_the_length_of_a_body_is_known_or_it_comes_in_chunks(
    headers: list[tuple[bytes, bytes]], expected: int | None
) -> None:
    assert body_length(a_request(*headers)) == expected


@pytest.mark.parametrize(
    ("headers", "rule"),
    [
        pytest.param(
            [(b"content-length", b"4"), (b"transfer-encoding", b"chunked")],
            "it has both Content-Length and Transfer-Encoding",
            id="two framings",
        ),
        pytest.param(
            [(b"content-length", b"4"), (b"content-length", b"4")],
            "its Content-Length is not one number",
            id="one length twice",
        ),
        pytest.param(
            [(b"content-length", b"4, 4")], "its Content-Length is not one number", id="a list"
        ),
        pytest.param(
            [(b"content-length", b"-1")], "its Content-Length is not one number", id="a sign"
        ),
        pytest.param(
            [(b"transfer-encoding", b"gzip, chunked")],
            "its Transfer-Encoding is not chunked alone",
            id="another coding",
        ),
        pytest.param(
            [(b"transfer-encoding", b"chunked"), (b"transfer-encoding", b"chunked")],
            "its Transfer-Encoding is not chunked alone",
            id="chunks of chunks",
        ),
        pytest.param(
            [(b"host", b"a"), (b"host", b"a")], "it names more than one Host", id="two hosts"
        ),
        pytest.param(
            [(b"content-length", b"4"), (b"connection", b"upgrade"), (b"upgrade", b"websocket")],
            "it has a body, and asks for another protocol",
            id="a body before another protocol",
        ),
    ],
)
def test_a_body_of_which_the_end_is_in_doubt_is_refused(
    headers: list[tuple[bytes, bytes]], rule: str
) -> None:
    with pytest.raises(AmbiguousRequest) as refused:
        body_length(a_request(*headers))

    assert refused.value.message == f"The request cannot be passed on: {rule}."


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        pytest.param([b"WebSocket"], b"WebSocket", id="as it is written"),
        pytest.param([b"websocket", b"h2x"], b"websocket, h2x", id="several"),
        pytest.param([b"h2c"], None, id="HTTP/2"),
        pytest.param([b"H2C-14"], None, id="a draft of it"),
        pytest.param([b"HTTP/2.0"], None, id="a version of HTTP"),
        pytest.param([b"TLS/1.0, HTTP/1.1"], None, id="HTTP under TLS, RFC 2817"),
        pytest.param([b"h2c, websocket", b" Http/3 "], b"websocket", id="in a list"),
        pytest.param([b" , "], None, id="nothing"),
    ],
)
def test_another_form_of_http_is_no_other_protocol(
    named: list[bytes], expected: bytes | None
) -> None:
    wanted = a_request((b"connection", b"keep-alive, Upgrade"), *((b"upgrade", n) for n in named))

    assert wanted.upgrade == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(b"a=1; ours=2; b=3", b"a=1; b=3", id="in the middle"),
        pytest.param(b"ours=2", b"", id="alone"),
        pytest.param(b"ours=1;ours=2", b"", id="twice"),
        pytest.param(b"theirs=ours=2", b"theirs=ours=2", id="in a value"),
        pytest.param(b"xours=2", b"xours=2", id="a name that ends alike"),
    ],
)
def test_the_hubs_cookies_are_taken_out(value: bytes, expected: bytes) -> None:
    assert without_cookies(value, {b"ours"}) == expected


def test_a_cookie_of_a_job_is_for_its_own_host() -> None:
    said = [
        (b"Set-Cookie", b"a=1; DOMAIN = .jobs.localhost; Path=/"),
        (b"X-Domain", b"a; domain=b"),
        (b"Content-Length", b"3"),
    ]

    assert response_headers(said, has_no_body=False) == [
        (b"set-cookie", b"a=1; Path=/"),
        (b"x-domain", b"a; domain=b"),
        (b"content-length", b"3"),
    ]
    assert (b"content-length", b"3") not in response_headers(said, has_no_body=True)


def test_chunks_have_their_length_before_them() -> None:
    assert encode_chunk(b"hello world", is_last=False) == b"b\r\nhello world\r\n"
    assert encode_chunk(b"a", is_last=True) == b"1\r\na\r\n0\r\n\r\n"
    assert encode_chunk(b"", is_last=True) == b"0\r\n\r\n"
    assert encode_chunk(b"", is_last=False) == b""


def hosts(*, domain: str, base_url: str) -> PortHosts:
    settings = Settings()
    return PortHosts(
        replace(
            settings,
            server=replace(settings.server, base_url=base_url),
            jobs=replace(settings.jobs, domain=domain),
        )
    )


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        (f"{JOB}--80.jobs.example", JobPort(JOB, 80)),
        (f"{JOB.upper()}--65535.Jobs.Example:8443", JobPort(JOB, 65535)),
        (f"{JOB}--80.jobsxexample", None),
        (f"{JOB}--80.jobs.example.evil", None),
        (f"{JOB}--80.jobs.example:80:80", None),
        (f"{JOB}--80.jobs.example ", None),
        (f"{JOB[:-1]}--80.jobs.example", None),
        (f"{JOB}--٨٠.jobs.example", None),
    ],
)
def test_a_host_names_a_port_exactly_or_not_at_all(host: str, expected: JobPort | None) -> None:
    found = hosts(domain="jobs.example", base_url="https://hub.example")

    assert found.target_of(host.encode()) == expected


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        pytest.param("hub.example.com", False, id="the hub, though under the domain"),
        pytest.param("HUB.example.com:443", False, id="the hub with a port"),
        pytest.param("example.com", True, id="the domain"),
        pytest.param("any.EXAMPLE.com:80", True, id="a name under it"),
        pytest.param("any.example.com.", True, id="with a dot behind it"),
        pytest.param("notexample.com", False, id="a name that ends alike"),
        pytest.param("example.com.evil", False, id="a name that begins alike"),
    ],
)
def test_all_names_under_the_domain_but_the_hubs_are_of_jobs(host: str, expected: bool) -> None:  # noqa: FBT001 - a table
    found = hosts(domain="example.com", base_url="https://hub.example.com")

    assert found.contains(host.encode()) is expected
