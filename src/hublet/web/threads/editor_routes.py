"""HTTP for what a script asks of a thread: previews, names, attachments, and whether it changed."""

from collections.abc import Iterable
from typing import Annotated

from fastapi import Query, Request, Response
from markupsafe import Markup
from starlette.datastructures import ImmutableMultiDict

from hublet.community.discussions import service as discussions
from hublet.community.threads.store import suggest_users, versions_of
from hublet.core import outbox
from hublet.core.http.exchange import allow_streaming
from hublet.core.pages import PageRouter, page_response
from hublet.login.auth import FormFields
from hublet.login.forms import FIELD
from hublet.repos import attachments
from hublet.repos import service as repos
from hublet.repos.auth import PageRepo, body_of
from hublet.repos.records import Repo, RepoAddress, Right
from hublet.web.auth import PageVisit, SignedInVisit, Since, Visit
from hublet.web.live import LiveContent, LiveKind, live_stream
from hublet.web.repo_head import PURPOSE
from hublet.web.threads import content
from hublet.web.threads.auth import (
    PUBLIC_THREAD,
    THREAD,
    THREADS,
    Number,
    PublicThreadAddress,
)
from hublet.web.threads.forms import PUBLIC_PURPOSE, text_of

_MOST_NAMES = 8
THREAD_CONTENT = LiveKind(channel=outbox.CHANNEL, read_versions=versions_of)

router = PageRouter()
# Papers, posts and blogs have one editor: what it does hangs on nothing that they are about.
public_router = PageRouter()

allow_streaming("POST", "/.+/discussions/attachments")
allow_streaming("POST", "/posts/attachments")


@router.post(f"{THREADS}/preview")
async def preview_text(visit: SignedInVisit, address: PageRepo, form: FormFields) -> Response:
    """Show a text as it will look."""
    repo = await _check_script(visit, address, Right.see)
    text = text_of(form, "text")
    return page_response((await content.render_text(text, repo, visit.hub)).encode())


@public_router.post("/posts/preview")
async def preview_public_text(visit: SignedInVisit, form: FormFields) -> Response:
    """Show a text of no repository as it will look."""
    _check_token(visit, PUBLIC_PURPOSE)
    html = await content.render_text(text_of(form, "text"), None, visit.hub)
    return page_response(html.encode())


@router.get(f"{THREADS}/mentions")
async def suggest_names(
    visit: SignedInVisit, address: PageRepo, q: Annotated[str, Query(max_length=42)] = ""
) -> Response:
    """List people whose names begin like this; names are no secret among those who have one."""
    async with visit.database.read() as conn:
        repo = await repos.get(conn, visit.caller, address, Right.see)
        names = await suggest_users(conn, q, thread_repo_id=repo.id, limit=_MOST_NAMES)
    return _list_names(names)


@public_router.get("/posts/mentions")
async def suggest_public_names(
    visit: SignedInVisit, q: Annotated[str, Query(max_length=42)] = ""
) -> Response:
    async with visit.database.read() as conn:
        names = await suggest_users(conn, q, thread_repo_id="", limit=_MOST_NAMES)
    return _list_names(names)


def _list_names(names: Iterable[str]) -> Response:
    items = Markup().join(
        Markup('<li><button type="button">{}</button></li>').format(name) for name in names
    )
    return page_response(items.encode())


@router.post(f"{THREADS}/attachments")
async def add_attachment(request: Request, visit: SignedInVisit, address: PageRepo) -> Response:
    """Take a file for a text; the answer is its address. The same rules as for `/uploads`."""
    repo = await _check_script(visit, address, Right.discuss)
    discussions.check_enabled(repo)
    return await _attach(request, visit)


@public_router.post("/posts/attachments")
async def add_public_attachment(request: Request, visit: SignedInVisit) -> Response:
    _check_token(visit, PUBLIC_PURPOSE)
    return await _attach(request, visit)


async def _attach(request: Request, visit: PageVisit) -> Response:
    media_type = attachments.check_media_type(request.headers.get("content-type", ""))
    added = await attachments.add(visit.database, visit.person, media_type, body_of(request))
    return page_response(f"{visit.hub.settings.base_url}/uploads/{added.name}".encode())


async def _check_script(visit: PageVisit, address: RepoAddress, right: Right) -> Repo:
    """Return the repository of a request that a script of the viewer's own page sent."""
    async with visit.database.read() as conn:
        repo = await repos.get(conn, visit.caller, address, right)
    _check_token(visit, f"{PURPOSE} {repo.id}")
    return repo


def _check_token(visit: PageVisit, purpose: str) -> None:
    token = visit.request.headers.get("form-token", "")
    visit.check(ImmutableMultiDict({FIELD: token}), purpose)


@router.get(f"{THREAD}/events")
async def stream_thread(
    visit: Visit,
    address: PageRepo,
    num: Number,
    since: Since = 0,
) -> Response:
    """Say whenever the thread changes; whoever may see its page may listen."""
    async with visit.database.read() as conn:
        found = await discussions.get(conn, visit.caller, address, num)

    async def check() -> None:
        async with visit.database.read() as conn:
            await discussions.get(conn, visit.caller, address, num)

    return live_stream(visit, _live(found.thread.id, since), check)


@public_router.get(f"{PUBLIC_THREAD}/events")
async def stream_public_thread(
    visit: Visit,
    address: PublicThreadAddress,
    since: Since = 0,
) -> Response:
    """Say whenever a paper, post or blog changes."""
    async with visit.database.read() as conn:
        thread = await address.find(conn)

    async def check() -> None:
        async with visit.database.read() as conn:
            await address.find(conn)

    return live_stream(visit, _live(thread.id, since), check)


def _live(thread_id: str, since: int) -> LiveContent:
    return LiveContent(kind=THREAD_CONTENT, key=thread_id, since=since)
