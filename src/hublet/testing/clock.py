"""Clock of a test's hub, which the test can move."""

from datetime import UTC, datetime, timedelta

from hublet.testing.process import HubProcess


class Clock:
    """Moves the time of the hub: retries, expiry and schedules follow it."""

    def __init__(self, process: HubProcess) -> None:
        self._process = process

    def now(self, *, timeout: float = 30.0) -> datetime:
        """Return the hub's time, once it has done all that is due."""
        return self._read(self._process.command("settle", seconds=timeout))

    def forward(
        self,
        by: timedelta = timedelta(),
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        timeout: float = 30.0,
    ) -> datetime:
        """Let time pass: whatever becomes due on the way is done at its own time, in order.

        Returns the hub's time when all that is done. `timeout` is real seconds, for each moment
        at which something is due.
        """
        by += timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        if by < timedelta():
            raise ValueError("Time passes forward only; clock.set() can turn it back.")
        return self._read(self._process.command("forward", by=by.total_seconds(), seconds=timeout))

    def set(self, moment: datetime, *, timeout: float = 30.0) -> datetime:
        """Let time pass until this moment, or turn the clock back to it."""
        if moment.tzinfo is None:
            raise ValueError("A moment needs a time zone, such as datetime.UTC.")
        by = moment - self.now()
        if by >= timedelta():
            return self.forward(by, timeout=timeout)
        return self._read(self._process.command("jump", by=by.total_seconds(), seconds=timeout))

    @staticmethod
    def _read(reply: dict[str, str]) -> datetime:
        return datetime.fromisoformat(reply["now"]).astimezone(UTC)
