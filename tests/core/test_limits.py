"""Rate limits: windows, headers, bounded memory."""

import pytest

from hublet.core import limits
from hublet.core.errors import TooManyRequests
from hublet.core.hub import ProcessState
from hublet.core.limits import Limiter, RateLimit, raise_when_exceeded, share_of

POLICY = RateLimit(name="api", quota=2, window_seconds=300)


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that the test sets."""
    seconds = [1000.0]
    monkeypatch.setattr(limits, "monotonic", lambda: seconds[0])
    return seconds


def test_the_quota_is_counted_down_and_then_refused(seconds: list[float]) -> None:
    limiter = Limiter()

    verdicts = [limiter.count(POLICY, "ada") for _ in range(3)]

    assert [v.allowed for v in verdicts] == [True, True, False]
    assert [v.remaining for v in verdicts] == [1, 0, 0]


def test_a_new_window_starts_afresh(seconds: list[float]) -> None:
    limiter = Limiter()
    for _ in range(3):
        limiter.count(POLICY, "ada")

    seconds[0] += 300

    assert limiter.count(POLICY, "ada").remaining == 1


def test_callers_and_policies_do_not_share_a_quota(seconds: list[float]) -> None:
    limiter = Limiter()
    other = RateLimit(name="revoke", quota=2, window_seconds=300)

    assert limiter.count(POLICY, "ada").remaining == 1
    assert limiter.count(POLICY, "bob").remaining == 1
    assert limiter.count(other, "ada").remaining == 1


def test_a_refusal_tells_when_to_come_back(seconds: list[float]) -> None:
    limiter = Limiter()
    for _ in range(2):
        limiter.count(POLICY, "ada")
    seconds[0] += 100.5

    with pytest.raises(TooManyRequests) as refusal:
        raise_when_exceeded(limiter.count(POLICY, "ada"))

    assert refusal.value.message == (
        "Too many requests: 2 are allowed in 300 seconds; try again in 200 seconds."
    )
    # The forms that the public client reads; client contract 0.4.
    assert refusal.value.headers == {
        "Retry-After": "200",
        "RateLimit": '"api";r=0;t=200',
        "RateLimit-Policy": '"fixed window";"api";q=2;w=300',
    }


def test_a_quiet_limiter_counts_but_never_refuses(seconds: list[float]) -> None:
    limiter = Limiter(quiet=True)

    verdicts = [limiter.count(POLICY, "ada") for _ in range(5)]

    assert all(v.allowed for v in verdicts)
    assert verdicts[-1].remaining == 0


def test_memory_is_bounded_and_the_idle_are_forgotten_first(
    seconds: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "_MOST_KEYS", 2)
    limiter = Limiter()
    for key in ("ada", "bob", "ada", "eve"):
        limiter.count(POLICY, key)

    assert limiter.count(POLICY, "ada").allowed is False
    assert limiter.count(POLICY, "bob").remaining == 1


def test_a_count_can_be_taken_back(seconds: list[float]) -> None:
    limiter = Limiter()
    limiter.count(POLICY, "ada")

    limiter.refund(POLICY, "ada")
    limiter.refund(POLICY, "ada")
    limiter.refund(POLICY, "nobody")

    assert limiter.count(POLICY, "ada").remaining == 1


@pytest.mark.parametrize(
    ("quota", "processes"), [(10, 1), (10, 2), (10, 4), (11, 3), (10, 20), (3000, 64)]
)
def test_processes_together_allow_a_quota_and_at_most_twice_of_it(
    quota: int, processes: int, seconds: list[float]
) -> None:
    state = ProcessState()
    state.api_processes = processes
    policy = RateLimit(name="api", quota=quota, window_seconds=60)
    limiters = [Limiter(process=state) for _ in range(processes)]

    allowed = sum(
        limiter.count(policy, "ada").allowed for limiter in limiters for _ in range(quota + 1)
    )

    assert quota <= allowed <= 2 * quota


def test_a_running_window_shrinks_when_another_process_joins(seconds: list[float]) -> None:
    state, policy = ProcessState(), RateLimit(name="api", quota=30, window_seconds=60)
    limiter = Limiter(process=state)
    for _ in range(20):
        limiter.count(policy, "ada")

    state.api_processes = 2

    assert not limiter.count(policy, "ada").allowed
    assert share_of(30, processes=2) == 20
