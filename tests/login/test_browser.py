import pytest

from hublet.login.browser import START_PATH, browser_of, safe_path

CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0 Safari/537.36"
EDGE = CHROME.replace("X11; Linux x86_64", "Windows NT 10.0; Win64; x64") + " Edg/130.0"
OPERA = CHROME + " OPR/114.0"
SAFARI = (
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1 Version/18.0 Safari/605.1"
)
IPHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1 CriOS/130.0 Mobile Safari/604.1"
ANDROID = "Mozilla/5.0 (Android 15; Mobile; rv:132.0) Gecko/132.0 Firefox/132.0"


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        pytest.param(CHROME, "Chrome on Linux", id="Chrome"),
        pytest.param(EDGE, "Edge on Windows", id="Edge, which also says Chrome"),
        pytest.param(OPERA, "Opera on Linux", id="Opera, which also says Chrome"),
        pytest.param(SAFARI, "Safari on macOS", id="Safari"),
        pytest.param(IPHONE, "Chrome on iPhone", id="Chrome on a phone that also says Mac OS X"),
        pytest.param(ANDROID, "Firefox on Android", id="Firefox"),
        pytest.param("Firefox/132.0", "Firefox", id="an unknown system"),
        pytest.param("curl/8.5.0", "curl/8.5.0", id="no browser"),
        pytest.param("x" * 500, "x" * 60, id="something long"),
        pytest.param(None, "Unknown browser", id="nothing"),
    ],
)
def test_browsers_are_told_in_words(agent: str | None, words: str) -> None:
    assert browser_of(agent) == words


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/", id="the root"),
        pytest.param("/device", id="a path"),
        pytest.param("/device?user_code=ABCD-EFGH", id="a path with a query"),
        pytest.param("/oauth/authorize?redirect_uri=https%3A%2F%2Fa.example%2F", id="%-encoded"),
        pytest.param("/a//b", id="two slashes further on"),
        pytest.param("/a?next=https://b.example/", id="an address in the query"),
        pytest.param("/a#part", id="a fragment"),
        pytest.param("/%5Chost", id="an encoded backslash stays one"),
    ],
)
def test_a_path_of_this_hub_is_kept(path: str) -> None:
    assert safe_path(path) == path


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(None, id="nothing"),
        pytest.param("", id="empty"),
        pytest.param("device", id="a path without its slash"),
        pytest.param("//host/path", id="two slashes"),
        pytest.param("///host", id="three slashes"),
        pytest.param("/\\host", id="a slash and a backslash"),
        pytest.param("\\/host", id="a backslash and a slash"),
        pytest.param("/a\\b", id="a backslash anywhere"),
        pytest.param("https://host/", id="another host"),
        pytest.param("https:host", id="a scheme without slashes"),
        pytest.param("javascript:alert(1)", id="a script"),
        pytest.param("data:text/html,x", id="data"),
        pytest.param(" /device", id="a blank before"),
        pytest.param("/\t/host", id="a tab that browsers drop"),
        pytest.param("/\n/host", id="a line break that browsers drop"),
        pytest.param("/a\r\nSet-Cookie: b=c", id="a header"),
        pytest.param("/device\n", id="a line break at the end"),
        pytest.param("/\x00", id="NUL"),
        pytest.param("/\x7f", id="DEL"),
        pytest.param("/ä", id="a letter beyond ASCII"),
        pytest.param("/" + "a" * 40_000, id="too long"),
    ],
)
def test_everything_else_leads_to_the_start(path: str | None) -> None:
    assert safe_path(path) == START_PATH
