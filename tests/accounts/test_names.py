import pytest
from hypothesis import given
from hypothesis import strategies as st

from hublet.accounts.errors import InvalidEmail, InvalidName
from hublet.accounts.names import RESERVED, check_email, check_name, email_key, name_key

LENGTH = "A name has 2 to 42 characters."
LETTERS = "A name has only the letters a to z, digits and hyphens."
HYPHENS = "A name has single hyphens, and none at its start or end."
DIGITS = "A name does not consist of digits only."
AN_ID = "A name is not 24 hexadecimal digits, which would read as an id."


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("ab", id="2 characters"),
        pytest.param("a" * 42, id="42 characters"),
        pytest.param("Ada-Lovelace", id="capitals and a hyphen"),
        pytest.param("a-b-c", id="several hyphens"),
        pytest.param("4chan", id="a digit first"),
        pytest.param("1-2", id="digits with a hyphen"),
        pytest.param("abcdef0123456789abcdef0", id="23 hexadecimal digits"),
        pytest.param("admin", id="the first administrator"),
        pytest.param("apis", id="a longer word than a reserved one"),
    ],
)
def test_a_good_name_is_accepted(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        pytest.param("", LENGTH, id="empty"),
        pytest.param("a", LENGTH, id="1 character"),
        pytest.param("a" * 43, LENGTH, id="43 characters"),
        pytest.param("ada lovelace", LETTERS, id="a space"),
        pytest.param("ada_lovelace", LETTERS, id="an underscore"),
        pytest.param("ada.lovelace", LETTERS, id="a dot"),
        pytest.param("ada/engine", LETTERS, id="a slash"),
        pytest.param("ada\n", LETTERS, id="a line break at the end"),
        pytest.param("adá", LETTERS, id="a letter outside ASCII"),
        pytest.param("\u0661\u0662\u0663", LETTERS, id="digits of another script"),
        pytest.param("-ada", HYPHENS, id="a hyphen at the start"),
        pytest.param("ada-", HYPHENS, id="a hyphen at the end"),
        pytest.param("ada--lovelace", HYPHENS, id="two hyphens in a row"),
        pytest.param("1815", DIGITS, id="digits only"),
        pytest.param("0" * 24, DIGITS, id="24 digits"),
        pytest.param("abcdef0123456789abcdef01", AN_ID, id="an id"),
        pytest.param("ABCDEF0123456789ABCDEF01", AN_ID, id="an id in capitals"),
        pytest.param("settings", "The name settings is reserved.", id="a reserved word"),
        pytest.param("OAuth", "The name OAuth is reserved.", id="a reserved word in another case"),
    ],
)
def test_a_bad_name_is_refused_with_its_rule(name: str, sentence: str) -> None:
    with pytest.raises(InvalidName) as refusal:
        check_name(name)

    assert refusal.value.message == sentence
    assert refusal.value.status == 400


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_every_reserved_word_would_be_a_name_otherwise(word: str) -> None:
    """A word that another rule forbids anyway, or in capitals, is a mistake in the list."""
    with pytest.raises(InvalidName, match=f"^The name {word} is reserved\\.$"):
        check_name(word)
    check_name(f"{word}-1")


HUBS_OWN = """
api oauth settings docs datasets spaces models kernels buckets containers join login logout jobs
notifications papers posts blog collections organizations new webhooks metrics healthz readyz
avatars static me hardware count
"""


def test_the_hubs_own_addresses_belong_to_nobody() -> None:
    assert set(HUBS_OWN.split()) <= RESERVED


@given(st.text(max_size=50))
def test_an_accepted_name_stands_in_an_address_as_it_is(name: str) -> None:
    try:
        check_name(name)
    except InvalidName:
        return
    assert name.replace("-", "").isascii()
    assert name.replace("-", "").isalnum()


def test_names_that_differ_in_case_are_the_same_name() -> None:
    assert name_key("Ada-Lovelace") == name_key("ADA-lovelace") == "ada-lovelace"


EMAIL = "An email address is written name@example.com, in ASCII."


@pytest.mark.parametrize(
    "address",
    [
        pytest.param("ada@example.com", id="plain"),
        pytest.param("Ada.Lovelace+hub@mail.example.co.uk", id="dots, plus and subdomains"),
        pytest.param("ada@localhost", id="localhost"),
        pytest.param(f"{'a' * 64}@example.com", id="64 characters before the @"),
        pytest.param(f"a@{'b' * 63}.com", id="a label of 63 characters"),
        pytest.param(f"a@{'b.' * 125}cc", id="254 characters"),
        pytest.param("o'hara@xn--bcher-kva.example", id="an apostrophe and a punycode domain"),
    ],
)
def test_a_good_address_is_accepted(address: str) -> None:
    check_email(address)


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        pytest.param("", EMAIL, id="empty"),
        pytest.param("example.com", EMAIL, id="no @"),
        pytest.param("ada@@example.com", EMAIL, id="two @ in a row"),
        pytest.param("ada@b@example.com", EMAIL, id="two @"),
        pytest.param("@example.com", EMAIL, id="nothing before the @"),
        pytest.param("ada@", EMAIL, id="nothing after the @"),
        pytest.param("ada@example", EMAIL, id="a domain without a dot"),
        pytest.param("ada@localhost.", EMAIL, id="a dot at the end"),
        pytest.param("ada@.com", EMAIL, id="an empty label"),
        pytest.param("ada@-b.com", EMAIL, id="a label that starts with a hyphen"),
        pytest.param("ada@b-.com", EMAIL, id="a label that ends with a hyphen"),
        pytest.param(f"a@{'b' * 64}.com", EMAIL, id="a label of 64 characters"),
        pytest.param(".ada@example.com", EMAIL, id="a dot at the start"),
        pytest.param("ada..l@example.com", EMAIL, id="two dots in a row"),
        pytest.param("ada l@example.com", EMAIL, id="a space"),
        pytest.param("ada@example.com\n", EMAIL, id="a line break at the end"),
        pytest.param("ada@example.com\r\nBcc: b@example.com", EMAIL, id="a second mail header"),
        pytest.param("ada,b@example.com", EMAIL, id="two recipients"),
        pytest.param("Ada<ada@example.com>", EMAIL, id="a display name"),
        pytest.param('"a b"@example.com', EMAIL, id="quotes"),
        pytest.param("adá@example.com", EMAIL, id="outside ASCII before the @"),
        pytest.param("ada@exämple.com", EMAIL, id="outside ASCII after the @"),
        pytest.param("ada@e\u017fample.com", EMAIL, id="a letter that folds to ASCII"),
        pytest.param(f"{'a' * 65}@example.com", EMAIL, id="65 characters before the @"),
        pytest.param(
            f"a@{'b.' * 125}ccc",
            "An email address has at most 254 characters.",
            id="255 characters",
        ),
    ],
)
def test_a_bad_address_is_refused_with_its_rule(address: str, sentence: str) -> None:
    with pytest.raises(InvalidEmail) as refusal:
        check_email(address)

    assert refusal.value.message == sentence
    assert refusal.value.status == 400


@given(st.emails())
def test_common_addresses_are_accepted(address: str) -> None:
    check_email(address)


def test_addresses_that_differ_in_case_are_the_same_address() -> None:
    assert email_key("Ada@Example.COM") == "ada@example.com"
