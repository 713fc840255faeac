"""Mails about what happened in a thread."""

from collections.abc import Sequence

from hublet.community.authors.store import find_accounts
from hublet.community.threads import store as threads
from hublet.community.threads.records import Thread, ThreadKind
from hublet.core.database import Reader
from hublet.core.light_dataclasses import dataclass
from hublet.notifications.mail.letters.happenings import Happening, list_happenings
from hublet.notifications.mail.letters.places import list_id, may_see
from hublet.notifications.mail.letters.records import Content
from hublet.notifications.mail.records import Mail
from hublet.notifications.preferences.keys import Key
from hublet.repos import store as repo_rows

_WHY_INVOLVED = "You get this because you take part in it or were mentioned in it."
_WHY_WATCHED = "You get this because you watch {where}."
_WATCHED = frozenset({Key.discussions_watched})


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a thread stands: what the subject begins with, and its address."""

    label: str
    url: str
    title: str
    headers: dict[str, str]


async def write(conn: Reader, mail: Mail) -> Content | None:
    """Return what to tell of the thread; None when it is gone, hidden from the user or empty."""
    thread = await threads.find(conn, mail.about)
    if thread is None:
        return None
    place = await _place_of(conn, thread, reader_id=mail.user_id)
    if place is None:
        return None
    happenings = await list_happenings(conn, thread, mail.events)
    if not happenings:
        return None
    return Content(
        subject=f"[{place.label}] {place.title}",
        template="thread",
        values={"happenings": happenings, "url": _address(place, happenings, thread)},
        why=_WHY_WATCHED.format(where=place.label) if mail.key in _WATCHED else _WHY_INVOLVED,
        root=f"thread.{thread.id}",
        headers=place.headers,
    )


async def _place_of(conn: Reader, thread: Thread, *, reader_id: str) -> Place | None:
    base_url = conn.hub.settings.base_url
    if thread.repo_id is not None:
        repo = await repo_rows.find(conn, thread.repo_id)
        if repo is None or not await may_see(conn, repo, reader_id):
            return None
        return Place(
            label=repo.full_name,
            url=f"{repo.url(base_url)}/discussions/{thread.number}",
            title=f"{thread.title} (#{thread.number})",
            headers=list_id(conn.hub, repo),
        )
    if thread.kind is ThreadKind.paper:
        url = f"{base_url}/papers/{thread.paper_id}"
        return Place(label="papers", url=url, title=thread.title, headers={})
    owner = (await find_accounts(conn, [thread.owner_id])).get(thread.owner_id or "")
    if owner is None:
        return None
    folder = "posts" if thread.kind is ThreadKind.post else "blog"
    url = f"{base_url}/{folder}/{owner.name}/{thread.slug}"
    return Place(label=owner.name, url=url, title=thread.title, headers={})


def _address(place: Place, happenings: Sequence[Happening], thread: Thread) -> str:
    """Lead to the first thing that is new."""
    first = happenings[0].event_id
    return place.url if first == thread.id else f"{place.url}#{first}"
