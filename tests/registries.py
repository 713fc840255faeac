"""Handlers, reactions and events that a test registers, and that nobody else shall meet."""

from collections.abc import Iterator
from contextlib import contextmanager

from hublet.core import outbox, queue
from hublet.core.outbox import Event


@contextmanager
def restored_registries() -> Iterator[None]:
    handlers = dict(queue.handlers)
    reactions = {kind: dict(named) for kind, named in outbox.reactions.items()}
    catalogue = dict(Event.catalogue)
    try:
        yield
    finally:
        for registry, before in (
            (queue.handlers, handlers),
            (outbox.reactions, reactions),
            (Event.catalogue, catalogue),
        ):
            registry.clear()
            registry.update(before)  # type: ignore[arg-type]
