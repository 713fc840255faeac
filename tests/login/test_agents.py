import pytest

from hublet.login.agents import browser_of

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
