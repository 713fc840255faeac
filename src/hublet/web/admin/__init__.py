"""Administration in a browser: the frame of its pages, and the one way in which they change something."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from hublet.accounts.records import Actor
from hublet.core.database import Connection, Reader
from hublet.core.errors import HubError
from hublet.core.pages import Frame, Navigation
from hublet.tokens.auth import actor_of, check_administrator
from hublet.web.auth import PageVisit
from hublet.web.pages import REFUSALS, frame_for

# What the tokens of all forms of the administration are for.
PURPOSE = "administration"

_PAGES = (
    ("/admin", "Overview"),
    ("/admin/users", "Users"),
    ("/admin/organizations", "Organizations"),
    ("/admin/storage", "Storage"),
    ("/admin/tasks", "Tasks and workers"),
    ("/admin/activity", "Activity"),
    ("/admin/switches", "Switches"),
)


async def admin_frame(visit: PageVisit, conn: Reader, current: str) -> Frame | None:
    """Return the head of a page of the administration, with the others beside it."""
    frame = await frame_for(visit, conn)
    if frame is None:
        return None
    navigation = Navigation(label="Administration", pages=_PAGES, current=current)
    return replace(frame, navigation=navigation)


async def administer(
    visit: PageVisit,
    form: Mapping[str, str],
    change: Callable[[Connection, Actor], Awaitable[None]],
) -> HubError | None:
    """Change something as an administrator of the hub; return the refusal that the page shows."""
    visit.check(form, PURPOSE)
    check_administrator(visit.person)
    try:
        async with visit.database.transaction() as conn:
            await change(conn, actor_of(visit.request, visit.person))
    except REFUSALS as error:
        return error
    return None
