"""Commands for parked tasks: those that failed too often."""

from typing import TYPE_CHECKING, Annotated

import typer

from hublet.cli.local_command import add_change_command, add_list_command
from hublet.cli.options import new_group
from hublet.cli.output import CommandResult, Table

if TYPE_CHECKING:
    from hublet.core.database import Connection, Reader

_MAX_ROWS = 1000


def register(app: typer.Typer) -> None:
    tasks = new_group("Look at tasks that failed too often.")
    add_list_command(tasks, "list", list_parked, example="hublet task list")
    add_change_command(tasks, "retry", retry, example="hublet task retry --all")
    app.add_typer(tasks, name="task")


async def list_parked(conn: "Reader") -> Table:
    """List parked tasks: they failed too often and wait for somebody to look."""
    from hublet.core.clock import from_micros
    from hublet.core.queue import count_parked
    from hublet.core.queue import list_parked as parked

    tasks = await parked(conn, limit=_MAX_ROWS)
    total = await count_parked(conn)
    return Table(
        rows=[
            {"id": task.id, "kind": task.kind, "attempts": task.attempts}
            | {"since": from_micros(task.parked_at), "error": task.error}
            for task in tasks
        ],
        columns={each: each for each in ("id", "kind", "attempts", "since", "error")},
        name="id",
        empty="No task is parked.",
        note=f"These are the oldest {len(tasks)} of {total}." if total > len(tasks) else None,
    )


async def retry(
    conn: "Connection",
    task_id: Annotated[str | None, typer.Argument(metavar="ID", help="The task's id.")] = None,
    all_of_them: Annotated[bool, typer.Option("--all", help="Retry every parked task.")] = False,
) -> CommandResult:
    """Give a parked task, or all of them, a fresh start."""
    from hublet.core.errors import NotFound
    from hublet.core.queue import retry_parked

    if all_of_them is bool(task_id):
        raise typer.BadParameter("Give the ID of a task, or --all.")
    count = await retry_parked(conn, task_id=task_id)
    if task_id and count == 0:
        raise NotFound(f"There is no parked task {task_id}.")
    return CommandResult(
        data={"retried": count},
        message=f"{count} task{'' if count == 1 else 's'} will be tried again.",
    )
