"""The command that shows deliveries as they happen, and brings them to this machine."""

import signal
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from hublet.cli.asking import asking
from hublet.cli.output import Answer, cell, painted, read_moment, say
from hublet.cli.webhooks.arguments import Domains, Organization, Watch, read_watched

if TYPE_CHECKING:
    from hublet.cli.webhooks.forwarding import Forwarded
    from hublet.client import Hub
    from hublet.client.webhooks import Delivery, Webhooks

# RFC 6761: nobody ever has this name, should something be sent before the webhook is at rest.
_NOWHERE = "https://listening.invalid/"
_NOT_FOUND = 404

_SIGNED = "Sign what is forwarded with this; the hub never tells the secret of a webhook."


def register(group: typer.Typer) -> None:
    asking(
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
    secret: Annotated[str | None, typer.Option("--secret", metavar="TEXT", help=_SIGNED)] = None,
    org: Organization = None,
) -> Generator[Answer]:
    """Show deliveries as they happen, and bring them to a port of this machine.

    With --watch there is a webhook of its own for as long as the command runs.
    """
    from hublet.cli.webhooks.forwarding import read_target, send
    from hublet.client.webhooks import Webhooks

    if (webhook_id is None) is not bool(watch):
        raise typer.BadParameter("Give the ID of a webhook, or --watch TYPE:NAME.")
    target = None if forward is None else read_target(forward)
    webhooks = Webhooks(hub=hub, organization=org)
    if webhook_id is not None:
        heard = _deliveries(webhooks, webhook_id)
    else:
        heard = _watched(webhooks, watch or [], domains=domain)
    for delivery in heard:
        sent, payload = None, delivery.get("payload")
        if target is not None and payload is not None:
            sent = send(target, delivery, payload, secret=secret)
        yield _told(delivery, sent)


def _watched(webhooks: "Webhooks", watch: list[str], *, domains: Domains) -> "Generator[Delivery]":
    """Yield the deliveries of a webhook that is there only meanwhile."""
    body: dict[str, object] = {"watched": read_watched(watch), "url": _NOWHERE}
    if domains:
        body["domains"] = domains
    with _ends_by_signal():
        webhook_id = webhooks.create(body)["id"]
        try:
            # At rest it sends nothing, and what happens is recorded all the same.
            webhooks.disable(webhook_id)
            # From its beginning on: all that it ever recorded is news.
            yield from _deliveries(webhooks, webhook_id, last_id="0")
        finally:
            _remove(webhooks, webhook_id)


def _deliveries(
    webhooks: "Webhooks", webhook_id: str, *, last_id: str | None = None
) -> "Generator[Delivery]":
    from hublet.cli.webhooks.hearing import Heard

    heard, line = Heard(), _Line()
    events = webhooks.follow(webhook_id, last_id=last_id, begun=line.stands, lost=line.breaks)
    for event in events:
        delivery: Delivery = event.read()
        if event.name == "delivery" and heard.is_news(delivery):
            yield delivery


class _Line:
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


def _told(delivery: "Delivery", sent: "Forwarded | None") -> Answer:
    event = delivery.get("event")
    words = [cell(read_moment(delivery["createdAt"]))]
    if event is None:
        words.append("something that you may not see")
    else:
        repo = event["repo"]
        words.append(cell(f"{event['scope']} {event['action']}"))
        words.append(cell(f"{repo['type']}:{repo['name']}"))
    if sent is not None:
        words.append(_answered(sent))
    return Answer(data=_data(delivery, sent), text="  ".join(words))


def _data(delivery: "Delivery", sent: "Forwarded | None") -> dict[str, object]:
    if sent is None:
        return dict(delivery)
    forwarded = {
        "status": sent.status,
        "reason": sent.reason,
        "milliseconds": sent.milliseconds,
    }
    return {**delivery, "forwarded": forwarded}


def _answered(sent: "Forwarded") -> str:
    said = f"{sent.status}" if sent.reason is None else f"no answer ({sent.reason})"
    colour = "green" if sent.is_good else "red"
    return f"{painted(said, colour=colour)}  {sent.milliseconds} ms"


def _remove(webhooks: "Webhooks", webhook_id: str) -> None:
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
def _ends_by_signal() -> Iterator[None]:
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
