"""Program part that computes the statistics of columns with DuckDB; it imports nothing of the hub."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

_MAX_COLUMNS = 200
_BINS = 20
_TOP_VALUES = 10
_LONGEST_VALUE = 200
_WHOLE = frozenset(
    [
        "TINYINT",
        "SMALLINT",
        "INTEGER",
        "BIGINT",
        "HUGEINT",
        "UTINYINT",
        "USMALLINT",
        "UINTEGER",
        "UBIGINT",
        "UHUGEINT",
    ]
)
_NUMBERS = _WHOLE | {"FLOAT", "DOUBLE", "DECIMAL"}


def quote_text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def quote_name(value: str) -> str:
    return '"' + value.replace('"', '""') + '"'


def compute(connection: Any, view_name: str) -> dict[str, Any]:
    """Compute the statistics of a view's columns, in two scans whatever their number is."""
    view = quote_name(view_name)
    cursor = connection.execute(f"SELECT * FROM {view} LIMIT 0")  # noqa: S608
    described = cursor.description
    columns = [_Column(each[0], str(each[1])) for each in described[:_MAX_COLUMNS]]
    [rows] = _scan(connection, view, columns, lambda each: each.first_scan(), extra=["count(*)"])
    _scan(connection, view, columns, lambda each: each.second_scan())
    return {
        "rows": rows,
        "columns": [column.result(rows) for column in columns],
        "cut": len(described) > len(columns),
    }


def _scan(
    connection: Any,
    view: str,
    columns: "list[_Column]",
    select: "Callable[[_Column], dict[str, str]]",
    extra: list[str] | None = None,
) -> list[Any]:
    """Let each column know the values of its expressions; return those of the extra ones."""
    wanted = [(column, key, text) for column in columns for key, text in select(column).items()]
    expressions = [*(extra or []), *(text for *_, text in wanted)]
    if not expressions:
        return []
    sql = f"SELECT {', '.join(expressions)} FROM {view}"  # noqa: S608 - of quoted names
    values = list(connection.execute(sql).fetchone())
    own = len(extra or [])
    for (column, key, _), value in zip(wanted, values[own:], strict=True):
        column.values[key] = value
    return values[:own]


class _Column:
    """A column, by its kind: number, text, boolean, time, or something else."""

    def __init__(self, name: str, type_: str) -> None:
        self.name, self.type = name, type_
        self.values: dict[str, Any] = {}
        self._column = quote_name(name)
        self.kind = _kind_of(type_)

    @property
    def _measure(self) -> str:
        """The number whose distribution is told: of a text its length, of a time its seconds."""
        if self.kind == "number":
            value = f"{self._column}::DOUBLE"
            return f"CASE WHEN isfinite({value}) THEN {value} END"
        if self.kind == "text":
            return f"length({self._column}::VARCHAR)::DOUBLE"
        return f"CASE WHEN isfinite({self._column}) THEN epoch({self._column}) END"

    def first_scan(self) -> dict[str, str]:
        scan = {"count": f"count({self._column})"}
        if self.kind == "other":
            return scan
        scan["distinct"] = f"approx_count_distinct({self._column})"
        if self.kind == "boolean":
            scan["true"] = f"count(*) FILTER (WHERE {self._column})"
            return scan
        measure = self._measure
        scan |= {
            "low": f"min({measure})",
            "high": f"max({measure})",
            "mean": f"avg({measure})",
            "median": f"approx_quantile({measure}, 0.5)",
            "std": f"stddev_samp({measure})",
        }
        if self.kind == "text":
            text = f"{self._column}::VARCHAR"
            short = f"length({text}) <= {_LONGEST_VALUE}"
            scan["top"] = f"approx_top_k({text}, {_TOP_VALUES}) FILTER (WHERE {short})"
        else:
            scan |= {"min": f"min({self._column})", "max": f"max({self._column})"}
        return scan

    def second_scan(self) -> dict[str, str]:
        scan = dict[str, str]()
        if edges := self._edges():
            bounds = ", ".join(f"{edge!r}::DOUBLE" for edge in edges[1:])
            scan["bins"] = f"histogram({self._measure}, [{bounds}])"
        self.values["top"] = [v for v in self.values.get("top") or [] if "\0" not in v]
        for number, value in enumerate(self.values["top"]):
            is_value = f"{self._column}::VARCHAR = {quote_text(value)}"
            scan[f"top {number}"] = f"count(*) FILTER (WHERE {is_value})"
        return scan

    def _edges(self) -> list[float]:
        low, high = self.values.get("low"), self.values.get("high")
        if low is None or high is None:
            return []
        if low == high:
            return [low, high]
        is_whole = self.kind == "text" or self.type in _WHOLE
        if is_whole and high - low < _BINS:
            return [low - 0.5 + step for step in range(int(high - low) + 2)]
        width = high / _BINS - low / _BINS
        return [*(low + width * step for step in range(_BINS)), high]

    def result(self, rows: int) -> dict[str, Any]:
        values = self.values
        result = {
            "name": self.name,
            "type": self.type,
            "kind": self.kind,
            "count": values["count"],
            "nulls": rows - values["count"],
            "distinct": values.get("distinct"),
            "min": values.get("min", values.get("low")),
            "max": values.get("max", values.get("high")),
            **{key: values.get(key) for key in ("mean", "median", "std")},
            "top": sorted(self._top(), key=lambda each: -each["count"]),
        }
        edges = self._edges()
        counted = values.get("bins") or {}
        result["histogram"] = [
            {"start": first, "end": last, "count": counted.get(last, 0)}
            for first, last in pairwise(edges)
        ]
        return result

    def _top(self) -> Iterator[dict[str, Any]]:
        if self.kind == "boolean":
            yes = self.values["true"]
            yield {"value": "true", "count": yes}
            yield {"value": "false", "count": self.values["count"] - yes}
        for number, value in enumerate(self.values.get("top") or []):
            yield {"value": value, "count": self.values[f"top {number}"]}


def _kind_of(type_: str) -> str:
    base = type_.partition("(")[0]
    if type_.endswith("]"):
        return "other"
    if base in _NUMBERS:
        return "number"
    if type_ == "DATE" or base.startswith("TIMESTAMP"):
        return "time"
    if base in {"VARCHAR", "UUID", "ENUM"}:
        return "text"
    return "boolean" if type_ == "BOOLEAN" else "other"
