"""Tokens as a hub administrator issues them, on the wire."""

from pydantic import MISSING

from hublet.tokens.schemas import CreateToken


class IssueToken(CreateToken):
    # An own value of 8 to 200 printable characters, such as a test suite brings along.
    value: str | MISSING = MISSING
