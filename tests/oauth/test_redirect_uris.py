"""The redirect rule of interface 5.2 as a table, and the same rule under random texts."""

import re
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hublet.oauth.redirect_uris import (
    MAX_REDIRECT_URI,
    RESERVED_PARAMETERS,
    RedirectUriRefused,
    check_registrable,
    describe_difference,
    host_of,
    is_loopback,
    matches,
    with_parameters,
)

ACCEPTED = [
    pytest.param("http://localhost/callback", "http://localhost:49282/callback", id="L1"),
    pytest.param("http://127.0.0.1/callback", "http://127.0.0.1:1/callback", id="L2"),
    pytest.param("http://[::1]/callback", "http://[::1]:5/callback", id="L3"),
    pytest.param("http://127.0.0.1:8000/callback", "http://127.0.0.1/callback", id="L4"),
    pytest.param("http://localhost:3000/cb", "http://localhost:5555/cb", id="L5"),
    pytest.param("http://localhost/cb", "http://localhost:80/cb", id="L6"),
    pytest.param("myapp://callback", "myapp://callback", id="L15"),
    pytest.param("com.ex.app:/cb", "com.ex.app:/cb", id="L17"),
    pytest.param("http://localhost/cb?a=1", "http://localhost:1/cb?a=1", id="L20"),
    pytest.param("http://u@localhost/cb", "http://u@localhost:7/cb", id="L24"),
    pytest.param("http://localhost", "http://localhost:65535", id="no path, the largest port"),
    pytest.param("http://localhost?a", "http://localhost:1?a", id="a query without a path"),
    pytest.param("https://a.io/cb", "https://a.io/cb", id="https, the same text"),
    pytest.param("https://a.io:8443/cb?x=1", "https://a.io:8443/cb?x=1", id="https with all parts"),
]


@pytest.mark.parametrize(("registered", "requested"), ACCEPTED)
def test_accepts(registered: str, requested: str) -> None:
    assert matches(registered, requested)


LOCAL = "http://localhost/cb"
FOUR = "http://127.0.0.1/cb"
SIX = "http://[::1]/cb"

REJECTED = [
    pytest.param("http://localhost/callback", "http://127.0.0.1:49282/callback", id="L7"),
    pytest.param(FOUR, "http://localhost:9/cb", id="L8"),
    pytest.param(FOUR, "http://[::1]:9/cb", id="L9"),
    pytest.param("https://localhost/cb", "https://localhost:8443/cb", id="L10"),
    pytest.param("https://localhost/cb", "http://localhost:1/cb", id="L11"),
    pytest.param(FOUR, "https://127.0.0.1:1/cb", id="L12"),
    pytest.param("https://a.io/cb", "https://a.io:443/cb", id="L13"),
    pytest.param("https://a.io:443/cb", "https://a.io/cb", id="L14"),
    pytest.param("myapp://callback", "myapp://callback:1", id="L16"),
    pytest.param("myapp://callback", "MYAPP://callback", id="L18"),
    pytest.param(LOCAL, "http://localhost:1/cb?x=1", id="L19"),
    pytest.param("http://localhost/cb?a=1&b=2", "http://localhost:1/cb?b=2&a=1", id="L21"),
    pytest.param(LOCAL, "http://localhost:1/cb?", id="L22"),
    pytest.param(LOCAL, "http://user@localhost:1/cb", id="L23"),
    pytest.param(LOCAL, "http://@localhost:1/cb", id="with an empty user name"),
    pytest.param(LOCAL, "http://localhost:80@evil.com/cb", id="L25"),
    pytest.param(LOCAL, "http://localhost@evil.com/cb", id="without a port"),
    pytest.param(LOCAL, "http://localhost:1\\@evil.com/cb", id="L26"),
    pytest.param(LOCAL, "http://localhost.evil.com:1/cb", id="L27"),
    pytest.param(LOCAL, "http://localhost.:1/cb", id="L28"),
    pytest.param(LOCAL, "http://LOCALHOST:1/cb", id="L29"),
    pytest.param(LOCAL, "http://localhost:1/CB", id="L30"),
    pytest.param(LOCAL, "http://localhost:1/cb/", id="L31"),
    pytest.param(LOCAL, "http://localhost:1/./cb", id="L32"),
    pytest.param(LOCAL, "http://localhost:1/x/../cb", id="L33"),
    pytest.param(LOCAL, "http://localhost:1/%63b", id="L34"),
    pytest.param(LOCAL, "http://localhost:1/cb#f", id="L35"),
    pytest.param(LOCAL, "http://localhost:1/cb#", id="with an empty fragment"),
    pytest.param(FOUR, "http://127.0.0.2:1/cb", id="L36"),
    pytest.param(FOUR, "http://127.1:1/cb", id="L37"),
    pytest.param(FOUR, "http://2130706433:1/cb", id="in decimal"),
    pytest.param(FOUR, "http://0x7f.1/cb", id="in hexadecimal"),
    pytest.param(SIX, "http://[0:0:0:0:0:0:0:1]:1/cb", id="L39"),
    pytest.param(FOUR, "http://[::ffff:127.0.0.1]:1/cb", id="L40"),
    pytest.param("http://0.0.0.0/cb", "http://0.0.0.0:5/cb", id="L41"),
    pytest.param("http://foo.localhost/cb", "http://foo.localhost:5/cb", id="L42"),
    pytest.param(LOCAL, "http://localhost:65536/cb", id="L43"),
    pytest.param(LOCAL, "http://localhost:99999/cb", id="far above"),
    pytest.param(LOCAL, f"http://localhost:{'9' * 5000}/cb", id="endless"),
    pytest.param(LOCAL, "http://localhost:0/cb", id="L44"),
    pytest.param(LOCAL, "http://localhost:/cb", id="L45"),
    pytest.param(LOCAL, "http://localhost:080/cb", id="with a zero"),
    pytest.param(LOCAL, "http://localhost:+80/cb", id="with a sign"),
    pytest.param(LOCAL, "http://localhost:８０/cb", id="full-width"),  # noqa: RUF001 - the case
    pytest.param(LOCAL, "http://localhost:1/cb\n", id="a line feed after it"),
    pytest.param(LOCAL, "http://localhost/cb\n", id="the same without a port"),
    pytest.param(LOCAL, " http://localhost:1/cb", id="a space before it"),
    pytest.param(LOCAL, "http://local\thost:1/cb", id="a tab inside"),
    pytest.param(LOCAL, "http://localhost\n:1/cb", id="a line feed inside"),
    pytest.param(LOCAL, "HTTP://localhost:1/cb", id="L48"),
    pytest.param("http://example.com/cb", "http://example.com:81/cb", id="L49"),
    pytest.param(LOCAL, "", id="nothing asked for"),
    pytest.param(LOCAL, "http:/localhost:1/cb", id="one slash"),
    pytest.param(LOCAL, "http:\\\\localhost:1/cb", id="backslashes"),
    pytest.param("http://localhost:x/cb", "http://localhost:1/cb", id="a broken registered port"),
]


@pytest.mark.parametrize(("registered", "requested"), REJECTED)
def test_rejects(registered: str, requested: str) -> None:
    assert not matches(registered, requested)


def test_either_of_two_registered_loopback_hosts_is_accepted() -> None:
    registered = [LOCAL, FOUR]

    for requested in ("http://localhost:7/cb", "http://127.0.0.1:7/cb"):
        assert any(matches(each, requested) for each in registered), "L51"
    none: list[str] = []
    assert not any(matches(each, "http://localhost:1/x") for each in none), "L52"


@pytest.mark.parametrize(
    ("registered", "requested", "verdict"),
    [
        pytest.param("https://a.io/cb", "https://a.io/cb?_target_url=%2F", True, id="a query"),
        pytest.param("https://a.io/cb", "https://a.io/cb", True, id="no query"),
        pytest.param(LOCAL, "http://localhost:7/cb?_target_url=/", True, id="loopback with a port"),
        pytest.param("https://a.io/cb?x=1", "https://a.io/cb?x=1", True, id="a registered query"),
        pytest.param("https://a.io/cb?x=1", "https://a.io/cb?x=1&y=2", False, id="more than that"),
        pytest.param("https://a.io/cb", "https://a.io/cb?a#b", False, id="a fragment"),
        pytest.param("https://a.io/cb", "https://a.io/cb/x?a", False, id="another path"),
        pytest.param("https://a.io/cb", "https://b.io/cb?a", False, id="another host"),
        pytest.param("https://a.io/cb", "https://a.io/cb?code=1", False, id="a reserved name"),
        pytest.param(
            "https://a.io/cb", "https://a.io/cb?a=1&%73tate=1", False, id="hidden in code"
        ),
        pytest.param("https://a.io/cb", "https://a.io/cb?a\r\nb", False, id="a line end"),
    ],
)
def test_an_app_may_opt_in_to_any_query(registered: str, requested: str, *, verdict: bool) -> None:
    assert matches(registered, requested, dynamic_query=True) is verdict


def test_any_query_is_only_for_those_who_opted_in() -> None:
    assert not matches("https://a.io/cb", "https://a.io/cb?_target_url=%2F")


@pytest.mark.parametrize(
    "uri",
    [
        "https://a.io/cb",
        "https://a.io",
        "https://a.io:8443/cb?x=1",
        "https://u@a.io/cb",
        "https://xn--bcher-kva.example/cb",
        "https://[2001:db8::1]/cb",
        "http://localhost/cb",
        "http://localhost:3000/cb",
        "http://127.0.0.1/cb",
        "http://[::1]/cb?a=%20",
        "myapp://callback",
        "com.ex.app:/cb",
        f"https://a.io/{'x' * (MAX_REDIRECT_URI - 13)}",
    ],
)
def test_registrable(uri: str) -> None:
    check_registrable(uri)


_LENGTH = f"a redirect URI has 1 to {MAX_REDIRECT_URI} characters."
_CHARACTERS = "a redirect URI has only the characters of RFC 3986; all others are percent-encoded."
_SCHEME = "a redirect URI begins with a scheme in lower case, as in https://example.com/cb."
_HOST = "a redirect URI needs a host name, and its port is a number from 1 to 65535."
_PLAIN = "http is only for localhost, 127.0.0.1 and [::1]; other hosts need https."
_OWN = "after the scheme of an app comes :/ or ://, as in com.example.app:/cb."
_PATTERN = "a redirect URI is taken as it is, and * stands for nothing in it."


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        pytest.param("", _LENGTH, id="nothing"),
        pytest.param(f"https://a.io/{'x' * (MAX_REDIRECT_URI - 12)}", _LENGTH, id="too long"),
        pytest.param("https://a.io/cb#f", "a redirect URI has no fragment (#).", id="L35"),
        pytest.param("https://a.io/cb#", "a redirect URI has no fragment (#).", id="empty fragment"),
        pytest.param("http://example.com/cb", _PLAIN, id="L50"),
        pytest.param("http://0.0.0.0/cb", _PLAIN, id="L41"),
        pytest.param("http://foo.localhost/cb", _PLAIN, id="L42"),
        pytest.param("http://LOCALHOST/cb", _PLAIN, id="a loopback host in capitals"),
        pytest.param("http://[::ffff:127.0.0.1]/cb", _PLAIN, id="a mapped loopback address"),
        pytest.param("HTTPS://a.io/cb", _SCHEME, id="a scheme in capitals"),
        pytest.param("/cb", _SCHEME, id="no scheme"),
        pytest.param("//a.io/cb", _SCHEME, id="a host without a scheme"),
        pytest.param("localhost:3000/cb", _OWN, id="a host that reads like a scheme"),
        pytest.param("urn:ietf:wg:oauth:2.0:oob", _OWN, id="out of band"),
        pytest.param("https:///cb", _HOST, id="no host"),
        pytest.param("https:/a.io/cb", _HOST, id="one slash"),
        pytest.param("https://a.io:0/cb", _HOST, id="port 0"),
        pytest.param("https://a.io:65536/cb", _HOST, id="port 65536"),
        pytest.param("https://a.io:/cb", _HOST, id="an empty port"),
        pytest.param("https://a.io:0443/cb", _HOST, id="a port with a zero before it"),
        pytest.param("https://a@b@c.io/cb", _HOST, id="two at signs"),
        pytest.param("https://a.io./cb", _HOST, id="a dot after the host"),
        pytest.param("https://a..io/cb", _HOST, id="two dots in the host"),
        pytest.param("https://%61.io/cb", _HOST, id="an encoded host"),
        pytest.param("https://*.a.io/cb", _PATTERN, id="a pattern in the host"),
        pytest.param("https://a.io/*", _PATTERN, id="a pattern in the path"),
        pytest.param("https://a.io/c b", _CHARACTERS, id="a space"),
        pytest.param("https://a.io/cb\n", _CHARACTERS, id="a line feed"),
        pytest.param("https://a.io\\@b.io/cb", _CHARACTERS, id="a backslash"),
        pytest.param("https://a.io/ü", _CHARACTERS, id="not ASCII"),
        pytest.param("https://a.io/%2", _CHARACTERS, id="half an encoded character"),
        pytest.param("https://a.io/%zz", _CHARACTERS, id="no encoded character"),
    ],
)  # fmt: skip
def test_not_registrable(uri: str, reason: str) -> None:
    with pytest.raises(RedirectUriRefused) as refused:
        check_registrable(uri, field="redirect_uris")

    assert refused.value.message == f"redirect_uris: {reason}"


@pytest.mark.parametrize(
    "scheme",
    ["javascript", "data", "file", "blob", "about", "vbscript", "view-source", "ws", "wss"],
)
def test_schemes_that_a_browser_runs_are_not_registrable(scheme: str) -> None:
    for uri in (f"{scheme}:alert(1)", f"{scheme}://a.io/cb", f"{scheme}:/cb"):
        with pytest.raises(RedirectUriRefused, match=f"the scheme {scheme} leads to no app"):
            check_registrable(uri)


@pytest.mark.parametrize("name", sorted(RESERVED_PARAMETERS))
def test_the_names_of_the_answer_are_not_registrable_in_a_query(name: str) -> None:
    encoded = f"%{ord(name[0]):02x}{name[1:]}"
    for query in (f"{name}=1", name, f"a=1&{name}=", f"a=1&{encoded}=1"):
        with pytest.raises(RedirectUriRefused, match=f"must not have {name}: the answer adds it"):
            check_registrable(f"https://a.io/cb?{query}")
    check_registrable(f"https://a.io/cb?x{name}=1")


def test_all_reserved_names_of_the_table_are_refused() -> None:
    table = {"code", "state", "iss", "error", "error_description", "response", "session_state"}

    assert table <= RESERVED_PARAMETERS


@pytest.mark.parametrize(
    ("uri", "host", "loopback"),
    [
        ("https://A.io:8443/cb", "a.io", False),
        ("https://bank.com@evil.com/cb", "evil.com", False),
        ("http://u@localhost:1/cb", "localhost", True),
        ("http://[::1]/cb", "[::1]", True),
        ("https://localhost/cb", "localhost", False),
        ("myapp://callback", "myapp:", False),
        ("com.ex.app:/cb", "com.ex.app:", False),
    ],
)
def test_the_host_that_a_person_is_sent_to(uri: str, host: str, *, loopback: bool) -> None:
    assert host_of(uri) == host
    assert is_loopback(uri) is loopback


@pytest.mark.parametrize(
    ("uri", "whole"),
    [
        ("https://a.io/cb", "https://a.io/cb?code=a%20b&state=%26%3D%2F"),
        ("https://a.io/cb?x=%2f", "https://a.io/cb?x=%2f&code=a%20b&state=%26%3D%2F"),
        ("com.ex.app:/cb", "com.ex.app:/cb?code=a%20b&state=%26%3D%2F"),
    ],
)
def test_parameters_follow_a_query_that_is_kept(uri: str, whole: str) -> None:
    assert with_parameters(uri, {"code": "a b", "state": "&=/"}) == whole


@pytest.mark.parametrize(
    ("registered", "requested", "sentence"),
    [
        (
            "http://localhost/cb",
            "http://127.0.0.1:1/cb",
            "The host differs: localhost is registered, 127.0.0.1 was asked for.",
        ),
        (
            "https://a.io/cb",
            "https://a.io:443/cb",
            "The port differs: none is registered, 443 was asked for.",
        ),
        (
            "http://localhost/cb",
            "http://localhost:/cb",
            "The port differs: none is registered, an empty one was asked for.",
        ),
        (
            "http://[::1]/cb",
            "http://[::1]:7/cb/",
            "The path differs: /cb is registered, /cb/ was asked for.",
        ),
        (
            "https://a.io/cb",
            "http://a.io/cb",
            "The scheme differs: https is registered, http was asked for.",
        ),
        (
            "https://a.io/cb",
            "https://u@a.io/cb",
            "The user name differs: none is registered, u was asked for.",
        ),
        (
            "https://a.io/cb?x=1",
            "https://a.io/cb",
            "The query differs: x=1 is registered, none was asked for.",
        ),
        (
            "https://a.io/cb",
            "https://a.io/cb#f",
            "The fragment differs: none is registered, f was asked for.",
        ),
        (
            "https://a.io/cb",
            f"https://a.io/{'x' * 300}",
            f"The path differs: /cb is registered, /{'x' * 119}… was asked for.",
        ),
        (
            "https://a.io/cb",
            "https://a.io/cb\n",
            "The requested redirect URI has a character that no URI may have.",
        ),
    ],
)
def test_the_difference_is_one_sentence(registered: str, requested: str, sentence: str) -> None:
    assert describe_difference(registered, requested) == sentence


# From here on: the same rule under random texts.

_HOSTS = ["localhost", "127.0.0.1", "[::1]"]
_REST = st.sampled_from(["", "/", "/cb", "/cb?a=1", "/cb?", "/cb/x?y=http://z:1/", "?q", "/a:80/b"])
_USER = st.sampled_from(["", "u@", "u:p@", "@"])
_PORTS = st.one_of(st.just(""), st.integers(1, 65535).map(lambda port: f":{port}"))
_NASTY = st.text(
    alphabet="htps:/localhost127.0[]@#?\\%80:9\n\t é\uff20", min_size=0, max_size=40
)  # fmt: skip


@given(host=st.sampled_from(_HOSTS), user=_USER, rest=_REST, ports=st.tuples(_PORTS, _PORTS))
def test_on_a_loopback_host_any_two_ports_match(
    host: str, user: str, rest: str, ports: tuple[str, str]
) -> None:
    first, second = (f"http://{user}{host}{port}{rest}" for port in ports)

    assert matches(first, second)


@given(data=st.data(), ports=st.tuples(_PORTS, _PORTS))
def test_nothing_matches_when_anything_but_the_port_differs(
    data: st.DataObject, ports: tuple[str, str]
) -> None:
    parts = [
        st.sampled_from(["http://", "https://", "myapp://", "HTTP://"]),
        _USER,
        st.sampled_from([*_HOSTS, "LOCALHOST", "a.io", "localhost.", "127.1"]),
        _REST,
    ]
    first = [data.draw(part) for part in parts]
    changed = data.draw(st.integers(0, 3))
    second = list(first)
    second[changed] = data.draw(parts[changed].filter(lambda each: each != first[changed]))

    left, right = (
        f"{scheme}{user}{host}{port}{rest}"
        for (scheme, user, host, rest), port in zip((first, second), ports, strict=True)
    )
    assert not matches(left, right)
    assert not matches(right, left)


def _oracle(registered: str, requested: str) -> bool:
    """Decide with the standard library's parser and one deletion: slow, but another's work."""
    if registered == requested:
        return True
    texts = []
    for uri in (registered, requested):
        try:
            parts = urlsplit(uri)
            port = parts.port
        except ValueError:
            return False
        host = parts.netloc.rpartition("@")[2]
        bare = host if port is None else host.removesuffix(f":{port}")
        if not uri.startswith("http://") or port == 0 or bare not in _HOSTS:
            return False
        start = len("http://") + len(parts.netloc) - len(host) + len(bare)
        texts.append(uri[:start] + uri[start + len(host) - len(bare) :])
    return texts[0] == texts[1]


_AROUND = st.builds(
    lambda scheme, user, host, port, rest, cut, noise: (
        f"{scheme}{user}{host}{port}{rest}"[:cut] + noise + f"{scheme}{user}{host}{port}{rest}"[cut:]
    ),
    st.sampled_from(["http://", "https://"]),
    _USER,
    st.sampled_from([*_HOSTS, "a.io"]),
    st.one_of(_PORTS, st.sampled_from([":", ":0", ":080", ":65536", ":1:2", ":1@evil.com"])),
    _REST,
    st.integers(0, 30),
    st.one_of(st.just(""), st.just(""), _NASTY),
)  # fmt: skip
_CLEAN = re.compile(r"[!-~]*")


# In `make test`, and in `make test-full`.
_EXAMPLES = [200, pytest.param(1000, marks=pytest.mark.full)]


@pytest.mark.parametrize("examples", _EXAMPLES)
def test_the_matcher_is_never_more_generous_than_an_independent_one(examples: int) -> None:
    @settings(max_examples=examples)
    @given(registered=st.one_of(_AROUND, _NASTY), requested=st.one_of(_AROUND, _NASTY))
    def check(registered: str, requested: str) -> None:
        verdict = matches(registered, requested)

        assert not verdict or _oracle(registered, requested)
        assert isinstance(describe_difference(registered, requested), str)
        host_of(registered)

    check()


@pytest.mark.parametrize("examples", _EXAMPLES)
def test_between_registrable_texts_both_say_the_same(examples: int) -> None:
    @settings(max_examples=examples)
    @given(registered=_AROUND, requested=_AROUND)
    def check(registered: str, requested: str) -> None:
        for uri in (registered, requested):
            try:
                check_registrable(uri)
            except RedirectUriRefused:
                return
        assert _CLEAN.fullmatch(registered)
        assert matches(registered, requested) is _oracle(registered, requested)

    check()


@given(uri=st.one_of(st.text(max_size=60), _NASTY, _AROUND), port=st.integers(1, 65535))
def test_what_is_registrable_is_found_again(uri: str, port: int) -> None:
    try:
        check_registrable(uri)
    except RedirectUriRefused:
        return
    assert matches(uri, uri)
    assert matches(uri, uri, dynamic_query=True)
    assert host_of(uri) not in {"", ":"}
    assert with_parameters(uri, {"code": "c"}).startswith(uri)
    assert not matches(uri, f"{uri}:{port}") or is_loopback(uri)
