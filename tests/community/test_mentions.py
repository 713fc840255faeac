"""Whom a text mentions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hublet.community.threads.mentions import MAX_MENTIONS, mentioned_names

CASES = [
    pytest.param("@ada look", ["ada"], id="at the start"),
    pytest.param("look, @ada.", ["ada"], id="before a full stop"),
    pytest.param("(@ada, @grace-hopper!)", ["ada", "grace-hopper"], id="in brackets"),
    pytest.param("@Ada and @ada", ["ada"], id="twice in different cases"),
    pytest.param("**@ada** [@grace](x)", ["ada", "grace"], id="in Markdown"),
    pytest.param("line\n@ada\n> @grace", ["ada", "grace"], id="on lines of their own"),
    pytest.param("@ada's engine", ["ada"], id="with a genitive"),
    pytest.param("@ada:@grace", ["ada", "grace"], id="behind a colon"),
    pytest.param("ada@example.com", [], id="an e-mail address"),
    pytest.param("ada+x@example.com <a.b@c.de>", [], id="an e-mail address with a tag"),
    pytest.param("@example.com", [], id="a domain"),
    pytest.param("@types/node", [], id="a scoped package"),
    pytest.param("@ada@example.social", [], id="an address of another network"),
    pytest.param("https://hub.test/@ada", [], id="a path"),
    pytest.param(r"\@ada", [], id="behind a backslash"),
    pytest.param("`@ada`", [], id="a span of code"),
    pytest.param("``x ` @ada``", [], id="a span with two backticks"),
    pytest.param("```\n@ada\n```", [], id="a fence"),
    pytest.param("```python\n@ada\n```\n@grace", ["grace"], id="behind a fence"),
    pytest.param("~~~\n@ada\n~~~", [], id="a fence of tildes"),
    pytest.param("```\n@ada", [], id="a fence that never ends"),
    pytest.param("````\n```\n@ada\n````", [], id="a longer fence"),
    pytest.param("text\n\n    @ada", [], id="an indented block"),
    pytest.param("text\n    @ada", ["ada"], id="an indented line that only goes on"),
    pytest.param("<code>@ada</code> <pre>\n@bob</pre>", [], id="code in HTML"),
    pytest.param("@ada </code> @bob", ["ada", "bob"], id="a closing tag that closes nothing"),
    pytest.param("one ` tick @ada", ["ada"], id="a lone backtick"),
    pytest.param("@a @- @-ada @ada- x", ["ada"], id="what cannot be a name"),
    pytest.param("@ada_lovelace", [], id="a longer word"),
    pytest.param("é@ada", [], id="behind a letter of another script"),
    pytest.param("@" + "a" * 43, [], id="a name that is too long"),
    pytest.param("@" + "a" * 42, ["a" * 42], id="the longest name"),
    pytest.param("", [], id="nothing"),
]


@pytest.mark.parametrize(("text", "names"), CASES)
def test_names_are_found_where_a_reader_sees_a_mention(text: str, names: list[str]) -> None:
    assert mentioned_names(text) == names


def test_a_text_mentions_at_most_so_many() -> None:
    text = " ".join(f"@user-{number}" for number in range(MAX_MENTIONS + 10))

    assert mentioned_names(text) == [f"user-{number}" for number in range(MAX_MENTIONS)]


@given(st.text(alphabet="@`~\n ab.-/\t<>codepre", max_size=300))
def test_any_text_is_read(text: str) -> None:
    assert all(f"@{name}" in text.lower() for name in mentioned_names(text))


@pytest.mark.parametrize("piece", ["`", "```\n", "@a", "    x\n\n", "<code>", "~~~"])
def test_a_long_hostile_text_is_read_quickly(piece: str) -> None:
    # Not timed: a pattern that runs away would not come back at all.
    mentioned_names(piece * (65_536 // len(piece)))
