"""Commands for deliveries: list, replay, recover, ping."""

from itertools import islice
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hublet.cli.options import EXAMPLE_ID, parse_past_time
from hublet.cli.output import CommandResult, Table, parse_time, show_progress
from hublet.cli.remote_command import add_remote_command
from hublet.cli.webhooks.arguments import DeliveryId, Organization, WebhookId

if TYPE_CHECKING:
    from hublet.client import Hub
    from hublet.client.webhooks import Delivery, DeliveryOutcome

_WAITING = "waiting"
# The largest page of the hub.
_PAGE = 100

_Since = Annotated[
    str, typer.Option("--since", metavar="WHEN", help="2h ago, or 2026-11-15T01:44:56Z.")
]
_Until = Annotated[
    str | None, typer.Option("--until", metavar="WHEN", help="Before this moment, as --since.")
]


def register(group: typer.Typer) -> None:
    add_remote_command(
        group,
        "deliveries",
        list_deliveries,
        example=f"hublet webhooks deliveries {EXAMPLE_ID} --state failed --since 2d",
    )
    add_remote_command(
        group,
        "replay",
        replay,
        example=f"hublet webhooks replay {EXAMPLE_ID} 6a5f0c2e9d1b4a7788990022",
    )
    add_remote_command(
        group, "recover", recover, example=f"hublet webhooks recover {EXAMPLE_ID} --since 12h"
    )
    add_remote_command(group, "ping", ping, example=f"hublet webhooks ping {EXAMPLE_ID}")


def list_deliveries(
    hub: "Hub",
    webhook_id: WebhookId,
    *,
    state: Annotated[
        Literal["pending", "delivered", "failed", "unsent"] | None,
        typer.Option(help="Those that stand so."),
    ] = None,
    reason: Annotated[
        str | None, typer.Option(metavar="TEXT", help="With this reason, as in throttled.")
    ] = None,
    scope: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Of this scope, as in repo.content.")
    ] = None,
    repo: Annotated[
        str | None, typer.Option(metavar="OWNER/NAME", help="About this repository.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="WHEN", help="From 2h ago, or 2026-11-15T01:44:56Z, on."),
    ] = None,
    until: _Until = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", metavar="COUNT", min=1, help="At most so many.")
    ] = 20,
    org: Organization = None,
) -> Table:
    """List the deliveries of a webhook, newest first."""
    from hublet.client.webhooks import Webhooks

    query = {
        "state": state,
        "reason": reason,
        "scope": scope,
        "repo": repo,
        "since": None if since is None else parse_past_time(since, option="--since"),
        "until": None if until is None else parse_past_time(until, option="--until"),
        "limit": min(limit, _PAGE),
    }
    deliveries = list(
        islice(Webhooks(hub=hub, organization=org).deliveries(webhook_id, query), limit)
    )
    return Table(
        rows=[_row(delivery) for delivery in deliveries],
        columns={
            "id": "id",
            "created": "createdAt",
            "event": "event",
            "about": "about",
            "state": "state",
            "attempts": "attempts",
            "status": "status",
            "reason": "reason",
        },
        name="id",
        empty="There are no such deliveries.",
        data=deliveries,
    )


def replay(
    hub: "Hub", webhook_id: WebhookId, delivery_id: DeliveryId, *, org: Organization = None
) -> CommandResult:
    """Send a delivery again, under the same id, to where the webhook points now."""
    from hublet.client.webhooks import Webhooks

    with show_progress("Sending it again"):
        sent = Webhooks(hub=hub, organization=org).replay(webhook_id, delivery_id)
    return _delivery_result(sent)


def recover(
    hub: "Hub",
    webhook_id: WebhookId,
    *,
    since: _Since,
    until: _Until = None,
    org: Organization = None,
) -> CommandResult:
    """Send again all deliveries since a time that failed or were not sent."""
    from hublet.client.webhooks import Webhooks

    body = {"since": parse_past_time(since, option="--since")}
    if until is not None:
        body["until"] = parse_past_time(until, option="--until")
    count = Webhooks(hub=hub, organization=org).recover(webhook_id, body)
    return CommandResult(
        data={"count": count},
        message=f"{count} deliver{'y is' if count == 1 else 'ies are'} sent again.",
    )


def ping(hub: "Hub", webhook_id: WebhookId, *, org: Organization = None) -> CommandResult:
    """Send something that tells of nothing, to see whether the target answers."""
    from hublet.client.webhooks import Webhooks

    with show_progress("Waiting for the target"):
        sent = Webhooks(hub=hub, organization=org).ping(webhook_id)
    return _delivery_result(sent)


def _delivery_result(sent: "DeliveryOutcome") -> CommandResult:
    reason, status = sent.get("reason"), sent["status"]
    is_waiting, job_id = reason == _WAITING, sent.get("jobId")
    if is_waiting:
        message = "It was not sent yet; `hublet webhooks deliveries` will tell what came of it."
    elif status:
        message = f"The target answered {status}{f' ({reason})' if reason else ''}."
    elif job_id is not None:
        message = f"It started the job {job_id}."
    else:
        message = f"The target did not answer ({reason})."
    return CommandResult(
        data=dict(sent),
        text=sent["deliveryId"],
        message=message,
        failed=not (is_waiting or job_id or 200 <= status < 300),  # noqa: PLR2004 - as HTTP has it
    )


def _row(delivery: "Delivery") -> dict[str, object]:
    event = delivery.get("event")
    return {
        "id": delivery["id"],
        "createdAt": parse_time(delivery["createdAt"]),
        "event": event and f"{event['scope']} {event['action']}",
        "about": event and f"{event['repo']['type']}:{event['repo']['name']}",
        "state": delivery["state"],
        "attempts": delivery["attempts"],
        "status": delivery.get("status"),
        "reason": delivery.get("reason"),
    }
