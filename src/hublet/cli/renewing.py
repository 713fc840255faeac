"""The token of a login, renewed before it expires."""

from typing import TYPE_CHECKING

from hublet.cli import credentials
from hublet.cli.output import say

if TYPE_CHECKING:
    from hublet.cli.credentials import Credential

# A day, as the public command line has it.
_AHEAD_SECONDS = 86_400


def current_token(endpoint: str) -> str | None:
    """Return the token that a login left for this hub, if there is one that may work."""
    from hublet.core.clock import micros

    known = credentials.find(endpoint)
    if known is None:
        return None
    now = micros() // 1_000_000
    if known.expires_at is None or known.expires_at - _AHEAD_SECONDS > now:
        return known.token
    return _renewed(endpoint, known).token


def _renewed(endpoint: str, known: "Credential") -> "Credential":
    from hublet.client import ClientError, Hub, Refused
    from hublet.client.device_login import refresh

    if known.refresh_token is None:
        return known
    try:
        tokens = refresh(Hub(endpoint=endpoint), known.refresh_token)
    except Refused as error:
        if error.code == "invalid_grant":
            say(f"The login at {endpoint} has ended; log in again with `hublet login`.")
        return known
    except ClientError:
        # The command itself will tell why the hub does not answer.
        return known
    renewed = credentials.Credential(
        user=known.user,
        token=tokens.access_token,
        refresh_token=tokens.refresh_token or known.refresh_token,
        expires_at=tokens.expires_at,
    )
    credentials.keep(endpoint, renewed, as_last=False)
    return renewed
