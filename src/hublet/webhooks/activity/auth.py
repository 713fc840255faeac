"""Which deliveries a request asks for, and whether its sender may still see them."""

from typing import Annotated

from fastapi import Depends, Header, Query, Request
from pydantic import AwareDatetime

from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import Role
from hublet.core.clock import to_micros
from hublet.core.database import Database
from hublet.core.http.exchange import exchange_of
from hublet.tokens.auth import caller_of
from hublet.webhooks.activity.errors import InvalidPeriod
from hublet.webhooks.activity.records import PENDING, DeliveryFilter
from hublet.webhooks.activity.schemas import StateName
from hublet.webhooks.delivery.records import DeliveryState
from hublet.webhooks.owners import Owner

_REPO = r"^[^/]+/[^/]+$"


async def _filter(
    state: Annotated[StateName | None, Query(description="Those that stand so.")] = None,
    reason: Annotated[str, Query(description="Those with this reason, as in `throttled`.")] = "",
    scope: Annotated[str, Query(description="Of this scope, as in `repo.content`.")] = "",
    repo: Annotated[
        str | None,
        Query(pattern=_REPO, description="About the repository that was called owner/name then."),
    ] = None,
    since: Annotated[AwareDatetime | None, Query(description="From this moment on.")] = None,
    until: Annotated[AwareDatetime | None, Query(description="Before this moment.")] = None,
) -> DeliveryFilter:
    everything = DeliveryFilter()
    if since and until and until <= since:
        raise InvalidPeriod
    return DeliveryFilter(
        states=_states(state),
        reason=reason,
        scope=scope,
        repo=repo or "",
        since=to_micros(since) if since else everything.since,
        until=to_micros(until) if until else everything.until,
    )


def _states(state: StateName | None) -> tuple[DeliveryState, ...]:
    if state is None:
        return ()
    return PENDING if state == "pending" else (DeliveryState(state),)


AskedDeliveries = Annotated[DeliveryFilter, Depends(_filter)]

LastEventId = Annotated[
    str | None,
    Header(
        alias="Last-Event-ID",
        pattern="^[0-9]{1,16}$",
        description="The `id` of the last event that was heard.",
    ),
]


async def check_again(request: Request, database: Database, owner: Owner) -> None:
    """Refuse who has lost the access since the request began, for answers that go on for long."""
    exchange_of(request).known_caller = None
    caller = await caller_of(request)
    if owner.is_organization:
        async with database.read() as conn:
            await organizations.get_as(conn, owner.name, user_id=caller.user_id, needed=Role.admin)
