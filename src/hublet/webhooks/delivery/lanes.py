"""Lanes: one queue per webhook, served in turn, so that a slow or dead target delays no other."""

from collections import Counter, deque
from dataclasses import dataclass, field

from hublet.webhooks.delivery.health import DEGRADED_AFTER
from hublet.webhooks.records import ClaimedDelivery

PER_WEBHOOK = 8
PER_HOST = 16
# How many claimed deliveries a lane queues; the rest stays in the database.
LANE_ROOM = 128
# One of four attempts is reserved for deliveries that were never tried.
_RETRY_SHARE = 0.75
_FEW = 2


@dataclass(slots=True)
class _Lane:
    webhook_id: str
    host: str | None = None
    # Pings and probes: they are also sent when the lane is shut.
    urgent: deque[ClaimedDelivery] = field(default_factory=deque)
    first: deque[ClaimedDelivery] = field(default_factory=deque)
    retries: deque[ClaimedDelivery] = field(default_factory=deque)
    in_flight: int = 0
    shut: bool = False
    # Failures in a row that are not judged yet; after a few the lane waits for the judgement.
    failing: int = 0
    in_rotation: bool = False
    turns: int = 0

    @property
    def queued(self) -> int:
        return len(self.urgent) + len(self.first) + len(self.retries)

    @property
    def is_idle(self) -> bool:
        return not self.in_flight and not self.queued

    def next_queue(self, *, retries_may: bool) -> deque[ClaimedDelivery] | None:
        """Return the queue of the next delivery, or None while none may be sent."""
        if self.urgent:
            return self.urgent
        if self.shut or self.failing >= DEGRADED_AFTER or not (self.first or self.retries):
            return None
        # In its own lane a retry must not wait for ever behind what arrives.
        prefers_retry = self.turns % 4 == 3  # noqa: PLR2004 - every fourth turn.
        if self.retries and retries_may and (prefers_retry or not self.first):
            return self.retries
        return self.first or None


class Lanes:
    """Claimed deliveries: queued by webhook, picked in turn, counted while in flight."""

    def __init__(self, *, concurrency: int) -> None:
        self._concurrency = concurrency
        # How many are claimed at most: so many that no slot waits for the database.
        self.most = 4 * concurrency
        self._most_retries = max(1, int(concurrency * _RETRY_SHARE))
        # The last slots are reserved for lanes that have next to nothing in flight.
        self._reserve = concurrency // 16
        self._lanes: dict[str, _Lane] = {}
        self._rotation: deque[_Lane] = deque()
        self._by_host: Counter[str] = Counter()
        # Lanes that wait until their host has room, each in its turn.
        self._at_host: dict[str, deque[_Lane]] = {}
        self._sent: dict[str, tuple[_Lane, str | None, bool]] = {}
        self._retries = 0
        self.queued = 0

    @property
    def in_flight(self) -> int:
        return len(self._sent)

    @property
    def is_idle(self) -> bool:
        return not self._sent and not self.queued

    @property
    def has_idle_slots(self) -> bool:
        """Whether more could be sent at once than the queued deliveries allow."""
        ready = sum(lane.queued for lane in self._rotation)
        return len(self._sent) + ready < self._concurrency

    @property
    def room(self) -> int:
        """How many more may be claimed; what waits for slow targets excludes no others."""
        room = max(0, self.most - self.queued - len(self._sent))
        return max(room, self.most // 2) if self.has_idle_slots else room

    @property
    def _lane_room(self) -> int:
        return LANE_ROOM if self.queued < self.most else 2 * PER_WEBHOOK

    def room_for(self, webhook_id: str) -> int:
        lane = self._lanes.get(webhook_id)
        if lane is None:
            return self._lane_room
        return 0 if lane.shut else max(0, self._lane_room - lane.queued)

    def full(self) -> list[str]:
        """Return the lanes that accept nothing more now: full ones, and those being probed."""
        most = self._lane_room
        return [
            webhook_id
            for webhook_id, lane in self._lanes.items()
            if (lane.shut and not lane.is_idle) or lane.queued >= most
        ]

    def add(self, delivery: ClaimedDelivery, *, host: str | None, urgent: bool = False) -> None:
        lane = self._lanes.get(delivery.webhook_id)
        if lane is None:
            lane = self._lanes[delivery.webhook_id] = _Lane(delivery.webhook_id)
        lane.host = host
        queue = lane.urgent if urgent else lane.retries if delivery.is_retry else lane.first
        queue.append(delivery)
        self.queued += 1
        self._enter(lane)

    def shut(self, webhook_id: str) -> list[ClaimedDelivery]:
        """Send only probes from now on; return what was queued, to be released."""
        lane = self._lanes.setdefault(webhook_id, _Lane(webhook_id))
        lane.shut = True
        lane.failing = 0
        waiting = [*lane.first, *lane.retries]
        lane.first.clear()
        lane.retries.clear()
        self.queued -= len(waiting)
        return waiting

    def open(self, webhook_id: str) -> None:
        lane = self._lanes.get(webhook_id)
        if lane is not None:
            lane.shut = False
            lane.failing = 0
            self._enter(lane)
            self._forget_if_idle(lane)

    def pick(self) -> list[ClaimedDelivery]:
        """Pick as many as may be sent now, one from each lane in turn; each must be released."""
        picked: list[ClaimedDelivery] = []
        passed_over = 0
        unreserved = self._concurrency - self._reserve
        while passed_over < len(self._rotation) and len(self._sent) < self._concurrency:
            lane = self._rotation.popleft()
            if self._waits_for_host(lane):
                continue
            lane.in_rotation = False
            queue = lane.next_queue(retries_may=self._retries < self._most_retries)
            if queue and (lane.in_flight < _FEW or len(self._sent) < unreserved):
                picked.append(self._send(lane, queue.popleft()))
                passed_over = 0
            else:
                passed_over += 1
            self._enter(lane)
            self._forget_if_idle(lane)
        return picked

    def release(self, delivery: ClaimedDelivery, *, failed: bool = False) -> None:
        lane, host, retry = self._sent.pop(delivery.id)
        lane.in_flight -= 1
        lane.failing = lane.failing + 1 if failed else 0
        self._retries -= retry
        if host is not None:
            self._leave_host(host)
        self._enter(lane)
        self._forget_if_idle(lane)

    def put_back(self, delivery: ClaimedDelivery) -> None:
        """Undo a pick: the delivery is again the next of its lane."""
        lane = self._sent[delivery.id][0]
        self.release(delivery)
        self._lanes[lane.webhook_id] = lane
        lane.urgent.appendleft(delivery)
        self.queued += 1
        self._enter(lane)

    def drain(self) -> list[ClaimedDelivery]:
        """Take out everything that is not in flight."""
        waiting: list[ClaimedDelivery] = []
        for lane in self._lanes.values():
            waiting += [*lane.urgent, *lane.first, *lane.retries]
            lane.urgent.clear()
            lane.first.clear()
            lane.retries.clear()
        self.queued = 0
        return waiting

    def _waits_for_host(self, lane: _Lane) -> bool:
        """Let a lane wait for its host when that is full; it is still in rotation."""
        if lane.host is None or self._by_host[lane.host] < PER_HOST:
            return False
        self._at_host.setdefault(lane.host, deque()).append(lane)
        return True

    def _leave_host(self, host: str) -> None:
        self._by_host[host] -= 1
        if waiting := self._at_host.get(host):
            self._rotation.append(waiting.popleft())
        if not self._by_host[host]:
            del self._by_host[host]
            # A lane that was put back may have had nothing to send, and then wakes no other.
            self._rotation.extend(self._at_host.pop(host, ()))

    def _send(self, lane: _Lane, delivery: ClaimedDelivery) -> ClaimedDelivery:
        lane.in_flight += 1
        lane.turns += 1
        self.queued -= 1
        self._retries += delivery.is_retry
        if lane.host is not None:
            self._by_host[lane.host] += 1
        self._sent[delivery.id] = (lane, lane.host, delivery.is_retry)
        return delivery

    def _enter(self, lane: _Lane) -> None:
        if not lane.in_rotation and lane.queued and lane.in_flight < PER_WEBHOOK:
            lane.in_rotation = True
            self._rotation.append(lane)

    def _forget_if_idle(self, lane: _Lane) -> None:
        # A lane that is shut is remembered: what arrives for it must wait.
        if lane.is_idle and not lane.shut and not lane.in_rotation:
            self._lanes.pop(lane.webhook_id, None)
