"""HTTP for the page of a paper, post or blog, and a form for each thing that can be done there."""

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import Response

from hublet.community import blogs, comments, emoji, posts
from hublet.community.comment_schemas import EditComment, WriteComment
from hublet.community.emoji import ThreadInContext
from hublet.community.errors import ThreadNotFound
from hublet.community.papers import service as papers
from hublet.community.threads.records import Thread, ThreadKind
from hublet.core.database import Connection
from hublet.core.pages import PageRouter
from hublet.login.auth import FormFields
from hublet.web.auth import FreshVisit, PageVisit, SignedInVisit, Visit
from hublet.web.pages import REFUSALS, go_to, read_as, status_of
from hublet.web.publications import FOLDERS, publication_path
from hublet.web.threads import content
from hublet.web.threads.auth import (
    PUBLIC_THREAD,
    PublicAddress,
    PublicThreadAddress,
    RequestedThreadQuery,
    owns,
)
from hublet.web.threads.forms import (
    PUBLIC_PURPOSE,
    FormState,
    emoji_of,
    text_of,
)
from hublet.web.threads.pages import finish_public, show_public_thread
from hublet.web.threads.views import ThreadQuery

router = PageRouter(prefix=PUBLIC_THREAD)

# Does what a form asks for; returns the id of the comment to go to, if any.
_Action = Callable[[Connection, Thread], Awaitable[Any]]


@router.get("")
async def get_public_thread_page(
    visit: Visit,
    address: PublicThreadAddress,
    query: RequestedThreadQuery,
) -> Response:
    try:
        return await show_public_thread(visit, address, query=query)
    except ThreadNotFound:
        # The inbox of the interface names papers by the ids of their threads.
        async with visit.database.read() as conn:
            paper = await papers.find_by_thread(conn, address.slug)
        if paper is None or address.kind is not ThreadKind.paper:
            raise
        return go_to(visit, publication_path(paper.thread, {}))


@router.post("/comment")
async def add_public_comment(
    visit: SignedInVisit, address: PublicThreadAddress, form: FormFields
) -> Response:
    """Comment, answer a comment, or show how it would look."""
    text, parent_id = text_of(form, "comment"), form.get("reply_to", "")
    state = FormState(name="comment", values={"comment": text, "reply_to": parent_id})
    if "preview" in form:
        return await _preview(visit, address, form, state, text)

    async def act(conn: Connection, thread: Thread) -> str:
        asked = read_as(WriteComment, comment=text)
        if parent_id:
            return (await comments.reply(conn, visit.person, thread, parent_id, asked.comment)).id
        return (await comments.comment(conn, visit.person, thread, asked.comment)).id

    return await _change(visit, address, form, state, act)


@router.post("/comment/{comment_id}/edit")
async def edit_public_comment(
    visit: SignedInVisit, address: PublicThreadAddress, comment_id: str, form: FormFields
) -> Response:
    text = text_of(form, "content")
    state = FormState(name=f"edit {comment_id}", values={"content": text})
    if "preview" in form:
        return await _preview(visit, address, form, state, text)

    async def act(conn: Connection, thread: Thread) -> str:
        asked = read_as(EditComment, content=text)
        return (await comments.edit(conn, visit.person, thread, comment_id, asked.content)).id

    return await _change(visit, address, form, state, act)


@router.post("/comment/{comment_id}/hide")
async def hide_public_comment(
    visit: SignedInVisit, address: PublicThreadAddress, comment_id: str, form: FormFields
) -> Response:
    async def act(conn: Connection, thread: Thread) -> str:
        is_owner = await owns(conn, visit.person, thread)
        hidden = await comments.hide(conn, visit.person, thread, comment_id, owns_thread=is_owner)
        return hidden.id

    return await _change(visit, address, form, FormState(name="thread"), act)


@router.post("/comment/{comment_id}/react")
async def react_to_public_comment(
    visit: SignedInVisit, address: PublicThreadAddress, comment_id: str, form: FormFields
) -> Response:
    """Give an emoji, or take it back."""

    async def act(conn: Connection, thread: Thread) -> str:
        locked = await comments.lock_thread_as_writer(conn, visit.person, thread)
        place = ThreadInContext(thread=locked, context=comments.PUBLIC_CONTEXT)
        change = emoji.add if "add" in form else emoji.remove
        await change(conn, visit.person, place, comment_id, emoji_of(form))
        return comment_id

    return await _change(visit, address, form, FormState(name="thread"), act)


@router.post("/ignore")
async def mute_public_thread(
    visit: SignedInVisit, address: PublicThreadAddress, form: FormFields
) -> Response:
    """Hear nothing more of a thread, or hear of it again."""

    async def act(conn: Connection, thread: Thread) -> None:
        await comments.mute(conn, visit.person, thread, muted=form.get("ignore") == "true")

    return await _change(visit, address, form, FormState(name="thread"), act)


@router.post("/upvote")
async def upvote_paper(
    visit: SignedInVisit, address: PublicThreadAddress, form: FormFields
) -> Response:
    """Vote for a paper, or take the vote back."""

    async def act(conn: Connection, thread: Thread) -> None:
        paper = await papers.get(conn, thread.paper_id or "")
        await papers.vote(conn, visit.person, paper, voted=form.get("vote") == "yes")

    return await _change(visit, address, form, FormState(name="thread"), act)


@router.post("/delete")
async def delete_public_thread(
    visit: FreshVisit, address: PublicThreadAddress, form: FormFields
) -> Response:
    visit.check(form, PUBLIC_PURPOSE)
    async with visit.database.transaction() as conn:
        if address.kind is ThreadKind.paper:
            await papers.delete(conn, visit.person, await papers.get(conn, address.slug))
        else:
            delete = posts.delete if address.kind is ThreadKind.post else blogs.delete
            await delete(conn, visit.person, await address.find(conn))
    return go_to(visit, f"/{FOLDERS[address.kind]}", toast=f"The {address.kind} is deleted.")


async def _preview(
    visit: PageVisit, address: PublicAddress, form: FormFields, state: FormState, text: str
) -> Response:
    visit.check(form, PUBLIC_PURPOSE)
    html = await content.render_text(text, None, visit.hub)
    shown = FormState(name=state.name, values=state.values, preview=html)
    return await show_public_thread(visit, address, query=_query_of(state), form=shown)


async def _change(
    visit: PageVisit, address: PublicAddress, form: FormFields, state: FormState, act: _Action
) -> Response:
    """Do something in a thread, all or nothing; a refusal shows the form again."""
    visit.check(form, PUBLIC_PURPOSE)
    try:
        async with visit.database.transaction() as conn:
            anchor = await act(conn, await address.find(conn))
    except REFUSALS as error:
        refused = FormState(name=state.name, values=state.values, problem=error.message)
        return await show_public_thread(
            visit, address, query=_query_of(state), form=refused, status=status_of(error)
        )
    return await finish_public(visit, address, anchor=anchor or "")


def _query_of(state: FormState) -> ThreadQuery:
    """Return the query of the page that has this form."""
    return (
        ThreadQuery(edit=state.name.removeprefix("edit ")) if " " in state.name else ThreadQuery()
    )
