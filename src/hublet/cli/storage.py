"""Commands for the storage: prune, verify and move it, see who uses it; save a hub and restore it."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from hublet.cli.local_command import add_change_command, add_database_command, add_list_command
from hublet.cli.local_hub import run_loop
from hublet.cli.options import AsJson, Config, DatabaseUrl, DataDir, load_settings, new_group
from hublet.cli.output import CommandResult, Table, format_size, say, show

if TYPE_CHECKING:
    from hublet.backups import BackupSummary
    from hublet.core.database import Connection, Database, Reader
    from hublet.repos.records import DamagedObject, StorageUsage
    from hublet.repos.scrubber import Scrubbed
    from hublet.storage.content_move import MovedContent

Location = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="A file, or s3://bucket/name?endpoint=…; what ends in .gz is compressed.",
    ),
]
_MOST_LISTED = 1000


def register(app: typer.Typer) -> None:
    storage = new_group("Look after the storage of large files.")
    add_list_command(storage, "usage", list_usage, example="hublet storage usage ada")
    add_database_command(storage, "prune", prune, example="hublet storage prune --dry-run")
    add_database_command(storage, "verify", verify, example="hublet storage verify --all")
    add_change_command(storage, "new-epoch", begin_epoch, example="hublet storage new-epoch")
    add_database_command(storage, "move", move, example="hublet storage move --verify")
    app.add_typer(storage, name="storage")
    add_database_command(app, "backup", backup, example="hublet backup /mnt/backups/hub.tar")
    app.command("restore", epilog="Example: hublet restore hub.tar --data-dir ./restored")(restore)


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
        message=f"{verb} {format_size(pruned.freed_bytes)}: {pruned.blobs} blobs, {pruned.xorbs} xorbs, "
        f"{pruned.orphans} objects without a row, {format_size(pruned.interrupted_bytes)} of interrupted "
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
        message=f"Read {done.objects} objects with {format_size(done.bytes)}; {done.healed} were healed, "
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
        sys.stderr.write(f"\r\x1b[K{done.objects} objects, {format_size(done.bytes)}")
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
    from hublet.repos.packs import migration
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
    repositories = 0 if dry_run else await migration.move_all(database)
    if not dry_run and not moved.damaged:
        async with database.transaction() as conn:
            await content_move.remember_end(conn, origin)
    speed = moved.copied_bytes / max(0.001, monotonic() - began_at)
    verb = "Would copy" if dry_run else "Copied"
    return CommandResult(
        data={
            "repositories": repositories,
            "copied": moved.copied,
            "copiedBytes": moved.copied_bytes,
            "present": moved.present,
            "damaged": [f"{key.kind}/{key.name}" for key in moved.damaged],
        },
        text="\n".join(f"{key.kind}/{key.name} is damaged" for key in moved.damaged) or None,
        message=f"{verb} {moved.copied} objects with {format_size(moved.copied_bytes)}"
        f"{'' if dry_run else f' ({format_size(round(speed))} a second)'}; {moved.present} were there, "
        f"{len(moved.damaged)} are damaged. {repositories} repositories were moved."
        f"{_what_next(moved, repositories, dry_run=dry_run)}",
        failed=bool(moved.damaged),
    )


def _what_next(moved: "MovedContent", repositories: int, *, dry_run: bool) -> str:
    if dry_run or moved.damaged:
        return ""
    if moved.copied or repositories:
        return " Start it again when every node writes to the new store, until it copies nothing."
    return " Nothing is left: storage.previous_url can go."


def _show_move(moved: "MovedContent") -> None:
    if sys.stderr.isatty():
        sys.stderr.write(
            f"\r\x1b[K{moved.copied} objects copied, {format_size(moved.copied_bytes)}; "
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


async def backup(
    database: "Database",
    location: Location,
    without_keys: Annotated[
        bool,
        typer.Option("--without-keys", help="Leave out the key ring and hublet.toml: keep them."),
    ] = False,
    without_content: Annotated[
        bool,
        typer.Option(
            "--without-content", help="Leave out repositories and large files: save them yourself."
        ),
    ] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Read it back and compare.")] = False,
) -> CommandResult:
    """Save the whole hub in one file, while it runs: database, content, logs and keys.

    The file holds the keys unless they are left out: whoever has it has every secret of the hub.
    """
    from hublet import backups

    choice = backups.BackupChoice(keys=not without_keys, content=not without_content)
    summary = await backups.back_up(database, location, choice, _show_members)
    if verify:
        await backups.verify(location, _show_members)
    _end_progress()
    if summary.has_keys:
        say("The backup holds the keys of the hub: keep it as secret as they are.")
    if summary.damaged:
        say(f"Damaged before the backup was made: {', '.join(summary.damaged)}.")
    return CommandResult(
        data=_backup_row(summary),
        message=f"Saved {_describe_backup(summary)}{', and read it back' if verify else ''}.",
        failed=bool(summary.damaged),
    )


def restore(
    location: Location,
    *,
    check: Annotated[
        bool, typer.Option("--check", help="Only read the backup and say what is in it.")
    ] = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Make a hub from a backup, in an empty folder and, on PostgreSQL, an empty database.

    Everything is verified before the database gets its first row. A backup of a hub on SQLite can be
    restored on PostgreSQL, and the other way round.
    """
    from hublet import backups
    from hublet.core.logs import configure
    from hublet.restore import restore as restore_hub

    settings = load_settings(data_dir=data_dir, database_url=database_url, config=config)
    configure(settings.logs, prefix=settings.tokens.prefix)
    work = (
        backups.verify(location, _show_members)
        if check
        else restore_hub(settings, location, _show_members)
    )
    summary = run_loop(work)
    _end_progress()
    done = "The backup is whole: it has" if check else "Restored"
    after = "" if check else " Start it with `hublet serve`."
    show(
        CommandResult(
            data=_backup_row(summary), message=f"{done} {_describe_backup(summary)}.{after}"
        ),
        as_json=as_json,
    )


def _backup_row(summary: "BackupSummary") -> dict[str, object]:
    return {
        "createdAt": summary.created_at,
        "version": summary.version,
        "engine": summary.engine,
        "schema": summary.schema,
        "rows": summary.rows,
        "members": summary.members,
        "bytes": summary.bytes,
        "keys": summary.has_keys,
        "content": summary.has_content,
        "damaged": list(summary.damaged),
    }


def _describe_backup(summary: "BackupSummary") -> str:
    without = [
        word
        for word, is_there in (("keys", summary.has_keys), ("content", summary.has_content))
        if not is_there
    ]
    rest = f", without {' and '.join(without)}" if without else ""
    return (
        f"{summary.rows} rows and {summary.members} members with {format_size(summary.bytes)}, of "
        f"{summary.created_at[:19]} UTC, schema {summary.schema}{rest}"
    )


def _show_members(members: int, size: int) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{members} members, {format_size(size)}")
        sys.stderr.flush()
