"""Command that fills a hub with demo data: people, and a week of what they did."""

from typing import TYPE_CHECKING, Annotated

import typer

from hublet.cli.local_command import add_database_command
from hublet.cli.output import CommandResult, align

if TYPE_CHECKING:
    from hublet.cli.demo_data import Addition
    from hublet.core.database import Database

PeopleOnly = Annotated[
    bool, typer.Option("--people-only", help="Only people, organizations and tokens.")
]


def register(app: typer.Typer) -> None:
    add_database_command(
        app, "demo", demo, example="hublet demo --data-dir ./demo-hub", prepare=True
    )


async def demo(database: "Database", *, people_only: PeopleOnly = False) -> CommandResult:
    """Fill a hub with people, and with a week of what they did: repositories, threads, jobs.

    Takes about 20 seconds, needs no network and starts no job. A second run adds only people that
    are missing. Use a hub of its own, which is not running: the secrets are printed.
    """
    from hublet.cli.demo_data import fill, fill_week

    async with database.transaction() as conn:
        additions = await fill(conn)
    if not people_only:
        additions += await fill_week(database)
    return CommandResult(
        data={"added": [_row(addition) for addition in additions]},
        text=_summary(additions) if additions else None,
        message=_next_steps(database.hub.settings.base_url, additions)
        if additions
        else "The demo is there already: nothing added.",
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


def _next_steps(address: str, additions: "list[Addition]") -> str:
    pages = [each for each in additions if each.what == "page"]
    look = "".join(f"\n  {address}{each.name}  {each.detail}" for each in pages)
    return f"""
The passwords and tokens are shown this once. Try next, with the same flags:
  hublet serve
  export HF_ENDPOINT={address} HF_TOKEN=<a token from above>
  hf auth whoami
Sign in at {address}/login as ada, with her password, and look at:{look}
  {address}/docs  the reference of the API
As katherine, who administers the hub, also at:
  {address}/admin  how the hub fares, its users, its storage, its work"""
