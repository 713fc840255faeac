"""HTTP for the inbox: its page, its changes and how they are undone, and messages of the hub."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fastapi import Response

from hublet.core.database import Reader
from hublet.core.errors import HubError, InvalidRequest, NotFound
from hublet.core.pages import PageRouter
from hublet.login.auth import FormFields
from hublet.notifications import inbox_changes, watches_store
from hublet.notifications.inbox import read_store
from hublet.notifications.inbox import service as inbox
from hublet.notifications.inbox.paging import VisiblePage, read_items
from hublet.notifications.inbox.read_store import PAGE
from hublet.notifications.inbox.store import versions_of
from hublet.notifications.inbox_changes import InboxVerb
from hublet.notifications.messages import service as messages
from hublet.notifications.records import (
    BLOG,
    INBOXES_CHANNEL,
    PAPER,
    InboxChange,
    InboxSummary,
    LastEvent,
    Selection,
    WatchType,
)
from hublet.web.auth import PageVisit, SignedInVisit, Since
from hublet.web.inbox.schemas import PATH, InboxQuery
from hublet.web.inbox.views import InboxView, facet_of, groups_of
from hublet.web.live import LiveContent, LiveKind, live_stream
from hublet.web.pages import REFUSALS, frame_for, go_to, render, status_of

router = PageRouter()

_PURPOSE = "inbox"


async def _read_versions(conn: Reader, keys: Sequence[str]) -> Mapping[str, int]:
    """Return the versions of inboxes; one that nothing ever came into has the first."""
    return dict.fromkeys(keys, 0) | await versions_of(conn, keys)


_INBOX_CONTENT = LiveKind(channel=INBOXES_CHANNEL, read_versions=_read_versions)


@router.get(PATH)
async def get_inbox_page(visit: SignedInVisit) -> Response:
    return await _show(visit, _query_of(visit))


@router.get(f"{PATH}/events")
async def stream_inbox(visit: SignedInVisit, since: Since = 0) -> Response:
    """Say that the inbox has changed since this version."""
    content = LiveContent(kind=_INBOX_CONTENT, key=visit.person.user_id, since=since)
    return live_stream(visit, content)


@router.post(f"{PATH}/change")
async def change_inbox(visit: SignedInVisit, form: FormFields) -> Response:
    """Mark or mute items of this page: `do` is a verb and what it is for, as in `done group ID`."""
    visit.check(form, _PURPOSE)
    query, user_id = _query_of(visit), visit.person.user_id
    verb, _, scope = form.get("do", "").partition(" ")
    try:
        if verb not in set(InboxVerb):
            raise InvalidRequest("do must begin with done, unread or mute.")
        async with visit.database.transaction() as conn:
            selection = await _select(conn, user_id, query)
            selection = await _select_scope(conn, user_id, selection, scope, form)
            change = await inbox_changes.apply(conn, user_id, InboxVerb(verb), selection)
    except (*REFUSALS, NotFound) as error:
        return await _show(visit, query, problem=error)
    return await _go_on(visit, query, change)


@router.post(f"{PATH}/undo")
async def undo_inbox_change(visit: SignedInVisit, form: FormFields) -> Response:
    """Restore what a change of the last hour changed."""
    visit.check(form, _PURPOSE)
    query = _query_of(visit)
    try:
        async with visit.database.transaction() as conn:
            change_id = form.get("change", "")
            await inbox_changes.undo(conn, change_id, user_id=visit.person.user_id)
    except NotFound as error:
        return await _show(visit, query, problem=error)
    return await _go_on(visit, query, None)


@router.get(f"{PATH}/messages/{{message_id}}")
async def get_message_page(visit: SignedInVisit, message_id: str) -> Response:
    """Show what the hub told this person, in full."""
    async with visit.database.read() as conn:
        message = await messages.get(conn, message_id, user_id=visit.person.user_id)
        frame = await frame_for(visit, conn)
    base_url = visit.hub.settings.base_url
    return await render(
        visit,
        "inbox/message.html",
        frame=frame,
        message=message,
        # A paragraph that is an address of this hub is a link.
        paragraphs=[
            (text, text.removeprefix(base_url) if text.startswith(f"{base_url}/") else None)
            for text in message.text.body.split("\n\n")
        ],
        form_token=visit.form_token(_PURPOSE),
    )


def _query_of(visit: PageVisit) -> InboxQuery:
    return InboxQuery.of(visit.request.query_params)


async def _go_on(visit: PageVisit, query: InboxQuery, change: InboxChange | None) -> Response:
    """Show the page again: the part that a script asks for, or by its address."""
    if "fragment" in visit.request.headers:
        return await _show(visit, query, change=change)
    changed = None if change is None else change.id
    return go_to(visit, query.address(p=query.p, changed=changed))


async def _select(conn: Reader, user_id: str, query: InboxQuery) -> Selection:
    selection = await inbox.select(conn, user_id, query.filters)
    if query.other_type is not None:
        selection = selection.of_type(query.other_type)
    return await inbox.narrow(conn, user_id, selection, search=query.q)


async def _select_scope(
    conn: Reader, user_id: str, selection: Selection, scope: str, form: FormFields
) -> Selection:
    """Return which items of this page, or of all that match, a button is for.

    Nothing that came after the page was shown is among them.
    """
    seen = form.get("seen", "")
    if seen.isdecimal():
        selection = replace(selection, until=min(selection.until, int(seen)))
    match scope.split(" "):
        case ["group", facet]:
            is_type = facet in {PAPER, BLOG}
            return selection.of_type(facet) if is_type else selection.in_places([facet])
        case ["finished"]:
            return await inbox.narrow(conn, user_id, selection, only_finished=True)
        case ["all"]:
            return selection
        case words:
            return selection.of_threads(_chosen_ids(words, form))


def _chosen_ids(words: list[str], form: FormFields) -> list[str]:
    match words:
        case ["item", thread_id]:
            return [thread_id]
        case ["selected"] if not form.getlist("id"):
            raise InvalidRequest("Nothing is selected: tick the boxes before some items first.")
        case ["selected"]:
            return form.getlist("id")
        case ["page"]:
            return form.getlist("shown")
    raise InvalidRequest("do must end with item, selected, page, group, finished or all.")


async def _show(
    visit: PageVisit,
    query: InboxQuery,
    *,
    change: InboxChange | None = None,
    problem: HubError | None = None,
) -> Response:
    user_id = visit.person.user_id
    async with visit.database.read() as conn:
        # Before the items: what changes meanwhile has a later version, and is asked for again.
        summary = await read_store.summarize(conn, user_id)
        selection = await _select(conn, user_id, query)
        if query.changed and change is None and problem is None:
            change = await inbox_changes.find(conn, query.changed, user_id=user_id)
    page = await read_items(visit.database, user_id, selection, page=query.p)
    matching = page.unread if selection.unread else page.total
    if query.p and not page.items:
        # What was on this page is done: the last one that there is.
        query = query.model_copy(update={"p": max(0, matching - 1) // PAGE})
        page = await read_items(visit.database, user_id, selection, page=query.p)
    view = await _view(visit, query, summary, page, change=change, problem=problem)
    frame = await frame_for(visit)
    assert frame is not None  # noqa: S101 - only people who are signed in have an inbox
    return await render(
        visit,
        "inbox/inbox.html",
        frame=replace(frame, unread=summary.unread),
        status=200 if problem is None else status_of(problem),
        live=f"{PATH}/events?since={summary.version}",
        view=view,
    )


async def _view(
    visit: PageVisit,
    query: InboxQuery,
    summary: InboxSummary,
    page: VisiblePage,
    *,
    change: InboxChange | None,
    problem: HubError | None,
) -> InboxView:
    user_id = visit.person.user_id
    watched = (0, 0)
    events: dict[str, LastEvent] = {}
    counts: dict[str, tuple[int, int]] = {}
    async with visit.database.read() as conn:
        if page.items:
            last = [each.entry.last_event_id for each in page.items if each.entry.last_event_id]
            events = await read_store.list_last_events(conn, last)
            facets = {facet_of(each) for each in page.items}
            least = inbox.LEAST[query.mention]
            counts = await read_store.count_by_facet(conn, user_id, facets, least=least)
        else:
            by_type = await watches_store.count_by_type(conn, user_id=user_id)
            repos = by_type.get(WatchType.repo, 0)
            watched = repos, sum(by_type.values()) - repos
    return InboxView(
        query=query,
        summary=summary,
        groups=groups_of(page, query, events=events, counts=counts),
        total=page.total,
        unread=page.unread,
        form_token=visit.form_token(_PURPOSE),
        change=change,
        problem=None if problem is None else problem.message,
        watched=watched,
    )
