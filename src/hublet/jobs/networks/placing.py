"""A place in a network for an attempt that is about to begin."""

from collections.abc import Iterator
from contextlib import contextmanager

from hublet.jobs.networks.ability import obstacle
from hublet.jobs.networks.joining import Networks, Place
from hublet.jobs.networks.records import NetworkFailed
from hublet.jobs.runners.identity import status_of
from hublet.jobs.runners.records import CannotRun, Order, TryLater


@contextmanager
def placed(networks: Networks | None, order: Order) -> Iterator[Place | None]:
    """Hold a place for an attempt until its shim does; None: it has no network of this kind.

    An attempt that does not begin leaves again. Raises CannotRun or TryLater.
    """
    is_needed = networks is not None and (order.group or networks.policy.outbound)
    if networks is None or not is_needed:
        yield None
        return
    place = _place_for(networks, order)
    try:
        yield place
    except BaseException:
        # A shim that took too long to answer may have begun all the same.
        if status_of(order.folder) is None:
            networks.leave(order.folder)
        raise
    finally:
        place.close()


def _place_for(networks: Networks, order: Order) -> Place:
    group = order.group
    names = (order.hostname, *(group.names if group else ()))
    try:
        return networks.join(order.folder, names=names, group=group.key if group else None)
    except (NetworkFailed, OSError) as error:
        if (reason := obstacle(networks.policy)) is not None:
            raise CannotRun(f"There are no networks for jobs here: {reason}.") from error
        raise TryLater(f"Its network could not be made: {error}.") from error
