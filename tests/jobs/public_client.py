"""The unmodified public client before the real application, with a socket in between."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI
from huggingface_hub import HfApi

from hublet.app import with_edge
from hublet.core.database import Database
from hublet.core.http.server_protocol import ZeroCopyProtocol
from patience import SOON_SECONDS
from people import a_token


@asynccontextmanager
async def public_client(app: FastAPI, database: Database, name: str) -> AsyncIterator[HfApi]:
    """Its calls block: run them in a thread."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        config = uvicorn.Config(
            with_edge(app),
            http=ZeroCopyProtocol,
            lifespan="off",
            log_config=None,
            date_header=False,
        )
        server = uvicorn.Server(config)
        running = asyncio.ensure_future(server.serve(sockets=[listener]))
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        try:
            yield HfApi(endpoint=address, token=await a_token(database, name))
        finally:
            server.should_exit = True
            await asyncio.wait_for(running, SOON_SECONDS)
