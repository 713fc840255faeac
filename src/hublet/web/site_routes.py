"""HTTP for the site itself: the description in its three forms, static files, what robots ask."""

import asyncio
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Final, Literal, Self

from fastapi import FastAPI, Query, Request, Response

from hublet.core.dataclasses import dataclass
from hublet.core.errors import NotFound
from hublet.core.http.routers import Router
from hublet.core.http.static_files import STATIC_FILES, Document, document_response
from hublet.core.pages import PAGE_POLICY, THEME_COOKIE, THEMES, PageRouter, Templates
from hublet.core.schema import Schema
from hublet.description import describe, to_json, to_markdown
from hublet.description.outline import DescriptionSearch, FoundOperation, outline_of
from hublet.login.auth import FormFields
from hublet.login.browser import cookie_rules, safe_path
from hublet.login.forms import check_origin
from hublet.web.auth import SignedInVisit, Visit
from hublet.web.live import live_stream
from hublet.web.pages import go_to

router = Router()
pages = PageRouter()
_templates = Templates("hublet.web")

_THEME_SECONDS = 365 * 86400
_PRODUCT: Final = "hub"


class Documentation(Schema):
    id: str
    url: str
    category: str


def _address_of(found: FoundOperation, base_url: str) -> str:
    return f"{base_url}/docs#{found.operation.id}"


class DocsResult(Schema):
    """An operation that a search found."""

    id: str
    heading1: str
    heading2: str
    text: str
    product: Literal["hub"]
    source_page_url: str
    source_page_title: str

    @classmethod
    def of(cls, found: FoundOperation, *, base_url: str) -> Self:
        operation = found.operation
        return cls(
            id=operation.id,
            heading1=found.section.tag,
            heading2=operation.summary,
            text=f"{operation.method} {operation.path}\n\n{operation.text}\n\n{operation.access}",
            product=_PRODUCT,
            source_page_url=_address_of(found, base_url),
            source_page_title="API reference",
        )


class DocsHit(Schema):
    url: str
    anchor: str
    hierarchy_lvl0: str
    hierarchy_lvl1: str
    hierarchy_lvl2: str
    content: str

    @classmethod
    def of(cls, found: FoundOperation, *, base_url: str) -> Self:
        operation = found.operation
        return cls(
            url=_address_of(found, base_url),
            anchor=operation.id,
            hierarchy_lvl0="API reference",
            hierarchy_lvl1=found.section.tag,
            hierarchy_lvl2=operation.summary,
            content=operation.text,
        )


class DocsHits(Schema):
    hits: list[DocsHit]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Documents:
    openapi: Document
    markdown: Document
    docs: Document
    search: DescriptionSearch


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


@router.get("/api/docs", tags=["docs"], openapi_extra={"security": []})
async def list_docs() -> list[Documentation]:
    """List what documents this hub: its reference, for people and as Markdown."""
    return [
        Documentation(id="hub", url="/docs", category="API"),
        Documentation(id="hub-markdown", url="/.well-known/openapi.md", category="API"),
    ]


_DocsQuery = Annotated[
    str, Query(max_length=250, description="Words, or beginnings of words, that all have to occur.")
]


@router.get("/api/docs/search", tags=["docs"], openapi_extra={"security": []})
async def search_docs(
    request: Request,
    q: _DocsQuery,
    product: Annotated[str, Query(description="`hub`; nothing else is documented here.")] = "hub",
    limit: Annotated[int, Query(ge=1, le=25)] = 10,
) -> list[DocsResult]:
    """Find operations in this description, the best first."""
    if product != _PRODUCT:
        return []
    search = (await _documents_of(request.app)).search
    base_url = request.app.state.settings.base_url
    return [DocsResult.of(found, base_url=base_url) for found in search.find(q, limit=limit)]


@router.get("/api/docs/search/full-text", tags=["docs"], openapi_extra={"security": []})
async def search_docs_full_text(
    request: Request, q: _DocsQuery, limit: Annotated[int, Query(ge=1, le=100)] = 9
) -> DocsHits:
    """Find operations in this description, as hits that a search box shows."""
    search = (await _documents_of(request.app)).search
    base_url = request.app.state.settings.base_url
    return DocsHits(
        hits=[DocsHit.of(found, base_url=base_url) for found in search.find(q, limit=limit)]
    )


@router.get("/static/{name}", include_in_schema=False)
async def get_static_file(request: Request, name: str) -> Response:
    if name not in STATIC_FILES:
        raise NotFound(f"There is no file {name}.")
    return document_response(request, STATIC_FILES[name])


@router.get("/favicon.ico", include_in_schema=False)
async def get_favicon(request: Request) -> Response:
    return document_response(request, STATIC_FILES["icon.svg"])


_ROBOTS = Document(
    body=b"User-agent: *\nDisallow: /api/\nDisallow: /settings\nDisallow: /search\n",
    media_type="text/plain",
)


@router.get(
    "/llms.txt",
    tags=["docs"],
    summary="Get llms.txt",
    response_class=Response,
    responses=_responses("text/markdown", {"type": "string"}),
)
async def get_llms_txt(request: Request) -> Response:
    """Tell agents, in Markdown, what this hub is and where to go on."""
    text = _llms_text().replace("{base}", request.app.state.settings.base_url)
    body = Document(body=text.encode(), media_type="text/markdown; charset=utf-8")
    return document_response(request, body)


@cache
def _llms_text() -> str:
    return files("hublet.web").joinpath("templates", "llms.txt").read_text(encoding="utf-8")


@router.get("/robots.txt", include_in_schema=False)
async def get_robots_txt(request: Request) -> Response:
    return document_response(request, _ROBOTS)


@pages.get("/live")
async def stream_unread(visit: SignedInVisit) -> Response:
    """Say how much is unread, on pages that show nothing else that changes."""
    return live_stream(visit)


@pages.post("/settings/theme")
async def set_theme(visit: Visit, form: FormFields) -> Response:
    """Choose light, dark, or what the system says; everybody may, so the browser keeps it."""
    check_origin(visit.request)
    response = go_to(visit, safe_path(form.get("next")))
    rules = cookie_rules(visit.hub.settings)
    if (theme := form.get("theme")) in THEMES:
        response.set_cookie(THEME_COOKIE, theme, max_age=_THEME_SECONDS, **rules)
    else:
        response.delete_cookie(THEME_COOKIE, **rules)
    return response


async def _documents_of(app: FastAPI) -> _Documents:
    # The routes of an app do not change while it runs, so its first readers wait for all. It takes
    # seconds, and others are served meanwhile.
    if not hasattr(app.state, "documents"):
        app.state.documents = asyncio.create_task(asyncio.to_thread(_render, app))
    rendering: asyncio.Task[_Documents] = app.state.documents
    return await asyncio.shield(rendering)


def _render(app: FastAPI) -> _Documents:
    description = describe(app, base_url=app.state.settings.base_url)
    outline = outline_of(description)
    return _Documents(
        openapi=Document(body=to_json(description), media_type="application/json"),
        markdown=Document(body=to_markdown(description).encode(), media_type="text/markdown"),
        docs=_page("docs.html", outline=outline),
        search=DescriptionSearch(outline),
    )


def _page(template: str, **values: Any) -> Document:
    body = _templates.render(template, **values)
    return Document(body=body, media_type="text/html", policy=PAGE_POLICY)
