"""Items as the interface shows them, straight from rows: this is a hot route."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hublet.accounts.avatars import avatar_url
from hublet.community.threads.records import ThreadKind
from hublet.core.clock import from_micros
from hublet.core.database import Row
from hublet.notifications.inbox.records import Entry
from hublet.notifications.records import HUB

# By thread, in the order they came.
Participants = Mapping[str, list[dict[str, str]]]


def participants_by_thread(
    rows: Iterable[Row], *, base_url: str
) -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        avatar = avatar_url(base_url, row["user_id"])
        shown = {"_id": row["user_id"], "avatar": avatar, "user": row["name"]}
        found.setdefault(row["thread_id"], []).append(shown)
    return found


def item_of_thread(entry: Entry, thread: Row, participants: Participants) -> dict[str, Any]:
    show = _SHOWN[thread["kind"]]
    return _common(entry) | show(thread, participants.get(thread["id"], []))


def item_of_message(entry: Entry, message: Row) -> dict[str, Any]:
    """Show a message of the hub: to whoever knows only the interface it is a post."""
    post = {
        "id": message["id"],
        "slug": message["id"],
        "authorName": HUB,
        "title": message["title"],
        "participating": [],
    }
    return _common(entry) | {"type": "post", "post": post}


def _common(entry: Entry) -> dict[str, Any]:
    shown: dict[str, Any] = {"updatedAt": _exactly(entry.updated_at), "read": entry.read}
    if entry.event_id is not None:
        shown["discussionEventId"] = entry.event_id
    return shown


def _exactly(micros: int) -> str:
    """Write a time with all its digits: as `lastUpdate` it has to mean this very moment."""
    return from_micros(micros).isoformat("T", "microseconds")[:-6] + "Z"


def _discussion(thread: Row, participating: list[dict[str, str]]) -> dict[str, Any]:
    name = f"{thread['owner_name']}/{thread['repo_name']}"
    return {
        "type": "repo",
        "repo": {"name": name, "type": thread["repo_type"]},
        "discussion": {
            "num": thread["number"],
            "title": thread["title"],
            "status": thread["status"],
            "id": thread["id"],
            "isPullRequest": bool(thread["is_pull_request"]),
            "participating": participating,
        },
    }


def _paper(thread: Row, participating: list[dict[str, str]]) -> dict[str, Any]:
    paper_id = thread["id"]
    return {
        "type": "paper",
        "paper": {"_id": paper_id, "title": thread["title"]},
        "paperDiscussion": {"id": paper_id, "participating": participating, "paperId": paper_id},
    }


def _post(thread: Row, participating: list[dict[str, str]]) -> dict[str, Any]:
    return {"type": "post", "post": _written(thread, participating)}


def _blog(thread: Row, participating: list[dict[str, str]]) -> dict[str, Any]:
    # Only what the public service itself publishes is canonical there.
    return {
        "type": "community_blog",
        "blog": _written(thread, participating) | {"canonical": False},
    }


def _written(thread: Row, participating: list[dict[str, str]]) -> dict[str, Any]:
    return {
        "id": thread["id"],
        "slug": thread["slug"],
        "authorName": thread["owner_name"],
        "title": thread["title"],
        "participating": participating,
    }


_SHOWN: dict[str, Callable[[Row, list[dict[str, str]]], dict[str, Any]]] = {
    ThreadKind.discussion: _discussion,
    ThreadKind.paper: _paper,
    ThreadKind.post: _post,
    ThreadKind.blog: _blog,
}
