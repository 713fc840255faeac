"""Parameters of the CAS as annotated types: who calls it, and signed addresses of data."""

from typing import Annotated

from fastapi import Depends, Query, Request
from fastapi.security import HTTPBearer
from fastapi.security.http import HTTPAuthorizationCredentials

from hublet.core.http import Db
from hublet.core.http.exchange import exchange_of
from hublet.repos.xet import tokens
from hublet.repos.xet.cas import Cas
from hublet.repos.xet.downloads import DataAddress, check_address
from hublet.repos.xet.tokens import CasAccess, CasRight

_bearer = HTTPBearer(
    auto_error=False,
    scheme_name="cas",
    description="The `accessToken` of a `xet-read-token` or `xet-write-token`.",
)
CasCredentials = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


async def _cas(request: Request) -> Cas:
    cas: Cas = request.app.state.cas
    return cas


RequestedCas = Annotated[Cas, Depends(_cas)]


async def _reader(request: Request, database: Db, domain: str, _: CasCredentials) -> CasAccess:
    return await _admit(request, database, domain, right="read")


async def _writer(request: Request, database: Db, domain: str, _: CasCredentials) -> CasAccess:
    return await _admit(request, database, domain, right="write")


async def _admit(request: Request, database: Db, domain: str, *, right: CasRight) -> CasAccess:
    exchange = exchange_of(request)
    async with database.read() as conn:
        access = await tokens.admit(
            conn, exchange.authorization, domain, right=right, address=exchange.address
        )
    if access.caller is not None:
        exchange.identify(access.caller.user_name)
    return access


CasReader = Annotated[CasAccess, Depends(_reader)]
CasWriter = Annotated[CasAccess, Depends(_writer)]


async def _data_address(  # noqa: PLR0913, PLR0917 - what the address consists of
    request: Request,
    database: Db,
    domain: str,
    xorb: str,
    ranges: Annotated[str, Query(max_length=2000)],
    expires: Annotated[int, Query(ge=0, le=10**12)],
    signature: Annotated[str, Query(max_length=100)],
    user: Annotated[str, Query(max_length=100)] = "",
) -> DataAddress:
    address = DataAddress(domain=domain, xorb=xorb, ranges=ranges, user=user, expires=expires)
    check_address(address, database.hub.keys, signature=signature)
    if user:
        exchange_of(request).identify(user)
    return address


SignedDataAddress = Annotated[DataAddress, Depends(_data_address)]
