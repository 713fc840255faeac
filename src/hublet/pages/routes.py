"""HTTP for the landing page and for the description in its three forms."""

import asyncio
from typing import Any

from fastapi import FastAPI, Request, Response

import hublet
from hublet.core.dataclasses import dataclass
from hublet.core.errors import NotFound
from hublet.core.http.routers import Router
from hublet.core.pages import PAGE_POLICY, STATIC_FILES, Document, Templates, document_response
from hublet.description import describe, to_json, to_markdown
from hublet.description.outline import outline_of

router = Router()
_templates = Templates("hublet.pages")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Documents:
    openapi: Document
    markdown: Document
    docs: Document


def _responses(media_type: str, schema: dict[str, Any]) -> dict[int | str, dict[str, Any]]:
    headers = {
        "ETag": {"description": "The version.", "required": True, "schema": {"type": "string"}},
        "Cache-Control": {"required": True, "schema": {"type": "string"}},
    }
    return {
        200: {"content": {media_type: {"schema": schema}}, "headers": headers},
        304: {"description": "The version in `If-None-Match` is current.", "headers": headers},
    }


@router.get(
    "/.well-known/openapi.json",
    tags=["docs"],
    summary="Get OpenAPI",
    response_class=Response,
    responses=_responses("application/json", {"type": "object"}),
)
async def get_openapi_json(request: Request) -> Response:
    """Get this description as OpenAPI 3.1.0."""
    return document_response(request, (await _documents_of(request.app)).openapi)


@router.get(
    "/.well-known/openapi.md",
    tags=["docs"],
    summary="Get Markdown",
    response_class=Response,
    responses=_responses("text/markdown", {"type": "string"}),
)
async def get_openapi_markdown(request: Request) -> Response:
    """Get this description as Markdown, for people and agents."""
    return document_response(request, (await _documents_of(request.app)).markdown)


@router.get(
    "/docs",
    tags=["docs"],
    summary="Get the reference page",
    response_class=Response,
    responses=_responses("text/html", {"type": "string"}),
)
async def get_docs_page(request: Request) -> Response:
    """Get this description as a page for the browser."""
    return document_response(request, (await _documents_of(request.app)).docs)


@router.get("/", include_in_schema=False)
async def get_landing_page(request: Request) -> Response:
    # Not one of the documents: a newcomer's first page must not wait for the description.
    base_url: str = request.app.state.settings.base_url
    page = _page("landing.html", base_url=base_url, version=hublet.__version__)
    return document_response(request, page)


@router.get("/static/{name}", include_in_schema=False)
async def get_static_file(request: Request, name: str) -> Response:
    if name not in STATIC_FILES:
        raise NotFound(f"There is no file {name}.")
    return document_response(request, STATIC_FILES[name])


async def _documents_of(app: FastAPI) -> _Documents:
    # The routes of an app do not change while it runs, so its first readers wait for all. It takes
    # seconds, and others are served meanwhile.
    if not hasattr(app.state, "documents"):
        app.state.documents = asyncio.create_task(asyncio.to_thread(_render, app))
    rendering: asyncio.Task[_Documents] = app.state.documents
    return await asyncio.shield(rendering)


def _render(app: FastAPI) -> _Documents:
    description = describe(app, base_url=app.state.settings.base_url)
    return _Documents(
        openapi=Document(body=to_json(description), media_type="application/json"),
        markdown=Document(body=to_markdown(description).encode(), media_type="text/markdown"),
        docs=_page("docs.html", outline=outline_of(description)),
    )


def _page(template: str, **values: Any) -> Document:
    body = _templates.render(template, **values)
    return Document(body=body, media_type="text/html", policy=PAGE_POLICY)


ROUTERS: tuple[Router, ...] = (router,)
