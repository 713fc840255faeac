"""HTTP for what a script asks of a thread: previews, names, attachments, and whether it changed."""

from functools import partial
from typing import Annotated

from fastapi import Query, Request, Response
from markupsafe import Markup
from starlette.datastructures import ImmutableMultiDict

from hublet.community.discussions import service as discussions
from hublet.community.threads.store import suggest_users
from hublet.core.errors import AuthenticationNeeded
from hublet.core.http.event_streams import EventStream, LastEventId
from hublet.core.http.exchange import allow_streaming, exchange_of
from hublet.core.pages import PageRouter, page_response
from hublet.login.auth import FormFields, find_session
from hublet.login.forms import FIELD
from hublet.repos import attachments
from hublet.repos import service as repos
from hublet.repos.auth import PageRepo, body_of
from hublet.repos.records import Repo, RepoAddress, Right
from hublet.web.auth import PageVisit, SignedInVisit, Visit
from hublet.web.repo_head import PURPOSE
from hublet.web.threads import content
from hublet.web.threads.auth import THREAD, THREADS, Number
from hublet.web.threads.stream import ThreadWatcher, listen

_MOST_NAMES = 8

router = PageRouter()

allow_streaming("POST", "/.+/discussions/attachments")


@router.post(f"{THREADS}/preview")
async def preview_text(visit: SignedInVisit, address: PageRepo, form: FormFields) -> Response:
    """Show a text as it will look."""
    repo = await _check_script(visit, address, Right.see)
    text = form.get("text", "").replace("\r\n", "\n")
    return page_response((await content.render_text(text, repo, visit.hub)).encode())


@router.get(f"{THREADS}/mentions")
async def suggest_names(
    visit: SignedInVisit, address: PageRepo, q: Annotated[str, Query(max_length=42)] = ""
) -> Response:
    """List people whose names begin like this; names are no secret among those who have one."""
    async with visit.database.read() as conn:
        repo = await repos.get(conn, visit.caller, address, Right.see)
        names = await suggest_users(conn, q, thread_repo_id=repo.id, limit=_MOST_NAMES)
    items = Markup().join(
        Markup('<li><button type="button">{}</button></li>').format(name) for name in names
    )
    return page_response(items.encode())


@router.post(f"{THREADS}/attachments")
async def add_attachment(request: Request, visit: SignedInVisit, address: PageRepo) -> Response:
    """Take a file for a text; the answer is its address. The same rules as for `/uploads`."""
    repo = await _check_script(visit, address, Right.discuss)
    discussions.check_enabled(repo)
    media_type = attachments.check_media_type(request.headers.get("content-type", ""))
    added = await attachments.add(visit.database, visit.person, media_type, body_of(request))
    return page_response(f"{visit.hub.settings.base_url}/uploads/{added.name}".encode())


async def _check_script(visit: PageVisit, address: RepoAddress, right: Right) -> Repo:
    """Return the repository of a request that a script of the viewer's own page sent."""
    async with visit.database.read() as conn:
        repo = await repos.get(conn, visit.caller, address, right)
    token = visit.request.headers.get("form-token", "")
    visit.check(ImmutableMultiDict({FIELD: token}), f"{PURPOSE} {repo.id}")
    return repo


@router.get(f"{THREAD}/events")
async def stream_thread(
    visit: Visit,
    address: PageRepo,
    num: Number,
    since: Annotated[int, Query(ge=0, le=2**32)] = 0,
    last_event_id: LastEventId = None,
) -> Response:
    """Say whenever the thread changes; whoever may see its page may listen."""
    request = visit.request
    async with visit.database.read() as conn:
        found = await discussions.get(conn, visit.caller, address, num)
    watcher: ThreadWatcher = request.app.state.thread_watcher
    viewer = visit.caller.user_id if visit.caller else exchange_of(request).address
    watcher.check_room(viewer)
    events = partial(
        listen,
        watcher,
        found.thread.id,
        viewer=viewer,
        since=since if last_event_id is None else int(last_event_id),
    )
    return EventStream(request, events, check_access=partial(_check_access, visit, address, num))


async def _check_access(visit: PageVisit, address: RepoAddress, number: int) -> None:
    if visit.session is not None and await find_session(visit.request) is None:
        raise AuthenticationNeeded("The session has ended.")
    async with visit.database.read() as conn:
        await discussions.get(conn, visit.caller, address, number)
