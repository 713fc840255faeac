"""Commands that list what is in the inbox, and clear it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hublet.cli.asking import asking, confirm
from hublet.cli.moments import read_past
from hublet.cli.notifications.items import row
from hublet.cli.options import Yes
from hublet.cli.output import Answer, Table

if TYPE_CHECKING:
    from hublet.client import Hub
    from hublet.client.notifications import Inbox, Notification

_ID = "6a5f0c2e9d1b4a7788990011"
# Interface 4.1: as many as the hub gives at once.
_PAGE = 25

_Ids = Annotated[
    list[str] | None, typer.Argument(metavar="ID", help="The items, as the list names them.")
]
_Every = Annotated[bool, typer.Option("--all", help="All that match, instead of some ids.")]
_Repo = Annotated[
    str | None,
    typer.Option(metavar="TYPE:NAME", help="Only in this repository, as in model:ada/engine."),
]
_Mention = Annotated[
    Literal["participating", "mentions"] | None,
    typer.Option(help="Only what you take part in, or where you were mentioned."),
]
_Before = Annotated[
    str | None,
    typer.Option(metavar="WHEN", help="Nothing newer: 2h ago, or 2026-11-15T01:44:56Z."),
]


def register(group: typer.Typer) -> None:
    asking(group, "list", list_items, example="hublet notifications list --unread")
    asking(group, "read", read, example=f"hublet notifications read {_ID}")
    asking(group, "unread", unread, example=f"hublet notifications unread {_ID}")
    asking(group, "done", done, example="hublet notifications done --all --before 30d --yes")


def list_items(
    hub: "Hub",
    *,
    unread: Annotated[bool, typer.Option("--unread", help="Only what is unread.")] = False,
    repo: _Repo = None,
    mention: _Mention = None,
    post_author: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only posts of this user or organization.")
    ] = None,
    paper: Annotated[
        str | None, typer.Option(metavar="ID", help="Only this paper: its id, or its arXiv id.")
    ] = None,
    blog: Annotated[
        str | None, typer.Option(metavar="ID", help="Only this blog: its id, or its slug.")
    ] = None,
    before: _Before = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", metavar="COUNT", min=1, help="At most so many.")
    ] = _PAGE,
) -> Table:
    """List what is in the inbox, newest first; a dot marks what is unread."""
    from hublet.client.notifications import Inbox

    query = _query(repo=repo, mention=mention, before=before) | {
        "readStatus": "unread" if unread else None,
        "postAuthor": post_author,
        "paperId": paper,
        "articleId": blog,
    }
    found = list(_items(Inbox(hub=hub), query, limit=limit))
    return Table(
        rows=[row(item) for item in found],
        columns={"id": "id", "": "unread", "when": "updatedAt", "where": "where", "title": "title"},
        name="id",
        empty="There is nothing in the inbox." if not any(query.values()) else "Nothing matches.",
        data=found,
    )


def _items(inbox: "Inbox", query: dict[str, object], *, limit: int) -> Iterator["Notification"]:
    left = limit
    # What comes meanwhile would move everything to later pages, and items would come twice.
    bound: object = query.get("lastUpdate")
    for number in range(-(-limit // _PAGE)):
        page = inbox.page(query | {"p": number, "lastUpdate": bound})["notifications"]
        yield from page[:left]
        left -= len(page)
        if len(page) < _PAGE or left <= 0:
            return
        bound = bound or page[0]["updatedAt"]


def read(
    hub: "Hub",
    ids: _Ids = None,
    *,
    every: _Every = False,
    repo: _Repo = None,
    mention: _Mention = None,
    before: _Before = None,
) -> Answer:
    """Mark items as read."""
    query = _query(repo=repo, mention=mention, before=before)
    return _mark(hub, ids, query, every=every, as_read=True)


def unread(
    hub: "Hub",
    ids: _Ids = None,
    *,
    every: _Every = False,
    repo: _Repo = None,
    mention: _Mention = None,
    before: _Before = None,
) -> Answer:
    """Mark items as unread again."""
    query = _query(repo=repo, mention=mention, before=before)
    return _mark(hub, ids, query, every=every, as_read=False)


def _mark(
    hub: "Hub", ids: list[str] | None, query: dict[str, object], *, every: bool, as_read: bool
) -> Answer:
    from hublet.client.notifications import Inbox

    query |= _reach(ids, every=every)
    count = Inbox(hub=hub).mark(ids or [], read=as_read, query=query)
    return _counted(count, "marked as read" if as_read else "marked as unread")


def done(
    hub: "Hub",
    ids: _Ids = None,
    *,
    every: _Every = False,
    repo: _Repo = None,
    mention: _Mention = None,
    before: _Before = None,
    yes: Yes = False,
) -> Answer:
    """Take items out of the inbox; something new in their thread brings them back."""
    from hublet.client.notifications import Inbox

    query = _query(repo=repo, mention=mention, before=before) | _reach(ids, every=every)
    if every:
        confirm("Take everything that matches out of the inbox?", yes=yes)
    return _counted(Inbox(hub=hub).delete(ids or [], query=query), "taken out of the inbox")


def _reach(ids: list[str] | None, *, every: bool) -> dict[str, object]:
    if bool(ids) is every:
        raise typer.BadParameter("Give the ids of items, or --all, and not both.")
    return {"applyToAll": "true"} if every else {}


def _counted(count: int, what: str) -> Answer:
    words = f"{count} item{' was' if count == 1 else 's were'} {what}."
    return Answer(data={"count": count}, words=words)


def _query(*, repo: str | None, mention: str | None, before: str | None) -> dict[str, object]:
    kind, colon, name = (repo or "").partition(":")
    if repo is not None and not (colon and name):
        raise typer.BadParameter(
            f"{repo} is not of the form TYPE:NAME, as in model:ada/engine.", param_hint="--repo"
        )
    return {
        "repoType": kind or None,
        "repoName": name or None,
        "mention": mention,
        "lastUpdate": None if before is None else read_past(before, option="--before"),
    }
