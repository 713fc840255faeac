"""Command that shows deliveries as they happen and forwards them to this machine."""

import signal
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from hublet.cli.output import CommandResult, format_cell, paint, parse_time, say
from hublet.cli.remote_command import add_remote_command
from hublet.cli.webhooks.arguments import Domains, Organization, Watch, parse_watched

if TYPE_CHECKING:
    from hublet.cli.webhooks.forwarding import ForwardResult
    from hublet.client import Hub
    from hublet.client.webhooks import Delivery, Webhooks


# RFC 6761: nobody ever has this name, should something be sent before the webhook is at rest.
_NOWHERE = "https://listening.invalid/"
_NOT_FOUND = 404

_SIGNING_HELP = "Sign what is forwarded with this; the hub never tells the secret of a webhook."


def register(group: typer.Typer) -> None:
    add_remote_command(
        group,
        "listen",
        listen,
        example=(
            "hublet webhooks listen --watch model:ada/engine --forward http://localhost:8080/hook"
        ),
    )


def listen(
    hub: "Hub",
    webhook_id: Annotated[
        str | None, typer.Argument(metavar="ID", help="A webhook; else give --watch.")
    ] = None,
    *,
    forward: Annotated[
        str | None,
        typer.Option("--forward", metavar="URL", help="Post each to this address, too."),
    ] = None,
    watch: Watch = None,
    domain: Domains = None,
    secret: Annotated[
        str | None, typer.Option("--secret", metavar="TEXT", help=_SIGNING_HELP)
    ] = None,
    org: Organization = None,
) -> Generator[CommandResult]:
    """Show deliveries as they happen, and bring them to a port of this machine.

    With --watch there is a webhook of its own for as long as the command runs.
    """
    from hublet.cli.webhooks.forwarding import parse_target, send
    from hublet.client.webhooks import Webhooks

    if (webhook_id is None) is not bool(watch):
        raise typer.BadParameter("Give the ID of a webhook, or --watch TYPE:NAME.")
    target = None if forward is None else parse_target(forward)
    webhooks = Webhooks(hub=hub, organization=org)
    if webhook_id is not None:
        heard = _deliveries(webhooks, webhook_id)
    else:
        heard = _watch_temporarily(webhooks, watch or [], domains=domain)
    for delivery in heard:
        sent, payload = None, delivery.get("payload")
        if target is not None and payload is not None:
            sent = send(target, delivery, payload, secret=secret)
        yield _delivery_line(delivery, sent)


def _watch_temporarily(
    webhooks: "Webhooks", watch: list[str], *, domains: Domains
) -> "Generator[Delivery]":
    """Yield the deliveries of a webhook that is there only meanwhile."""
    body: dict[str, object] = {"watched": parse_watched(watch), "url": _NOWHERE}
    if domains:
        body["domains"] = domains
    with _exit_on_signals():
        webhook_id = webhooks.create(body)["id"]
        try:
            # At rest it sends nothing, and what happens is recorded all the same.
            webhooks.disable(webhook_id)
            # From its beginning on: all that it ever recorded is news.
            yield from _deliveries(webhooks, webhook_id, last_id="0")
        finally:
            _delete_webhook(webhooks, webhook_id)


def _deliveries(
    webhooks: "Webhooks", webhook_id: str, *, last_id: str | None = None
) -> "Generator[Delivery]":

    heard, line = SeenDeliveries(), _ConnectionReport()
    events = webhooks.follow(webhook_id, last_id=last_id, begun=line.stands, lost=line.breaks)
    for event in events:
        delivery: Delivery = event.read()
        if event.name == "delivery" and heard.is_news(delivery):
            yield delivery


class _ConnectionReport:
    """Tells once that the connection stands, and once that it broke."""

    def __init__(self) -> None:
        self._is_broken = False

    def stands(self) -> None:
        say("Listening again." if self._is_broken else "Listening; Ctrl-C ends it.")
        self._is_broken = False

    def breaks(self, reason: str) -> None:
        if not self._is_broken:
            say(f"The connection is lost ({reason}); trying again.")
        self._is_broken = True


def _delivery_line(delivery: "Delivery", sent: "ForwardResult | None") -> CommandResult:
    event = delivery.get("event")
    words = [format_cell(parse_time(delivery["createdAt"]))]
    if event is None:
        words.append("something that you may not see")
    else:
        repo = event["repo"]
        words.append(format_cell(f"{event['scope']} {event['action']}"))
        words.append(format_cell(f"{repo['type']}:{repo['name']}"))
    if sent is not None:
        words.append(_format_response(sent))
    return CommandResult(data=_delivery_data(delivery, sent), text="  ".join(words))


def _delivery_data(delivery: "Delivery", sent: "ForwardResult | None") -> dict[str, object]:
    if sent is None:
        return dict(delivery)
    forwarded = {
        "status": sent.status,
        "reason": sent.reason,
        "milliseconds": sent.milliseconds,
    }
    return {**delivery, "forwarded": forwarded}


def _format_response(sent: "ForwardResult") -> str:
    said = f"{sent.status}" if sent.reason is None else f"no answer ({sent.reason})"
    colour = "green" if sent.is_good else "red"
    return f"{paint(said, colour=colour)}  {sent.milliseconds} ms"


def _delete_webhook(webhooks: "Webhooks", webhook_id: str) -> None:
    from hublet.client import ClientError, Refused

    try:
        webhooks.delete(webhook_id)
    except ClientError as error:
        if isinstance(error, Refused) and error.status == _NOT_FOUND:
            return
        say(
            f"The webhook {webhook_id} of this command is still there ({error}): run "
            f"`hublet webhooks delete {webhook_id}`."
        )


@contextmanager
def _exit_on_signals() -> Iterator[None]:
    """End in good order when the terminal is closed or somebody ends the process."""

    def end(number: int, _frame: object) -> NoReturn:
        raise SystemExit(128 + number)

    signals = (signal.SIGTERM, signal.SIGHUP)
    before = {each: signal.signal(each, end) for each in signals}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


_MAX_SEEN = 10_000


class SeenDeliveries:
    """Remembers what was heard: a stream tells of each change, and after a break some twice."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, int]] = {}

    def is_news(self, delivery: "Delivery") -> bool:
        """Tell whether a delivery was sent just now: for the first time, or by a replay.

        That the hub tries again what has not arrived is no news.
        """
        before = self._known.pop(delivery["id"], None)
        self._known[delivery["id"]] = (delivery["state"], delivery["attempts"])
        if len(self._known) > _MAX_SEEN:
            del self._known[next(iter(self._known))]
        if before is None:
            return True
        state, attempts = before
        had_ended = state != "pending"
        return had_ended and (delivery["state"] == "pending" or delivery["attempts"] > attempts)
