"""Command that fills a hub with demo data."""

from typing import TYPE_CHECKING

import typer

from hublet.cli.local_command import add_change_command
from hublet.cli.output import CommandResult, align

if TYPE_CHECKING:
    from hublet.cli.demo_data import Addition
    from hublet.core.database import Connection


def register(app: typer.Typer) -> None:
    add_change_command(app, "demo", demo, example="hublet demo --data-dir ./demo-hub", prepare=True)


async def demo(conn: "Connection") -> CommandResult:
    """Fill a hub with people, organizations and tokens to try things with.

    A second run adds only what is missing. Use a hub of its own: the secrets are printed.
    """
    from hublet.cli.demo_data import fill

    additions = await fill(conn)
    return CommandResult(
        data={"added": [_row(addition) for addition in additions]},
        text=_summary(additions) if additions else None,
        message=_next_steps(conn) if additions else "The demo is there already: nothing added.",
    )


def _row(addition: "Addition") -> dict[str, str | None]:
    return {
        "what": addition.what,
        "name": addition.name,
        "detail": addition.detail,
        "secret": addition.secret,
    }


def _summary(additions: "list[Addition]") -> str:
    rows = [(each.what, each.name, each.detail, each.secret or "") for each in additions]
    return "\n".join(align(rows, width=None))


def _next_steps(conn: "Connection") -> str:
    address = conn.hub.settings.base_url
    return f"""
The passwords and tokens are shown this once. Try next, with the same flags:
  hublet serve
  export HF_ENDPOINT={address} HF_TOKEN=<a token from above>
  hf auth whoami
and look at {address}/docs"""
