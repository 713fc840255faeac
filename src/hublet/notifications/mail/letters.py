"""Letters: the content of a mail, its templates, and headers that several kinds of mail share."""

from collections.abc import Mapping
from dataclasses import field
from functools import cache
from typing import TYPE_CHECKING, Any

from hublet.core.database import Reader
from hublet.core.dataclasses import dataclass
from hublet.core.hub import Hub
from hublet.core.mail import mail_domain
from hublet.repos import service as repos
from hublet.repos.records import Repo

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def _environment() -> "Environment":
    from jinja2 import (  # noqa: PLC0415 - only a worker that has mails to write needs it
        Environment,
        PackageLoader,
        StrictUndefined,
        select_autoescape,
    )

    return Environment(
        loader=PackageLoader("hublet.notifications.mail"),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def render(template: str, values: dict[str, Any]) -> str:
    return _environment().get_template(template).render(values)


@dataclass(frozen=True, slots=True, kw_only=True)
class MailContent:
    subject: str
    # The name of its two templates, without the ending, and what they show.
    template: str
    values: Mapping[str, Any]
    # Why the recipient gets it: a sentence.
    why: str
    # The first part of the message id that all mails of one thread refer to.
    root: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


async def may_see(conn: Reader, repo: Repo, user_id: str) -> bool:
    return user_id in await repos.who_may_see(conn, repos.snapshot(repo), [user_id])


def list_id(hub: Hub, repo: Repo) -> dict[str, str]:
    """Return the header by which mail programs sort (RFC 2919)."""
    return {"List-ID": f"<{repo.name}.{repo.owner_name}.{mail_domain(hub.settings)}>"}
