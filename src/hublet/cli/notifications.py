"""Commands for the inbox: list, mark, clear and listen."""

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from hublet.cli import notification_settings
from hublet.cli.options import EXAMPLE_ID, Yes, new_group, parse_past_time
from hublet.cli.output import CommandResult, Table, align, format_cell, parse_time, say
from hublet.cli.remote_command import add_remote_command, confirm

if TYPE_CHECKING:
    from hublet.client import Hub
    from hublet.client.notifications import Inbox, Notification

# Interface 4.1: the largest page of the hub.
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
_LISTEN_COLUMNS = ("updatedAt", "where", "title")


def register(app: typer.Typer) -> None:
    group = new_group("Read the inbox, and choose what reaches it.")
    add_remote_command(group, "list", list_items, example="hublet notifications list --unread")
    add_remote_command(group, "read", read, example=f"hublet notifications read {EXAMPLE_ID}")
    add_remote_command(group, "unread", unread, example=f"hublet notifications unread {EXAMPLE_ID}")
    add_remote_command(
        group, "done", done, example="hublet notifications done --all --before 30d --yes"
    )
    add_remote_command(group, "listen", listen, example="hublet notifications listen")
    notification_settings.register(group)
    app.add_typer(group, name="notifications")


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

    query = _read_filters(repo=repo, mention=mention, before=before) | {
        "readStatus": "unread" if unread else None,
        "postAuthor": post_author,
        "paperId": paper,
        "articleId": blog,
    }
    items = list(_list_pages(Inbox(hub=hub), query, limit=limit))
    return Table(
        rows=[_item_row(item) for item in items],
        columns={"id": "id", "": "unread", "when": "updatedAt", "where": "where", "title": "title"},
        name="id",
        empty="There is nothing in the inbox." if not any(query.values()) else "Nothing matches.",
        data=items,
    )


def read(
    hub: "Hub",
    ids: _Ids = None,
    *,
    every: _Every = False,
    repo: _Repo = None,
    mention: _Mention = None,
    before: _Before = None,
) -> CommandResult:
    """Mark items as read."""
    query = _read_filters(repo=repo, mention=mention, before=before)
    return _mark(hub, ids, query, every=every, as_read=True)


def unread(
    hub: "Hub",
    ids: _Ids = None,
    *,
    every: _Every = False,
    repo: _Repo = None,
    mention: _Mention = None,
    before: _Before = None,
) -> CommandResult:
    """Mark items as unread again."""
    query = _read_filters(repo=repo, mention=mention, before=before)
    return _mark(hub, ids, query, every=every, as_read=False)


def done(
    hub: "Hub",
    ids: _Ids = None,
    *,
    every: _Every = False,
    repo: _Repo = None,
    mention: _Mention = None,
    before: _Before = None,
    yes: Yes = False,
) -> CommandResult:
    """Take items out of the inbox; something new in their thread brings them back."""
    from hublet.client.notifications import Inbox

    query = _read_filters(repo=repo, mention=mention, before=before) | _read_selection(
        ids, every=every
    )
    if every:
        confirm("Take everything that matches out of the inbox?", yes=yes)
    return _count_result(Inbox(hub=hub).delete(ids or [], query=query), "taken out of the inbox")


def listen(hub: "Hub") -> Generator[CommandResult]:
    """Show what reaches the inbox, as it happens, until Ctrl-C."""
    from hublet.client.notifications import Inbox

    events = Inbox(hub=hub).follow(
        on_connect=lambda: say("Listening; Ctrl-C ends it."),
        on_disconnect=lambda reason: say(
            f"The hub is gone ({reason}); waiting for it to come back."
        ),
    )
    for event in events:
        if event.name == "notification":
            item = event.read()
            row = _item_row(item)
            [line] = align([[format_cell(row[name]) for name in _LISTEN_COLUMNS]], width=None)
            yield CommandResult(data=item, text=line)


def _list_pages(
    inbox: "Inbox", query: dict[str, object], *, limit: int
) -> Iterator["Notification"]:
    left = limit
    # New items would move the others to later pages, where they would come twice.
    bound: object = query.get("lastUpdate")
    for number in range(-(-limit // _PAGE)):
        page = inbox.page(query | {"p": number, "lastUpdate": bound})["notifications"]
        yield from page[:left]
        left -= len(page)
        if len(page) < _PAGE or left <= 0:
            return
        bound = bound or page[0]["updatedAt"]


def _mark(
    hub: "Hub", ids: list[str] | None, query: dict[str, object], *, every: bool, as_read: bool
) -> CommandResult:
    from hublet.client.notifications import Inbox

    query |= _read_selection(ids, every=every)
    count = Inbox(hub=hub).mark(ids or [], read=as_read, query=query)
    return _count_result(count, "marked as read" if as_read else "marked as unread")


def _read_selection(ids: list[str] | None, *, every: bool) -> dict[str, object]:
    if bool(ids) is every:
        raise typer.BadParameter("Give the ids of items, or --all, and not both.")
    return {"applyToAll": "true"} if every else {}


def _count_result(count: int, what: str) -> CommandResult:
    message = f"{count} item{' was' if count == 1 else 's were'} {what}."
    return CommandResult(data={"count": count}, message=message)


def _read_filters(
    *, repo: str | None, mention: str | None, before: str | None
) -> dict[str, object]:
    kind, colon, name = (repo or "").partition(":")
    if repo is not None and not (colon and name):
        raise typer.BadParameter(
            f"{repo} is not of the form TYPE:NAME, as in model:ada/engine.", param_hint="--repo"
        )
    return {
        "repoType": kind or None,
        "repoName": name or None,
        "mention": mention,
        "lastUpdate": None if before is None else parse_past_time(before, option="--before"),
    }


def _item_row(item: "Notification") -> dict[str, object]:
    thread, where = _thread_of(item)
    return {
        "id": thread["id"],
        "updatedAt": parse_time(item["updatedAt"]),
        "unread": "" if item["read"] else "●",
        "where": where,
        "title": thread.get("title") or item["paper"]["title"],
    }


def _thread_of(item: "Notification") -> tuple[dict[str, Any], str]:
    """Return the thread of an item, and its location."""
    match item["type"]:
        case "repo":
            repo, discussion = item["repo"], item["discussion"]
            return discussion, f"{repo['type']}:{repo['name']}#{discussion['num']}"
        case "paper":
            return item["paperDiscussion"], "paper"
        case "post":
            return item["post"], f"post of {item['post']['authorName']}"
        case _:
            author = item["blog"].get("authorName")
            return item["blog"], f"blog of {author}" if author else "blog"
