"""Plots as paths of SVG, computed on the server."""

from collections.abc import Sequence

WIDTH = 300
HEIGHT = 44
# The stroke of the line needs room above the highest and below the lowest value.
_MARGIN = 2


def spark_paths(values: Sequence[float]) -> tuple[str, str]:
    """Return the paths of a line through the values, and of the area below it.

    Zero is at the bottom and the greatest value at the top; a single value is a level line.
    """
    if not values:
        return "", ""
    if len(values) == 1:
        values = [*values, *values]
    step = WIDTH / (len(values) - 1)
    points = [(step * number, height) for number, height in enumerate(_heights(values))]
    line = "M" + "L".join(f"{x:.4g} {y:.4g}" for x, y in points)
    return line, f"{line}L{WIDTH} {HEIGHT}L0 {HEIGHT}Z"


def _heights(values: Sequence[float]) -> list[float]:
    greatest = max(values)
    room = HEIGHT - 2 * _MARGIN
    shares = [max(value, 0) / greatest if greatest > 0 else 0.0 for value in values]
    return [HEIGHT - _MARGIN - room * share for share in shares]
