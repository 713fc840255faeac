import pytest

from hublet.login.next_paths import START, safe_path


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
    assert safe_path(path) == START
