"""Latencies as counts by length, so that a long run takes no more memory than a short one."""

from collections import Counter
from collections.abc import Iterable, Mapping

# Wide enough to stay small, narrow enough to tell 0.1 ms from 0.2 ms.
STEP_MICROS = 10


def merged(counts: Iterable[Mapping[int, int]]) -> Counter[int]:
    together: Counter[int] = Counter()
    for each in counts:
        together.update(each)
    return together


def percentile(counts: Mapping[int, int], share: float) -> float:
    """Return the milliseconds within which this share of the answers came."""
    rank = share * sum(counts.values())
    seen = 0
    for step in sorted(counts):
        seen += counts[step]
        if seen >= rank:
            return (step + 1) * STEP_MICROS / 1000
    raise ValueError("Nothing was counted.")


def percentile_of(seconds: Iterable[float], share: float) -> float:
    """Return the milliseconds within which this share of the moments passed."""
    return percentile(Counter(int(each * 1e6) // STEP_MICROS for each in seconds), share)
