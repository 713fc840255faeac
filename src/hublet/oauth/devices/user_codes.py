"""The short codes that a person types: no vowels, no digits, nothing that looks alike."""

import re

from hublet.core.ids import random_text

# RFC 8628, 6.1: 20^8 are 34.6 bits, and no word comes of them.
ALPHABET = "BCDFGHJKLMNPQRSTVWXZ"
LENGTH = 8

_NOT_TYPED = re.compile(r"[\W_]+")


def new_user_code() -> str:
    """Return a code as it is compared, without a hyphen."""
    return random_text(LENGTH, ALPHABET)


def shown(user_code: str) -> str:
    half = LENGTH // 2
    return f"{user_code[:half]}-{user_code[half:]}"


def normalized(typed: str) -> str | None:
    """Return what was typed as it is compared; None when it cannot be a code.

    Hyphens, spaces and any other punctuation do not matter, nor does the case.
    """
    text = _NOT_TYPED.sub("", typed).upper()
    return text if len(text) == LENGTH and set(text) <= set(ALPHABET) else None
