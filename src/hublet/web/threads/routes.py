"""HTTP for the conversation of a thread: its page, and a form for each thing that can be done."""

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import Response

from hublet.community import emoji
from hublet.community.comment_schemas import EditComment, WriteComment
from hublet.community.discussions import pull_requests, service
from hublet.community.discussions.records import DiscussionRecord
from hublet.community.discussions.schemas import ChangeTitle
from hublet.community.emoji import ThreadInContext
from hublet.community.threads import store as thread_store
from hublet.community.threads.records import ThreadStatus
from hublet.core.database import Connection
from hublet.core.errors import InvalidRequest
from hublet.core.pages import PageRouter
from hublet.login.auth import FormFields
from hublet.repos.auth import PageRepo
from hublet.repos.records import RepoAddress, Right
from hublet.web.auth import FreshVisit, PageVisit, SignedInVisit, Visit
from hublet.web.pages import REFUSALS, go_to, read_as
from hublet.web.repo_head import path_of
from hublet.web.threads import (
    content,
    editor_routes,
    list_routes,
    public_routes,
    publication_routes,
    pull_request_routes,
)
from hublet.web.threads.auth import THREAD, Number, RequestedThreadQuery
from hublet.web.threads.forms import FormState, emoji_of, text_of
from hublet.web.threads.pages import check_thread_form, finish, show_refusal, show_thread
from hublet.web.threads.views import ThreadQuery

router = PageRouter(prefix=THREAD)

# Does what a form asks for; returns the id of the comment to go to, if any.
_Action = Callable[[Connection, DiscussionRecord], Awaitable[Any]]

_STATUSES = {"close": ThreadStatus.closed, "open": ThreadStatus.open}


@router.get("")
async def get_thread_page(
    visit: Visit,
    repo: PageRepo,
    num: Number,
    query: RequestedThreadQuery,
) -> Response:
    return await show_thread(visit, repo, num, query=query)


@router.post("/comment")
async def add_comment(
    visit: SignedInVisit, repo: PageRepo, num: Number, form: FormFields
) -> Response:
    """Comment, answer, show how it would look, or comment and close or open the thread."""
    discussion = await check_thread_form(visit, repo, num, form)
    text, parent_id = text_of(form, "comment"), form.get("reply_to", "")
    values = {"comment": text, "reply_to": parent_id}
    if "preview" in form:
        html = await content.render_text(text, discussion.repo, visit.hub)
        state = FormState(name="comment", values=values, preview=html)
        return await show_thread(visit, repo, num, form=state)

    async def act(conn: Connection, found: DiscussionRecord) -> str:
        status = _STATUSES.get(form.get("then", ""))
        if status is None:
            asked = read_as(WriteComment, comment=text)
            written = await service.comment(
                conn, visit.person, found, asked.comment, parent_id=parent_id or None
            )
            return written.id
        message = read_as(WriteComment, comment=text).comment if text.strip() else None
        return (await service.set_status(conn, visit.person, found, status, message=message)).id

    state = FormState(name="comment", values=values)
    return await _change(visit, repo, num, state, act)


@router.post("/comment/{comment_id}/edit")
async def edit_comment(
    visit: SignedInVisit, repo: PageRepo, num: Number, comment_id: str, form: FormFields
) -> Response:
    discussion = await check_thread_form(visit, repo, num, form)
    text = text_of(form, "content")
    name = f"edit {comment_id}"
    if "preview" in form:
        html = await content.render_text(text, discussion.repo, visit.hub)
        state = FormState(name=name, values={"content": text}, preview=html)
        query = ThreadQuery(edit=comment_id)
        return await show_thread(visit, repo, num, query=query, form=state)

    async def act(conn: Connection, found: DiscussionRecord) -> str:
        asked = read_as(EditComment, content=text)
        return (await service.edit_comment(conn, visit.person, found, comment_id, asked.content)).id

    return await _change(visit, repo, num, FormState(name=name, values={"content": text}), act)


@router.post("/comment/{comment_id}/hide")
async def hide_comment(
    visit: SignedInVisit, repo: PageRepo, num: Number, comment_id: str, form: FormFields
) -> Response:
    await check_thread_form(visit, repo, num, form)

    async def act(conn: Connection, found: DiscussionRecord) -> str:
        return (await service.hide_comment(conn, visit.person, found, comment_id)).id

    return await _change(visit, repo, num, FormState(name="thread"), act)


@router.post("/comment/{comment_id}/react")
async def react_to_comment(
    visit: SignedInVisit, repo: PageRepo, num: Number, comment_id: str, form: FormFields
) -> Response:
    """Give an emoji, or take it back."""
    await check_thread_form(visit, repo, num, form)

    async def act(conn: Connection, found: DiscussionRecord) -> str:
        place = ThreadInContext(thread=found.thread, context=service.context_of(found.repo))
        reaction = emoji_of(form)
        if "add" in form:
            service.check_enabled(found.repo)
            await emoji.add(conn, visit.person, place, comment_id, reaction)
        else:
            await emoji.remove(conn, visit.person, place, comment_id, reaction)
        return comment_id

    return await _change(visit, repo, num, FormState(name="thread"), act)


@router.post("/title")
async def rename_thread(
    visit: SignedInVisit, repo: PageRepo, num: Number, form: FormFields
) -> Response:
    await check_thread_form(visit, repo, num, form)
    title = form.get("title", "")

    async def act(conn: Connection, found: DiscussionRecord) -> None:
        asked = read_as(ChangeTitle, title=title)
        await service.rename(conn, visit.person, found, asked.title)

    return await _change(visit, repo, num, FormState(name="title", values={"title": title}), act)


@router.post("/status")
async def set_thread_status(
    visit: SignedInVisit, repo: PageRepo, num: Number, form: FormFields
) -> Response:
    """Close or open a thread; opening a draft makes it ready."""
    await check_thread_form(visit, repo, num, form)

    async def act(conn: Connection, found: DiscussionRecord) -> str:
        status = _STATUSES.get(form.get("status", ""))
        if status is None:
            raise InvalidRequest("status must be open or close.")
        return (await service.set_status(conn, visit.person, found, status, message=None)).id

    return await _change(visit, repo, num, FormState(name="thread"), act)


@router.post("/pin")
async def pin_thread(
    visit: SignedInVisit, repo: PageRepo, num: Number, form: FormFields
) -> Response:
    await check_thread_form(visit, repo, num, form)

    async def act(conn: Connection, found: DiscussionRecord) -> None:
        await service.set_pinned(conn, visit.person, found, pinned=form.get("pinned") == "true")

    return await _change(visit, repo, num, FormState(name="thread"), act, right=Right.write)


@router.post("/ignore")
async def mute_thread(
    visit: SignedInVisit, repo: PageRepo, num: Number, form: FormFields
) -> Response:
    """Hear nothing more of a thread, or hear of it again."""
    await check_thread_form(visit, repo, num, form)

    async def act(conn: Connection, found: DiscussionRecord) -> None:
        await thread_store.set_muted(
            conn,
            found.thread.id,
            user_id=visit.person.user_id,
            muted=form.get("ignore") == "true",
        )

    return await _change(visit, repo, num, FormState(name="thread"), act)


@router.post("/delete")
async def delete_thread(
    visit: FreshVisit, repo: PageRepo, num: Number, form: FormFields
) -> Response:
    """Delete a thread with its comments; a pull request's ref goes with it."""
    discussion = await check_thread_form(visit, repo, num, form)
    try:
        async with visit.database.transaction() as conn:
            found = await service.get_for_change(conn, visit.person, repo, num, right=Right.write)
            await pull_requests.delete(conn, visit.person, found)
    except REFUSALS as error:
        return await show_refusal(visit, repo, num, FormState(name="thread"), error)
    path = f"{path_of(discussion.repo)}/discussions"
    return go_to(visit, path, toast=f"The {discussion.noun} #{num} is deleted.")


@router.post("/delete-ref")
async def delete_ref(visit: FreshVisit, repo: PageRepo, num: Number, form: FormFields) -> Response:
    """Delete the ref of a pull request that is closed or merged; its page stays."""
    await check_thread_form(visit, repo, num, form)

    async def act(conn: Connection, found: DiscussionRecord) -> None:
        await pull_requests.delete_ref(conn, visit.person, found)

    return await _change(visit, repo, num, FormState(name="thread"), act, right=Right.write)


async def _change(
    visit: PageVisit,
    repo: RepoAddress,
    num: int,
    state: FormState,
    act: _Action,
    *,
    right: Right = Right.discuss,
) -> Response:
    """Do something in a thread, all or nothing; a refusal shows the form again."""
    try:
        async with visit.database.transaction() as conn:
            found = await service.get_for_change(conn, visit.person, repo, num, right=right)
            anchor = await act(conn, found)
    except REFUSALS as error:
        return await show_refusal(visit, repo, num, state, error)
    return await finish(visit, repo, num, anchor=anchor or "")


# Papers, posts and blogs: their addresses have a fixed first word.
PUBLIC_ROUTERS = (publication_routes.router, editor_routes.public_router, public_routes.router)
ROUTERS = (
    list_routes.router,
    router,
    editor_routes.router,
    pull_request_routes.router,
)
