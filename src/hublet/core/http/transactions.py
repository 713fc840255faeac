"""Transaction per request, committed before the response starts."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends, Request

from hublet.core.database import Connection, Database, Reader
from hublet.core.http.exchange import exchange_of


async def transaction(request: Request) -> AsyncIterator[Connection]:
    """Commit when the route returns, roll back when it raises."""
    database: Database = request.app.state.database
    async with database.transaction() as conn:
        yield conn


async def read_transaction(request: Request) -> AsyncIterator[Reader]:
    database: Database = request.app.state.database
    async with database.read() as conn:
        yield conn


async def may_be_old(request: Request) -> bool:
    """Tell whether a replica may answer: there is one, and the caller has no credentials.

    Who wrote a moment ago reads from the primary, and finds what he wrote.
    """
    database: Database = request.app.state.database
    exchange = exchange_of(request)
    is_public = exchange.authorization is None and "cookie" not in request.headers
    return database.has_replica and is_public and not exchange.wrote_lately


# For routes that open their own reads. What is not on the replica must be looked for on the primary.
MayBeOld = Annotated[bool, Depends(may_be_old)]


async def public_read(request: Request, may_be_old: MayBeOld) -> AsyncIterator[Reader]:
    """Read from a replica, if there is one: what a caller without credentials asks for."""
    database: Database = request.app.state.database
    async with database.read_replica() if may_be_old else database.read() as conn:
        yield conn


# `scope="function"` commits before the response starts. The default scope would
# commit after it, and a client could then read its own write too early.
Conn = Annotated[Connection, Depends(transaction, scope="function")]

ReadConn = Annotated[Reader, Depends(read_transaction, scope="function")]

# For public lists only: what it reads may be some seconds old. Never tokens, packs or inboxes.
PublicReadConn = Annotated[Reader, Depends(public_read, scope="function")]


async def _database(request: Request) -> Database:
    database: Database = request.app.state.database
    return database


# For routes that must not hold a transaction while they work: they open their own.
Db = Annotated[Database, Depends(_database)]
