"""Nobody's text runs, loads or looks like anything but text."""

import re
from collections.abc import Callable
from html.parser import HTMLParser
from urllib.parse import urlsplit

import pytest
from markupsafe import Markup

from hublet.web.rendering import decoration, formulas, markdown, sanitizer
from hublet.web.rendering.links import place_in_repo
from hublet.web.rendering.markdown import render, render_comment
from security.markdown_corpus import NESTING, hostile_texts

PLACE = place_in_repo("/ada/engine", folder="docs", hub="https://hub.example")
RENDERERS = (render, render_comment)

OWN_TAGS = formulas.FORMULA_TAGS | sanitizer.DOCUMENT.tags - {"center"}
ATTRIBUTES = {
    "alt", "align", "aria-label", "checked", "class", "colspan", "controls", "dir", "disabled", "height",
    "href", "id", "lang", "loading", "loop", "media", "muted", "name", "open", "poster", "preload", "rel",
    "role", "rowspan", "scope", "span", "src", "srcset", "start", "tabindex", "title", "type", "width",
}  # fmt: skip
VOID = {"br", "col", "hr", "img", "input", "source", "wbr"}
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class Inspector(HTMLParser):
    """Collects everything on a page that could do harm, and what was not closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.harm: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in OWN_TAGS:
            self.harm.append(f"<{tag}>")
        if tag == "a" and "a" in self.open:
            self.harm.append("a link in a link")
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            self.check(tag, name, value or "")

    def check(self, tag: str, name: str, value: str) -> None:
        if tag in formulas.FORMULA_TAGS:
            if name not in formulas.FORMULA_ATTRIBUTES:
                self.harm.append(f"<{tag} {name}={value}>")
            return
        if name not in ATTRIBUTES:
            self.harm.append(f"<{tag} {name}={value}>")
        if name == "href" and not is_harmless_link(value):
            self.harm.append(f"link to {value!r}")
        sources = value.split(", ") if name == "srcset" else [value]
        if name in {"src", "srcset", "poster"} and not all(map(is_of_the_hub, sources)):
            self.harm.append(f"loads {value!r}")
        if name in {"id", "name"} and not value.startswith("user-content-"):
            self.harm.append(f"id {value!r}")
        if name == "type" and tag == "input" and value != "checkbox":
            self.harm.append(f"input {value!r}")

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.harm.append(f"</{tag}> in the wrong place")

    def handle_comment(self, data: str) -> None:
        self.harm.append(f"<!--{data}-->")

    handle_decl = handle_pi = unknown_decl = handle_comment


def is_harmless_link(value: str) -> bool:
    if value.startswith("#user-content-") or is_of_the_hub(value):
        return True
    return urlsplit(value).scheme.lower() in {"http", "https", "mailto"}


def is_of_the_hub(value: str) -> bool:
    return bool(re.match(r"(https://hub\.example)?/(?![/\\])", value)) and "\\" not in value[:3]


def harm_in(html: Markup) -> list[str]:
    found = Inspector(str(html))
    controls = [repr(control) for control in CONTROLS.findall(str(html))]
    return [*found.harm, *found.open, *controls]


def test_the_inspector_sees_harm() -> None:
    # Otherwise all tests below would prove nothing.
    harmful = (
        "<script>x</script>", "<p onclick=x></p>", "<a href='javascript:x'></a>", "<img src=//x>", "<p>",
        "<p style=x></p>", "<a href=/x><a href=/y></a></a>", "<i></b>", "<!-- -->", "<p id=x></p>", "\x1b",
        "<input type=text>", "<img srcset='/a 1x, https://x 2x'>", "<svg></svg>", "\u202e", "</div>",
    )  # fmt: skip
    assert [text for text in harmful if not harm_in(Markup(text))] == []


def test_the_corpus_is_large() -> None:
    assert len(set(hostile_texts())) >= 400


@pytest.mark.parametrize("renderer", RENDERERS)
def test_nothing_hostile_survives(renderer: Callable[..., Markup]) -> None:
    harmed = {text: harm for text in hostile_texts() if (harm := harm_in(renderer(text, PLACE)))}
    assert harmed == {}


@pytest.mark.parametrize("renderer", RENDERERS)
def test_nothing_hostile_survives_inside_of_other_text(renderer: Callable[..., Markup]) -> None:
    texts = hostile_texts()[::4]
    inside = (
        "> {}",
        "- {}\n  text",
        "a **{}** b",
        "|a|\n|-|\n|{}|",
        "[{}](x.md)",
        "<details>\n\n{}",
    )
    harmed = [
        (form, text)
        for form in inside
        for text in texts
        if harm_in(renderer(form.replace("{}", text.replace("\n", " ")), PLACE))
    ]
    assert harmed == []


@pytest.mark.parametrize("number", range(len(NESTING)))
def test_deep_and_long_texts_are_shown_and_do_no_harm(number: int) -> None:
    assert harm_in(render(NESTING[number], PLACE)) == []


def test_a_second_parser_finds_no_harm_either() -> None:
    # What it would read differently is how mutations get through.
    rendered = [str(render(text, PLACE)) for text in hostile_texts()]
    again = [Markup(sanitizer.sanitize(html, PLACE)) for html in rendered]
    assert [html for html in again if harm_in(html)] == []
    unstable = [html for html in rendered if "<math" not in html and differs(html)]
    assert unstable == []


def differs(html: str) -> bool:
    """Whether parsing moves, opens or closes any tag."""
    again = sanitizer.sanitize(html, PLACE)
    return tags_of(again) != tags_of(html)


def tags_of(html: str) -> list[str]:
    return re.findall(r"</?[a-z0-9]+", html)


def test_links_in_links_are_one_link() -> None:
    html = render("<a href=/x><table><tr><td><a href=/y>y</a></td></tr></table></a>", PLACE)
    assert harm_in(html) == []


def test_quotes_nest_only_so_deep() -> None:
    for marks in (">" * 5_000, "> " * 5_000, "> - " * 2_000, ">\t1. " * 2_000):
        html = render(f"{marks}a\n", PLACE)
        assert html.count("<blockquote>") <= markdown.MAX_QUOTE_DEPTH
        assert html.count("<ul>") + html.count("<ol>") <= 200


@pytest.mark.parametrize(
    "tags", ["<div>", "<b>", "<div title='</div>'>", "<div><!--</div>-->", "<x-y>", "</div>"]
)
def test_more_tags_than_anybody_writes_are_shown_as_text(tags: str) -> None:
    html = render(tags * (markdown.MAX_NESTING_TAGS + 1), PLACE)
    assert "&lt;" in html
    assert "<div" not in html


def test_a_table_of_many_cells_is_not_too_much() -> None:
    rows = "<tr><td>1</td><td>2</td></tr>" * 1_000
    assert render(f"<table>{rows}</table>", PLACE).count("<td>") == 2_000


def test_a_text_that_becomes_too_much_html_stays_text() -> None:
    text = "".join(f"[^{number}]\n\n[^{number}]: a[^{number}]\n\n" for number in range(6_000))
    assert render(text, PLACE).startswith("<pre")


def test_a_long_text_is_cut_and_says_so() -> None:
    html = render("word " * (markdown.MAX_CHARACTERS // 5 + 1) + "end", PLACE)
    assert "This text is cut here" in html
    assert "end" not in html.partition("This text")[0]


def test_only_so_many_links_of_names_and_headings_are_made() -> None:
    names = render("@ada " * (decoration.MAX_NAME_LINKS + 10), PLACE)
    assert names.count("<a ") == decoration.MAX_NAME_LINKS
    headings = render("# a\n" * (decoration.MAX_HEADING_LINKS + 10), PLACE)
    assert headings.count("<a ") == decoration.MAX_HEADING_LINKS


def test_only_so_much_code_is_coloured_and_so_many_formulas_drawn() -> None:
    code = render("```python\nimport os\n```\n" * 2_000, PLACE)
    assert 0 < code.count('class="k"') <= 1_000
    drawn = render("$a$ " * 2_000, PLACE)
    assert 0 < drawn.count("<math") < 1_000
    assert drawn.count('<code class="math">') > 1_000
