"""What the curves come to: drawings, and the section of benchmarks/README.md between its markers."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.drawings import Line, draw_panels
from benchmarks.growth.curves import GrowthCurve
from benchmarks.processes import ROOT
from benchmarks.table import number

README = ROOT / "benchmarks" / "README.md"
IMAGES = ROOT / "docs" / "images"
_TOLD = ("taken at", "processor", "memory", "load average before")


def write_report(curves: Sequence[GrowthCurve], machine: Mapping[str, str]) -> None:
    """Draw the curves of each topic, and write them with their table into the guide."""
    for topic, its_curves in by_topic(curves).items():
        (IMAGES / image_of(topic)).write_text(draw(topic, its_curves), encoding="utf-8")
    write_section(README, "growth", section(curves, machine))


def by_topic(curves: Iterable[GrowthCurve]) -> dict[str, list[GrowthCurve]]:
    found: dict[str, list[GrowthCurve]] = {}
    for curve in curves:
        found.setdefault(curve.topic, []).append(curve)
    return found


def image_of(topic: str) -> str:
    return f"growth-{topic.lower().replace(' ', '-')}.svg"


def draw(topic: str, curves: Sequence[GrowthCurve]) -> str:
    panels: dict[str, list[Line]] = {}
    for curve in curves:
        points = [(float(size), cost.processor) for size, cost in sorted(curve.costs.items())]
        panels.setdefault(curve.engine, []).append(Line(label=curve.operation, points=points))
    return draw_panels(topic, panels, x=topic, y="milliseconds of processor time")


def section(curves: Sequence[GrowthCurve], machine: Mapping[str, str]) -> str:
    """Return the text between the markers."""
    lines = ["; ".join(f"{name}: {machine[name]}" for name in _TOLD if name in machine), ""]
    for topic, its_curves in by_topic(curves).items():
        smallest, largest = min(its_curves[0].costs), max(its_curves[0].costs)
        lines += [
            f"![What everyday operations cost with more and more {topic}](../docs/images/{image_of(topic)})",
            "",
            f"| {topic} | engine | {smallest:,} | {largest:,} | growth | at most | verdict |",
            "|---|---|--:|--:|--:|--:|---|",
            *map(_line, its_curves),
            "",
        ]
    return "\n".join(lines)


def _line(curve: GrowthCurve) -> str:
    ends = (curve.costs[size].processor for size in (min(curve.costs), max(curve.costs)))
    few, many = (f"{number(cost)} ms" for cost in ends)
    verdict = curve.goal.verdict(curve.growth)
    return (
        f"| {curve.operation} | {curve.engine} | {few} | {many} | {number(curve.growth)} | "
        f"{number(curve.limit)} | {verdict} |"
    )


def write_section(page: Path, name: str, text: str) -> None:
    """Replace what stands between the two markers of this name."""
    begin, end = markers(name)
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    _, found_end, after = rest.partition(end)
    if not (found and found_end):
        raise ValueError(f"{page.name} lacks the markers of {name}.")
    page.write_text(f"{before}{begin}\n\n{text.strip()}\n\n{end}{after}", encoding="utf-8")


def markers(name: str) -> tuple[str, str]:
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
