"""HTTP for the page of branches and tags: what each points to, new ones, and deletion."""

import asyncio

from fastapi import Response

from hublet.core.dataclasses import dataclass
from hublet.core.errors import HubError, InvalidRequest
from hublet.core.pages import PageRouter
from hublet.login.auth import FormFields
from hublet.repos import service as repos
from hublet.repos.auth import PAGE_REPO, PageRepo
from hublet.repos.errors import RepoNotFound, RevisionNotFound
from hublet.repos.git import history
from hublet.repos.records import HEADS, MAIN, TAGS, NewBranch, RepoAddress, Right
from hublet.repos.refs import branches
from hublet.web.auth import FreshVisit, PageVisit, SignedInVisit, Visit
from hublet.web.files.links import FileLinks
from hublet.web.files.views import CommitLine, commit_line
from hublet.web.pages import REFUSALS, go_to, render, status_of
from hublet.web.repo_head import PURPOSE, RepoHead, RepoTab, get_head, path_of

router = PageRouter()

_REFS = f"{PAGE_REPO}/branches"
# Of each kind. The address of a page takes any name.
MOST_SHOWN = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class RefRow:
    """A branch or a tag, with the commit that it points to."""

    name: str
    links: FileLinks
    commit: CommitLine
    # The main branch stays.
    is_main: bool


@router.get(_REFS)
async def get_refs_page(visit: Visit, address: PageRepo) -> Response:
    return await _show(visit, address)


@router.post(f"{_REFS}/create")
async def create_ref(visit: SignedInVisit, address: PageRepo, form: FormFields) -> Response:
    """Create a branch or a tag at a revision."""
    try:
        path = await _check(visit, address, form)
        kind, name = _kind_of(form), form.get("name", "").strip()
        revision = form.get("revision", "").strip() or "main"
        if kind == "tag":
            await branches.create_tag(
                visit.database, visit.person, address, name=name, revision=revision
            )
        else:
            branch = NewBranch(name=name, starting_point=revision, is_empty=False, overwrite=False)
            await branches.create_branch(visit.database, visit.person, address, branch)
    except (*REFUSALS, RevisionNotFound) as error:
        return await _show(visit, address, typed=dict(form), problem=error)
    return go_to(visit, path, toast=f"The {kind} {name} is there.")


@router.post(f"{_REFS}/delete")
async def delete_ref(visit: FreshVisit, address: PageRepo, form: FormFields) -> Response:
    try:
        path = await _check(visit, address, form)
        kind, name = _kind_of(form), form.get("name", "")
        delete = branches.delete_tag if kind == "tag" else branches.delete_branch
        async with visit.database.transaction() as conn:
            await delete(conn, visit.person, address, name)
    except (*REFUSALS, RevisionNotFound) as error:
        return await _show(visit, address, problem=error)
    return go_to(visit, path, toast=f"The {kind} {name} is deleted.")


async def _check(visit: PageVisit, address: RepoAddress, form: FormFields) -> str:
    """Return the address of the page, when its form came from there and from who may write."""
    if not address.type.has_git:
        raise RepoNotFound
    async with visit.database.read() as conn:
        repo = await repos.get(conn, visit.person, address, Right.see)
        visit.check(form, f"{PURPOSE} {repo.id}")
        await repos.check(conn, visit.person, repo, Right.write)
    return f"{path_of(repo)}/branches"


def _kind_of(form: FormFields) -> str:
    kind = form.get("kind", "")
    if kind not in {"branch", "tag"}:
        raise InvalidRequest("kind must be branch or tag.")
    return kind


async def _show(
    visit: PageVisit,
    address: RepoAddress,
    *,
    typed: dict[str, str] | None = None,
    problem: HubError | None = None,
) -> Response:
    if not address.type.has_git:
        raise RepoNotFound
    async with visit.database.read() as conn:
        head = await get_head(conn, visit, address, tab=RepoTab.files)
    if not head.may_read:
        return await render(visit, "files/gated.html", status=403, frame=head.frame, head=head)
    rows = await _list_rows(visit, head)
    return await render(
        visit,
        "files/branches.html",
        frame=head.frame,
        status=200 if problem is None else status_of(problem),
        head=head,
        sections=[
            ("branch", "Branches", "git-branch", [row for kind, row in rows if kind == HEADS]),
            ("tag", "Tags", "tag", [row for kind, row in rows if kind == TAGS]),
        ],
        most=MOST_SHOWN,
        typed=typed or {},
        problem=None if problem is None else problem.message,
    )


async def _list_rows(visit: PageVisit, head: RepoHead) -> list[tuple[str, RefRow]]:
    """Return branches and tags, each with its kind: main, then those with the newest commits."""
    listed = await branches.list_refs(visit.database, visit.caller, head.repo.address)
    shown = [ref for ref in listed if ref.name.startswith((HEADS, TAGS))]
    folder = await repos.open_folder(visit.database, head.repo.id)
    commits = await asyncio.to_thread(history.describe_all, folder, [ref.sha for ref in shown])
    rows = [
        _row(head, ref.name, commit_line(commit))
        for ref, commit in zip(shown, commits, strict=True)
    ]
    return sorted(rows, key=_position)


def _row(head: RepoHead, ref: str, commit: CommitLine) -> tuple[str, RefRow]:
    kind = HEADS if ref.startswith(HEADS) else TAGS
    name = ref.removeprefix(kind)
    links = FileLinks(repo=head.path, revision=name)
    return kind, RefRow(name=name, links=links, commit=commit, is_main=ref == MAIN)


def _position(row: tuple[str, RefRow]) -> tuple[bool, float, str]:
    _, ref = row
    return not ref.is_main, -ref.commit.commit.date.timestamp(), ref.name
