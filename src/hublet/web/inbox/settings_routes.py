"""HTTP for the settings of notifications: preferences, what is watched and muted."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any

from fastapi import Query, Response
from pydantic import MISSING

from hublet.accounts.users import store as users
from hublet.core.database import Connection
from hublet.core.errors import HubError, NotFound
from hublet.core.pages import PageRouter
from hublet.login.auth import FormFields
from hublet.notifications import watches, watches_store
from hublet.notifications.preferences import service as preferences
from hublet.notifications.preferences.schemas import UpdateNotificationSettings
from hublet.notifications.preferences.switches import PRODUCT_UPDATES_AFTER
from hublet.notifications.watch_schemas import MuteTarget, WatchTarget, targets_of
from hublet.web.auth import PageVisit, SignedInVisit
from hublet.web.inbox.preferences import GROUPS, keys_of, list_of
from hublet.web.pages import REFUSALS, frame_for, go_to, read_as, render, status_of

router = PageRouter()

_PATH = "/settings/notifications"
_PURPOSE = "notification settings"
# A browser sends the time of a field without seconds and zone; it stands for UTC.
_LOCAL_TIME = len("2026-11-15T12:00")

_Search = Annotated[str, Query(max_length=200)]
_Page = Annotated[int, Query(ge=0, le=1000)]


@router.get(_PATH)
async def get_preferences_page(visit: SignedInVisit) -> Response:
    return await _show(visit)


@router.post(_PATH)
async def update_preferences(visit: SignedInVisit, form: FormFields) -> Response:
    """Save all switches: a box that is not ticked is not sent."""

    async def update(conn: Connection) -> None:
        chosen: dict[str, Any] = {str(key): form.get(key) == "on" for key in keys_of(GROUPS)}
        if moment := form.get(PRODUCT_UPDATES_AFTER):
            is_local = len(moment) == _LOCAL_TIME
            chosen[PRODUCT_UPDATES_AFTER] = f"{moment}:00Z" if is_local else moment
        amount = form.get("prepaidAmount") or MISSING
        request = read_as(UpdateNotificationSettings, notifications=chosen, prepaidAmount=amount)
        await preferences.update(conn, visit.person.user_id, request)

    return await _do(visit, form, update, toast="Your choices are saved.", typed=form)


@router.get(f"{_PATH}/watched")
async def get_watched_page(visit: SignedInVisit, q: _Search = "", p: _Page = 0) -> Response:
    return await _show_list(visit, "watched", search=q, page=p)


@router.post(f"{_PATH}/watched")
async def watch(visit: SignedInVisit, form: FormFields) -> Response:
    """Watch what has this name."""
    name = form.get("name", "").strip().strip("/")

    async def add(conn: Connection) -> None:
        target = await watches.find_by_name(conn, visit.person, name)
        await watches.watch(conn, user_id=visit.person.user_id, delete=[], add=[target])

    return await _do_in_list(visit, form, "watched", add, toast=f"You watch {name}.")


@router.post(f"{_PATH}/watched/remove")
async def unwatch(visit: SignedInVisit, form: FormFields) -> Response:
    async def remove(conn: Connection) -> None:
        item = read_as(WatchTarget, id=form.get("id"), type=form.get("type"))
        await watches.watch(conn, user_id=visit.person.user_id, delete=targets_of([item]), add=[])

    toast = f"You do not watch {form.get('name', 'it')} any more."
    return await _do_in_list(visit, form, "watched", remove, toast=toast)


@router.get(f"{_PATH}/muted")
async def get_muted_page(visit: SignedInVisit, q: _Search = "", p: _Page = 0) -> Response:
    return await _show_list(visit, "muted", search=q, page=p)


@router.post(f"{_PATH}/muted")
async def mute(visit: SignedInVisit, form: FormFields) -> Response:
    """Mute the repository that has this name."""
    name = form.get("name", "").strip().strip("/")

    async def add(conn: Connection) -> None:
        target = await watches.find_by_name(conn, visit.person, name)
        item = read_as(MuteTarget, id=target.id, type=target.type)
        await watches.mute(conn, user_id=visit.person.user_id, delete=[], add=targets_of([item]))

    return await _do_in_list(visit, form, "muted", add, toast=f"{name} is muted.")


@router.post(f"{_PATH}/muted/remove")
async def unmute(visit: SignedInVisit, form: FormFields) -> Response:
    async def remove(conn: Connection) -> None:
        item = read_as(MuteTarget, id=form.get("id"), type=form.get("type"))
        await watches.mute(conn, user_id=visit.person.user_id, delete=targets_of([item]), add=[])

    return await _do_in_list(visit, form, "muted", remove, toast="You hear of it again.")


_Change = Callable[[Connection], Awaitable[None]]


async def _do(
    visit: PageVisit,
    form: FormFields,
    change: _Change,
    *,
    toast: str,
    typed: Mapping[str, str] | None = None,
) -> Response:
    visit.check(form, _PURPOSE)
    try:
        async with visit.database.transaction() as conn:
            await change(conn)
    except REFUSALS as error:
        return await _show(visit, problem=error, typed=typed)
    return go_to(visit, _PATH, toast=toast)


async def _do_in_list(
    visit: PageVisit, form: FormFields, name: str, change: _Change, *, toast: str
) -> Response:
    visit.check(form, _PURPOSE)
    try:
        async with visit.database.transaction() as conn:
            await change(conn)
    except (*REFUSALS, NotFound) as error:
        return await _show_list(visit, name, typed=form.get("name", ""), problem=error)
    return go_to(visit, f"{_PATH}/{name}", toast=toast)


async def _show(
    visit: PageVisit,
    *,
    problem: HubError | None = None,
    typed: Mapping[str, str] | None = None,
) -> Response:
    user_id = visit.person.user_id
    async with visit.database.read() as conn:
        choices = await preferences.get(conn, user_id)
        addresses = await users.list_emails(conn, user_id=user_id)
        frame = await frame_for(visit, conn, current=_PATH)
    chosen = {
        key: choices.wants(key) if typed is None else typed.get(key) == "on"
        for key in keys_of(GROUPS)
    }
    return await render(
        visit,
        "inbox/preferences.html",
        frame=frame,
        status=200 if problem is None else status_of(problem),
        path=_PATH,
        groups=GROUPS,
        chosen=chosen,
        choices=choices,
        typed=typed or {},
        addresses=addresses,
        form_token=visit.form_token(_PURPOSE),
        problem=None if problem is None else problem.message,
    )


async def _show_list(
    visit: PageVisit,
    name: str,
    *,
    search: str = "",
    page: int = 0,
    typed: str = "",
    problem: HubError | None = None,
) -> Response:
    user_id = visit.person.user_id
    list_entries = watches_store.list_watched if name == "watched" else watches_store.list_muted
    async with visit.database.read() as conn:
        entries = await list_entries(conn, user_id=user_id)
        frame = await frame_for(visit, conn, current=_PATH)
    return await render(
        visit,
        f"inbox/{name}.html",
        frame=frame,
        status=200 if problem is None else status_of(problem),
        path=_PATH,
        list=list_of(entries, f"{_PATH}/{name}", search=search.strip(), page=page),
        typed=typed,
        form_token=visit.form_token(_PURPOSE),
        problem=None if problem is None else problem.message,
    )
