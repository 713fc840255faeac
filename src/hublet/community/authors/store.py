"""SQL of accounts as threads show them."""

from collections.abc import Iterable

import msgspec

from hublet.community.authors.records import Account
from hublet.core.database import Reader


async def find_accounts(conn: Reader, ids: Iterable[str | None]) -> dict[str, Account]:
    """Return those of the accounts that exist, whatever their kind; an id may be None."""
    wanted = sorted({account_id for account_id in ids if account_id is not None})
    if not wanted:
        return {}
    rows = await conn.fetch_all(
        """
        SELECT id, name, fullname, type FROM users WHERE id IN each($1)
        UNION ALL
        SELECT id, name, fullname, 'org' AS type FROM organizations WHERE id IN each($1)
        """,
        msgspec.json.encode(wanted).decode(),
    )
    return {row["id"]: Account(**dict(row)) for row in rows}
