"""Plots as paths of SVG, computed on the server: lines over time with a limit, bars, histograms, sparks."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from hublet.core.dataclasses import dataclass
from hublet.core.pages import count_text

if TYPE_CHECKING:
    from hublet.sql.schemas import ColumnStatistics, HistogramBin

WIDTH = 300
SPARK_HEIGHT = 44
PLOT_HEIGHT = 88
# The stroke of a line needs room above the highest and below the lowest value.
_MARGIN = 2
_PLOT_MARGIN = 8
_MOST_POINTS = 240
# Points so many times further apart than usual have nothing between them.
_GAP = 4
# Also one delivery among a million is seen.
_LEAST_BAR = 2
_BAR_SHARE = 0.75
# Of a value or the name of a column.
_MAX_TEXT = 60
_MOST_TOP = 6

Points = Sequence[tuple[datetime, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Values over time, oldest first; `tone` is "", "ok", "warn" or "bad"."""

    label: str
    points: Points
    tone: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotLine:
    label: str
    tone: str
    path: str
    # The surface below the line; empty where several lines would hide each other.
    area: str
    # Its last and its highest value, as people read them.
    last: str
    highest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """What the macro `ui.plot` draws, 300 by 88."""

    title: str
    lines: tuple[PlotLine, ...]
    start: datetime
    end: datetime
    # The limit in words, and how far from the top its line is.
    limit: str | None
    limit_y: float | None

    @property
    def label(self) -> str:
        """All of it in a sentence, for who does not see it."""
        named = len(self.lines) > 1
        parts = [
            f"{line.label + ': ' if named else ''}last {line.last}, highest {line.highest}"
            for line in self.lines
            if line.path
        ]
        limit = f"; limit {self.limit}" if self.limit else ""
        return f"{self.title}: {'; '.join(parts) or 'no values'}{limit}"


def draw_plot(
    title: str,
    series: Sequence[Series],
    *,
    start: datetime,
    end: datetime,
    limit: float | None = None,
    text: Callable[[float], str] = count_text,
) -> Plot:
    """Draw lines from `start` to `end` above zero; `text` says a value as people read it."""
    values = [value for each in series for _, value in each.points]
    top = max([*values, limit or 0]) or 1
    return Plot(
        title=title,
        lines=tuple(
            _line_of(each, start, end, top, text, with_area=len(series) == 1) for each in series
        ),
        start=start,
        end=end,
        limit=None if limit is None else text(limit),
        limit_y=None if limit is None else round(_y(limit, top, PLOT_HEIGHT, _PLOT_MARGIN), 1),
    )


def _line_of(
    series: Series,
    start: datetime,
    end: datetime,
    top: float,
    text: Callable[[float], str],
    *,
    with_area: bool,
) -> PlotLine:
    span = max((end - start).total_seconds(), 1)
    columns = _columns_of(
        [((moment - start).total_seconds() / span, value) for moment, value in series.points]
    )
    points = [(x, _y(value, top, PLOT_HEIGHT, _PLOT_MARGIN)) for x, value in columns]
    pieces = _pieces_of(points)
    values = [value for _, value in series.points]
    return PlotLine(
        label=series.label,
        tone=series.tone,
        path="".join(map(_path, pieces)),
        area="".join(_area(piece, PLOT_HEIGHT - _PLOT_MARGIN) for piece in pieces if with_area),
        last=text(values[-1]) if values else "",
        highest=text(max(values)) if values else "",
    )


def _columns_of(shares: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return at most so many points: of those in one column the highest, so no peak is lost."""
    highest: dict[int, tuple[float, float]] = {}
    for share, value in shares:
        if not 0 <= share <= 1:
            continue
        column = min(int(share * _MOST_POINTS), _MOST_POINTS - 1)
        if column not in highest or value > highest[column][1]:
            highest[column] = (share * WIDTH, value)
    return [highest[column] for column in sorted(highest)]


def _pieces_of(points: Sequence[tuple[float, float]]) -> list[list[tuple[float, float]]]:
    """Cut a line where values are missing."""
    steps = [after[0] - before[0] for before, after in pairwise(points)]
    longest = max(_GAP * median(steps), _GAP * WIDTH / _MOST_POINTS) if steps else 0
    pieces: list[list[tuple[float, float]]] = []
    for number, point in enumerate(points):
        if number == 0 or steps[number - 1] > longest:
            pieces.append([])
        pieces[-1].append(point)
    return pieces


def _y(value: float, top: float, height: float, margin: float) -> float:
    share = max(value, 0) / top if top > 0 else 0.0
    return height - margin - (height - 2 * margin) * share


def _path(points: Sequence[tuple[float, float]]) -> str:
    if len(points) == 1:
        # A line of no length, with round ends, is a dot.
        points = [*points, *points]
    return "M" + "L".join(f"{x:.4g} {y:.4g}" for x, y in points)


def _area(points: Sequence[tuple[float, float]], bottom: float) -> str:
    return f"{_path(points)}L{points[-1][0]:.4g} {bottom:g}L{points[0][0]:.4g} {bottom:g}Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """How often something went well or failed in one piece of time, such as an hour."""

    start: datetime
    ok: int
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """What the macro `ui.bars` draws, 300 by 44."""

    title: str
    ok: int
    failed: int
    ok_path: str
    failed_path: str

    @property
    def label(self) -> str:
        return f"{self.title}: {self.ok:,} ok, {self.failed:,} failed"


def draw_bars(title: str, bars: Sequence[Bar]) -> Bars:
    """Draw a bar for each piece of time: what went well below, what failed on top of it."""
    top = max((bar.ok + bar.failed for bar in bars), default=0) or 1
    step = WIDTH / max(len(bars), 1)
    ok_path: list[str] = []
    failed_path: list[str] = []
    for number, bar in enumerate(bars):
        x, bottom = step * number, float(SPARK_HEIGHT)
        for count, path in ((bar.ok, ok_path), (bar.failed, failed_path)):
            if count:
                height = max(count / top * (SPARK_HEIGHT - 2 * _LEAST_BAR), _LEAST_BAR)
                path.append(
                    f"M{x:.4g} {bottom:.4g}v{-height:.4g}h{step * _BAR_SHARE:.4g}v{height:.4g}Z"
                )
                bottom -= height
    return Bars(
        title=title,
        ok=sum(bar.ok for bar in bars),
        failed=sum(bar.failed for bar in bars),
        ok_path="".join(ok_path),
        failed_path="".join(failed_path),
    )


def histogram_path(counts: Sequence[int]) -> str:
    """Return a bar for each count, side by side, 300 by 44."""
    top = max(counts, default=0) or 1
    step = WIDTH / max(len(counts), 1)
    bars = [
        (step * number, max(count / top * (SPARK_HEIGHT - _LEAST_BAR), _LEAST_BAR))
        for number, count in enumerate(counts)
        if count
    ]
    return "".join(
        f"M{x:.4g} {SPARK_HEIGHT}v{-height:.4g}h{step * 0.94:.4g}v{height:.4g}Z"
        for x, height in bars
    )


def spark_paths(values: Sequence[float]) -> tuple[str, str]:
    """Return the paths of a line through the values, and of the area below it.

    Zero is at the bottom and the greatest value at the top; a single value is a level line.
    """
    if not values:
        return "", ""
    if len(values) == 1:
        values = [*values, *values]
    step = WIDTH / (len(values) - 1)
    top = max(values)
    points = [
        (step * number, _y(value, top, SPARK_HEIGHT, _MARGIN))
        for number, value in enumerate(values)
    ]
    return _path(points), _area(points, SPARK_HEIGHT)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopValue:
    text: str
    count: int
    # Of all rows, in percent.
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnCard:
    """What `repos/viewer.html` shows of a column."""

    name: str
    type: str
    # The path of a histogram, in words for who does not see it, and its ends.
    bars: str = ""
    label: str = ""
    start: str = ""
    end: str = ""
    top: tuple[TopValue, ...] = ()
    summary: str = ""


def draw_column(column: "ColumnStatistics") -> ColumnCard:
    """Draw the histogram of a column, or else its most frequent values, and say the rest in words."""
    name = column.name[:_MAX_TEXT]
    has_top = column.kind in {"text", "boolean"} and column.top
    bins = () if has_top else column.histogram
    start, end = _ends_of(column, bins)
    return ColumnCard(
        name=name,
        type=column.type[:_MAX_TEXT],
        bars=histogram_path([each.count for each in bins]),
        label=f"Histogram of {name}, from {start} to {end}",
        start=start,
        end=end,
        top=tuple(
            TopValue(
                text=each.value[:_MAX_TEXT] or "(empty)",
                count=each.count,
                share=round(100 * each.count / max(column.count + column.nulls, 1), 2),
            )
            for each in column.top[:_MOST_TOP]
        )
        if not bins
        else (),
        summary=", ".join(_words_of(column)),
    )


def _ends_of(column: "ColumnStatistics", bins: Sequence["HistogramBin"]) -> tuple[str, str]:
    if not bins:
        return "", ""
    if column.kind == "time":
        return str(column.min)[:_MAX_TEXT], str(column.max)[:_MAX_TEXT]
    unit = " characters" if column.kind == "text" else ""
    return f"{bins[0].start:.4g}{unit}", f"{bins[-1].end:.4g}{unit}"


def _words_of(column: "ColumnStatistics") -> Iterator[str]:
    all_rows = max(column.count + column.nulls, 1)
    yield f"{column.nulls / all_rows:.1%} null" if column.nulls else "no nulls"
    if column.distinct is not None:
        yield f"about {column.distinct:,} different"
    if column.kind == "number" and column.mean is not None:
        yield f"mean {column.mean:.4g}"
        if column.median is not None:
            yield f"median {column.median:.4g}"
        if column.std is not None:
            yield f"deviation {column.std:.3g}"
    elif column.kind == "text" and column.mean is not None:
        yield f"{column.mean:.3g} characters on average"
