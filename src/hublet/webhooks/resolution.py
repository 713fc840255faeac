"""Resolution of the names in a request: the target of a webhook, and what it watches."""

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any

from pydantic import MISSING

from hublet.accounts.errors import OrganizationNotFound, UserNotFound
from hublet.accounts.organizations import service as organizations
from hublet.accounts.users import service as accounts
from hublet.core.config import Settings
from hublet.core.database import Reader
from hublet.core.dataclasses import dataclass
from hublet.core.outgoing.networks import AddressPolicy
from hublet.core.outgoing.urls import check_url
from hublet.repos import service as repos
from hublet.repos.errors import RepoNotFound
from hublet.repos.records import Repo, RepoAddress, RepoType, Right
from hublet.webhooks.errors import OneTargetNeeded, WatchedIsPrivate, WatchedNotFound
from hublet.webhooks.records import WatchedItem, WatchedType, WebhookAccess, WebhookRecord
from hublet.webhooks.schemas import CreateWebhook, UpdateWebhook, WatchedRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedTarget:
    """Exactly one of the first three is set."""

    url: str | None = None
    # In wire names, without its secrets.
    job: dict[str, Any] | None = None
    job_source_id: str | None = None
    # Those that the request lists in the job itself.
    job_secrets: dict[str, str] = field(default_factory=dict, repr=False)

    def has_same_kind_as(self, webhook: WebhookRecord) -> bool:
        return (self.url is None, self.job is None) == (webhook.url is None, webhook.job is None)

    def equals_target_of(self, webhook: WebhookRecord) -> bool:
        return (self.url, self.job, self.job_source_id) == (
            webhook.url,
            webhook.job,
            webhook.job_source_id,
        )


def find_target(
    request: CreateWebhook | UpdateWebhook, settings: Settings
) -> RequestedTarget | None:
    """Return the target that a request names, if it names one.

    A URL is checked without looking up its host; whether a source job exists is checked later, in
    the database.
    """
    given = [
        each for each in (request.url, request.job, request.jobSourceId) if each is not MISSING
    ]
    if len(given) > 1:
        raise OneTargetNeeded
    if request.url is not MISSING:
        check_url(request.url, AddressPolicy.of(settings))
        return RequestedTarget(url=request.url)
    if request.job is not MISSING:
        secrets = request.job.secrets
        return RequestedTarget(
            job=request.job.model_dump(mode="json", exclude={"secrets"}),
            job_secrets={} if secrets is MISSING else secrets,
        )
    if request.jobSourceId is not MISSING:
        return RequestedTarget(job_source_id=request.jobSourceId)
    return None


async def find_watched(
    conn: Reader,
    access: WebhookAccess,
    requested: Sequence[WatchedRequest],
    *,
    before: Iterable[WatchedItem] = (),
) -> tuple[WatchedItem, ...]:
    """Return the items that a request names, each once, in the order of the request.

    An item that was watched `before` may stay when it is deleted or hidden by now.
    """
    by_name = {(each.type, each.name.casefold()): each for each in before}
    looked_up: dict[tuple[WatchedType, str], WatchedItem] = {}
    for place, item in enumerate(requested):
        key = item.type, item.name.casefold()
        if key in looked_up:
            continue
        watched = await _find_item(conn, access, item, place) or by_name.get(key)
        if watched is None:
            raise WatchedNotFound(place, item.type, item.name)
        looked_up[key] = watched
    # Two names may still mean one thing: of today, and of before a rename.
    return tuple({each.target: each for each in looked_up.values()}.values())


async def _find_item(
    conn: Reader, access: WebhookAccess, item: WatchedRequest, place: int
) -> WatchedItem | None:
    if item.type.is_account:
        return await _find_account(conn, item)
    repo = await _find_repo(conn, access, item)
    if repo is None:
        return None
    if access.owner.is_organization and repo.is_private and repo.owner_id != access.owner.id:
        raise WatchedIsPrivate(place, item.type, item.name, organization=access.owner.name)
    return WatchedItem(
        type=item.type, name=repo.full_name, target=repo.id, account_id=repo.owner_id
    )


async def _find_account(conn: Reader, item: WatchedRequest) -> WatchedItem | None:
    try:
        account = await (
            organizations.get(conn, item.name)
            if item.type is WatchedType.org
            else accounts.get_visible_user(conn, item.name, to_administrator=False)
        )
    except (UserNotFound, OrganizationNotFound):
        return None
    return WatchedItem(type=item.type, name=account.name, target=account.id, account_id=account.id)


async def _find_repo(conn: Reader, access: WebhookAccess, item: WatchedRequest) -> Repo | None:
    namespace, _, name = item.name.partition("/")
    address = RepoAddress(type=RepoType(item.type), namespace=namespace, name=name)
    try:
        return await repos.get(conn, access.caller, address, Right.see)
    except RepoNotFound:
        return None
