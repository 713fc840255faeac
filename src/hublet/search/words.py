"""Words: how names, texts and queries are split, folded and compared. Pure functions."""

import re
import unicodedata
from collections.abc import Iterable, Iterator

LONGEST_WORD = 40
# A query of so many letters reads a list of its own for each prefix; a longer one, a range of words.
LONGEST_PREFIX = 6
# Shorter words are spelled right, or something else is meant.
SHORTEST_CORRECTED = 4
LONGEST_CORRECTED = 20
LONGEST_QUERY = 400
MOST_QUERY_WORDS = 8
# Of a text: how much of it is read, and how many words of it are kept.
LONGEST_TEXT = 65_536
MOST_TEXT_WORDS = 256

_RUN = re.compile(r"[^\W_]+")
# Scripts that write no blanks: pairs of letters stand for words.
_UNSPACED = re.compile(
    r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\U00020000-\U0003ffff]+)"
)
# Marks that make another letter of a Japanese one.
_VOICED = "\u3099\u309a"
_CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_NOT_TEXT = re.compile(r"<[^<>]*>|\]\([^()\s]*\)|https?://\S+")
_COMMON_WORDS = (
    "a an and are as at be but by can do for from has have how if in into is it its may more no "
    "not of on or our such than that the their then there these this to use used using was we "
    "were when which will with you your"
)
_COMMON = frozenset(_COMMON_WORDS.split())
# Of whole texts, beside them: parts of addresses, and single letters and digits.
_COMMON_IN_TEXTS = _COMMON | frozenset(
    [
        "about",
        "after",
        "all",
        "also",
        "any",
        "been",
        "before",
        "com",
        "could",
        "did",
        "does",
        "each",
        "ever",
        "had",
        "he",
        "her",
        "here",
        "his",
        "http",
        "https",
        "i",
        "just",
        "like",
        "me",
        "most",
        "my",
        "now",
        "one",
        "only",
        "other",
        "out",
        "over",
        "she",
        "should",
        "since",
        "so",
        "some",
        "they",
        "through",
        "too",
        "under",
        "up",
        "very",
        "want",
        "what",
        "where",
        "while",
        "who",
        "why",
        "would",
        "www",
    ]
)


def split(text: str) -> list[str]:
    """Return the words of a text in their order, each once, without case and accents."""
    return list(dict.fromkeys(word[:LONGEST_WORD] for word in _words(_fold(text))))


def _fold(text: str) -> str:
    if text.isascii():
        return text.lower()
    # A single letter may become eighteen.
    decomposed = unicodedata.normalize("NFKD", text.casefold())[:LONGEST_TEXT]
    plain = "".join(
        each for each in decomposed if not unicodedata.combining(each) or each in _VOICED
    )
    # Decomposition also takes the letters of Japanese and Korean apart.
    return unicodedata.normalize("NFC", plain)


def _words(folded: str) -> Iterator[str]:
    for run in _RUN.findall(folded):
        for part in _UNSPACED.split(run):
            if _UNSPACED.match(part):
                yield from (part[at : at + 2] for at in range(max(len(part) - 1, 1)))
            elif part:
                yield part


def of_query(text: str) -> tuple[str, ...]:
    """Return the words of a query; what stands behind the first few is ignored."""
    return tuple(split(text[:LONGEST_QUERY])[:MOST_QUERY_WORDS])


def of_markdown(text: str) -> tuple[str, ...]:
    """Return the words of a Markdown text without code, addresses, tags and the commonest words."""
    prose = _NOT_TEXT.sub(" ", _CODE.sub(" ", text[:LONGEST_TEXT]))
    kept = (word for word in split(prose) if len(word) > 1 and word not in _COMMON)
    return tuple(word for word, _ in zip(kept, range(MOST_TEXT_WORDS), strict=False))


def is_common(word: str) -> bool:
    """Tell whether a word stands in too many texts to tell one from another."""
    return len(word) == 1 or word in _COMMON_IN_TEXTS


def of_text_query(text: str) -> tuple[str, ...]:
    """Return those words of a query by which whole texts are found."""
    found = [word for word in split(text[:LONGEST_QUERY]) if not is_common(word)]
    return tuple(found[:MOST_QUERY_WORDS])


def places(text: str) -> Iterator[tuple[str, int, int]]:
    """Return each word of a text, as often as it stands there, with where it begins and ends.

    The text is in the composed form (NFC), so that an accent does not end a word.
    """
    for run in _RUN.finditer(text):
        start = run.start()
        for part in _UNSPACED.split(run.group()):
            if part and _UNSPACED.match(part):
                for at in range(max(len(part) - 1, 1)):
                    pair = part[at : at + 2]
                    yield _fold(pair), start + at, start + at + len(pair)
            elif part:
                for word in _words(_fold(part)):
                    yield word[:LONGEST_WORD], start, start + len(part)
            start += len(part)


def joined(words: Iterable[str]) -> str:
    return "".join(words)[:LONGEST_WORD]


def prefixes(word: str) -> list[str]:
    """Return the beginnings of a word that get a list of their own; nothing is one too."""
    return [word[:length] for length in range(min(len(word) - 1, LONGEST_PREFIX) + 1)]


def is_correctable(word: str) -> bool:
    return SHORTEST_CORRECTED <= len(word) <= LONGEST_CORRECTED


def spellings(word: str) -> list[str]:
    """Return a word itself and all that it becomes without one letter.

    Two words one edit apart have a spelling in common; not all that have one are.
    """
    return list(dict.fromkeys([word, *(word[:at] + word[at + 1 :] for at in range(len(word)))]))


def is_one_edit(one: str, other: str) -> bool:
    """Tell whether a letter more, less or other, or two that changed places, is the difference."""
    if len(one) > len(other):
        one, other = other, one
    if one == other or len(other) - len(one) > 1:
        return False
    at = next((at for at, letter in enumerate(one) if letter != other[at]), len(one))
    if len(one) < len(other):
        return one[at:] == other[at + 1 :]
    swapped = one[at + 1 : at + 2] + one[at : at + 1] + one[at + 2 :]
    return one[at + 1 :] == other[at + 1 :] or swapped == other[at:]
