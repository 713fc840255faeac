"""Figures as a person reads them."""

from collections.abc import Sequence

from benchmarks.figures import Failure, Row

_HEAD = ("subject", "ours", "ceiling or peer", "ratio (spread)", "floor", "aim", "verdict")


def render(results: Sequence[Row | Failure]) -> str:
    """Return the table, with notes and failures under it."""
    cells = [_HEAD, *map(_cells, results)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_HEAD))]
    cells.insert(1, tuple("-" * width for width in widths))
    return "\n".join([*(_line(line, widths) for line in cells), *_remarks(results)])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return f"| {' | '.join(padded)} |"


def _cells(result: Row | Failure) -> tuple[str, ...]:
    if isinstance(result, Failure):
        return (result.subject, "", "", "", "", "", "FAILED")
    goal = result.goal
    unit = result.unit if goal and goal.of == "ours" else ""
    return (
        result.subject,
        _with_unit(result.ours, result.unit),
        "" if result.other is None else _with_unit(result.other, result.unit),
        _ratio(result),
        "" if goal is None or goal.floor is None else _with_unit(goal.floor, unit),
        "" if goal is None or goal.aim is None else _with_unit(goal.aim, unit),
        result.verdict,
    )


def _ratio(row: Row) -> str:
    if row.ratio is None:
        return ""
    return f"{number(row.ratio)} ({number(min(row.ratios))}-{number(max(row.ratios))})"


def _remarks(results: Sequence[Row | Failure]) -> list[str]:
    remarks: list[str] = []
    for result in results:
        if isinstance(result, Failure):
            remarks.append(f"FAILED {result.subject}: {result.reason}")
            continue
        parts = [f"against {result.other_is}" if result.other_is else "", result.note]
        if told := "; ".join(filter(None, parts)):
            remarks.append(f"{result.subject}: {told}")
    return ["", *remarks] if remarks else []


def _with_unit(figure: float, unit: str) -> str:
    return f"{number(figure)} {unit}".rstrip()


def number(figure: float) -> str:
    """Write three figures that count; more would claim what was not measured."""
    if abs(figure) >= 100:
        return f"{figure:,.0f}"
    return f"{figure:.{1 if abs(figure) >= 10 else 2}f}"
