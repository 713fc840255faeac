"""Keeps the signing keys fresh, in the worker."""

from typing import Any

from hublet.core.database import Database
from hublet.core.queue import handles_slowly
from hublet.oauth.keys import service


@handles_slowly(service.REPLACE)
async def replace_keys(database: Database, _body: dict[str, Any]) -> None:
    await service.replace_keys(database)
