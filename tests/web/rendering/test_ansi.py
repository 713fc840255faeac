"""Terminal output as HTML: colours and bold, and nothing that a hostile program could do with it."""

import re
from html.parser import HTMLParser

import pytest

from hublet.web.rendering.ansi import plain_text, render_line, strip_escapes


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("plain", "plain"),
        ("a & <b> \"c\" 'd'", "a &amp; &lt;b&gt; &#34;c&#34; &#39;d&#39;"),
        ("\x1b[31mred\x1b[0m rest", '<span class="a31">red</span> rest'),
        ("\x1b[1;32mOK\x1b[m!", '<span class="a32 a1">OK</span>!'),
        (
            "\x1b[1;31mE\x1b[22mx\x1b[39my",
            '<span class="a31 a1">E</span><span class="a31">x</span>y',
        ),
        ("\x1b[91mbright", '<span class="a31">bright</span>'),
        ("\x1b[30mblack\x1b[37mwhite", '<span class="a90">black</span>white'),
        ("\x1b[2mdim", '<span class="a2">dim</span>'),
        ("\x1b[38;5;208morange", '<span class="a33">orange</span>'),
        ("\x1b[38;5;9mred", '<span class="a31">red</span>'),
        ("\x1b[38;5;244mgrey", "grey"),
        ("\x1b[38;5;236mdark", '<span class="a90">dark</span>'),
        ("\x1b[38;2;20;30;250mblue", '<span class="a34">blue</span>'),
        ("\x1b[38:2:20:250:30mgreen", '<span class="a32">green</span>'),
        ("\x1b[48;5;1mnot the background", "not the background"),
        ("\x1b[31;48;2;1;2;3mred", '<span class="a31">red</span>'),
        ("\x1b[38;5mcut\x1b[38;2;1mcut", "cutcut"),
        ("\x1b[4;7;99munknown", "unknown"),
        ("\x9b31mshort form", '<span class="a31">short form</span>'),
        ("\x1b[2K\x1b[1A\x1b[?25lmoves", "moves"),
        ("\x1b]8;;https://evil.example\x1b\\link\x1b]8;;\x07", "link"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1bPq#0;2;0\x1b\\sixel", "sixel"),
        ("\x1b(Bcharset\x1b7\x1bM", "charset"),
        ("never ends \x1b]0;title", "never ends "),
        ("never ends \x1b[31", "never ends "),
        ("10%\r55%\r100%", "100%"),
        ("progress\rdone", "doneress"),
        ("ends with one\r", "ends with one"),
        ("\x1b[31mlong red\r\x1b[32mok", '<span class="a32">ok</span>'),
        ("ab\bc", "ac"),
        ("a\x00\x07\x7fb\u2028c", "abc"),
        ("exe.\u202etxt", "exe.\ufffdtxt"),
        ("a\tb", "a\tb"),
        ("é 漢 🚀", "é 漢 🚀"),
    ],
)
def test_a_line_is_rendered(text: str, html: str) -> None:
    assert render_line(text) == html


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[tuple[str, tuple[tuple[str, str | None], ...]]] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add((tag, tuple(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


PAYLOADS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "javascript:alert(1)",
    "&lt;script&gt;",
    "</span></div><h1>",
    "${7*7}{{7*7}}",
)
CARRIERS = (
    "{}",
    "\x1b[31m{}\x1b[0m",
    "\x1b]8;;{}\x07{}\x1b]8;;\x07",
    "\x1b]8;;{}",
    "\x1b[{}m",
    "\x1b[38;5;{}m{}",
    "x\r{}",
    "<\b{}",
    "<\x1b[0mscript>{}",
    "&\x1b[1mlt;{}",
    "\x9d{}\x9c{}",
    "\x1bP{}\x1b\\{}",
    "\u202e{}\u2069",
    "\x00{}\x00",
)


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("payload", PAYLOADS)
def test_hostile_output_stays_text(carrier: str, payload: str) -> None:
    html = render_line(carrier.replace("{}", payload))

    parser = Tags()
    parser.feed(html)
    parser.close()
    assert all(tag == "span" and len(attrs) == 1 for tag, attrs in parser.found), html
    classes = {str(value) for _, attrs in parser.found for _, value in attrs}
    assert all(re.fullmatch(r"a\d+( a[12])*", each) for each in classes)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", html)


@pytest.mark.parametrize(
    "text",
    [
        "\x1b[" * 50_000,
        "\x1b]" * 50_000,
        "\x1b[1;" * 50_000,
        "a\b" * 50_000,
        "\b" * 50_000,
        "\r" * 65_536,
        "\x1b[" + ";" * 65_536 + "m",
        "\x1b[" + "9" * 65_536 + "m",
    ],
    ids=range(8),
)
def test_much_of_nothing_shows_nothing(text: str) -> None:
    assert "<" not in render_line(text)


def test_a_search_sees_what_a_reader_sees() -> None:
    text = b"1 \x1b[32mloss\x1b[0m=\x1b]8;;x\x1b\\0.5\n2 never ends \x1b]0;title\n3 next\n"

    assert strip_escapes(text) == b"1 loss=0.5\n2 never ends \n3 next\n"
    assert plain_text("\x1b[31mdata\x1b[0m\x07") == "data"
