"""HTTP for feeds. A private repository has them for its members: by a session or a token."""

import asyncio

from fastapi import Response

from hublet.community.discussions import service as discussions
from hublet.community.discussions.records import DiscussionFilters
from hublet.core.pages import PageRouter
from hublet.repos import service as repos
from hublet.repos.auth import ROOT_REPO, RootRepo
from hublet.repos.browse import revisions
from hublet.repos.browse.records import Revision
from hublet.repos.git import history
from hublet.repos.records import TAGS, Repo, RepoAddress, Right
from hublet.repos.refs import branches
from hublet.repos.refs import service as refs
from hublet.web.auth import PageVisit
from hublet.web.files.auth import FeedVisit
from hublet.web.files.feeds import MAX_ENTRIES, FeedWriter
from hublet.web.files.links import FileLinks
from hublet.web.pages import send_feed
from hublet.web.repo_head import path_of

router = PageRouter()

_SUFFIX = ".atom"


async def find_commits_feed(visit: PageVisit, address: RepoAddress, name: str) -> Response | None:
    """Return the feed of a revision when its name ends in `.atom`, and none is called so."""
    if not name.endswith(_SUFFIX):
        return None
    revision = name.removesuffix(_SUFFIX)
    async with visit.database.read() as conn:
        repo = await repos.get(conn, visit.caller, address, Right.see)
        if await refs.find_sha(conn, repo, name) is not None:
            return None
        sha = await refs.get_sha(conn, repo, revision)
    folder = await repos.open_folder(visit.database, repo.id)
    place = Revision(repo=repo, commit=sha, folder=folder)
    commits = await revisions.list_commits(place, skip=0, limit=MAX_ENTRIES)
    return await send_feed(visit, _writer(visit, repo, revision).commits(commits))


@router.get(ROOT_REPO + "/tags.atom")
async def get_tags_feed(visit: FeedVisit, address: RootRepo) -> Response:
    async with visit.database.read() as conn:
        repo = await repos.get(conn, visit.caller, address, Right.read)
    listed = await branches.list_refs(visit.database, visit.caller, repo.address)
    tags = [ref for ref in listed if ref.name.startswith(TAGS)]
    folder = await repos.open_folder(visit.database, repo.id)
    commits = await asyncio.to_thread(history.describe_all, folder, [tag.sha for tag in tags])
    named = zip([tag.name.removeprefix(TAGS) for tag in tags], commits, strict=True)
    return await send_feed(visit, _writer(visit, repo).releases(named))


@router.get(ROOT_REPO + "/discussions.atom")
async def get_discussions_feed(visit: FeedVisit, address: RootRepo) -> Response:
    async with visit.database.read() as conn:
        repo = await repos.get(conn, visit.caller, address, Right.see)
        page = await discussions.get_page(
            conn, visit.caller, repo.address, DiscussionFilters(), number=0
        )
    return await send_feed(visit, _writer(visit, repo).discussions(page))


def _writer(visit: PageVisit, repo: Repo, revision: str = "main") -> FeedWriter:
    links = FileLinks(repo=path_of(repo), revision=revision)
    return FeedWriter(repo=repo, base_url=visit.hub.settings.base_url, links=links)
