"""A page of one's own in place of the landing page: HTML, a response, a function, an application."""

import asyncio
import importlib
import inspect
from collections.abc import Callable
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from hublet.receiver.http.answers import not_allowed, not_found
from hublet.receiver.http.requests import path_in

_ASGI_PARAMETERS = 3


def application_of(ui: Any) -> ASGIApp:
    """Return an application for all that is no webhook; what cannot be shown is a TypeError."""
    if isinstance(ui, str):
        return _at_the_root(HTMLResponse(ui))
    if isinstance(ui, Response):
        return _at_the_root(ui)
    if any(each.__module__.partition(".")[0] == "gradio" for each in type(ui).__mro__):
        return _with_gradio(ui)
    if not callable(ui):
        raise TypeError(
            f"ui is {type(ui).__name__}, and must be HTML, a response, a function that returns "
            "one of these, or an ASGI application."
        )
    count = len(inspect.signature(ui).parameters)
    if count == _ASGI_PARAMETERS:
        return cast("ASGIApp", ui)
    return _at_the_root(_rendering(ui, takes_request=count == 1))


def _at_the_root(page: ASGIApp) -> ASGIApp:
    async def show(scope: Scope, receive: Receive, send: Send) -> None:
        if path_in(scope) not in {"", "/"}:
            await not_found()(scope, receive, send)
        elif scope["method"] not in {"GET", "HEAD"}:
            await not_allowed("GET")(scope, receive, send)
        else:
            await page(scope, receive, send)

    return show


def _rendering(function: Callable[..., Any], *, takes_request: bool) -> ASGIApp:
    async def show(scope: Scope, receive: Receive, send: Send) -> None:
        arguments = [Request(scope, receive)] if takes_request else []
        if inspect.iscoroutinefunction(function):
            shown = await function(*arguments)
        else:
            shown = await asyncio.to_thread(function, *arguments)
        response = shown if isinstance(shown, Response) else HTMLResponse(str(shown))
        await response(scope, receive, send)

    return show


def _with_gradio(blocks: Any) -> ASGIApp:
    """Mount an interface of gradio, which brings FastAPI along."""
    gradio, fastapi = (importlib.import_module(name) for name in ("gradio", "fastapi"))
    mounted: ASGIApp = gradio.mount_gradio_app(fastapi.FastAPI(), blocks, path="/")
    return mounted
