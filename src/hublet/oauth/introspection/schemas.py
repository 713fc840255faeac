"""Introspection on the wire."""

from typing import Literal

from pydantic import MISSING

from hublet.core.schema import Schema


class Introspection(Schema):
    """What is said of a token; of one that does not work, only that."""

    active: bool
    scope: str | MISSING = MISSING
    client_id: str | MISSING = MISSING
    # The name of the user it acts for, and their id.
    username: str | MISSING = MISSING
    sub: str | MISSING = MISSING
    token_type: Literal["bearer"] | MISSING = MISSING
    # In seconds since the epoch.
    exp: int | MISSING = MISSING
    iat: int | MISSING = MISSING
    iss: str | MISSING = MISSING
    aud: str | MISSING = MISSING
