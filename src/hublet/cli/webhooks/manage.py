"""Commands that list, show and change webhooks."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from hublet.cli.options import EXAMPLE_ID, Yes, read_variables
from hublet.cli.output import CommandResult, Table, align, format_cell, parse_time
from hublet.cli.remote_command import add_remote_command, confirm
from hublet.cli.webhooks.arguments import (
    Domains,
    JobId,
    JobSecrets,
    Organization,
    Secret,
    SecretsFile,
    Url,
    Watch,
    WebhookId,
    parse_watched,
)

if TYPE_CHECKING:
    from hublet.client import Hub
    from hublet.client.webhooks import Webhook


def register(group: typer.Typer) -> None:
    add_remote_command(group, "list", list_webhooks, example="hublet webhooks list --org acme")
    add_remote_command(group, "info", info, example=f"hublet webhooks info {EXAMPLE_ID}")
    add_remote_command(
        group,
        "create",
        create,
        example="hublet webhooks create --watch model:ada/engine --url https://example.com/hook",
    )
    add_remote_command(
        group, "update", update, example=f"hublet webhooks update {EXAMPLE_ID} --domain repo"
    )
    add_remote_command(group, "enable", enable, example=f"hublet webhooks enable {EXAMPLE_ID}")
    add_remote_command(group, "disable", disable, example=f"hublet webhooks disable {EXAMPLE_ID}")
    add_remote_command(
        group, "delete", delete, example=f"hublet webhooks delete {EXAMPLE_ID} --yes"
    )


def list_webhooks(hub: "Hub", *, org: Organization = None) -> Table:
    """List webhooks, oldest first."""
    from hublet.client.webhooks import Webhooks

    webhooks = Webhooks(hub=hub, organization=org).list()
    return Table(
        rows=[_row(webhook) for webhook in webhooks],
        columns={
            "id": "id",
            "target": "target",
            "state": "state",
            "domains": "domains",
            "watched": "watched",
            "last trigger": "lastTriggerAt",
        },
        name="id",
        empty="There are no webhooks.",
        data=webhooks,
    )


def info(hub: "Hub", webhook_id: WebhookId, *, org: Organization = None) -> CommandResult:
    """Show a webhook."""
    from hublet.client.webhooks import Webhooks

    webhooks = Webhooks(hub=hub, organization=org)
    webhook = webhooks.get(webhook_id)
    row = _row(webhook)
    fields = {
        "id": row["id"],
        "target": row["target"],
        "state": row["state"],
        "watched": row["watched"],
        "domains": row["domains"],
        "secret": webhook["hasSecret"],
        "last trigger": row["lastTriggerAt"],
    }
    if "url" not in webhook:
        activity = webhooks.activity(webhook_id)
        fields |= {"runs as": activity.get("runsAs"), "job secrets": activity["secretNames"]}
    lines = align([[name, format_cell(value)] for name, value in fields.items()], width=None)
    return CommandResult(data=dict(webhook), text="\n".join(lines))


def create(
    hub: "Hub",
    *,
    watch: Watch = None,
    url: Url = None,
    job_id: JobId = None,
    domain: Domains = None,
    secret: Secret = None,
    secrets: JobSecrets = None,
    secrets_file: SecretsFile = None,
    org: Organization = None,
) -> CommandResult:
    """Create a webhook that posts to a URL, or starts a job, when something watched changes."""
    from hublet.client.webhooks import Webhooks

    if not watch:
        raise typer.BadParameter("Say what to watch, as in --watch model:ada/engine.")
    if (url is None) is (job_id is None):
        raise typer.BadParameter("Give --url or --job-id, and not both.")
    if url is not None and (secrets or secrets_file):
        raise typer.BadParameter("They are for a job: give --job-id.", param_hint="--secrets")
    body = _request_body(watch=watch, url=url, job_id=job_id, domain=domain, secret=secret)
    body |= _secrets_body(secrets, secrets_file)
    webhook = Webhooks(hub=hub, organization=org).create(body)
    return _change_result(webhook, "Created")


def update(
    hub: "Hub",
    webhook_id: WebhookId,
    *,
    watch: Watch = None,
    url: Url = None,
    job_id: JobId = None,
    domain: Domains = None,
    secret: Secret = None,
    secrets: JobSecrets = None,
    secrets_file: SecretsFile = None,
    org: Organization = None,
) -> CommandResult:
    """Change a webhook; what is not named stays, and an empty --secret takes the secret away."""
    from hublet.client.webhooks import Webhooks

    if url is not None and job_id is not None:
        raise typer.BadParameter("Give --url or --job-id, and not both.")
    body = _request_body(watch=watch, url=url, job_id=job_id, domain=domain, secret=secret)
    body |= _secrets_body(secrets, secrets_file)
    if not body:
        raise typer.BadParameter("Say what to change.")
    webhook = Webhooks(hub=hub, organization=org).update(webhook_id, body)
    return _change_result(webhook, "Changed")


def enable(hub: "Hub", webhook_id: WebhookId, *, org: Organization = None) -> CommandResult:
    """Let a webhook act again that was disabled or suspended after failures."""
    from hublet.client.webhooks import Webhooks

    return _change_result(Webhooks(hub=hub, organization=org).enable(webhook_id), "Enabled")


def disable(hub: "Hub", webhook_id: WebhookId, *, org: Organization = None) -> CommandResult:
    """Stop the deliveries of a webhook; the webhook is kept."""
    from hublet.client.webhooks import Webhooks

    return _change_result(Webhooks(hub=hub, organization=org).disable(webhook_id), "Disabled")


def delete(
    hub: "Hub", webhook_id: WebhookId, *, org: Organization = None, yes: Yes = False
) -> CommandResult:
    """Delete a webhook for good, with all that is known of its deliveries."""
    from hublet.client.webhooks import Webhooks

    confirm(f"Delete the webhook {format_cell(webhook_id)} for good?", yes=yes)
    Webhooks(hub=hub, organization=org).delete(webhook_id)
    return CommandResult(
        data={"id": webhook_id, "deleted": True},
        text=webhook_id,
        message=f"Deleted the webhook {webhook_id}.",
    )


def _request_body(
    *,
    watch: list[str] | None,
    url: str | None,
    job_id: str | None,
    domain: Domains,
    secret: str | None,
) -> dict[str, object]:
    """Return the body of a request, without the fields that were not given."""
    body = {
        "watched": parse_watched(watch) if watch else None,
        "url": url,
        "jobSourceId": job_id,
        "domains": list(dict.fromkeys(domain)) if domain else None,
        "secret": secret,
    }
    return {name: value for name, value in body.items() if value is not None}


def _secrets_body(given: list[str] | None, file: Path | None) -> dict[str, object]:
    secrets = read_variables(given, file, option="--secrets")
    return {"secrets": secrets} if secrets else {}


def _change_result(webhook: "Webhook", verb: str) -> CommandResult:
    return CommandResult(
        data=dict(webhook),
        text=webhook["id"],
        message=f"{verb} the webhook {webhook['id']}.",
    )


def _row(webhook: "Webhook") -> dict[str, object]:
    disabled = webhook["disabled"]
    return {
        "id": webhook["id"],
        "target": _format_target(webhook),
        "state": disabled if isinstance(disabled, str) else "disabled" if disabled else "enabled",
        "domains": webhook["domains"],
        "watched": [f"{each['type']}:{each['name']}" for each in webhook["watched"]],
        "lastTriggerAt": parse_time(webhook.get("lastTriggerAt")),
    }


def _format_target(webhook: "Webhook") -> str:
    if "url" in webhook:
        return webhook["url"]
    return f"(job {webhook['jobSourceId']})" if "jobSourceId" in webhook else "(job)"
