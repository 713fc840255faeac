"""Forms of webhooks: what is typed, checked as the API checks it; for all pages that have one."""

from collections.abc import Sequence
from urllib.parse import quote

from pydantic import MISSING

from hublet.accounts.records import Owner
from hublet.accounts.users import store as accounts
from hublet.core.database import Reader
from hublet.core.dataclasses import dataclass
from hublet.core.errors import InvalidRequest
from hublet.jobs import list_store as jobs
from hublet.jobs.errors import SourceNotFound
from hublet.jobs.records import JobFilter, JobRecord, Stage
from hublet.login.auth import FormFields
from hublet.repos.browse import lists
from hublet.web.pages import REFUSALS, read_as
from hublet.webhooks.errors import WatchedNotFound
from hublet.webhooks.records import Domain, WatchedItem, WebhookAccess, WebhookRecord
from hublet.webhooks.schemas import CreateWebhook, UpdateWebhook

# What a person mends in the form: also a name that leads nowhere.
WEBHOOK_REFUSALS = (*REFUSALS, WatchedNotFound, SourceNotFound)

# A form has at most 100 fields; what else is watched stands in one of them, a line each.
_MOST_CHOICES = 40
_MOST_JOBS = 20


def webhooks_path(owner: Owner) -> str:
    """Return where the webhooks of an owner are in the browser."""
    if owner.is_organization:
        return f"/organizations/{quote(owner.name)}/settings/webhooks"
    return "/settings/webhooks"


def purpose_of(owner_name: str) -> str:
    """Return the purpose of the tokens in the forms of an owner's webhooks."""
    return f"webhooks of {owner_name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookFields:
    """Fields of a form: what was typed, or the webhook as it is. Its secret is in none."""

    # What it does: `url`, `job`, or `keep` for a job that was described to the API.
    kind: str = "url"
    url: str = ""
    job_id: str = ""
    # As in `model:ada/engine`; those that are no choice of the form are in `others`, a line each.
    watched: tuple[str, ...] = ()
    others: str = ""
    domains: tuple[str, ...] = tuple(Domain)
    owner: str = ""


def typed_fields(form: FormFields) -> WebhookFields:
    return WebhookFields(
        kind=form.get("kind", "url"),
        url=form.get("url", ""),
        job_id=form.get("job_id", ""),
        watched=tuple(form.getlist("watched")),
        others=form.get("others", ""),
        domains=tuple(form.getlist("domains")),
        owner=form.get("owner", ""),
    )


def fields_of(webhook: WebhookRecord) -> WebhookFields:
    kind = "keep" if webhook.job is not None else "job" if webhook.job_source_id else "url"
    return WebhookFields(
        kind=kind,
        url=webhook.url or "",
        job_id=webhook.job_source_id or "",
        watched=tuple(map(name_watched, webhook.watched)),
        domains=webhook.domains,
    )


def name_watched(item: WatchedItem) -> str:
    return f"{item.type}:{item.name}"


def read_new(form: FormFields, *, watched: Sequence[str] | None = None) -> CreateWebhook:
    """Return the request to create a webhook; `watched` is given where the page decides it."""
    return read_as(
        CreateWebhook,
        **_target_of(form),
        watched=_read_watched(_watched_in(form) if watched is None else watched),
        domains=form.getlist("domains"),
        secret=form.get("secret") or MISSING,
    )


def read_changes(form: FormFields) -> UpdateWebhook:
    """Return the request to change a webhook; its secret is changed by a form of its own."""
    watched = _watched_in(form)
    if not watched:
        raise InvalidRequest("watched: choose at least one thing that it watches.")
    return read_as(
        UpdateWebhook,
        **_target_of(form),
        watched=_read_watched(watched),
        domains=form.getlist("domains"),
    )


def _target_of(form: FormFields) -> dict[str, object]:
    kind = form.get("kind", "url")
    if kind == "keep":
        return {}
    if kind == "job":
        return {"jobSourceId": form.get("job_id", "").strip()}
    return {"url": form.get("url", "").strip()}


def _watched_in(form: FormFields) -> list[str]:
    lines = [line.strip() for line in form.get("others", "").splitlines()]
    return [*form.getlist("watched"), *filter(None, lines)]


def _read_watched(named: Sequence[str]) -> list[dict[str, str]]:
    found = []
    for each in named:
        type_, colon, name = each.partition(":")
        if not colon or not name.strip():
            raise InvalidRequest(f"watched: write type:name, as in model:ada/engine, not {each}.")
        found.append({"type": type_.strip(), "name": name.strip()})
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookChoices:
    """What the form offers: things to watch with what they are called, and jobs to start again."""

    watched: list[tuple[str, str]]
    # The watched things that are not offered, a line each.
    others: str
    jobs: list[JobRecord]


async def list_choices(
    conn: Reader, access: WebhookAccess, fields: WebhookFields
) -> WebhookChoices:
    """Return what an owner is most likely to choose; all else is typed."""
    owner, caller = access.owner, access.caller
    choices = {_account_choice(owner): f"Everything of {owner.name}, also what comes later"}
    if not owner.is_organization:
        for each in await accounts.memberships_of(conn, user_id=caller.user_id):
            name = each.organization.name
            choices[f"org:{name}"] = f"Everything of {name}"
    repos = await lists.list_of_owner(conn, caller, owner.id, after="", limit=_MOST_CHOICES)
    choices |= {f"{repo.type}:{repo.full_name}": f"{repo.type} {repo.full_name}" for repo in repos}
    offered = dict(list(choices.items())[:_MOST_CHOICES])
    unoffered = [each for each in fields.watched if each not in offered]
    mine = JobFilter(
        owner_id=owner.id, user_id=caller.user_id, sees_every_group=False, stages=tuple(Stage)
    )
    return WebhookChoices(
        watched=list(offered.items()),
        others="\n".join(filter(None, [fields.others.strip(), *unoffered])),
        jobs=await jobs.list_of(conn, mine, before="", limit=_MOST_JOBS),
    )


def _account_choice(owner: Owner) -> str:
    return f"{'org' if owner.is_organization else 'user'}:{owner.name}"
