"""How many requests a caller may make: as a user once that is known, else as an address."""

from hublet.core.config import Settings
from hublet.core.limits import Limiter, Policy, Verdict, refuse_when_spent


class Quotas:
    def __init__(self, settings: Settings) -> None:
        limits = settings.limits
        self._limiter = Limiter(quiet=settings.server.test_mode)
        self._anonymous = Policy(
            name="api", quota=limits.anonymous_requests, window_seconds=limits.window_seconds
        )
        self._authenticated = Policy(
            name="api", quota=limits.authenticated_requests, window_seconds=limits.window_seconds
        )

    def count(self, *, user: str | None, address: str) -> Verdict:
        """Count a request, for the address unless its user is known already."""
        if user is not None:
            return self._limiter.count(self._authenticated, user)
        # Unknown tokens count for the address they come from: guessing is limited too.
        return self._limiter.count(self._anonymous, address)

    def recount(self, *, user: str, address: str) -> Verdict:
        """Count a request for its user, once that is known, and no longer for the address.

        Many people may share an address, and none of them uses up what guessers have.
        """
        self._limiter.forgive(self._anonymous, address)
        verdict = self._limiter.count(self._authenticated, user)
        refuse_when_spent(verdict)
        return verdict
