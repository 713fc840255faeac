"""An item of the inbox as a person sees it: one line."""

from typing import TYPE_CHECKING, Any

from hublet.cli.output import read_moment

if TYPE_CHECKING:
    from hublet.client.notifications import Notification


def row(item: "Notification") -> dict[str, object]:
    thread, where = _thread(item)
    return {
        "id": thread["id"],
        "updatedAt": read_moment(item["updatedAt"]),
        "unread": "" if item["read"] else "●",
        "where": where,
        "title": thread.get("title") or item["paper"]["title"],
    }


def _thread(item: "Notification") -> tuple[dict[str, Any], str]:
    """Return what the item's id stands in, and where that is."""
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
