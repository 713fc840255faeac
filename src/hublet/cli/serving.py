"""Commands that run the hub."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hublet.cli.local_hub import run_loop
from hublet.cli.options import NOT_GIVEN, AsJson, Config, DatabaseUrl, DataDir, load_settings
from hublet.cli.output import show_json

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from hublet.core.config import Settings
    from hublet.first_start import FirstAdministrator


FIRST_START_FILE = "first-administrator.json"


def register(app: typer.Typer) -> None:
    app.command("serve", epilog="Example: hublet serve --port 9000 --data-dir ./hub")(serve)
    app.command("worker", epilog="Example: hublet worker --database-url postgresql://hub@db/hub")(
        worker
    )
    app.command("migrate", epilog="Example: hublet migrate --database-url postgresql://hub@db/hub")(
        migrate
    )
    app.command("version", epilog="Example: hublet version --json", context_settings=NOT_GIVEN)(
        version
    )


Host = Annotated[str | None, typer.Option(help="The address to listen on.")]


def serve(
    *,
    host: Host = None,
    port: Annotated[int | None, typer.Option(help="The port; 0 takes any free one.")] = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    base_url: Annotated[
        str | None, typer.Option(help="What every link in an answer begins with.")
    ] = None,
    role: Annotated[
        str | None,
        typer.Option(help="What to run: api, worker, or both (all, the default)."),
    ] = None,
    processes: Annotated[
        str | None,
        typer.Option(help="Processes of the API behind the port, or auto; on PostgreSQL."),
    ] = None,
    test_mode: Annotated[
        bool | None,
        typer.Option("--test-mode", help="Loopback targets, quiet limits, movable clock."),
    ] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Start the hub: API and worker, in one process unless --processes says otherwise.

    The first start shows the administrator's password and token on a terminal; elsewhere they are in
    the file first-administrator.json in the data folder.
    """
    import gc
    from dataclasses import replace

    # Until the server answers nothing is garbage: without collections it starts in two thirds of
    # the time. `hublet.serving` enables them again.
    gc.disable()

    from hublet.core.startup import open_folder
    from hublet.gateway.ssh.listener import listen as listen_for_ssh
    from hublet.process_group import check_processes
    from hublet.serving import listen, port_of
    from hublet.serving import serve as run

    settings = load_settings(
        data_dir=data_dir,
        database_url=database_url,
        config=config,
        server__host=host,
        server__port=port,
        server__base_url=base_url,
        server__role=role,
        server__processes=processes,
        server__test_mode=test_mode,
    )
    _configure_logs(settings)
    check_processes(settings)
    open_folder(settings.database.data_dir)
    listeners = listen(settings.server.host, settings.server.port)
    server = replace(settings.server, port=port_of(listeners))
    settings = replace(settings, server=server)
    if server.role == "worker":
        _run_worker(settings, listeners, as_json=as_json)
        return
    ssh, settings = listen_for_ssh(settings)

    def when_ready(first: "FirstAdministrator | None") -> None:
        (_announce_as_json if as_json else _announce)(settings, first)

    if server.processes == 1:
        run_loop(run(settings, listeners, when_ready=when_ready, ssh=ssh))
    else:
        _serve_group(settings, listeners, ssh, when_ready)


def _serve_group(
    settings: "Settings",
    listeners: "list[socket.socket]",
    ssh: "socket.socket | None",
    when_ready: "Callable[[FirstAdministrator | None], None]",
) -> None:
    """Serve by several processes; this one is their parent, and each of them returns from `run`."""
    # Children share the memory of what their parent has imported.
    import hublet.app  # noqa: F401 - as above
    from hublet.process_group import ProcessGroup
    from hublet.serving import run_worker
    from hublet.serving import serve as run

    group = ProcessGroup(settings, when_ready=when_ready)
    member = group.run()
    if member is None:
        raise typer.Exit(group.exit_code)
    _configure_logs(settings, process=member.name)
    if member.role == "worker":
        for each in (*listeners, *([] if ssh is None else [ssh])):
            each.close()
        work = run_worker(settings, when_ready=lambda _: group.announce_ready(), member=member)
    else:
        work = run(settings, listeners, when_ready=group.announce_ready, ssh=ssh, member=member)
    run_loop(group.stop_with_parent(work))


def worker(
    *,
    host: Host = None,
    port: Annotated[
        int | None,
        typer.Option(help="Where /healthz, /readyz and /metrics answer; without it nowhere."),
    ] = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Run only a worker; any number may run beside the servers of one database."""
    from hublet.serving import listen

    settings = load_settings(
        data_dir=data_dir,
        database_url=database_url,
        config=config,
        server__host=host,
        server__port=port,
    )
    _configure_logs(settings)
    listeners = [] if port is None else listen(settings.server.host, settings.server.port)
    _run_worker(settings, listeners, as_json=as_json)


def _run_worker(settings: "Settings", listeners: "list[socket.socket]", *, as_json: bool) -> None:
    from hublet.serving import port_of, run_worker

    address = {} if not listeners else {"address": f"{settings.server.host}:{port_of(listeners)}"}

    def when_ready(name: str) -> None:
        if as_json:
            show_json({"worker": name, **address})
            sys.stdout.flush()
        else:
            told = "".join(f" Its health is at {each}." for each in address.values())
            typer.echo(f"Worker {name} is running.{told}")

    run_loop(run_worker(settings, when_ready=when_ready, listeners=listeners))


def migrate(
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Bring the database to this version's schema (serve and worker do it too)."""
    from hublet.core.database.migrations import migrate as apply
    from hublet.core.startup import open_hub

    settings = load_settings(data_dir=data_dir, database_url=database_url, config=config)
    _configure_logs(settings)

    async def run() -> list[str]:
        async with open_hub(settings) as database:
            return await apply(database)

    applied = run_loop(run())
    if as_json:
        show_json({"applied": applied})
    else:
        typer.echo(f"Applied: {', '.join(applied)}." if applied else "Nothing to do.")


def version(as_json: AsJson = False) -> None:
    """Print the version."""
    from hublet import __version__

    if as_json:
        show_json({"version": __version__})
    else:
        typer.echo(f"hublet {__version__}")


def _configure_logs(settings: "Settings", *, process: str | None = None) -> None:
    from hublet.core.logs import configure

    configure(settings.logs, prefix=settings.tokens.prefix, process=process)


def _announce(settings: "Settings", first: "FirstAdministrator | None") -> None:
    if first is not None:
        typer.echo(_first_start_text(settings, first))
    typer.echo(f"Hublet is ready at {settings.base_url} (stop with Ctrl+C).", err=True)
    if settings.server.test_mode:
        typer.echo(
            "TEST MODE: loopback targets are allowed, limits never refuse, and anybody can move "
            "the clock. Never use it for data that matters.",
            err=True,
        )


def _announce_as_json(settings: "Settings", first: "FirstAdministrator | None") -> None:
    announcement: dict[str, object] = {"address": settings.base_url}
    if first is not None and sys.stdout.isatty():
        announcement |= _first_start_fields(first)
    elif first is not None:
        file = _write_first_start(settings, first)
        announcement |= {"user": first.name, "firstAdministrator": str(file)}
    show_json(announcement)
    sys.stdout.flush()


def _first_start_text(settings: "Settings", first: "FirstAdministrator") -> str:
    """Return the secrets for a terminal; elsewhere a log would keep them, and a file gets them."""
    if sys.stdout.isatty():
        return _first_start_box(settings, first)
    return (
        f"The password and the token of {first.name}, the first administrator, are in "
        f"{_write_first_start(settings, first)}: keep them, and delete the file."
    )


def _first_start_fields(first: "FirstAdministrator") -> dict[str, str]:
    return {"user": first.name, "password": first.password, "token": first.token}


def _write_first_start(settings: "Settings", first: "FirstAdministrator") -> Path:
    """Write the secrets to a file that only its owner reads, and return its path."""
    import json
    import os

    file = settings.database.data_dir.absolute() / FIRST_START_FILE
    file.unlink(missing_ok=True)
    fields = {"address": settings.base_url, **_first_start_fields(first)}
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
        opened.write(json.dumps(fields, indent=2) + "\n")
    return file


def _first_start_box(settings: "Settings", first: "FirstAdministrator") -> str:
    """Return a box with the secrets of the first start, which are stored nowhere in plain text."""
    lines = [
        "Your hub is ready. This is shown once: keep it.",
        "",
        f"address   {settings.base_url}",
        f"user      {first.name}",
        f"password  {first.password}",
        f"token     {first.token}",
        "",
        "Try it:",
        f"  export HF_ENDPOINT={settings.base_url}",
        f"  export HF_TOKEN={first.token}",
        "  hf auth whoami",
    ]
    width = max(map(len, lines))
    body = [f"│ {line.ljust(width)} │" for line in lines]
    edge = "─" * (width + 2)
    box = "\n".join([f"╭{edge}╮", *body, f"╰{edge}╯"])
    return box if _is_encodable(box) else box.translate(_PLAIN_FRAME)


_PLAIN_FRAME = str.maketrans("╭╮╰╯─│", "++++-|")


def _is_encodable(text: str) -> bool:
    # A terminal may know only Latin-1, and a failure here would lose the secrets.
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
