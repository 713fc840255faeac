"""Repositories as mails need them: who may see one, and what sorts its mails."""

from hublet.core.database import Reader
from hublet.core.hub import Hub
from hublet.core.mail import domain_of
from hublet.repos import service as repos
from hublet.repos.records import Repo


async def may_see(conn: Reader, repo: Repo, user_id: str) -> bool:
    return user_id in await repos.who_may_see(conn, repos.snapshot(repo), [user_id])


def list_id(hub: Hub, repo: Repo) -> dict[str, str]:
    """Return the header by which mail programs sort (RFC 2919)."""
    return {"List-ID": f"<{repo.name}.{repo.owner_name}.{domain_of(hub.settings)}>"}
