"""The work of a delivery out of the spool: all of it, though nobody waits for an answer."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Generator
from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Message, Scope

from hublet.receiver.http.handlers import Call, run

log = logging.getLogger("hublet.receiver")


async def work_off(call: Call, scope: Scope) -> bool:
    """Run the handler and what it left for later; tell whether all of that went well.

    What it returns goes nowhere, so its form does not matter: only what is still to be done in it.
    """
    try:
        result = await run(call)
        return _is_good(result) and await _completed(result, scope) and await finish(call)
    except HTTPException as refusal:
        return refusal.status_code < HTTPStatus.BAD_REQUEST and await finish(call)
    except Exception:
        log.exception("The handler of %s failed.", call.handler.path)
        return False


async def finish(call: Call) -> bool:
    """Do what the handler left for later, and tell whether that went well."""
    try:
        if call.background is not None:
            await call.background()
    except Exception:
        log.exception("A background task of %s failed.", call.handler.path)
        return False
    return True


def _is_good(result: Any) -> bool:
    return not isinstance(result, Response) or result.status_code < HTTPStatus.BAD_REQUEST


async def _completed(result: Any, scope: Scope) -> bool:
    if isinstance(result, Response):
        # Sent to nobody: a body is made to its end, and the task behind the answer runs.
        await result(scope, _nothing_comes, _dropped)
    elif isinstance(result, Generator):
        await asyncio.to_thread(deque, result, 0)
    elif isinstance(result, Awaitable | AsyncIterator):
        kind = type(result).__name__
        raise TypeError(f"It returned a {kind}, which nobody runs; is it to be an async function?")
    return True


async def _nothing_comes() -> Message:
    return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]


async def _dropped(_message: Message) -> None:
    pass
