"""How texts are split into words, and which words are one edit apart."""

import pytest

from hublet.search import words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("Llama-3.1_8B", ["llama", "3", "1", "8b"], id="at all that is no letter"),
        pytest.param("Café ÉCOLE", ["cafe", "ecole"], id="without case and accents"),
        pytest.param("STRASSE straße", ["strasse"], id="each once"),
        pytest.param("ﬁne Ⅳ", ["fine", "iv"], id="compatible letters"),
        pytest.param("日本語モデル", ["日本", "本語", "語モ", "モデ", "デル"], id="pairs"),
        pytest.param("bert日本", ["bert", "日本"], id="two scripts in one word"),
        pytest.param("字", ["字"], id="a single letter of such a script"),
        pytest.param("한국어", ["한국", "국어"], id="syllables stay whole"),
        pytest.param(
            "%_*'\x00\x1b[0m\u202e", ["0m"], id="neither wildcards nor control characters"
        ),
        pytest.param("", [], id="nothing"),
        pytest.param("x" * 100, ["x" * 40], id="long words are cut"),
    ],
)
def test_a_text_is_split_into_words(text: str, expected: list[str]) -> None:
    assert words.split(text) == expected


def test_a_query_has_few_words_however_long_it_is() -> None:
    assert len(words.of_query(" ".join(f"w{n}" for n in range(10_000)))) == words.MOST_QUERY_WORDS
    assert words.of_query("x" * 1_000_000) == ("x" * words.LONGEST_WORD,)


def test_words_of_markdown_leave_out_code_addresses_and_tags() -> None:
    text = """
# A Model
The best [paper](https://example.com/hidden) <img src="secret.png"> https://x.test/y

```python
import torch
```
Trained on tides.
"""
    assert words.of_markdown(text) == ("model", "best", "paper", "trained", "tides")


@pytest.mark.parametrize("text", ["<" * 65_536, "](" * 32_768, "```\n" * 20_000, "\ufdfa" * 65_536])
def test_hostile_markdown_has_bounded_words(text: str) -> None:
    assert len(words.of_markdown(text)) <= words.MOST_TEXT_WORDS


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param("llama", "lama", True, id="a letter less"),
        pytest.param("llama", "llamas", True, id="a letter more"),
        pytest.param("llama", "xllama", True, id="a letter more in front"),
        pytest.param("llama", "llema", True, id="another letter"),
        pytest.param("llama", "lalma", True, id="two changed places"),
        pytest.param("llama", "llaam", True, id="the last two changed places"),
        pytest.param("llama", "llama", False, id="the same"),
        pytest.param("llama", "lemma", False, id="two other letters"),
        pytest.param("llama", "la", False, id="much shorter"),
        pytest.param("abcd", "bcda", False, id="the first letter at the end"),
        pytest.param("abcd", "badc", False, id="two pairs changed places"),
    ],
)
def test_one_edit_is_told_from_two(one: str, other: str, *, expected: bool) -> None:
    assert words.is_one_edit(one, other) is expected
    assert words.is_one_edit(other, one) is expected
    if expected:
        assert set(words.spellings(one)) & set(words.spellings(other))
