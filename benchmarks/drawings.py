"""Line drawings for the guides: SVG that follows the reader's colours."""

import math
from collections.abc import Sequence
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
