"""Search of names: the few repositories whose name has a part, for those among whom they are few.

What everybody sees and what only the caller sees are looked for apart: how many others hide
changes nothing, neither what is found nor how.
"""

from dataclasses import replace

from hublet.accounts import name_parts_store
from hublet.core.database import Reader
from hublet.repos.browse.records import RepoFilter
from hublet.repos.name_index_store import private_scope, public_scope
from hublet.repos.names import repo_name_key
from hublet.repos.records import Reach


async def narrow(conn: Reader, filters: RepoFilter, reach: Reach | None) -> RepoFilter:
    """Return the filter with the public and the private repositories that may match, if these are few.

    Where they are many, they are looked for along the order of the list, where a page is soon full.
    """
    texts = [repo_name_key(text) for text in (*filters.words, filters.name_part) if text]
    if not texts or filters.candidate_ids is not None:
        return filters
    if not await name_parts_store.is_filled(conn):
        return filters
    public = await name_parts_store.find_ids(conn, [public_scope(filters.type)], texts)
    owners = set[str]() if reach is None else {*reach.readable, *reach.where_created}
    scopes = [private_scope(filters.type, owner) for owner in sorted(owners)]
    private = await name_parts_store.find_ids(conn, scopes, texts) if scopes else None
    return replace(filters, public_ids=public, private_ids=private)
