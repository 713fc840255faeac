import string
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hublet.core import ids
from hublet.tokens.format import (
    TokenKind,
    has_valid_checksum,
    hint,
    is_importable,
    new_credential,
)

BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
# The first 43 characters after the prefix are zero, so only the checksum is left to see.
ALL_ZERO = "hf_" + "0" * 43 + "4FomBV"


def read_base62(text: str) -> int:
    number = 0
    for character in text:
        number = number * 62 + BASE62.index(character)
    return number


@pytest.mark.parametrize(
    ("kind", "prefix"),
    [
        (TokenKind.access, "hf_"),
        (TokenKind.oauth, "hf_oauth_"),
        (TokenKind.jwt, "hf_jwt_"),
        (TokenKind.refresh, "hf_rt_"),
        (TokenKind.secret, "hf_cs_"),
    ],
)
def test_a_credential_is_prefix_secret_and_checksum(kind: TokenKind, prefix: str) -> None:
    credential = new_credential("hf_", kind)
    body = credential.removeprefix(prefix)

    assert credential.startswith(prefix)
    assert len(body) == 49
    assert set(body) <= set(BASE62)
    assert read_base62(body[43:]) == zlib.crc32(credential[:-6].encode())
    assert has_valid_checksum(credential)


@pytest.mark.parametrize(
    "drawn",
    [
        pytest.param(bytes(32), id="all bits zero"),
        pytest.param(b"\xff" * 32, id="all bits one"),
        pytest.param(bytes(range(32)), id="leading zero byte"),
    ],
)
def test_the_secret_holds_all_256_bits(drawn: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids, "random_bytes", lambda count: drawn[:count])

    credential = new_credential("hf_", TokenKind.access)

    assert read_base62(credential[3:46]).to_bytes(32) == drawn
    assert len(credential) == 3 + 49


def test_the_checksum_of_a_known_credential(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids, "random_bytes", bytes)

    assert new_credential("hf_", TokenKind.access) == ALL_ZERO


def test_credentials_differ() -> None:
    assert new_credential("hf_", TokenKind.access) != new_credential("hf_", TokenKind.access)


def test_the_longest_prefix_fills_64_characters() -> None:
    assert len(new_credential("a" * 9, TokenKind.oauth)) == 64

    with pytest.raises(ValueError, match=r"^The prefix a{10}oauth_ makes credentials longer"):
        new_credential("a" * 10, TokenKind.oauth)


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        pytest.param(ALL_ZERO, True, id="as made"),
        pytest.param(ALL_ZERO[3:], False, id="the prefix is covered too"),
        pytest.param("hg_" + ALL_ZERO[3:], False, id="another prefix"),
        pytest.param(ALL_ZERO[:-1], False, id="cut"),
        pytest.param(ALL_ZERO + "0", False, id="longer"),
        pytest.param(ALL_ZERO + "\n", False, id="with a line break"),
        pytest.param(ALL_ZERO.replace("0", "-", 1), False, id="a character outside base62"),
        pytest.param("hf_0123456789", False, id="an imported value"),
        pytest.param("é" + "0" * 49, False, id="outside ASCII"),
        pytest.param("", False, id="empty"),
        pytest.param("a" * 15 + "0" * 43 + "1nQ4uw", True, id="64 characters"),
        pytest.param("a" * 16 + "0" * 43 + "3d8Uvp", False, id="65 characters"),
    ],
)
def test_which_checksums_are_valid(text: str, *, valid: bool) -> None:
    assert has_valid_checksum(text) is valid


@given(st.integers(0, 51), st.sampled_from(BASE62 + "_"))
def test_one_mistyped_character_is_noticed(position: int, typed: str) -> None:
    mistyped = ALL_ZERO[:position] + typed + ALL_ZERO[position + 1 :]

    assert has_valid_checksum(mistyped) is (mistyped == ALL_ZERO)


@given(st.text())
def test_any_text_may_be_asked_about(text: str) -> None:
    assert not has_valid_checksum(text)
    assert "…" in hint(text)


def test_kinds_are_stored_by_their_names() -> None:
    assert [kind.value for kind in TokenKind] == [
        "access",
        "oauth",
        "jwt",
        "publisher",
        "refresh",
        "secret",
    ]


@pytest.mark.parametrize(
    ("value", "importable"),
    [
        pytest.param("a" * 7, False, id="7 characters are too few"),
        pytest.param("a" * 8, True, id="8 characters"),
        pytest.param("a" * 200, True, id="200 characters"),
        pytest.param("a" * 201, False, id="201 characters are too many"),
        pytest.param("!~\"'\\#%;@", True, id="punctuation from the first to the last"),
        pytest.param("hf_ token", False, id="a space"),
        pytest.param("hf_token\n", False, id="a line break at the end"),
        pytest.param("hf_token\x7f", False, id="a control character"),
        pytest.param("hf_tokén", False, id="a letter outside ASCII"),
    ],
)
def test_what_may_be_imported(value: str, *, importable: bool) -> None:
    assert is_importable(value) is importable


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        pytest.param(ALL_ZERO, "hf_…omBV", id="a credential of ours"),
        pytest.param("hf_oauth_" + "a" * 30 + "wxyz", "hf_oauth_…wxyz", id="imported, with a kind"),
        pytest.param("hf_" + "a" * 30 + "wxyz", "hf_…wxyz", id="imported, with a prefix"),
        pytest.param("correct_horse_battery", "…tery", id="a long first word is no prefix"),
        pytest.param("hf_abcde", "hf_…e", id="short: a quarter of the secret part"),
        pytest.param("secret12", "…12", id="short and without a prefix"),
        pytest.param("hf_abc", "hf_…", id="too short to show anything"),
    ],
)
def test_what_is_shown_of_a_credential(value: str, shown: str) -> None:
    assert hint(value) == shown


def test_the_hint_of_another_hubs_credential_shows_its_whole_prefix() -> None:
    credential = new_credential("company_", TokenKind.oauth)

    assert hint(credential) == f"company_oauth_…{credential[-4:]}"
