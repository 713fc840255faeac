"""Ways into attempts of this machine, each found once and used by many requests."""

import socket

from hublet.jobs.availability import Availability
from hublet.jobs.reaching.dialing.dialing import Dialer, NothingListens
from hublet.jobs.reaching.dialing.namespaces import NoWayIn
from hublet.jobs.reaching.errors import CannotEnter, Elsewhere, NobodyListens
from hublet.jobs.reaching.records import Reachable
from hublet.jobs.reaching.wire.upstream import Upstream, connect
from hublet.jobs.runners.records import Inside

_MOST_KEPT = 1000


class Ways:
    def __init__(self, availability: Availability) -> None:
        self._availability = availability
        self._dialer = Dialer()
        self._kept: dict[tuple[str, int], Inside] = {}

    async def connect(self, found: Reachable, port: int) -> Upstream:
        """Open a connection to a port of a job that runs here, or raise what is to be answered."""
        return await connect(await self._dial(found, port))

    def close(self) -> None:
        self._dialer.close()

    async def _dial(self, found: Reachable, port: int) -> socket.socket:
        try:
            return await self._dialer.dial(await self._inside(found), port)
        except NothingListens:
            self._kept.pop(found.place, None)
            raise NobodyListens(found.job.id, port) from None
        except NoWayIn as error:
            self._kept.pop(found.place, None)
            raise CannotEnter(found.job.id, str(error)) from None

    async def _inside(self, found: Reachable) -> Inside:
        kept = self._kept.get(found.place)
        if kept is not None and kept.process.lives():
            return kept
        inside = None
        if found.runner is not None and found.handle is not None:
            inside = await self._availability.inside(found.runner, found.handle)
        if inside is None:
            raise Elsewhere(found.job.id)
        if len(self._kept) >= _MOST_KEPT:
            self._kept.clear()
        self._kept[found.place] = inside
        return inside
