"""Mails about new tags of a repository."""

from hublet.core.database import Reader
from hublet.notifications.mail.letters.places import list_id, may_see
from hublet.notifications.mail.letters.records import Content
from hublet.notifications.mail.records import Mail
from hublet.repos import store as repo_rows
from hublet.repos.refs import service as refs


async def write(conn: Reader, mail: Mail) -> Content | None:
    """Return the tags that are still there; None when none is, or not for this user."""
    repo = await repo_rows.find(conn, mail.about)
    if repo is None or not await may_see(conn, repo, mail.user_id):
        return None
    tags = [
        tag
        for tag in mail.events
        if await refs.find_sha(conn, repo, f"refs/tags/{tag}") is not None
    ]
    if not tags:
        return None
    url = repo.url(conn.hub.settings.base_url)
    noun = "tag" if len(tags) == 1 else "tags"
    return Content(
        subject=f"[{repo.full_name}] New {noun} {', '.join(tags)}",
        template="tags",
        values={
            "repo": repo.full_name,
            "tags": [{"name": tag, "url": f"{url}/tree/{tag}"} for tag in tags],
        },
        why=f"You get this because you watch {repo.full_name}.",
        root=f"tags.{repo.id}",
        headers=list_id(conn.hub, repo),
    )
