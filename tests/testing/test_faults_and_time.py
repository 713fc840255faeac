"""What a test makes go wrong, and the time it lets pass."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import httpx2
import pytest
from huggingface_hub import HfApi

from hublet.testing import Hub, Receiver
from patience import SOON_SECONDS


@pytest.fixture
def http(hub: Hub) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=hub.url, trust_env=False, timeout=SOON_SECONDS) as http:
        yield http


def statuses(http: httpx2.Client, *paths: str) -> list[int]:
    return [http.get(path).status_code for path in paths]


def test_the_next_requests_fail_and_then_no_more(hub: Hub, http: httpx2.Client) -> None:
    hub.fail_next(503, times=2, retry_after=7, headers={"X-Why": "test"})

    first = http.get("/healthz")

    assert (first.status_code, first.headers["retry-after"]) == (503, "7")
    assert first.headers["x-why"] == "test"
    assert first.headers["x-request-id"]
    assert first.json() == {"error": "The hub is in test mode, and was asked to fail here."}
    assert statuses(http, "/healthz", "/healthz") == [503, 200]


def test_only_requests_that_fit_fail(hub: Hub, http: httpx2.Client) -> None:
    hub.fail_next(500, path="/api/models*", method="GET")
    hub.fail_next(429, path="/readyz")

    assert statuses(http, "/healthz", "/readyz", "/api/models", "/api/models") == [
        200, 429, 500, 200,
    ]  # fmt: skip


def test_the_test_itself_is_never_hit(hub: Hub, http: httpx2.Client) -> None:
    hub.fail_next(500, times=3)

    ada = hub.user("ada")

    assert hub.inbox(ada) == []
    assert statuses(http, "/healthz") == [500]


def test_a_slow_answer_is_right_in_the_end(hub: Hub, http: httpx2.Client) -> None:
    hub.slow_next(0.3, path="/healthz")

    slow = http.get("/healthz")

    assert slow.status_code == 200
    assert slow.elapsed >= timedelta(seconds=0.3)


def test_the_public_client_tries_again(hub: Hub) -> None:
    api = HfApi(endpoint=hub.url, token=hub.user("ada").token)
    api.create_repo("ada/engine")
    hub.fail_next(503, path="*/preupload/*")

    api.upload_file(path_or_fileobj=b"coal", path_in_repo="coal.txt", repo_id="ada/engine")

    assert api.file_exists("ada/engine", "coal.txt")


def test_hours_pass_in_no_time_and_retries_come_one_by_one(hub: Hub, receiver: Receiver) -> None:
    api = HfApi(endpoint=hub.url, token=hub.user("ada").token)
    watched = {"type": "user", "name": "ada"}
    webhook = api.create_webhook(url=receiver.url, watched=[watched], domains=["repo"])
    receiver.answer_with(500, times=4)
    api.create_repo("ada/engine")
    begun = hub.clock.now()

    # After 5 seconds, 30 seconds, 5 minutes and 30 minutes, each a fifth more or less.
    reached = hub.clock.forward(hours=1)

    [delivery] = hub.webhooks.deliveries(webhook.id)
    times = [datetime.fromisoformat(each["startedAt"]) for each in delivery["attemptLog"]]
    waits = [round((b - a).total_seconds()) for a, b in pairwise(times)]
    assert delivery["state"] == "delivered"
    planned = [5, 30, 300, 1800]
    # The machine may be slow; the clock goes on meanwhile.
    assert all(0.8 * p - 1 <= w <= 1.2 * p + 20 for w, p in zip(waits, planned, strict=True))
    assert timedelta(hours=1) <= reached - begun < timedelta(hours=1, seconds=30)
    assert [each.headers["x-webhook-attempt"] for each in receiver.deliveries] == list("12345")


def test_the_clock_is_set_and_turned_back(hub: Hub) -> None:
    later = datetime(2030, 1, 1, tzinfo=UTC)

    assert timedelta() <= hub.clock.set(later) - later < timedelta(seconds=30)
    earlier = later - timedelta(days=300)
    assert timedelta() <= hub.clock.set(earlier) - earlier < timedelta(seconds=30)


def test_time_needs_a_zone_and_passes_forward(hub: Hub) -> None:
    with pytest.raises(ValueError, match="needs a time zone"):
        hub.clock.set(datetime(2030, 1, 1))  # noqa: DTZ001 - it is refused
    with pytest.raises(ValueError, match="forward only"):
        hub.clock.forward(hours=-1)
