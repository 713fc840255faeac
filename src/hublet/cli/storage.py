"""Commands for the storage: prune it, verify it, see who uses it, begin a new epoch, move it."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from hublet.cli.local_command import add_change_command, add_database_command, add_list_command
from hublet.cli.options import new_group
from hublet.cli.output import CommandResult, Table

if TYPE_CHECKING:
    from hublet.core.database import Connection, Database, Reader
    from hublet.repos.records import DamagedObject, StorageUsage
    from hublet.repos.scrubber import Scrubbed
    from hublet.storage.content_move import MovedContent

_MOST_LISTED = 1000
_UNIT = 1000


def register(app: typer.Typer) -> None:
    storage = new_group("Look after the storage of large files.")
    add_list_command(storage, "usage", list_usage, example="hublet storage usage ada")
    add_database_command(storage, "prune", prune, example="hublet storage prune --dry-run")
    add_database_command(storage, "verify", verify, example="hublet storage verify --all")
    add_change_command(storage, "new-epoch", begin_epoch, example="hublet storage new-epoch")
    add_database_command(storage, "move", move, example="hublet storage move --verify")
    app.add_typer(storage, name="storage")


async def list_usage(
    conn: "Reader",
    owner: Annotated[
        str | None, typer.Argument(metavar="OWNER", help="List the repositories of this owner.")
    ] = None,
) -> Table:
    """List how many bytes owners, or the repositories of one, hold and need at rest.

    Raw bytes are those of the content. Bytes at rest are stored when one repository of the owner
    needs them, and shared when several do.
    """
    from hublet.repos import usage_store

    if owner is None:
        owners = await usage_store.list_owners(conn)
        rows = [
            {"owner": name} | _usage(await usage_store.usage_of_owner(conn, owner_id))
            for owner_id, name in owners
        ]
        return _usage_table(rows, "owner", "Nobody has a repository.")
    repos = await usage_store.list_repos(conn, owner)
    rows = [{"type": each.type, "repository": each.name} | _usage(each.usage) for each in repos]
    return _usage_table(rows, "repository", f"{owner} has no repository.")


def _usage(usage: "StorageUsage") -> dict[str, object]:
    return {"raw": usage.raw, "stored": usage.stored, "shared": usage.shared}


def _usage_table(rows: list[dict[str, object]], name: str, empty: str) -> Table:
    columns = {each: each for each in (rows[0] if rows else ())}
    return Table(rows=rows, columns=columns, name=name, empty=empty)


async def prune(
    database: "Database",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count what would go, and leave it.")
    ] = False,
) -> CommandResult:
    """Remove now what nothing needs any more; a hub that runs does so every day.

    A dry run leaves out what interrupted uploads left, and lets others wait to write while it counts.
    """
    from hublet.repos import pruning

    pruned = await (pruning.preview(database) if dry_run else pruning.prune(database))
    verb = "Would free" if dry_run else "Freed"
    return CommandResult(
        data={
            "registrations": pruned.registrations,
            "blobs": pruned.blobs,
            "links": pruned.links,
            "xorbs": pruned.xorbs,
            "orphans": pruned.orphans,
            "interruptedBytes": pruned.interrupted_bytes,
            "freedBytes": pruned.freed_bytes,
        },
        message=f"{verb} {_size(pruned.freed_bytes)}: {pruned.blobs} blobs, {pruned.xorbs} xorbs, "
        f"{pruned.orphans} objects without a row, {_size(pruned.interrupted_bytes)} of interrupted "
        f"uploads; {pruned.registrations} uploads that nothing took, {pruned.links} links.",
    )


async def verify(
    database: "Database",
    everything: Annotated[
        bool, typer.Option("--all", help="Read everything, not only what was not read for a month.")
    ] = False,
) -> CommandResult:
    """Read objects at rest and compare them with their digests; exit with 1 if some are damaged.

    What another copy can heal is healed. A hub that runs reads a part of them every day.
    """
    from hublet.core.clock import now
    from hublet.repos import scrub_store, scrubber

    since = now() if everything else now() - scrubber.CHECK_AGE
    done = await scrubber.scrub(database, unchecked_since=since, on_progress=_show_progress)
    _end_progress()
    async with database.read() as conn:
        damaged = await scrub_store.list_damaged(conn, limit=_MOST_LISTED)
    return CommandResult(
        data={"objects": done.objects, "bytes": done.bytes, "healed": done.healed}
        | {"damaged": [_damaged_row(each) for each in damaged]},
        text="\n".join(map(_damaged_line, damaged)) or None,
        message=f"Read {done.objects} objects with {_size(done.bytes)}; {done.healed} were healed, "
        f"{len(damaged)} are damaged or missing.",
        failed=bool(damaged),
    )


def _damaged_row(each: "DamagedObject") -> dict[str, object]:
    return {
        "kind": each.kind,
        "digest": each.digest,
        "problem": each.problem,
        "foundAt": each.found_at,
        "repositories": list(each.repos),
    }


def _damaged_line(each: "DamagedObject") -> str:
    return f"{each.kind}/{each.digest} {each.problem}: {', '.join(each.repos) or 'no repository'}"


def _show_progress(done: "Scrubbed") -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{done.objects} objects, {_size(done.bytes)}")
        sys.stderr.flush()


def _end_progress() -> None:
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")


async def move(
    database: "Database",
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="FROM_URL",
            help="Where content comes from.",
            show_default="storage.previous_url",
        ),
    ] = None,
    verify_all: Annotated[
        bool, typer.Option("--verify", help="Read everything back from where it goes.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count what would be copied, and copy nothing.")
    ] = False,
) -> CommandResult:
    """Copy all content into the store that storage.url names, while the hub runs.

    It can be interrupted and started again: what was copied is not copied again. Exit with 1 if
    something is damaged; that is not copied.
    """
    import asyncio

    from hublet.core.clock import monotonic
    from hublet.core.config.kinds import STORAGE
    from hublet.runtime.supervisor.log_shipper import LogShipper
    from hublet.storage import content_move
    from hublet.storage.object_store import open_store_at

    settings = database.hub.settings
    try:
        origin = settings.storage.previous_url if source is None else STORAGE.read(source)
    except ValueError:
        raise typer.BadParameter(f"FROM_URL must be {STORAGE.words}.") from None
    if origin is None or origin == settings.storage.url:
        raise typer.BadParameter(
            "Name another store than storage.url, or set storage.previous_url."
        )
    if not dry_run:
        # Logs that are still files of this machine.
        await LogShipper(database).sweep()
    began_at = monotonic()
    moved = await asyncio.to_thread(
        content_move.copy_content,
        open_store_at(origin, settings.database.data_dir),
        open_store_at(settings.storage.url, settings.database.data_dir),
        verify=verify_all,
        dry_run=dry_run,
        on_progress=_show_move,
    )
    _end_progress()
    if not dry_run and not moved.damaged:
        async with database.transaction() as conn:
            await content_move.remember_end(conn, origin)
    speed = moved.copied_bytes / max(0.001, monotonic() - began_at)
    verb = "Would copy" if dry_run else "Copied"
    return CommandResult(
        data={
            "copied": moved.copied,
            "copiedBytes": moved.copied_bytes,
            "present": moved.present,
            "damaged": [f"{key.kind}/{key.name}" for key in moved.damaged],
        },
        text="\n".join(f"{key.kind}/{key.name} is damaged" for key in moved.damaged) or None,
        message=f"{verb} {moved.copied} objects with {_size(moved.copied_bytes)}"
        f"{'' if dry_run else f' ({_size(round(speed))} a second)'}; {moved.present} were there, "
        f"{len(moved.damaged)} are damaged.{_what_next(moved, dry_run=dry_run)}",
        failed=bool(moved.damaged),
    )


def _what_next(moved: "MovedContent", *, dry_run: bool) -> str:
    if dry_run or moved.damaged:
        return ""
    if moved.copied:
        return " Start it again when every node writes to the new store, until it copies nothing."
    return " Nothing is left: storage.previous_url can go."


def _show_move(moved: "MovedContent") -> None:
    if sys.stderr.isatty():
        sys.stderr.write(
            f"\r\x1b[K{moved.copied} objects copied, {_size(moved.copied_bytes)}; "
            f"{moved.present} were there"
        )
        sys.stderr.flush()


async def begin_epoch(conn: "Connection") -> CommandResult:
    """Make all clients forget which xorbs the hub has, as after a restore from a backup.

    Uploads that run fail and must be repeated. The next pruning removes unused xorbs at once,
    without waiting for the caches of clients to expire.
    """
    from hublet.storage.epochs import begin_epoch as begin

    epoch = await begin(conn)
    return CommandResult(
        data={"epoch": epoch},
        message=f"The storage is in epoch {epoch}: clients know nothing of what was uploaded before.",
    )


def _size(count: int) -> str:
    """Write a number of bytes with the unit that suits it."""
    size, units = float(count), ["bytes", "kB", "MB", "GB", "TB", "PB"]
    while size >= _UNIT and len(units) > 1:
        size /= _UNIT
        units.pop(0)
    return f"{count} bytes" if units[0] == "bytes" else f"{size:.1f} {units[0]}"
