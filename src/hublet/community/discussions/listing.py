"""Lists of discussions, page by page."""

from hublet.community.authors import store as authors
from hublet.community.discussions import store
from hublet.community.discussions.records import CLOSED, Discussion, Filters, Page
from hublet.core.database import Reader
from hublet.repos import service as repos
from hublet.repos.records import RepoAddress, Right
from hublet.tokens.records import Caller

PAGE_SIZE = 50


async def get_page(
    conn: Reader, caller: Caller | None, address: RepoAddress, wanted: Filters, *, number: int
) -> Page:
    """Return a page of a repository's discussions; the first one has the number 0."""
    repo = await repos.get(conn, caller, address, Right.see)
    start = number * PAGE_SIZE
    found = await store.list_of(conn, repo.id, wanted, start=start, limit=PAGE_SIZE)
    counts = await store.count_of(conn, repo.id, wanted)
    return Page(
        discussions=[Discussion(repo=repo, thread=thread) for thread in found],
        accounts=await authors.find_accounts(conn, [thread.author_id for thread in found]),
        start=start,
        count=sum(counts.get(status, 0) for status in wanted.statuses),
        closed=sum(counts.get(status, 0) for status in CLOSED),
    )
