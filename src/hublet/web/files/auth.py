"""What the pages of files take from an address: the repository, the revision, and the path."""

from dataclasses import replace
from typing import Annotated

from fastapi import Depends, Response

from hublet.core.dataclasses import dataclass
from hublet.core.paging import read_cursor
from hublet.repos import service as repos
from hublet.repos.auth import RootRepo
from hublet.repos.browse.auth import revision_and_path
from hublet.repos.browse.records import Revision
from hublet.repos.browse.revisions import read_tree_cursor
from hublet.repos.commits import edits
from hublet.repos.commits.edits import NO_WAY, EditWays
from hublet.repos.errors import RevisionNotFound
from hublet.repos.records import HEADS, TAGS, RepoAddress
from hublet.repos.refs import service as refs
from hublet.tokens.auth import MaybeCaller
from hublet.web.auth import PageVisit, SignedInVisit, Visit
from hublet.web.files.links import FileLinks
from hublet.web.pages import render
from hublet.web.repo_head import RepoHead, RepoTab, get_head

# Longer menus help nobody; the address takes any name.
MOST_IN_MENU = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesVisit:
    """A visit to a path in a revision of a repository."""

    visit: PageVisit
    head: RepoHead
    revision: Revision
    # The revision as the address names it.
    name: str
    path: str
    branches: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    # How the viewer may change files here.
    ways: EditWays = NO_WAY

    @property
    def address(self) -> RepoAddress:
        return self.head.repo.address

    @property
    def links(self) -> FileLinks:
        return FileLinks(repo=self.head.path, revision=self.name)

    @property
    def crumbs(self) -> list[tuple[str, str | None]]:
        return self.links.crumbs(self.head.repo.name, self.path)

    def at_cursor(self, cursor: str) -> tuple["FilesVisit", str]:
        """Return the visit at the commit that the first page showed, and where its page begins."""
        if not cursor:
            return self, ""
        commit, after = read_tree_cursor(read_cursor(cursor))
        return replace(self, revision=replace(self.revision, commit=commit)), after


async def open_files(
    visit: PageVisit, address: RepoAddress, name: str, path: str, *, tab: RepoTab = RepoTab.files
) -> FilesVisit:
    """Read in one transaction what a page of files needs of the database."""
    async with visit.database.read() as conn:
        head = await get_head(conn, visit, address, tab=tab)
        repo = head.repo
        sha = await refs.find_sha(conn, repo, name)
        # Who may not read the files of a gated repository gets no list of its refs either.
        limit = MOST_IN_MENU if head.may_read else 0
        branches = await refs.list_names(conn, repo, HEADS, limit=limit)
        tags = await refs.list_names(conn, repo, TAGS, limit=limit)
        ways = await edits.find_ways(conn, visit.caller, repo, name)
    if sha is None:
        raise RevisionNotFound(name)
    folder = await repos.open_folder(visit.database, repo.id)
    return FilesVisit(
        visit=visit,
        head=head,
        revision=Revision(repo=repo, commit=sha, folder=folder),
        name=name,
        path=path,
        branches=branches,
        tags=tags,
        ways=ways,
    )


async def _files_visit(visit: Visit, address: RootRepo, rest: str) -> FilesVisit:
    name, path = revision_and_path(visit.request, rest)
    return await open_files(visit, address, name, path)


RequestedFiles = Annotated[FilesVisit, Depends(_files_visit)]


async def _edit_visit(visit: SignedInVisit, address: RootRepo, rest: str) -> FilesVisit:
    name, path = revision_and_path(visit.request, rest)
    files = await open_files(visit, address, name, path)
    if not files.ways:
        async with visit.database.read() as conn:
            await edits.get_ways(conn, visit.person, files.head.repo, name)
    return files


# Somebody who may change files in this revision, or propose it.
RequestedEdit = Annotated[FilesVisit, Depends(_edit_visit)]


async def _feed_visit(visit: Visit, caller: MaybeCaller) -> PageVisit:
    return visit if caller is None else replace(visit, caller=caller)


# A program that reads feeds has a token instead of a session.
FeedVisit = Annotated[PageVisit, Depends(_feed_visit)]


async def render_gate(files: FilesVisit) -> Response:
    """Say that the content of a repository is gated, and where to ask for it."""
    head = files.head
    return await render(files.visit, "files/gated.html", status=403, frame=head.frame, head=head)
