"""What a URL tells before its name is looked up."""

from ipaddress import IPv4Address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hublet.core.outgoing import AddressPolicy, UrlRefused, check_url
from hublet.core.outgoing.urls import MAX_URL, Destination, parse_destination

NOTHING_OPENED = AddressPolicy()
LOOPBACK_OPENED = AddressPolicy(allow=(ip_network("127.0.0.0/8"), ip_network("::1/128")))


def refusal_of(url: str, policy: AddressPolicy = NOTHING_OPENED) -> str:
    with pytest.raises(UrlRefused) as refusal:
        check_url(url, policy)
    return refusal.value.message


@pytest.mark.parametrize(
    ("url", "target"),
    [
        pytest.param(
            "https://example.com/hook?secret=1#top",
            Destination(secure=True, host="example.com", port=443),
            id="https",
        ),
        pytest.param(
            "http://example.com", Destination(secure=False, host="example.com", port=80), id="http"
        ),
        pytest.param(
            "HTTPS://Example.COM:8443/",
            Destination(secure=True, host="example.com", port=8443),
            id="capitals and a port",
        ),
        pytest.param(
            "http://h:65535", Destination(secure=False, host="h", port=65535), id="largest port"
        ),
        pytest.param("http://h:1", Destination(secure=False, host="h", port=1), id="smallest port"),
        pytest.param(
            "http://h?x", Destination(secure=False, host="h", port=80), id="query without path"
        ),
        pytest.param(
            "http://my_service-1",
            Destination(secure=False, host="my_service-1", port=80),
            id="one label",
        ),
        pytest.param(
            "http://example.com./",
            Destination(secure=False, host="example.com.", port=80),
            id="a dot",
        ),
        pytest.param(
            "https://bücher.example/ä",
            Destination(secure=True, host="xn--bcher-kva.example", port=443),
            id="an international name",
        ),
        pytest.param(
            "http://8.8.8.8:80", Destination(secure=False, host="8.8.8.8", port=80), id="IPv4"
        ),
        pytest.param(
            "http://[2606:4700::1111]:80",
            Destination(secure=False, host="2606:4700::1111", port=80),
            id="IPv6",
        ),
        pytest.param(
            "http://localhost.example.com",
            Destination(secure=False, host="localhost.example.com", port=80),
            id="a name that only begins like localhost",
        ),
        pytest.param(
            "http://10.example.com",
            Destination(secure=False, host="10.example.com", port=80),
            id="digits",
        ),
        pytest.param(
            "http://metadata.google.internal",
            Destination(secure=False, host="metadata.google.internal", port=80),
            id="a name is judged when it is looked up",
        ),
    ],
)
def test_where_a_url_leads(url: str, target: Destination) -> None:
    assert parse_destination(url, NOTHING_OPENED) == target
    check_url(url, NOTHING_OPENED)


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        pytest.param("127.0.0.1", "a loopback", id="loopback"),
        pytest.param("0.0.0.0", "an unspecified", id="no address"),
        pytest.param("10.0.0.1", "a private network", id="private"),
        pytest.param("169.254.169.254", "a metadata service", id="metadata"),
        pytest.param("224.0.0.1", "a multicast", id="multicast"),
        pytest.param("2130706433", "a loopback", id="one decimal number"),
        pytest.param("0x7f000001", "a loopback", id="one hexadecimal number"),
        pytest.param("017700000001", "a loopback", id="one octal number"),
        pytest.param("127.1", "a loopback", id="two parts"),
        pytest.param("127.0.1", "a loopback", id="three parts"),
        pytest.param("0177.0.0.1", "a loopback", id="octal"),
        pytest.param("0x7f.0x0.0x0.0x1", "a loopback", id="hexadecimal"),
        pytest.param("127.0.0.1.", "a loopback", id="a dot at the end"),
        pytest.param("0", "an unspecified", id="zero"),
        pytest.param("0x", "an unspecified", id="nothing after 0x"),
        pytest.param("localhost", "a loopback", id="localhost"),
        pytest.param("localhost.", "a loopback", id="localhost with a dot"),
        pytest.param("hooks.localhost", "a loopback", id="a name under localhost"),
    ],
)
def test_a_host_in_a_refused_network(host: str, reason: str) -> None:
    told = host.removesuffix(".")
    sentence = f"url: {told} is {reason} address, which this hub does not call unless outgoing.allow names it."

    assert refusal_of(f"http://{host}:8000/hook") == sentence
    assert refusal_of(f"https://{host.upper()}") == sentence


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        pytest.param("\uff11\uff12\uff17.0.0.1", "127.0.0.1", id="wide digits"),
        pytest.param("127\u30020\u30020\u30021", "127.0.0.1", id="ideographic dots"),
        pytest.param("\u24dbocalhost", "localhost", id="a letter in a circle"),
        pytest.param("[::1]", "::1", id="IPv6"),
        pytest.param("[::FFFF:127.0.0.1]", "::ffff:127.0.0.1", id="mapped"),
        pytest.param("[64:ff9b::7f00:1]", "64:ff9b::7f00:1", id="NAT64"),
        pytest.param("[2002:7f00:1::]", "2002:7f00:1::", id="6to4"),
    ],
)
def test_other_ways_to_write_this_machine(host: str, shown: str) -> None:
    assert refusal_of(f"http://{host}/") == (
        f"url: {shown} is a loopback address, which this hub does not call unless outgoing.allow names it."
    )


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        pytest.param("", "only URLs that begin with http:// or https:// are called.", id="nothing"),
        pytest.param(
            "ftp://example.com",
            "only URLs that begin with http:// or https:// are called.",
            id="another scheme",
        ),
        pytest.param(
            "example.com/hook",
            "only URLs that begin with http:// or https:// are called.",
            id="no scheme",
        ),
        pytest.param(
            "http:example.com",
            "only URLs that begin with http:// or https:// are called.",
            id="no slashes",
        ),
        pytest.param(
            "http:///hook", "a URL needs one host, with an IPv6 address in brackets.", id="no host"
        ),
        pytest.param(
            "http://:80",
            "a URL needs one host, with an IPv6 address in brackets.",
            id="a port only",
        ),
        pytest.param(
            "http://::1/",
            "a URL needs one host, with an IPv6 address in brackets.",
            id="no brackets",
        ),
        pytest.param(
            "http://[::1]x", "a URL needs one host, with an IPv6 address in brackets.", id="more"
        ),
        pytest.param(
            "http://ada:pw@example.com",
            "a URL must not hold a user name or password.",
            id="userinfo",
        ),
        pytest.param(
            "http://example.com@127.0.0.1/",
            "a URL must not hold a user name or password.",
            id="a host that is none",
        ),
        pytest.param("http://h:0", "the port must be a number from 1 to 65535.", id="port 0"),
        pytest.param("http://h:65536", "the port must be a number from 1 to 65535.", id="too high"),
        pytest.param("http://h:", "the port must be a number from 1 to 65535.", id="no port"),
        pytest.param("http://h:+80", "the port must be a number from 1 to 65535.", id="a sign"),
        pytest.param(
            "http://h:\uff18\uff10", "the port must be a number from 1 to 65535.", id="wide digits"
        ),
        pytest.param("http://%31", "the host must not be percent-encoded.", id="percent"),
        pytest.param("http://a..b", "the host is not a valid host name.", id="an empty label"),
        pytest.param("http://h..", "the host is not a valid host name.", id="two dots"),
        pytest.param("http://a+b", "the host is not a valid host name.", id="a strange sign"),
        pytest.param(f"http://{'a' * 64}", "the host is not a valid host name.", id="a long label"),
        pytest.param(
            f"http://{'a.' * 126}aa", "the host is not a valid host name.", id="a long name"
        ),
        pytest.param(
            "http://-\xfc.example", "the host is not a valid international name.", id="IDNA"
        ),
        pytest.param("http://[v1.x]", "the brackets must hold an IPv6 address.", id="a future IP"),
        pytest.param("http://[]", "the brackets must hold an IPv6 address.", id="empty brackets"),
        pytest.param(
            "http://[2606::1%25eth0]", "the brackets must hold an IPv6 address.", id="a zone"
        ),
        pytest.param("http://1.2.3.4.5", "1.2.3.4.5 is not a valid IPv4 address.", id="five parts"),
        pytest.param(
            "http://256.1.1.1", "256.1.1.1 is not a valid IPv4 address.", id="over a byte"
        ),
        pytest.param("http://1.65536.1", "1.65536.1 is not a valid IPv4 address.", id="amid three"),
        pytest.param("http://1.1.65536", "1.1.65536 is not a valid IPv4 address.", id="over two"),
        pytest.param(
            "http://4294967296", "4294967296 is not a valid IPv4 address.", id="over four"
        ),
        pytest.param("http://08.1.1.1", "08.1.1.1 is not a valid IPv4 address.", id="no octal"),
        pytest.param(
            "http://example.0x1", "example.0x1 is not a valid IPv4 address.", id="hex end"
        ),
        pytest.param("http://134744072", "134744072 must be written as 8.8.8.8.", id="decimal"),
        pytest.param("http://010.8.8.8", "010.8.8.8 must be written as 8.8.8.8.", id="octal"),
        pytest.param(
            "http://8.8.8.8.", "8.8.8.8. must be written as 8.8.8.8.", id="address and dot"
        ),
        pytest.param(
            "http://exa mple.com",
            "a URL has no spaces, control characters or backslashes.",
            id="gap",
        ),
        pytest.param(
            "http://h/\r\nX: y",
            "a URL has no spaces, control characters or backslashes.",
            id="CRLF",
        ),
        pytest.param(
            "http://h\\@127.0.0.1",
            "a URL has no spaces, control characters or backslashes.",
            id="a backslash",
        ),
        pytest.param(
            "http://h/" + "x" * MAX_URL, "a URL has at most 2048 characters.", id="a long one"
        ),
    ],
)
def test_what_is_not_called(url: str, sentence: str) -> None:
    assert refusal_of(url) == f"url: {sentence}"


def test_the_longest_url_is_called() -> None:
    check_url("http://h/" + "x" * (MAX_URL - 9), NOTHING_OPENED)


def test_the_sentence_names_the_field_it_is_about() -> None:
    with pytest.raises(UrlRefused) as refusal:
        check_url("http://127.0.0.1", NOTHING_OPENED, field="logo_uri")

    assert refusal.value.status == 400
    assert refusal.value.message == (
        "logo_uri: 127.0.0.1 is a loopback address, which this hub does not call unless outgoing.allow names it."
    )


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "x.localhost", "[::1]"])
def test_what_the_operator_opened_is_called(host: str) -> None:
    check_url(f"http://{host}:9000/", LOOPBACK_OPENED)


def test_an_opened_address_is_still_written_in_one_way() -> None:
    assert refusal_of("http://127.1/", LOOPBACK_OPENED) == (
        "url: 127.1 must be written as 127.0.0.1."
    )


forms = st.sampled_from(["{}", "0x{:x}", "0{:o}", "0x0{:X}", "00{:o}"])


@given(st.integers(0, 0xFF_FFFF), st.lists(forms, min_size=4, max_size=4), st.integers(1, 4))
def test_no_spelling_of_a_loopback_address_is_called(
    low: int, spelling: list[str], parts: int
) -> None:
    address = IPv4Address(127 << 24 | low)
    high = list(address.packed[: parts - 1])
    rest = int.from_bytes(address.packed[parts - 1 :], "big")
    host = ".".join(form.format(part) for form, part in zip(spelling, [*high, rest], strict=False))

    assert refusal_of(f"http://{host}/").endswith(
        "is a loopback address, which this hub does not call unless outgoing.allow names it."
    )
