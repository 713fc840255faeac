"""Which address a request counts for."""

from ipaddress import ip_network

import pytest

from hublet.core.http.exchange import client_address

TRUSTED = (ip_network("10.0.0.0/8"), ip_network("::1/128"))


@pytest.mark.parametrize(
    ("peer", "forwarded", "expected"),
    [
        pytest.param("203.0.113.9", "1.2.3.4", "203.0.113.9", id="a stranger's header is ignored"),
        pytest.param("10.0.0.1", None, "10.0.0.1", id="a proxy without the header"),
        pytest.param("10.0.0.1", "1.2.3.4", "1.2.3.4", id="one proxy"),
        pytest.param("::1", "1.2.3.4", "1.2.3.4", id="a proxy on IPv6"),
        pytest.param("10.0.0.1", "6.6.6.6, 1.2.3.4, 10.0.0.2", "1.2.3.4", id="two proxies"),
        pytest.param("10.0.0.1", "1.2.3.4, garbage", "10.0.0.1", id="garbage ends the walk"),
        pytest.param("10.0.0.1", "evil, 1.2.3.4", "1.2.3.4", id="what a client wrote is not read"),
        pytest.param("10.0.0.1", "10.0.0.3", "10.0.0.3", id="only proxies: the farthest"),
        pytest.param("10.0.0.1", "", "10.0.0.1", id="an empty header"),
        pytest.param("unknown", "1.2.3.4", "unknown", id="a peer without an address"),
        pytest.param("10.0.0.1", "2001:db8::7", "2001:db8::7", id="an IPv6 client"),
    ],
)
def test_the_first_untrusted_hop_is_the_client(
    peer: str, forwarded: str | None, expected: str
) -> None:
    assert client_address(peer, forwarded, trusted=TRUSTED) == expected


def test_without_trusted_proxies_the_header_is_never_read() -> None:
    assert client_address("127.0.0.1", "1.2.3.4", trusted=()) == "127.0.0.1"
