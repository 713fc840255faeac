"""Whose turn it is."""

from collections import Counter

import pytest

from hublet.webhooks.delivery.lanes import LANE_ROOM, PER_HOST, PER_WEBHOOK, Lanes
from hublet.webhooks.records import ClaimedDelivery, OutgoingEvent
from webhooks.engine_rows import REPO

EVENT = OutgoingEvent(id="e" * 24, payload=b"{}", repo=REPO)


def a_delivery(
    webhook: str, number: int = 0, *, tries: int = 0, ping: bool = False
) -> ClaimedDelivery:
    return ClaimedDelivery(
        id=f"{webhook}{number}",
        webhook_id=webhook,
        event=EVENT,
        tries=tries,
        attempts=tries,
        ping=ping,
        due_at=0,
    )


def fill(lanes: Lanes, webhook: str, count: int, *, tries: int = 0, host: str = "") -> None:
    start = 1000 * tries
    for number in range(start, start + count):
        lanes.add(a_delivery(webhook, number, tries=tries), host=host or webhook)


def names(picked: list[ClaimedDelivery]) -> list[str]:
    return [each.id for each in picked]


def test_lanes_take_turns() -> None:
    lanes = Lanes(concurrency=5)
    for webhook, count in (("a", 9), ("b", 1), ("c", 2)):
        fill(lanes, webhook, count)
    assert names(lanes.pick()) == ["a0", "b0", "c0", "a1", "c1"]
    assert (lanes.in_flight, lanes.queued) == (5, 7)


def test_the_next_round_begins_where_the_last_one_ended() -> None:
    lanes = Lanes(concurrency=1)
    for webhook in "abc":
        fill(lanes, webhook, 2)
    order = []
    for _ in range(6):
        [each] = lanes.pick()
        order.append(each.id)
        lanes.release(each)
    assert order == ["a0", "b0", "c0", "a1", "b1", "c1"]
    assert lanes.is_idle


def test_a_webhook_has_at_most_its_share_in_flight() -> None:
    lanes = Lanes(concurrency=100)
    fill(lanes, "a", 20)
    picked = lanes.pick()
    assert len(picked) == PER_WEBHOOK
    assert lanes.pick() == []
    lanes.release(picked[0])
    assert names(lanes.pick()) == [f"a{PER_WEBHOOK}"]


def test_a_host_has_at_most_its_share_in_flight_and_its_lanes_take_turns() -> None:
    lanes = Lanes(concurrency=100)
    for webhook in "abcd":
        fill(lanes, webhook, 8, host="one")
    fill(lanes, "e", 8, host="two")
    picked = lanes.pick()
    assert Counter(each.webhook_id for each in picked) == dict.fromkeys("abcd", 4) | {"e": 8}
    assert PER_HOST == 16
    for each in picked:
        lanes.release(each)
    again = lanes.pick()
    assert Counter(each.webhook_id for each in again) == dict.fromkeys("abcd", 4)


def test_a_full_host_calls_the_next_lane_when_it_has_room() -> None:
    lanes = Lanes(concurrency=100)
    for webhook in "abc":
        fill(lanes, webhook, 8, host="one")
    picked = lanes.pick()
    lanes.shut("a")
    for each in picked:
        lanes.release(each)
    left = lanes.pick()
    while left:
        for each in left:
            assert each.webhook_id in "bc"
            lanes.release(each)
        left = lanes.pick()
    assert lanes.is_idle


def test_retries_never_take_the_share_of_first_attempts() -> None:
    lanes = Lanes(concurrency=8)
    for webhook in "abcdefgh":
        fill(lanes, webhook, 4, tries=1)
    assert len(lanes.pick()) == 6
    fill(lanes, "z", 4)
    assert names(lanes.pick()) == ["z0", "z1"]


def test_a_single_slot_serves_retries_too() -> None:
    lanes = Lanes(concurrency=1)
    fill(lanes, "a", 1, tries=1)
    assert names(lanes.pick()) == ["a1000"]


def test_in_a_lane_every_fourth_turn_is_a_retrys() -> None:
    lanes = Lanes(concurrency=4)
    fill(lanes, "a", 8)
    fill(lanes, "a", 8, tries=1)
    assert names(lanes.pick()) == ["a0", "a1", "a2", "a1000"]


def test_a_lane_that_is_shut_gives_back_what_waits_and_lets_only_urgent_ones_through() -> None:
    lanes = Lanes(concurrency=8)
    fill(lanes, "a", 2)
    fill(lanes, "a", 1, tries=1)
    assert names(lanes.shut("a")) == ["a0", "a1", "a1000"]
    fill(lanes, "a", 1)
    lanes.add(a_delivery("a", 7), host="a", urgent=True)
    assert names(lanes.pick()) == ["a7"]
    assert lanes.room_for("a") == 0
    assert lanes.full() == ["a"]
    lanes.open("a")
    lanes.release(a_delivery("a", 7))
    assert names(lanes.pick()) == ["a0"]
    assert lanes.room_for("a") == LANE_ROOM


def test_a_lane_that_fails_again_and_again_waits_for_the_judgement() -> None:
    lanes = Lanes(concurrency=1)
    fill(lanes, "a", 9)
    for number in range(4):
        [each] = lanes.pick()
        assert each.id == f"a{number}"
        lanes.release(each, failed=True)
    assert lanes.pick() == []
    lanes.open("a")
    assert names(lanes.pick()) == ["a4"]


def test_a_success_between_failures_lets_a_lane_go_on() -> None:
    lanes = Lanes(concurrency=1)
    fill(lanes, "a", 9)
    for failed in (True, True, True, False, True, True, True):
        [each] = lanes.pick()
        lanes.release(each, failed=failed)
    assert names(lanes.pick()) == ["a7"]


def test_room_is_bounded_in_all_and_for_each_webhook() -> None:
    lanes = Lanes(concurrency=256)
    assert (lanes.room, lanes.room_for("a")) == (1024, LANE_ROOM)
    fill(lanes, "a", LANE_ROOM)
    assert lanes.full() == ["a"]
    assert (lanes.room, lanes.room_for("a"), lanes.room_for("b")) == (896, 0, LANE_ROOM)
    for each in lanes.pick():
        lanes.release(each)
    assert lanes.full() == []
    assert lanes.room_for("a") == PER_WEBHOOK


def test_what_stands_behind_slow_targets_keeps_nobody_else_out() -> None:
    lanes = Lanes(concurrency=256)
    for number in range(8):
        fill(lanes, f"slow{number}-", LANE_ROOM)
    assert lanes.room == 0, "All of it may still go."
    assert len(lanes.pick()) == 8 * PER_WEBHOOK
    assert (lanes.has_idle_slots, lanes.room) == (True, 512)
    fill(lanes, "slow8-", LANE_ROOM)
    lanes.pick()
    assert (lanes.room, lanes.room_for("healthy")) == (512, 2 * PER_WEBHOOK)
    fill(lanes, "healthy", 2 * PER_WEBHOOK)
    assert {each.webhook_id for each in lanes.pick()} == {"healthy"}


def test_the_last_slots_are_for_lanes_with_little_in_flight() -> None:
    lanes = Lanes(concurrency=32)
    for webhook in "abcdefgh":
        fill(lanes, webhook, 8)
    assert len(lanes.pick()) == 30
    fill(lanes, "z", 8)
    assert names(lanes.pick()) == ["z0", "z1"]


def test_what_was_put_back_is_next() -> None:
    lanes = Lanes(concurrency=1)
    fill(lanes, "a", 2)
    [picked] = lanes.pick()
    lanes.put_back(picked)
    assert (lanes.in_flight, lanes.queued) == (0, 2)
    assert names(lanes.pick()) == ["a0"]


def test_draining_leaves_only_what_is_in_flight() -> None:
    lanes = Lanes(concurrency=1)
    fill(lanes, "a", 3)
    lanes.add(a_delivery("b", ping=True), host="b", urgent=True)
    picked = lanes.pick()
    assert names(lanes.drain()) == ["a1", "a2", "b0"]
    assert (lanes.in_flight, lanes.queued) == (1, 0)
    assert lanes.pick() == []
    lanes.release(picked[0])
    assert lanes.is_idle


@pytest.mark.parametrize("tries", [0, 1])
def test_a_lane_that_did_its_work_is_forgotten(tries: int) -> None:
    lanes = Lanes(concurrency=4)
    fill(lanes, "a", 3, tries=tries)
    while picked := lanes.pick():
        for each in picked:
            lanes.release(each)
    assert lanes._lanes == {}  # noqa: SLF001 - nothing may stay behind.


def test_there_is_no_room_while_every_slot_is_used() -> None:
    lanes = Lanes(concurrency=PER_WEBHOOK)
    fill(lanes, "busy", lanes.most)
    assert (lanes.has_idle_slots, lanes.room) == (False, 0)
    lanes.pick()
    assert (lanes.has_idle_slots, lanes.room) == (False, 0)
