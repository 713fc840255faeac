"""Where grants are redeemed: what the requests of one process share."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from hublet.core.batching import GroupCommit
from hublet.core.database import Connection, Database
from hublet.core.limits import Limiter
from hublet.oauth.errors import OAuthError
from hublet.oauth.grants.polls import Polls

T = TypeVar("T")


class Desk:
    def __init__(self, database: Database, limiter: Limiter) -> None:
        self.database = database
        self.limiter = limiter
        self.polls = Polls()
        # SQLite has one writer, so requests share its commits; PostgreSQL has many, and requests
        # that wait for each other would only be slower there.
        self._writes = GroupCommit(database) if database.kind == "sqlite" else None

    async def write(self, work: Callable[[Connection], Awaitable[T | OAuthError]]) -> T:
        """Run the work in a transaction.

        An error that the work raises undoes what it did. One that it returns is told after the
        commit: a refusal can itself change something, as the end of an access does.
        """
        outcome = await (self._alone(work) if self._writes is None else self._writes.run(work))
        if isinstance(outcome, OAuthError):
            raise outcome
        return outcome

    async def _alone(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        async with self.database.transaction() as conn:
            return await work(conn)
