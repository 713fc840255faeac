"""Command that prints deliveries as they happen, and forwards them to a port of this machine."""

import signal
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NoReturn
from urllib.parse import urlsplit

import typer

from hublet.cli.output import CommandResult, format_cell, paint, parse_time, say
from hublet.cli.remote_command import add_remote_command
from hublet.cli.webhooks.arguments import Domains, Organization, Watch, parse_watched

if TYPE_CHECKING:
    from hublet.client import Hub
    from hublet.client.webhooks import Delivery, Webhooks

# RFC 6761: no host has this name, should something be sent before the webhook is disabled.
_UNREACHABLE_URL = "https://listening.invalid/"
_NOT_FOUND = 404
# As long as the hub itself waits.
_FORWARD_SECONDS = 15.0
_MAX_RESPONSE_BYTES = 65_536
_MAX_SEEN = 10_000

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
    from hublet.client.webhooks import Webhooks

    if (webhook_id is None) is not bool(watch):
        raise typer.BadParameter("Give the ID of a webhook, or --watch TYPE:NAME.")
    target = None if forward is None else _parse_target(forward)
    webhooks = Webhooks(hub=hub, organization=org)
    if webhook_id is not None:
        deliveries = _deliveries(webhooks, webhook_id)
    else:
        deliveries = _watch_temporarily(webhooks, watch or [], domains=domain)
    for delivery in deliveries:
        sent, payload = None, delivery.get("payload")
        if target is not None and payload is not None:
            sent = forward_delivery(target, delivery, payload, secret=secret)
        yield _delivery_line(delivery, sent)


def _watch_temporarily(
    webhooks: "Webhooks", watch: list[str], *, domains: Domains
) -> "Generator[Delivery]":
    """Yield the deliveries of a webhook that exists only while this runs."""
    body: dict[str, object] = {"watched": parse_watched(watch), "url": _UNREACHABLE_URL}
    if domains:
        body["domains"] = domains
    with _exit_on_signals():
        webhook_id = webhooks.create(body)["id"]
        try:
            # A disabled webhook sends nothing, but its deliveries are still recorded.
            webhooks.disable(webhook_id)
            # From its first delivery on: it has no older ones.
            yield from _deliveries(webhooks, webhook_id, last_id="0")
        finally:
            _delete_webhook(webhooks, webhook_id)


def _deliveries(
    webhooks: "Webhooks", webhook_id: str, *, last_id: str | None = None
) -> "Generator[Delivery]":
    seen, report = SeenDeliveries(), _ConnectionReport()
    events = webhooks.follow(
        webhook_id,
        last_id=last_id,
        on_connect=report.connected,
        on_disconnect=report.disconnected,
    )
    for event in events:
        delivery: Delivery = event.read()
        if event.name == "delivery" and seen.add(delivery):
            yield delivery


class _ConnectionReport:
    """Prints once that the connection is established, and once that it is lost."""

    def __init__(self) -> None:
        self._is_lost = False

    def connected(self) -> None:
        say("Listening again." if self._is_lost else "Listening; Ctrl-C ends it.")
        self._is_lost = False

    def disconnected(self, reason: str) -> None:
        if not self._is_lost:
            say(f"The connection is lost ({reason}); trying again.")
        self._is_lost = True


class ForwardResult(NamedTuple):
    # None without a response, and then there is a reason.
    status: int | None
    reason: str | None
    milliseconds: int

    @property
    def is_success(self) -> bool:
        return self.status is not None and 200 <= self.status < 300  # noqa: PLR2004 - as HTTP has it


def _parse_target(url: str) -> str:
    try:
        parts = urlsplit(url)
        _port = parts.port
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc:
        raise typer.BadParameter(
            f"{url} is not an address such as http://localhost:8080/hook.", param_hint="--forward"
        )
    return url


def _body(payload: Mapping[str, Any]) -> bytes:
    """Encode the payload as the hub does: compact JSON, not escaped to ASCII."""
    import json

    return json.dumps(payload, separators=(",", ":"), ensure_ascii=False).encode()


def forward_delivery(
    url: str, delivery: "Delivery", payload: Mapping[str, Any], *, secret: str | None
) -> ForwardResult:
    """Post a delivery with the headers of the hub, signed if there is a secret."""
    from http.client import HTTPException
    from urllib.request import Request

    from hublet.client.errors import NotReachable
    from hublet.client.hub import open_request
    from hublet.core.clock import micros, monotonic
    from hublet.webhooks.delivery.signing import headers_of, key_of

    body = _body(payload)
    headers = headers_of(
        body,
        delivery_id=delivery["id"],
        timestamp=micros() // 1_000_000,
        attempt=max(delivery["attempts"], 1),
        secret=secret or None,
        keys=[key_of(secret)] if secret else [],
    )
    request = Request(url, data=body, headers=headers, method="POST")  # noqa: S310 - `_parse_target` accepts only http and https
    started_at = monotonic()
    status, reason = None, None
    try:
        with open_request(request, endpoint=url, timeout=_FORWARD_SECONDS) as response:
            response.read(_MAX_RESPONSE_BYTES)
            status = response.status
    except NotReachable as error:
        reason = error.reason
    except (OSError, HTTPException):
        reason = "the connection broke"
    return ForwardResult(
        status=status, reason=reason, milliseconds=round((monotonic() - started_at) * 1000)
    )


def _delivery_line(delivery: "Delivery", sent: ForwardResult | None) -> CommandResult:
    event = delivery.get("event")
    cells = [format_cell(parse_time(delivery["createdAt"]))]
    if event is None:
        cells.append("something that you may not see")
    else:
        repo = event["repo"]
        cells.append(format_cell(f"{event['scope']} {event['action']}"))
        cells.append(format_cell(f"{repo['type']}:{repo['name']}"))
    if sent is not None:
        cells.append(_format_response(sent))
    return CommandResult(data=_delivery_data(delivery, sent), text="  ".join(cells))


def _delivery_data(delivery: "Delivery", sent: ForwardResult | None) -> dict[str, object]:
    if sent is None:
        return dict(delivery)
    forwarded = {
        "status": sent.status,
        "reason": sent.reason,
        "milliseconds": sent.milliseconds,
    }
    return {**delivery, "forwarded": forwarded}


def _format_response(sent: ForwardResult) -> str:
    outcome = f"{sent.status}" if sent.reason is None else f"no answer ({sent.reason})"
    colour = "green" if sent.is_success else "red"
    return f"{paint(outcome, colour=colour)}  {sent.milliseconds} ms"


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
    """Exit, with all `finally` blocks, when the terminal is closed or the process is ended."""

    def exit_on(number: int, _frame: object) -> NoReturn:
        raise SystemExit(128 + number)

    signals = (signal.SIGTERM, signal.SIGHUP)
    previous = {each: signal.signal(each, exit_on) for each in signals}
    try:
        yield
    finally:
        for each, handler in previous.items():
            signal.signal(each, handler)


class SeenDeliveries:
    """Remembers deliveries: a stream sends each change, and some again after a lost connection."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, int]] = {}

    def add(self, delivery: "Delivery") -> bool:
        """Return whether a delivery is new: sent for the first time, or replayed.

        A further attempt of the hub at the same delivery is not new.
        """
        previous = self._known.pop(delivery["id"], None)
        self._known[delivery["id"]] = (delivery["state"], delivery["attempts"])
        if len(self._known) > _MAX_SEEN:
            del self._known[next(iter(self._known))]
        if previous is None:
            return True
        state, attempts = previous
        had_ended = state != "pending"
        return had_ended and (delivery["state"] == "pending" or delivery["attempts"] > attempts)
