"""Rules of lists of buckets: whose they are."""

from hublet.core.database import Reader
from hublet.repos.files.buckets import store
from hublet.repos.files.buckets.errors import OwnerNotFound
from hublet.tokens.errors import TokenNeeded
from hublet.tokens.records import Caller

# In the place of a namespace, it is the caller's own.
ME = "me"


async def get_owner(conn: Reader, caller: Caller | None, namespace: str) -> str:
    """Return the name of a user or an organization that there is."""
    if namespace == ME:
        if caller is None:
            raise TokenNeeded
        return caller.user_name
    if not await store.owner_exists(conn, namespace):
        raise OwnerNotFound(namespace)
    return namespace
