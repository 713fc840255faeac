"""Settings of organizations about apps, on the wire."""

from typing import Annotated

from pydantic import MISSING, Field

from hublet.core.schema import Schema

# Interface 5.4 and 8: 8 hours, and up to 30 days.
DEFAULT_EXCHANGE_SECONDS = 28_800
MAX_EXCHANGE_SECONDS = 30 * 86_400

_Seconds = Annotated[int, Field(ge=60, le=MAX_EXCHANGE_SECONDS)]


class OAuthSettings(Schema):
    # How long tokens live that apps of the organization get by token exchange.
    exchangeSeconds: _Seconds


class UpdateOAuthSettings(Schema):
    exchangeSeconds: _Seconds | MISSING = MISSING
