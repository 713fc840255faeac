"""Papers, posts and blogs where other pages name them: their addresses, and their rows in lists."""

import re
from collections.abc import Sequence
from urllib.parse import quote

from hublet.accounts.organizations.store import find_accounts
from hublet.community.threads import store
from hublet.community.threads.records import Accounts, Thread, ThreadKind
from hublet.core.database import Reader
from hublet.core.dataclasses import dataclass

# The first word of their addresses.
FOLDERS = {ThreadKind.paper: "papers", ThreadKind.post: "posts", ThreadKind.blog: "blog"}

_MAX_EXCERPT = 240
# What Markdown writes around words and before lines, and the addresses of links.
_MARKS = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|^```.*$|^\s*(?:[-+>]|#+)\s+|[*`~|]+", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationRow:
    """A post or blog in a list: takes `ui.publication_row`."""

    thread: Thread
    path: str
    author: str
    # The organization that owns it, if that is not the author.
    organization: str | None = None
    excerpt: str = ""

    @property
    def title(self) -> str:
        return plain_title(self.thread)


def publication_path(thread: Thread, accounts: Accounts) -> str:
    """Return the address of the page of a paper, post or blog, among whose accounts its owner is."""
    folder = FOLDERS[thread.kind]
    if thread.paper_id is not None:
        return f"/{folder}/{quote(thread.paper_id)}"
    return f"/{folder}/{quote(name_of(thread.owner_id, accounts))}/{quote(thread.slug or '')}"


def name_of(account_id: str | None, accounts: Accounts) -> str:
    """Return the name of an account; those who are gone have none."""
    account = accounts.get(account_id or "")
    return account.name if account else "ghost"


async def accounts_of(conn: Reader, threads: Sequence[Thread]) -> Accounts:
    """Return the authors and owners of threads."""
    return await find_accounts(
        conn, [account for each in threads for account in (each.author_id, each.owner_id)]
    )


async def list_rows(
    conn: Reader, kind: ThreadKind, *, owner: str, limit: int, skip: int = 0
) -> list[PublicationRow]:
    """Return posts or blogs of an owner, or with an empty name of all, newest first."""
    threads = await store.list_newest(conn, kind, owner=owner, limit=limit, skip=skip)
    accounts = await accounts_of(conn, threads)
    return [_row(each, accounts) for each in threads]


def _row(thread: Thread, accounts: Accounts) -> PublicationRow:
    is_own = thread.owner_id == thread.author_id
    return PublicationRow(
        thread=thread,
        path=publication_path(thread, accounts),
        author=name_of(thread.author_id, accounts),
        organization=None if is_own else name_of(thread.owner_id, accounts),
        excerpt=excerpt_of(text_below_title(thread)),
    )


def text_below_title(thread: Thread) -> str:
    """Return the text of a post without the first line if that is its title."""
    text = (thread.body or "").strip()
    first, _, rest = text.partition("\n")
    return rest if " ".join(first.split()) == thread.title else text


def plain_title(thread: Thread) -> str:
    """Return the title; without marks of Markdown if it is the first line of the text."""
    text = (thread.body or "").strip()
    return excerpt_of(thread.title) if text_below_title(thread) != text else thread.title


def excerpt_of(text: str) -> str:
    """Return the beginning of a Markdown text as plain text, in one line."""
    plain = " ".join(_MARKS.sub(r"\1", text[: 4 * _MAX_EXCERPT]).split())
    return plain if len(plain) <= _MAX_EXCERPT else f"{plain[: _MAX_EXCERPT - 1].rstrip()}…"
