"""What was measured, what it is held against, and what that comes to."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """The floor must be reached, the aim is hoped for; either may be missing."""

    floor: float | None = None
    aim: float | None = None
    more_is_better: bool
    of: Literal["ratio", "ours"]

    def verdict(self, figure: float) -> str:
        if self.floor is not None and not self._reached(figure, self.floor):
            return "below floor"
        if self.aim is not None and self._reached(figure, self.aim):
            return "aim reached"
        return "aim missed" if self.floor is None else "floor reached"

    def _reached(self, figure: float, mark: float) -> bool:
        return figure >= mark if self.more_is_better else figure <= mark


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table. There is one ratio for each round, ours over the other's."""

    subject: str
    unit: str
    ours: float
    other: float | None = None
    other_is: str = ""
    ratios: tuple[float, ...] = ()
    goal: Goal | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        return median(self.ratios) if self.ratios else None

    @property
    def verdict(self) -> str:
        """Judge the median; where single rounds would be judged otherwise, say so."""
        if self.goal is None:
            return ""
        if self.goal.of == "ours" or self.ratio is None:
            return self.goal.verdict(self.ours)
        told = self.goal.verdict(self.ratio)
        agreed = all(self.goal.verdict(ratio) == told for ratio in self.ratios)
        return told if agreed else f"{told}, unsure"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A subject that could not be measured, or whose answers were not all good."""

    subject: str
    reason: str


class Spoiled(Exception):
    """The measurement means nothing. The message says why, in one sentence."""


def compare(
    subject: str,
    *,
    ours: Sequence[float],
    other: Sequence[float],
    other_is: str,
    unit: str,
    goal: Goal | None = None,
) -> Row:
    """Hold the rounds against each other one by one: what disturbs a round disturbs both."""
    return Row(
        subject=subject,
        unit=unit,
        ours=median(ours),
        other=median(other),
        other_is=other_is,
        ratios=tuple(mine / theirs for mine, theirs in zip(ours, other, strict=True)),
        goal=goal,
    )
