"""HTTP for lists of papers, posts and blogs, for the forms that publish one, and for feeds."""

import asyncio
from typing import Annotated, Literal

from fastapi import Path, Query, Response
from pydantic import MISSING

from hublet.accounts.errors import AccountNotFound
from hublet.accounts.organizations.store import find_accounts
from hublet.accounts.records import Role
from hublet.accounts.users import store as users
from hublet.community import blogs, posts
from hublet.community.errors import NotYourThread
from hublet.community.papers import service as papers
from hublet.community.papers import store as paper_store
from hublet.community.papers.records import DailyPapersQuery, NewPaper, PaperSort
from hublet.community.papers.schemas import MAX_SUMMARY, IndexPaper
from hublet.community.publication_schemas import (
    MAX_BLOG,
    MAX_POST,
    CreateBlog,
    CreatePost,
    UpdateBlog,
)
from hublet.community.threads.records import Thread, ThreadKind
from hublet.core.database import Connection, Reader
from hublet.core.pages import PageRouter
from hublet.login.auth import FormFields
from hublet.web.auth import PageVisit, SignedInVisit, Visit
from hublet.web.pages import REFUSALS, frame_for, go_to, read_as, render, send_feed, status_of
from hublet.web.publications import (
    FOLDERS,
    PublicationRow,
    accounts_of,
    excerpt_of,
    list_rows,
    name_of,
    publication_path,
)
from hublet.web.rendering.feeds import Feed, FeedEntry, tag_uri
from hublet.web.threads import content
from hublet.web.threads.auth import PUBLIC_THREAD, PublicAddress, PublicThreadAddress
from hublet.web.threads.forms import (
    EMPTY,
    PUBLIC_PURPOSE,
    FormState,
    text_of,
)
from hublet.web.threads.list_views import PaperListView, PaperPeriod, PublicationListView
from hublet.web.threads.pages import finish_public, rights_in
from hublet.web.threads.views import PublicHead

router = PageRouter()

_PAGE_SIZE = 20
_MOST_PAGES = 10_000
_MAX_ENTRIES = 30
_KINDS = {folder: kind for kind, folder in FOLDERS.items()}
# The longest text of each kind, as the API has it.
_MAX_TEXT = {
    ThreadKind.paper: MAX_SUMMARY,
    ThreadKind.post: MAX_POST,
    ThreadKind.blog: MAX_BLOG,
}

_Text = Annotated[str, Query(max_length=200)]
_Page = Annotated[int, Query(ge=0, le=_MOST_PAGES)]
_Folder = Annotated[Literal["papers", "posts", "blog"], Path()]
_OwnedFolder = Annotated[Literal["posts", "blog"], Path()]


@router.get("/papers")
async def list_papers_page(  # noqa: PLR0913 - these are the parameters of the API
    visit: Visit,
    *,
    date: _Text | None = None,
    week: _Text | None = None,
    month: _Text | None = None,
    submitter: _Text = "",
    sort: PaperSort = PaperSort.newest,
    p: _Page = 0,
) -> Response:
    """List the papers of a day, a week or a month, or the latest."""
    period = PaperPeriod.of(day=date or None, week=week or None, month=month or None)
    query = DailyPapersQuery(
        span=period.span, submitter=submitter.strip(), sort=sort, page=p, limit=_PAGE_SIZE
    )
    async with visit.database.read() as conn:
        frame = await frame_for(visit, conn)
        found = await paper_store.list_daily(conn, query)
        accounts = await find_accounts(conn, [paper.submitter_id for paper in found])
    view = PaperListView(
        query=query,
        period=period,
        rows=[
            (paper, name_of(paper.submitter_id, accounts), excerpt_of(paper.summary))
            for paper in found
        ],
        is_full=len(found) == _PAGE_SIZE,
    )
    return await render(visit, "threads/papers.html", frame=frame, view=view)


@router.get("/{folder:owned_folder}")
async def list_publications_page(
    visit: Visit, folder: _OwnedFolder, author: _Text = "", p: _Page = 0
) -> Response:
    """List posts or blogs, newest first."""
    kind = _KINDS[folder]
    async with visit.database.read() as conn:
        frame = await frame_for(visit, conn)
        rows = await list_rows(
            conn, kind, owner=author.strip(), limit=_PAGE_SIZE + 1, skip=p * _PAGE_SIZE
        )
    view = PublicationListView(
        kind=kind,
        author=author.strip(),
        page=p,
        rows=rows[:_PAGE_SIZE],
        is_full=len(rows) > _PAGE_SIZE,
    )
    return await render(visit, "threads/publications.html", frame=frame, view=view)


@router.get("/{folder:owned_folder}/{owner}.atom")
async def get_publications_feed(visit: Visit, folder: _OwnedFolder, owner: str) -> Response:
    """Return the newest posts or blogs of an owner as a feed; who has none has no feed."""
    async with visit.database.read() as conn:
        rows = await list_rows(conn, _KINDS[folder], owner=owner, limit=_MAX_ENTRIES)
    if not rows:
        raise AccountNotFound(owner)
    return await send_feed(visit, await asyncio.to_thread(_feed, visit, folder, owner, rows))


def _feed(visit: PageVisit, folder: str, owner: str, rows: list[PublicationRow]) -> Feed:
    base_url = visit.hub.settings.base_url
    host = base_url.partition("://")[2].partition(":")[0]
    place = content.place_of(None, visit.hub)
    return Feed(
        id=f"{base_url}/{folder}/{owner}.atom",
        title=f"{'Posts' if folder == 'posts' else 'Blog'} of {owner}",
        link=f"{base_url}/{folder}?author={owner}",
        self_link=f"{base_url}/{folder}/{owner}.atom",
        updated=max(row.thread.created_at for row in rows),
        entries=tuple(
            FeedEntry(
                id=tag_uri(host, row.thread.created_at, row.thread.id),
                title=row.thread.title,
                link=base_url + row.path,
                updated=row.thread.created_at,
                published=row.thread.created_at,
                author=row.author,
                # Lists have the texts of posts, not those of blogs.
                content=content.render_markdown(row.thread.body, place)
                if row.thread.body
                else None,
            )
            for row in rows
        ),
    )


@router.get("/{folder:public_folder}/new")
async def get_new_publication_page(visit: SignedInVisit, folder: _Folder) -> Response:
    return await _show_form(visit, _KINDS[folder], EMPTY)


@router.post("/{folder:public_folder}/new")
async def publish(visit: SignedInVisit, folder: _Folder, form: FormFields) -> Response:
    """Submit a paper, or publish a post or a blog."""
    visit.check(form, PUBLIC_PURPOSE)
    kind, text = _KINDS[folder], text_of(form, "content")
    state = FormState(name="new", values={**form, "content": text})
    if "preview" in form:
        return await _show_form(visit, kind, await _with_preview(visit, state))
    add = {
        ThreadKind.paper: _submit_paper,
        ThreadKind.post: _publish_post,
        ThreadKind.blog: _publish_blog,
    }[kind]
    try:
        async with visit.database.transaction() as conn:
            thread = await add(conn, visit, form, text)
            path = publication_path(thread, await accounts_of(conn, [thread]))
    except REFUSALS as error:
        refused = FormState(name="new", values=state.values, problem=error.message)
        return await _show_form(visit, kind, refused, status=status_of(error))
    return go_to(visit, path)


async def _submit_paper(conn: Connection, visit: PageVisit, form: FormFields, text: str) -> Thread:
    day = form.get("published", "").strip()
    asked = read_as(
        IndexPaper,
        id=form.get("id", "").strip(),
        title=form.get("title", ""),
        summary=text,
        authors=[line.strip() for line in form.get("authors", "").splitlines() if line.strip()],
        **({"publishedAt": f"{day}T00:00:00.000Z"} if day else {}),
    )
    new = NewPaper(
        id=str(asked.id),
        title=asked.title,
        summary=asked.summary,
        authors=tuple(asked.authors),
        published_at=None if asked.publishedAt is MISSING else asked.publishedAt,
    )
    return (await papers.submit(conn, visit.person, new)).thread


async def _publish_post(conn: Connection, visit: PageVisit, form: FormFields, text: str) -> Thread:
    title = form.get("title", "").strip()
    asked = read_as(CreatePost, content=text, **({"title": title} if title else {}))
    return await posts.create(
        conn, visit.person, content=asked.content, title=str(asked.title) if title else None
    )


async def _publish_blog(conn: Connection, visit: PageVisit, form: FormFields, text: str) -> Thread:
    owner = form.get("owner", "")
    asked = read_as(CreateBlog, title=form.get("title", ""), content=text)
    return await blogs.create(
        conn,
        visit.person,
        title=asked.title,
        content=asked.content,
        organization=None if owner in {"", visit.person.user_name} else owner,
    )


async def _with_preview(visit: PageVisit, state: FormState) -> FormState:
    html = await content.render_text(state.values["content"], None, visit.hub)
    return FormState(name=state.name, values=state.values, preview=html)


async def _show_form(
    visit: PageVisit, kind: ThreadKind, form: FormState, *, status: int = 200
) -> Response:
    async with visit.database.read() as conn:
        frame = await frame_for(visit, conn)
        owners = await _list_owners(conn, visit) if kind is ThreadKind.blog else []
    return await render(
        visit,
        "threads/publish.html",
        frame=frame,
        status=status,
        head=PublicHead(frame=frame, form_token=visit.form_token(PUBLIC_PURPOSE)),
        kind=kind,
        action=f"/{FOLDERS[kind]}/new",
        back=f"/{FOLDERS[kind]}",
        is_new=True,
        form=FormState(
            name="publish", values=form.values, problem=form.problem, preview=form.preview
        ),
        max_text=_MAX_TEXT[kind],
        owners=owners,
    )


async def _list_owners(conn: Reader, visit: PageVisit) -> list[str]:
    """Return the person, and the organizations whose blogs they may write."""
    memberships = await users.memberships_of(conn, user_id=visit.person.user_id)
    may = [each for each in memberships if each.role.covers(Role.write)]
    return [visit.person.user_name, *(each.organization.name for each in may)]


@router.get(f"{PUBLIC_THREAD}/edit")
async def get_edit_page(visit: SignedInVisit, address: PublicThreadAddress) -> Response:
    return await _show_edit_form(visit, address, EMPTY)


@router.post(f"{PUBLIC_THREAD}/edit")
async def edit_blog(
    visit: SignedInVisit, address: PublicThreadAddress, form: FormFields
) -> Response:
    visit.check(form, PUBLIC_PURPOSE)
    text = text_of(form, "content")
    state = FormState(name="edit", values={**form, "content": text})
    if "preview" in form:
        return await _show_edit_form(visit, address, await _with_preview(visit, state))
    try:
        async with visit.database.transaction() as conn:
            thread = await _get_to_edit(conn, visit, address)
            asked = read_as(UpdateBlog, title=form.get("title", ""), content=text)
            await blogs.update(
                conn, visit.person, thread, title=str(asked.title), content=str(asked.content)
            )
    except REFUSALS as error:
        refused = FormState(name="edit", values=state.values, problem=error.message)
        return await _show_edit_form(visit, address, refused, status=status_of(error))
    return await finish_public(visit, address)


async def _get_to_edit(conn: Reader, visit: PageVisit, address: PublicAddress) -> Thread:
    thread = await address.find(conn)
    if not (await rights_in(conn, visit, thread)).may_edit:
        raise NotYourThread("edit", thread.kind)
    return thread


async def _show_edit_form(
    visit: PageVisit, address: PublicAddress, form: FormState, *, status: int = 200
) -> Response:
    async with visit.database.read() as conn:
        frame = await frame_for(visit, conn)
        thread = await _get_to_edit(conn, visit, address)
        path = publication_path(thread, await accounts_of(conn, [thread]))
    return await render(
        visit,
        "threads/publish.html",
        frame=frame,
        status=status,
        head=PublicHead(frame=frame, form_token=visit.form_token(PUBLIC_PURPOSE)),
        kind=thread.kind,
        action=f"{path}/edit",
        back=path,
        is_new=False,
        form=FormState(
            name="publish",
            values={"title": thread.title, "content": thread.body or "", **form.values},
            problem=form.problem,
            preview=form.preview,
        ),
        max_text=_MAX_TEXT[thread.kind],
        owners=[],
    )
