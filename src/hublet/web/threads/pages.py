"""Pages of a thread: one reading transaction, then git and Markdown in a thread, then the template."""

import asyncio

from fastapi import Response

from hublet.community.discussions import service as discussions
from hublet.community.discussions import view as details
from hublet.community.discussions.records import DiscussionRecord
from hublet.core.errors import HubError
from hublet.login.auth import FormFields
from hublet.repos import service as repos
from hublet.repos.records import RepoAddress, Right
from hublet.web.auth import PageVisit
from hublet.web.pages import go_to, render, status_of
from hublet.web.repo_head import PURPOSE, RepoHead, RepoTab, build_head, path_of
from hublet.web.threads import timeline
from hublet.web.threads.forms import EMPTY, FormState
from hublet.web.threads.timeline import ThreadMaterial
from hublet.web.threads.views import ThreadQuery, ThreadTab, ThreadView


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
            conn, visit.caller, discussion, is_muted=page.is_muted
        )
        references = (
            await details.load_references(conn, visit.caller, discussion)
            if page.has_references
            else []
        )
        is_pull_request = page.thread.is_pull_request
        material = ThreadMaterial(
            hub=visit.hub,
            discussion=discussion,
            history=history,
            references=references,
            audience=audience,
            rights=discussions.rights_of(visit.caller, discussion, head.rights),
            user_id=visit.caller.user_id if visit.caller else None,
            version=page.version,
            heads=await details.find_heads(conn, discussion) if is_pull_request else None,
        )
    return await asyncio.to_thread(_build, visit, head, material, query or ThreadQuery(), form)


def _build(
    visit: PageVisit,
    head: RepoHead,
    material: ThreadMaterial,
    query: ThreadQuery,
    form: FormState,
) -> ThreadView:
    discussion, heads = material.discussion, material.heads
    is_conversation = query.tab is ThreadTab.conversation
    entries, cut = timeline.build(material, is_whole=query.is_whole) if is_conversation else ([], 0)
    folder = repos.git_folder(visit.database, discussion.repo.id)
    return ThreadView(
        head=head,
        base_url=visit.hub.settings.base_url,
        discussion=discussion,
        rights=material.rights,
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
