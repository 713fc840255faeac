"""A hub for the length of a block."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from hublet.testing.hub import Hub
from hublet.testing.process import HubProcess, Port


@contextmanager
def running_hub(
    settings: Mapping[str, object] | None = None, *, database_url: str | None = None
) -> Iterator[Hub]:
    """Run a hub in a process of its own, with settings by their keys in the settings file.

    `database_url` names a PostgreSQL server by any database on it; the hub makes one of its own
    there, and drops it in the end.
    """
    process = HubProcess(Port())
    try:
        process.start(settings or {}, database_url=database_url)
        yield Hub(process)
    finally:
        process.stop()
