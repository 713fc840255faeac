"""A hub whose address begins with https, as browsers want it for passkeys."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import httpx2

from hublet.app import create_application, with_edge
from hublet.core.config import Settings
from hublet.core.database import Database, open_database
from hublet.core.hub import Hub
from hublet.core.sealing import KeyRing

ADDRESS = "https://hub.test"


@dataclass(frozen=True, slots=True, kw_only=True)
class SecureHub:
    client: httpx2.AsyncClient
    database: Database


@asynccontextmanager
async def secure_hub(settings: Settings, *, address: str = ADDRESS) -> AsyncIterator[SecureHub]:
    secure = replace(settings, server=replace(settings.server, base_url=address))
    async with open_database(Hub(settings=secure, keys=KeyRing.new())) as database:
        transport = httpx2.ASGITransport(app=with_edge(create_application(database)))
        async with httpx2.AsyncClient(transport=transport, base_url=address) as client:
            yield SecureHub(client=client, database=database)
