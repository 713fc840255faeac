"""Pages of a thread: one reading transaction, then git and Markdown in a thread, then the template."""

import asyncio
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from fastapi import Response
from markupsafe import Markup

from hublet.accounts.organizations.store import find_accounts
from hublet.community import comments
from hublet.community.discussions import service as discussions
from hublet.community.discussions import view as details
from hublet.community.discussions.records import DiscussionRecord, DiscussionRights
from hublet.community.papers import service as papers
from hublet.community.papers import store as paper_store
from hublet.community.threads import store as thread_store
from hublet.community.threads.records import PublicThreadRights, Thread, ThreadKind
from hublet.core.database import Reader
from hublet.core.errors import HubError
from hublet.login.auth import FormFields
from hublet.repos import service as repos
from hublet.repos.browse import lists
from hublet.repos.browse.records import ListOrder, ListSort, RepoFilter, Revision
from hublet.repos.records import Repo, RepoAddress, RepoType, Right
from hublet.web.auth import PageVisit
from hublet.web.pages import frame_for, go_to, render, status_of
from hublet.web.picture_sizes import PictureSource
from hublet.web.publications import accounts_of, name_of, publication_path
from hublet.web.readme_cache import render_readme
from hublet.web.rendering.links import MarkdownPlace
from hublet.web.repo_head import PURPOSE, RepoHead, RepoTab, build_head, path_of
from hublet.web.threads import content, timeline
from hublet.web.threads.auth import PublicAddress, owns
from hublet.web.threads.forms import EMPTY, PUBLIC_PURPOSE, FormState
from hublet.web.threads.timeline import ThreadMaterial
from hublet.web.threads.views import (
    PaperView,
    PublicHead,
    PublicThreadView,
    ThreadQuery,
    ThreadTab,
    ThreadView,
)

_MOST_REPOS = 6
_REPO_TYPES = (RepoType.model, RepoType.dataset, RepoType.space)


async def load_thread(
    visit: PageVisit,
    address: RepoAddress,
    number: int,
    *,
    query: ThreadQuery | None = None,
    form: FormState = EMPTY,
) -> ThreadView:
    """Read a thread that the viewer may see, with all that its page shows."""
    async with visit.database.read() as conn:
        repo = await repos.get(conn, visit.caller, address, Right.see)
        page = await discussions.get_thread_page(conn, visit.caller, repo, number)
        head = await build_head(
            conn, visit, repo, tab=RepoTab.threads, open_threads=page.open_count
        )
        discussion = DiscussionRecord(repo=repo, thread=page.thread)
        history, audience = await details.load_conversation(
            conn, visit.caller, page.thread, is_muted=page.is_muted
        )
        references = (
            await details.load_references(conn, visit.caller, discussion)
            if page.has_references
            else []
        )
        is_pull_request = page.thread.is_pull_request
        material = ThreadMaterial(
            hub=visit.hub,
            thread=page.thread,
            repo=repo,
            history=history,
            references=references,
            audience=audience,
            rights=discussions.rights_of(visit.caller, discussion, head.rights),
            user_id=visit.caller.user_id if visit.caller else None,
            version=page.version,
            heads=await details.find_heads(conn, discussion) if is_pull_request else None,
        )
    # Git is read for a pull request only.
    folder = await repos.open_folder(visit.database, head.repo.id) if material.heads else Path()
    view = await asyncio.to_thread(
        _build, visit, head, material, query or ThreadQuery(), form, folder
    )
    pictures = PictureSource(database=visit.database, revision=await _newest(visit, head))
    sized = await timeline.add_picture_sizes(view.entries, material, pictures)
    return replace(view, entries=sized)


async def _newest(visit: PageVisit, head: RepoHead) -> Revision | None:
    """Return what comments show pictures of: the main branch, for who may read it."""
    repo = head.repo
    if repo.head_sha is None or not head.may_read:
        return None
    folder = await repos.open_folder(visit.database, repo.id)
    return Revision(repo=repo, commit=repo.head_sha, folder=folder)


def _build(
    visit: PageVisit,
    head: RepoHead,
    material: ThreadMaterial,
    query: ThreadQuery,
    form: FormState,
    folder: Path,
) -> ThreadView:
    discussion = DiscussionRecord(repo=head.repo, thread=material.thread)
    heads, rights = material.heads, material.rights
    assert isinstance(rights, DiscussionRights)  # noqa: S101 - by what loads the material
    is_conversation = query.tab is ThreadTab.conversation
    entries, cut = timeline.build(material, is_whole=query.is_whole) if is_conversation else ([], 0)
    return ThreadView(
        head=head,
        base_url=visit.hub.settings.base_url,
        discussion=discussion,
        rights=rights,
        audience=material.audience,
        author=timeline.name_in(material.history, discussion.thread.author_id),
        entries=entries,
        cut=cut,
        state=details.describe_state(folder, discussion, heads) if heads else None,
        query=query,
        form=form,
        version=material.version,
        has_ref=heads is not None and heads.has_ref,
    )


async def show_thread(
    visit: PageVisit,
    address: RepoAddress,
    number: int,
    *,
    query: ThreadQuery | None = None,
    form: FormState = EMPTY,
    status: int = 200,
) -> Response:
    view = await load_thread(visit, address, number, query=query, form=form)
    return await render(
        visit,
        "threads/thread.html",
        frame=view.head.frame,
        status=status,
        live=f"{view.path}/events?since={view.version}",
        head=view.head,
        view=view,
    )


async def show_refusal(
    visit: PageVisit,
    address: RepoAddress,
    number: int,
    form: FormState,
    error: HubError,
) -> Response:
    """Show the thread again, with what was typed and why it was refused."""
    query = ThreadQuery(edit=form.name.removeprefix("edit ")) if " " in form.name else None
    refused = FormState(name=form.name, values=form.values, problem=error.message)
    return await show_thread(
        visit, address, number, query=query, form=refused, status=status_of(error)
    )


async def finish(
    visit: PageVisit, address: RepoAddress, number: int, *, anchor: str = "", toast: str = ""
) -> Response:
    """Answer a form that was accepted: with the thread's live part, or on the way to its page."""
    if visit.request.headers.get("fragment"):
        return await show_thread(visit, address, number)
    async with visit.database.read() as conn:
        path = path_of(await repos.get(conn, visit.caller, address, Right.see))
    end = f"#{anchor}" if anchor else ""
    return go_to(visit, f"{path}/discussions/{number}{end}", toast=toast or None)


async def check_thread_form(
    visit: PageVisit, address: RepoAddress, number: int, form: FormFields
) -> DiscussionRecord:
    """Return the thread of a form that came from the viewer's own page."""
    async with visit.database.read() as conn:
        discussion = await discussions.get(conn, visit.caller, address, number)
    visit.check(form, f"{PURPOSE} {discussion.repo.id}")
    return discussion


async def _load_public(
    visit: PageVisit, address: PublicAddress, query: ThreadQuery, form: FormState
) -> PublicThreadView:
    """Read a paper, post or blog, with all that its page shows."""
    async with visit.database.read() as conn:
        thread = await address.find(conn)
        accounts = await accounts_of(conn, [thread])
        is_muted = visit.caller is not None and visit.caller.user_id in (
            await thread_store.list_muted(conn, thread.id)
        )
        history, audience = await details.load_conversation(
            conn, visit.caller, thread, is_muted=is_muted
        )
        material = ThreadMaterial(
            hub=visit.hub,
            thread=thread,
            repo=None,
            history=history,
            references=[],
            audience=audience,
            rights=(rights := await rights_in(conn, visit, thread)),
            user_id=visit.caller.user_id if visit.caller else None,
            version=(await thread_store.versions_of(conn, [thread.id])).get(thread.id, 0),
        )
        paper = await _load_paper(conn, visit, address) if thread.paper_id else None
        frame = await frame_for(visit, conn)
    entries, cut = await asyncio.to_thread(timeline.build, material, is_whole=query.is_whole)
    pictures = PictureSource(database=visit.database)
    is_own = thread.owner_id == thread.author_id
    return PublicThreadView(
        head=PublicHead(frame=frame, form_token=visit.form_token(PUBLIC_PURPOSE)),
        thread=thread,
        path=publication_path(thread, accounts),
        rights=rights,
        html=await _render_body(visit, thread),
        author=name_of(thread.author_id, accounts),
        organization=None if is_own else name_of(thread.owner_id, accounts),
        paper=paper,
        audience=material.audience,
        entries=await timeline.add_picture_sizes(entries, material, pictures),
        cut=cut,
        query=query,
        form=form,
        version=material.version,
    )


async def rights_in(conn: Reader, visit: PageVisit, thread: Thread) -> PublicThreadRights:
    is_owner = await owns(conn, visit.caller, thread)
    return comments.rights_of(visit.caller, thread, owns_thread=is_owner)


async def _load_paper(conn: Reader, visit: PageVisit, address: PublicAddress) -> PaperView:
    paper = await papers.get(conn, address.slug)
    accounts = await find_accounts(conn, [paper.submitter_id, *paper.claims.values()])
    claimed = [accounts.get(paper.claims.get(each, "")) for each in paper.author_ids]
    caller = visit.caller
    return PaperView(
        record=paper,
        submitter=name_of(paper.submitter_id, accounts),
        author_names=[account.name if account else "" for account in claimed],
        is_upvoted=caller is not None
        and await paper_store.has_voted(conn, paper.thread.id, user_id=caller.user_id),
        repos=[
            (repo, path_of(repo))
            for type_ in _REPO_TYPES
            for repo in await _list_repos(conn, visit, type_, paper.id)
        ],
    )


async def _list_repos(conn: Reader, visit: PageVisit, type_: RepoType, paper_id: str) -> list[Repo]:
    return await lists.list_repos(
        conn,
        visit.caller,
        RepoFilter(type=type_, tags=(f"arxiv:{paper_id}",)),
        order=ListOrder(sort=ListSort.likes),
        limit=_MOST_REPOS,
    )


async def _render_body(visit: PageVisit, thread: Thread) -> Markup:
    text = thread.body or ""
    place = MarkdownPlace(hub=visit.hub.settings.base_url, heading_level=2)
    if thread.kind is not ThreadKind.blog:
        return await asyncio.to_thread(content.render_markdown, text, place)

    async def read() -> str:
        return text

    # A blog is as long as a README, and is rendered as one.
    pictures = PictureSource(database=visit.database)
    return await render_readme(place, sha256(text.encode()).hexdigest(), read, pictures)


async def show_public_thread(
    visit: PageVisit,
    address: PublicAddress,
    *,
    query: ThreadQuery | None = None,
    form: FormState = EMPTY,
    status: int = 200,
) -> Response:
    view = await _load_public(visit, address, query or ThreadQuery(), form)
    return await render(
        visit,
        "threads/public.html",
        frame=view.head.frame,
        status=status,
        live=f"{view.path}/events?since={view.version}",
        view=view,
    )


async def finish_public(visit: PageVisit, address: PublicAddress, *, anchor: str = "") -> Response:
    """Answer a form that was accepted: with the thread's live part, or on the way to its page."""
    if visit.request.headers.get("fragment"):
        return await show_public_thread(visit, address)
    async with visit.database.read() as conn:
        thread = await address.find(conn)
        path = publication_path(thread, await accounts_of(conn, [thread]))
    return go_to(visit, f"{path}#{anchor}" if anchor else path)
