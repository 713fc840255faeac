"""SQL of who wants to sign in."""

from hublet.accounts.names import email_key, name_key
from hublet.accounts.store import USER, user_record
from hublet.core.database import Connection, Reader
from hublet.login.records import Candidate


async def find_candidate(conn: Reader, name: str) -> Candidate | None:
    """Return the user of this name or verified e-mail address; no name has an @ in it."""
    row = await conn.fetch_one(
        f"""
        SELECT {USER}, u.password_hash
        FROM emails e JOIN users u ON u.id = e.user_id
        WHERE e.address_key = $1 AND e.verified_at IS NOT NULL
        """
        if "@" in name
        else f"""
        SELECT {USER}, u.password_hash
        FROM names n JOIN users u ON u.id = n.account_id WHERE n.key = $1
        """,
        email_key(name) if "@" in name else name_key(name),
    )
    return Candidate(user=user_record(row), password_hash=row["password_hash"]) if row else None


async def confirm_password(
    conn: Connection, user_id: str, *, shown: str, password_hash: str
) -> bool:
    """Store the hash of the password that was shown; False when it is another one by now."""
    return await conn.execute(
        "UPDATE users SET password_hash = $1 WHERE id = $2 AND password_hash = $3",
        password_hash, user_id, shown,
    ) == 1  # fmt: skip
