"""How often somebody may try: under one name, and from one address."""

from hublet.accounts.names import MAX_EMAIL_LENGTH, email_key, name_key
from hublet.core.config import Settings
from hublet.core.limits import Limiter, Policy
from hublet.login.errors import TooManyAttempts


class Attempts:
    """Those of one address: each is counted before it is judged, and taken back if it succeeds.

    The name counts as it was typed, whether or not there is such an account: what is refused,
    and when, tells nobody which accounts exist.
    """

    def __init__(self, limiter: Limiter, settings: Settings, *, address: str) -> None:
        login = settings.login
        self._limiter = limiter
        self._address = address
        self._per_address = Policy(
            name="login-address", quota=login.address_attempts, window_seconds=login.window_seconds
        )
        self._per_name = Policy(
            name="login-name", quota=login.account_attempts, window_seconds=login.window_seconds
        )

    def count(self, *, name: str | None = None) -> None:
        """Count an attempt; raise TooManyAttempts when there were too many."""
        self._count(self._per_address, self._address)
        if name is not None:
            self._count(self._per_name, _key(name))

    def forgive(self, *, name: str | None = None) -> None:
        """Take back an attempt that succeeded."""
        self._limiter.forgive(self._per_address, self._address)
        if name is not None:
            self._limiter.forgive(self._per_name, _key(name))

    def _count(self, policy: Policy, key: str) -> None:
        verdict = self._limiter.count(policy, key)
        if not verdict.allowed:
            raise TooManyAttempts(verdict.reset_seconds)


def _key(name: str) -> str:
    # As the account is looked up, or another spelling would have a budget of its own. What is
    # longer than any name or address is not kept in memory whole.
    name = name[:MAX_EMAIL_LENGTH]
    return email_key(name) if "@" in name else name_key(name)
