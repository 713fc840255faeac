"""How many wrong codes somebody may enter: as a person, and from one address.

There are 20^8 codes, and a few of them wait at a time (RFC 8628, 5.1). A wrong code names no app,
so there is no budget of an app.
"""

from hublet.core.limits import Limiter, Policy
from hublet.oauth.device_page.errors import TooManyGuesses

OF_USER = Policy(name="device-user", quota=5, window_seconds=900)
OF_ADDRESS = Policy(name="device-address", quota=20, window_seconds=3600)


def count(limiter: Limiter, *, user_id: str, address: str) -> None:
    """Count a guess before it is judged: a right one is refused too once the budget is spent."""
    verdicts = (limiter.count(OF_USER, user_id), limiter.count(OF_ADDRESS, address))
    spent = [verdict.reset_seconds for verdict in verdicts if not verdict.allowed]
    if spent:
        raise TooManyGuesses(max(spent))


def forgive(limiter: Limiter, *, user_id: str, address: str) -> None:
    """Take a guess back that was right."""
    limiter.forgive(OF_USER, user_id)
    limiter.forgive(OF_ADDRESS, address)
