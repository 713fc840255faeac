"""HTTP for the administration of the site: activity, switches, settings and announcements."""

from collections.abc import Awaitable, Callable, Iterator
from typing import Annotated

from fastapi import Query, Response

from hublet.accounts import administration
from hublet.accounts.organizations import audit_store
from hublet.accounts.records import Actor
from hublet.core import switches
from hublet.core.clock import now
from hublet.core.config import SettingInfo, Settings, describe, safe_database_url
from hublet.core.database import Connection
from hublet.core.dataclasses import dataclass
from hublet.core.errors import HubError, InvalidRequest
from hublet.core.hub import AnnouncementTone, Hub, Switch
from hublet.core.pages import PageRouter
from hublet.core.paging import read_cursor, write_cursor
from hublet.login.auth import FormFields
from hublet.web.admin import PURPOSE, admin_frame, administer
from hublet.web.auth import FreshVisit, OperatorVisit, PageVisit
from hublet.web.pages import go_to, next_page_url, render, status_of

router = PageRouter()

_ACTIVITY = "/admin/activity"
_SWITCHES = "/admin/switches"
_SHOWN = 50
_KINDS = ("administration", "sign-ins", "organizations")

SiteChange = Callable[[Connection, Actor], Awaitable[None]]

_SENTENCES = {
    Switch.remote_images: (
        "Pictures of other sites",
        "In READMEs and comments they load, and tell those sites who reads.",
    ),
    Switch.app_registration: (
        "Apps register by themselves",
        "At /oauth/register, as clients of MCP do.",
    ),
    Switch.new_jobs: (
        "New jobs",
        "Off, nobody starts a job, no schedule and no webhook; what runs goes on.",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchRow:
    switch: Switch
    title: str
    sentence: str
    is_on: bool
    # What an administrator chose; None where the settings decide.
    chosen: bool | None
    default: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingRow:
    """A setting as this process has it; what is secret is not shown."""

    key: str
    value: str
    origin: str
    sentence: str


@router.get(_ACTIVITY)
async def get_activity_page(
    visit: OperatorVisit, kind: str = _KINDS[0], cursor: Annotated[str, Query()] = ""
) -> Response:
    kind = kind if kind in _KINDS else _KINDS[0]
    before = read_cursor(cursor) if cursor else ""
    async with visit.database.read() as conn:
        frame = await admin_frame(visit, conn, _ACTIVITY)
        if kind == "organizations":
            listed = await audit_store.list_of_all(conn, before=before, limit=_SHOWN + 1)
        else:
            listed = await audit_store.list_of_hub(
                conn, sign_ins=kind == "sign-ins", before=before, limit=_SHOWN + 1
            )
    lines = listed[:_SHOWN]
    is_last = len(listed) <= _SHOWN
    return await render(
        visit,
        "admin/activity.html",
        frame=frame,
        kind=kind,
        lines=lines,
        older=None if is_last else next_page_url(visit, write_cursor(lines[-1].id)),
    )


@router.get(_SWITCHES)
async def get_switches_page(visit: OperatorVisit) -> Response:
    return await _show_switches(visit)


@router.post(f"{_SWITCHES}/turn")
async def turn_switch(visit: FreshVisit, form: FormFields) -> Response:
    async def turn(conn: Connection, actor: Actor) -> None:
        name, position = form.get("switch", ""), form.get("to", "")
        if name not in list(Switch):
            raise InvalidRequest(f"switch must be one of {', '.join(Switch)}.")
        if position not in {"on", "off", "settings"}:
            raise InvalidRequest("to must be on, off or settings.")
        on = None if position == "settings" else position == "on"
        await administration.turn_switch(conn, actor, Switch(name), on=on)

    return await _change(visit, form, turn, toast="The switch is turned, in all processes.")


@router.post(f"{_SWITCHES}/announce")
async def publish_announcement(visit: FreshVisit, form: FormFields) -> Response:
    async def announce(conn: Connection, actor: Actor) -> None:
        try:
            hours = float(form.get("hours", ""))
        except ValueError:
            raise InvalidRequest("hours must be a number.") from None
        await administration.announce(
            conn,
            actor,
            form.get("text", ""),
            tone=form.get("tone", ""),
            for_signed_in=form.get("audience") == "signed-in",
            hours=hours,
        )

    return await _change(visit, form, announce, toast="It stands above every page.")


@router.post(f"{_SWITCHES}/withdraw")
async def withdraw_announcement(visit: FreshVisit, form: FormFields) -> Response:
    async def withdraw(conn: Connection, actor: Actor) -> None:
        await administration.withdraw(conn, actor, form.get("announcement", ""))

    return await _change(visit, form, withdraw, toast="The announcement is withdrawn.")


async def _change(
    visit: PageVisit, form: FormFields, change: SiteChange, *, toast: str
) -> Response:
    if (problem := await administer(visit, form, change)) is not None:
        return await _show_switches(visit, form=form, problem=problem)
    # This process knows at once; the others hear of it.
    await switches.refresh(visit.database)
    return go_to(visit, _SWITCHES, toast=toast)


async def _show_switches(
    visit: PageVisit, *, form: FormFields | None = None, problem: HubError | None = None
) -> Response:
    async with visit.database.read() as conn:
        frame = await admin_frame(visit, conn, _SWITCHES)
    names = ("text", "tone", "audience", "hours")
    return await render(
        visit,
        "admin/switches.html",
        frame=frame,
        status=200 if problem is None else status_of(problem),
        switches=list(_switch_rows(visit.hub)),
        current=[each for each in visit.hub.site.state.announcements if each.until > now()],
        tones=list(AnnouncementTone),
        most_characters=switches.MOST_CHARACTERS,
        groups=_group(visit.settings),
        typed={name: form.get(name, "") if form is not None else "" for name in names},
        form_token=visit.form_token(PURPOSE),
        problem=None if problem is None else problem.message,
    )


def _switch_rows(hub: Hub) -> Iterator[SwitchRow]:
    for switch, (title, sentence) in _SENTENCES.items():
        yield SwitchRow(
            switch=switch,
            title=title,
            sentence=sentence,
            is_on=hub.is_on(switch),
            chosen=hub.site.state.switches.get(switch),
            default=hub.default_of(switch),
        )


def _group(settings: Settings) -> dict[str, list[SettingRow]]:
    """Return all settings by their group."""
    groups: dict[str, list[SettingRow]] = {}
    for info in describe():
        groups.setdefault(info.group, []).append(_setting_row(settings, info))
    return groups


def _setting_row(settings: Settings, info: SettingInfo) -> SettingRow:
    value = getattr(getattr(settings, info.group), info.name)
    return SettingRow(
        key=info.toml_key,
        value=_value_text(info, value),
        origin=settings.origins.get(info.toml_key, "the default"),
        sentence=info.sentence,
    )


def _value_text(info: SettingInfo, value: object) -> str:
    if value is None:
        return "not set"
    if info.secret:
        return "set, and secret"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return safe_database_url(str(value))
