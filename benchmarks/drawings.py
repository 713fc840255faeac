"""Line drawings for the guides: SVG that follows the reader's colours."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT = 720, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 44, 76
# The width of a letter, about.
_LETTER = 7
_TONES = ("#2563eb", "#b45309", "#15803d", "#be185d", "#6d28d9")
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1f2937}.grid{stroke:#9ca3af;stroke-opacity:.35}"
    ".limit{stroke:#dc2626;stroke-dasharray:5 4}"
    "@media(prefers-color-scheme:dark){text{fill:#e5e7eb}}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    label: str
    points: Sequence[tuple[float, float]]


def draw_lines(
    title: str,
    lines: Sequence[Line],
    *,
    x: str,
    y: str,
    logarithmic_x: bool = False,
    limit: float | None = None,
) -> str:
    """Return a drawing with a line for each; `limit` is drawn across."""
    xs = [point[0] for line in lines for point in line.points]
    highest = max([limit or 0.0, *(point[1] for line in lines for point in line.points)]) or 1.0

    def place(point: tuple[float, float]) -> tuple[float, float]:
        at, low, high = (
            map(math.log10, (point[0], min(xs), max(xs)))
            if logarithmic_x
            else (point[0], min(xs), max(xs))
        )
        across = _LEFT + (at - low) / (high - low) * (_WIDTH - _LEFT - _RIGHT)
        return across, _HEIGHT - _BOTTOM - point[1] / highest * (_HEIGHT - _TOP - _BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style>",
        f'<text x="{_LEFT}" y="22" font-weight="600">{escape(title)}</text>',
    ]
    for step in range(5):
        value = highest * step / 4
        _, height = place((min(xs), value))
        parts.append(
            f'<path class="grid" d="M{_LEFT} {height:.1f}H{_WIDTH - _RIGHT}"/>'
            f'<text x="{_LEFT - 8}" y="{height + 4:.1f}" text-anchor="end">{value:.3g}</text>'
        )
    for value, label in _marks(min(xs), max(xs), logarithmic=logarithmic_x):
        across, _ = place((value, 0))
        parts.append(
            f'<text x="{across:.1f}" y="{_HEIGHT - _BOTTOM + 18}" text-anchor="middle">{label}</text>'
        )
    if limit is not None:
        _, height = place((min(xs), limit))
        parts.append(f'<path class="limit" d="M{_LEFT} {height:.1f}H{_WIDTH - _RIGHT}"/>')
    legend = _LEFT
    for number, line in enumerate(lines):
        tone = _TONES[number % len(_TONES)]
        path = "L".join(f"{across:.1f} {down:.1f}" for across, down in map(place, line.points))
        parts.append(f'<path d="M{path}" fill="none" stroke="{tone}" stroke-width="2"/>')
        parts.append(
            f'<path d="M{legend} {_HEIGHT - 17}h18" stroke="{tone}" stroke-width="3"/>'
            f'<text x="{legend + 24}" y="{_HEIGHT - 12}">{escape(line.label)}</text>'
        )
        legend += 44 + _LETTER * len(line.label)
    parts.append(
        f'<text x="{_LEFT}" y="{_HEIGHT - 38}">across: {escape(x)}; up: {escape(y)}</text></svg>'
    )
    return "\n".join(parts) + "\n"


def _marks(low: float, high: float, *, logarithmic: bool) -> list[tuple[float, str]]:
    if not logarithmic:
        return [(value, f"{value:.0f}") for value in range(math.ceil(low), math.floor(high) + 1, 4)]
    digits = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
    exponents = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
    return [(10.0**each, f"10{str(each).translate(digits)}") for each in exponents]


# Panels: small drawings beside each other, both axes logarithmic.
_PANEL_WIDTH, _PANEL_HEIGHT, _PANEL_TOP = 300, 220, 62
_PANEL_LEFT, _LEGEND_LINE = 52, 20
_DASHES = ("", "6 3", "2 3")


def draw_panels(
    title: str, panels: Mapping[str, Sequence[Line]], *, x: str, y: str, note: str = ""
) -> str:
    """Return drawings beside each other that share their scales; lines of one label look alike.

    Where a line is level, the cost does not grow; where it climbs as the diagonal of its squares, the
    cost grows as fast as the size.
    """
    points = [p for lines in panels.values() for line in lines for p in line.points]
    xs, ys = _decades(point[0] for point in points), _decades(point[1] for point in points)
    labels = list(dict.fromkeys(line.label for lines in panels.values() for line in lines))
    looks = {
        label: (_TONES[number % len(_TONES)], _DASHES[number // len(_TONES) % len(_DASHES)])
        for number, label in enumerate(labels)
    }
    step = _PANEL_LEFT + _PANEL_WIDTH + _RIGHT
    rows = -(-len(labels) // 2)
    bottom = _PANEL_TOP + _PANEL_HEIGHT
    width, height = step * len(panels), bottom + 66 + _LEGEND_LINE * rows
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style>",
        f'<text x="{_PANEL_LEFT}" y="22" font-weight="600">{escape(title)}</text>',
        f'<text x="{_PANEL_LEFT}" y="{bottom + 42}">across: {escape(x)}; up: {escape(y)}{escape(note)}</text>',
    ]
    for number, (name, lines) in enumerate(panels.items()):
        parts.append(f'<g transform="translate({number * step + _PANEL_LEFT} {_PANEL_TOP})">')
        parts.append(f'<text x="0" y="-10">{escape(name)}</text>')
        parts += _panel(lines, xs, ys, looks)
        parts.append("</g>")
    for number, (label, (tone, dash)) in enumerate(looks.items()):
        across = _PANEL_LEFT + number % 2 * step
        down = bottom + 64 + number // 2 * _LEGEND_LINE
        parts.append(
            f'<path d="M{across} {down - 4}h26" stroke="{tone}" stroke-width="2.5" stroke-dasharray="{dash}"/>'
            f'<text x="{across + 34}" y="{down}">{escape(label)}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _decades(values: Iterable[float]) -> tuple[int, int]:
    """Return the exponents between which all values lie, a decade apart at least."""
    found = [math.log10(value) for value in values]
    low, high = math.floor(min(found) + 1e-9), math.ceil(max(found) - 1e-9)
    return low, max(high, low + 1)


def _panel(
    lines: Sequence[Line],
    xs: tuple[int, int],
    ys: tuple[int, int],
    looks: Mapping[str, tuple[str, str]],
) -> Iterator[str]:
    def across(value: float) -> float:
        return (math.log10(value) - xs[0]) / (xs[1] - xs[0]) * _PANEL_WIDTH

    def down(value: float) -> float:
        return _PANEL_HEIGHT - (math.log10(value) - ys[0]) / (ys[1] - ys[0]) * _PANEL_HEIGHT

    for exponent in range(ys[0], ys[1] + 1):
        at = down(10.0**exponent)
        yield f'<path class="grid" d="M0 {at:.1f}H{_PANEL_WIDTH}"/>'
        yield f'<text x="-8" y="{at + 4:.1f}" text-anchor="end">{10.0**exponent:g}</text>'
    for value, label in _marks(10.0 ** xs[0], 10.0 ** xs[1], logarithmic=True):
        at = across(value)
        yield f'<path class="grid" d="M{at:.1f} 0V{_PANEL_HEIGHT}"/>'
        yield f'<text x="{at:.1f}" y="{_PANEL_HEIGHT + 18}" text-anchor="middle">{label}</text>'
    for line in lines:
        tone, dash = looks[line.label]
        path = "L".join(f"{across(point[0]):.1f} {down(point[1]):.1f}" for point in line.points)
        yield f'<path d="M{path}" fill="none" stroke="{tone}" stroke-width="2" stroke-dasharray="{dash}"/>'
