"""The person behind a permission, as of the moment something is issued."""

from hublet.core.database import Reader
from hublet.oauth.access import store
from hublet.oauth.access.records import Holder
from hublet.oauth.errors import invalid_grant
from hublet.oauth.records import Permission


async def get(conn: Reader, permission: Permission) -> Holder:
    """Return the person, with those of the selected organizations they still belong to."""
    holder = await store.find_holder(
        conn, permission.user_id, organization_ids=permission.organization_ids
    )
    if holder is None:
        raise invalid_grant("The account that allowed this is disabled.")
    return holder
