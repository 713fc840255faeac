"""Markdown as GitHub's dialect has it, and what the hub adds."""

import re

import pytest

from hublet.web.rendering.links import MarkdownPlace, place_in_repo
from hublet.web.rendering.markdown import VERSION, render, render_comment

PLACE = place_in_repo("/ada/engine", folder="docs", hub="https://hub.example")
SHA = "4f2c9e1789abcdef0123456789abcdef01234567"

# Examples of the dialect: what is written, and what a page has of it.
DIALECT = [
    ("a *b* __c__ ***d***", "<em>b</em> <strong>c</strong> <em><strong>d</strong></em>"),
    ("~~gone~~ ~also~", "<del>gone</del> <del>also</del>"),
    ("foo_bar_baz", "<p>foo_bar_baz</p>"),
    ("`a  b`", "<code>a  b</code>"),
    ("``a ` b``", "<code>a ` b</code>"),
    ("a\\*b", "a*b"),
    ("&copy; &amp; &lt;", "© &amp; &lt;"),
    ("a  \nb", "a<br>\nb"),
    ("a\\\nb", "a<br>\nb"),
    ("a\nb", "<p>a\nb</p>"),
    ("---", "<hr>"),
    ("* * *", "<hr>"),
    ("> a\nb", "<blockquote>\n<p>a\nb</p>\n</blockquote>"),
    ("- a\n- b", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>"),
    ("3. a\n4. b", '<ol start="3">\n<li>a</li>\n<li>b</li>\n</ol>'),
    ("- a\n\n- b", "<li>\n<p>a</p>\n</li>"),
    ("- a\n  - b", "<li>a\n<ul>\n<li>b</li>\n</ul>\n</li>"),
    ("|a|b|\n|:-|-:|\n|1|2|", '<th align="left">a</th>\n<th align="right">b</th>'),
    ("|a|\n|-|\n|1 \\| 2|", "<td>1 | 2</td>"),
    ("|a|b|\n|-|-|\n|1|", "<td>1</td>\n<td></td>"),
    ("- [ ] a", '<input type="checkbox" disabled aria-label="Not done"> a'),
    ("- [x] a", '<input type="checkbox" checked disabled aria-label="Done"> a'),
    ("<https://a.example/?b&c>", 'href="https://a.example/?b&amp;c"'),
    ("see www.a.example/b.", '<a href="http://www.a.example/b" rel="nofollow noopener">www.a.example/b</a>.'),
    ("(https://a.example/b)", ">https://a.example/b</a>)"),
    ("ada@a.example", '<a href="mailto:ada@a.example"'),
    ('[a](https://a.example "b")', '<a href="https://a.example" title="b" rel="nofollow noopener">a</a>'),
    ("[a][b]\n\n[b]: https://a.example", '<a href="https://a.example"'),
    ("[a]", "<p>[a]</p>"),
    ("```\n<b>\n```", "<code>&lt;b&gt;\n</code>"),
    ("~~~\na\n~~~", "<code>a\n</code>"),
    ("    a", "<code>a\n</code>"),
    ("a[^x]\n\n[^x]: b", '<a href="#user-content-fn-x" id="user-content-fnref-x"'),
    ("> [!TIP]\n> a", '<div class="markdown-alert markdown-alert-tip">'),
    ("> [!CAUTION]\n> a", '<p class="markdown-alert-title">Caution</p>'),
    ("H<sub>2</sub>O <kbd>x</kbd>", "H<sub>2</sub>O <kbd>x</kbd>"),
    ("<details open><summary>a</summary>\n\n*b*\n\n</details>", "<summary>a</summary>\n<p><em>b</em></p>"),
    ("<!-- hidden -->\n\na", "<p>a</p>"),
    ('<p align="center">a</p>', '<p align="center">a</p>'),
    ("<center>a</center>", '<div align="center">a</div>'),
    ("$a$ costs $5 and $6", "<mi>a</mi>"),
    ("$$\na\n$$", '<math display="block">'),
    ("```math\na\n```", '<math display="block">'),
    ("costs 5$ and 6$", "<p>costs 5$ and 6$</p>"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "html"), DIALECT)
def test_the_dialect(text: str, html: str) -> None:
    assert html in render(text, PLACE)


def test_metadata_is_not_shown() -> None:
    assert render("---\nlicense: mit\n---\n\n# Engine", PLACE).startswith("<h1")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("[a](b.md)", "/ada/engine/blob/main/docs/b.md"),
        ("[a](./b.md#c-d)", "/ada/engine/blob/main/docs/b.md#user-content-c-d"),
        ("[a](b.py#L12)", "/ada/engine/blob/main/docs/b.py#L12"),
        ("[a](../b.md)", "/ada/engine/blob/main/b.md"),
        ("[a](../../../../b.md)", "/ada/engine/blob/main/b.md"),
        ("[a](b/)", "/ada/engine/tree/main/docs/b"),
        ("[a](..)", "/ada/engine/tree/main"),
        ("[a](<b c.md>)", "/ada/engine/blob/main/docs/b%20c.md"),
        ("[a](b%20c.md)", "/ada/engine/blob/main/docs/b%20c.md"),
        ("[a](b.md?x=1)", "/ada/engine/blob/main/docs/b.md?x=1"),
        ("[a](/datasets/ada/numbers)", "/datasets/ada/numbers"),
        ("[a](#Part-1)", "#user-content-Part-1"),
        ("![a](b.png)", "/ada/engine/resolve/main/docs/b.png"),
        ("<img src='b.png?x=1'>", "/ada/engine/resolve/main/docs/b.png?x=1"),
        ("![a](/avatars/x.png)", "/avatars/x.png"),
        ("![a](https://hub.example/attachments/x.png)", "https://hub.example/attachments/x.png"),
        ("<video src=b.mp4></video>", "/ada/engine/resolve/main/docs/b.mp4"),
    ],
)
def test_addresses_lead_into_the_repository(text: str, address: str) -> None:
    found = re.findall(r'(?:href|src)="([^"]*)"', render(text, PLACE))
    assert found == [address]


@pytest.mark.parametrize(
    ("revision", "segment"),
    [("refs/pr/7", "refs/pr/7"), ("feature/x", "feature%2Fx"), ("v1.0", "v1.0"), ("a b", "a%20b")],
)
def test_a_revision_is_one_segment_unless_clients_write_it_otherwise(
    revision: str, segment: str
) -> None:
    html = render("[a](b.md)", place_in_repo("/ada/engine", revision=revision))
    assert f'"/ada/engine/blob/{segment}/b.md"' in html


def test_without_a_repository_relative_links_lead_nowhere() -> None:
    html = render("[a](b.md) ![c](d.png) [e](/f)", MarkdownPlace())
    assert re.findall(r'(?:href|src)="([^"]*)"', html) == ["/f"]
    assert "c" in html


def test_pictures_of_other_sites_are_links() -> None:
    html = render("![Loss](https://a.example/loss.png)", PLACE)
    assert '<a class="pic" href="https://a.example/loss.png"' in html
    assert ">Loss</a>" in html
    assert "<img" not in html


def test_a_picture_in_a_link_becomes_its_text() -> None:
    html = render("[![Build](https://a.example/b.svg)](https://a.example)", PLACE)
    assert '><span class="pic">Build</span></a>' in html


def test_pictures_of_other_sites_are_shown_where_the_hub_allows_it() -> None:
    shown = MarkdownPlace(repo="/ada/engine", remote_images=True)
    assert '<img src="https://a.example/loss.png"' in render(
        "![](https://a.example/loss.png)", shown
    )


def test_other_sites_are_not_asked_for_video_posters_or_source_sets() -> None:
    text = (
        "<video src=a.mp4 poster=https://a.example/x.png></video><video src=https://a.example/v></video>"
        "<picture><source srcset='https://a.example/x.png 2x'><img src=b.png></picture>"
    )
    html = render(text, PLACE)
    assert re.findall(r'(?:src|srcset|poster)="([^"]*)"', html) == [
        "/ada/engine/resolve/main/docs/a.mp4",
        "/ada/engine/resolve/main/docs/b.png",
    ]


def test_names_numbers_and_commits_become_links() -> None:
    html = render_comment(f"@ada fixed #12 in {SHA[:7]}, see {SHA}", PLACE)
    assert '<a class="mention" href="/ada">@ada</a>' in html
    assert '<a class="thread" href="/ada/engine/discussions/12">#12</a>' in html
    assert f'<a class="sha" href="/ada/engine/commit/{SHA[:7]}">{SHA[:7]}</a>' in html
    assert f'<a class="sha" href="/ada/engine/commit/{SHA}">{SHA}</a>' in html


@pytest.mark.parametrize("repo", ["bob/loom", "datasets/bob/numbers"])
def test_a_thread_of_another_repository_is_a_link_anywhere(repo: str) -> None:
    for place in (PLACE, MarkdownPlace()):
        html = render_comment(f"As in {repo}#12.", place)
        assert f'<a class="thread" href="/{repo}/discussions/12">{repo}#12</a>' in html


@pytest.mark.parametrize(
    "text",
    [
        "`@ada #12`",
        "`bob/loom#12`",
        "https://a.example/bob/loom#12",
        "    @ada #12\n",
        "[@ada #12](https://a.example)",
        "a@ada.example.x/y#12",
        "#0 #12a &#35;012",
        "deadbeef 1234567",
        "https://a.example/@ada#12",
        f"/{SHA}",
    ],
)
def test_code_links_and_words_are_no_names(text: str) -> None:
    assert 'class="mention"' not in render_comment(text, PLACE)
    assert 'class="thread"' not in render_comment(text, PLACE)
    assert 'class="sha"' not in render_comment(text, PLACE)


def test_a_short_commit_in_a_document_may_be_anything() -> None:
    assert "<a" not in render(SHA[:7], PLACE)


def test_a_place_without_threads_links_no_numbers() -> None:
    assert render("#12", MarkdownPlace()) == "<p>#12</p>\n"


def test_the_outline_starts_where_the_page_needs_it_and_leaves_no_level_out() -> None:
    place = MarkdownPlace(heading_level=2)
    html = render("## A\n#### B\n## C\n# D\n## E\n### F\n#### G\n##### H\n###### I\n", place)
    assert re.findall(r"<h(\d)", html) == ["2", "3", "2", "2", "3", "4", "5", "6", "6"]
    assert re.findall(r"</h(\d)", html) == re.findall(r"<h(\d)", html)


def test_headings_have_ids_of_their_own() -> None:
    html = render("# A b\n# A b\n# A b-1\n# Größe & *more*!\n# \n", PLACE)
    ids = re.findall(r'id="user-content-([^"]*)"', html)
    assert ids == ["a-b", "a-b-1", "a-b-1-1", "größe--more", "section"]
    assert 'href="#user-content-größe--more" aria-label="Link to Größe &amp; more!"' in html


def test_texts_on_one_page_keep_their_ids_apart() -> None:
    html = render_comment("# A\n\nb[^1] [c](#a)\n\n[^1]: d", MarkdownPlace(anchor="c7"))
    assert set(re.findall(r'id="([^"]*)"', html)) == {
        "user-content-c7-a",
        "user-content-c7-fn-1",
        "user-content-c7-fnref-1",
    }
    assert 'href="#user-content-c7-a"' in html


def test_tables_scroll_in_a_box() -> None:
    html = render("|a|\n|-|\n|1|", PLACE)
    assert html.startswith('<div class="tbl" tabindex="0" role="group" aria-label="Table"><table>')
    assert html.rstrip().endswith("</table></div>")


def test_code_in_fences_is_coloured_by_its_language() -> None:
    html = render("```python\nimport os  # <b>\n```", PLACE)
    assert html == (
        '<pre class="hl" tabindex="0"><code><span class="k">import</span> os  '
        '<span class="c"># &lt;b&gt;</span>\n</code></pre>\n'
    )


def test_code_of_an_unknown_language_is_shown() -> None:
    assert "<code>a &lt; b\n</code>" in render("```klingon\na < b\n```", PLACE)


def test_a_formula_that_cannot_be_drawn_is_shown_as_it_was_written() -> None:
    assert '<code class="math">a^b^c</code>' in render("$a^b^c$", PLACE)


def test_comments_keep_line_breaks_and_few_tags() -> None:
    html = render_comment("a\nb <video src=x.mp4></video><kbd>c</kbd> <font>d</font>", PLACE)
    assert html == "<p>a<br>\nb <kbd>c</kbd> d</p>\n"


def test_a_comment_keeps_its_dashes() -> None:
    # A block of metadata belongs to a README.md only.
    assert "a: b" in render_comment("---\na: b\n---\n", PLACE)


def test_the_version_names_the_renderer() -> None:
    assert VERSION.startswith("markdown-")
