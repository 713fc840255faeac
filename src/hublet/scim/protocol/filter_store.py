"""SQL of the filters and sort orders of RFC 7644."""

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum, auto
from typing import Any

from scim2_models.path import (
    AttrPath,
    CompareOperator,
    Comparison,
    FilterNode,
    FilterVisitor,
    LogicalExpr,
    LogicalOperator,
    Not,
    Present,
    ValuePath,
)

from hublet.core.clock import to_micros
from hublet.core.dataclasses import dataclass
from hublet.scim.errors import ScimRefusal
from hublet.scim.records import SqlCondition, comparison_key


class ColumnKind(Enum):
    # Stored as a comparison key: case does not count.
    text = auto()
    exact = auto()
    boolean = auto()
    time = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterColumn:
    sql: str
    kind: ColumnKind = ColumnKind.text
    # The rows with the values of an attribute that has many.
    rows: "ValueRows | None" = None
    may_be_null: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueRows:
    sql: str
    # The column with the id of the user or group that they belong to.
    owner: str


_EMAIL_ROWS = ValueRows(sql="scim_emails e", owner="e.scim_user_id")
_MEMBER_ROWS = ValueRows(
    sql="scim_members m JOIN scim_users u ON u.id = m.scim_user_id", owner="m.group_id"
)

_SHARED_COLUMNS = {
    "id": FilterColumn(sql="s.id", kind=ColumnKind.exact),
    "externalid": FilterColumn(sql="s.external_id", kind=ColumnKind.exact, may_be_null=True),
    "meta.created": FilterColumn(sql="s.created_at", kind=ColumnKind.time),
    "meta.lastmodified": FilterColumn(sql="s.updated_at", kind=ColumnKind.time),
}

USER_COLUMNS = _SHARED_COLUMNS | {
    "username": FilterColumn(sql="s.user_name_key"),
    "name.givenname": FilterColumn(sql="s.given_name_key", may_be_null=True),
    "name.familyname": FilterColumn(sql="s.family_name_key", may_be_null=True),
    "active": FilterColumn(sql="s.active", kind=ColumnKind.boolean),
    "emails": FilterColumn(sql="e.address_key", rows=_EMAIL_ROWS),
    "emails.value": FilterColumn(sql="e.address_key", rows=_EMAIL_ROWS),
    "emails.type": FilterColumn(sql="lower(e.type)", rows=_EMAIL_ROWS, may_be_null=True),
    "emails.primary": FilterColumn(
        sql="e.is_primary", kind=ColumnKind.boolean, rows=_EMAIL_ROWS, may_be_null=True
    ),
}

GROUP_COLUMNS = _SHARED_COLUMNS | {
    "displayname": FilterColumn(sql="s.display_name_key"),
    "members": FilterColumn(sql="m.scim_user_id", kind=ColumnKind.exact, rows=_MEMBER_ROWS),
    "members.value": FilterColumn(sql="m.scim_user_id", kind=ColumnKind.exact, rows=_MEMBER_ROWS),
    "members.display": FilterColumn(sql="u.user_name_key", rows=_MEMBER_ROWS),
}

# The value by which a list is sorted, of an attribute that has many.
_PRIMARY_EMAIL = (
    "(SELECT e.address_key FROM scim_emails e WHERE e.scim_user_id = s.id "
    "ORDER BY COALESCE(e.is_primary, FALSE) DESC, e.position LIMIT 1)"
)
SORT_COLUMNS = {
    "emails": FilterColumn(sql=_PRIMARY_EMAIL, may_be_null=True),
    "emails.value": FilterColumn(sql=_PRIMARY_EMAIL, may_be_null=True),
}


# The organization and the kind of directory come first.
_FIRST_VALUES = 2

# Of an attribute that the searched type does not have.
_NO_COLUMN = FilterColumn(sql="NULL")
_NEVER = "1 = 0"

_SYMBOLS = {
    CompareOperator.eq: "=",
    CompareOperator.ne: "<>",
    CompareOperator.gt: ">",
    CompareOperator.ge: ">=",
    CompareOperator.lt: "<",
    CompareOperator.le: "<=",
}


def condition_of(
    node: FilterNode, columns: Mapping[str, FilterColumn], *, foreign: Mapping[str, FilterColumn]
) -> SqlCondition:
    """Translate a filter, whose names and types are checked, into a condition.

    `foreign` are the columns of another type in the same search; here they have no value.
    """
    writer = _SqlWriter(dict.fromkeys(foreign, _NO_COLUMN) | dict(columns))
    sql = writer.visit(node)
    return SqlCondition(sql=sql, values=tuple(writer.values))


def order_of(path: str, columns: Mapping[str, FilterColumn], *, descending: bool) -> str:
    """Return the order by an attribute; entries without a value come last (RFC 7644, 3.4.2.3)."""
    name = path.rpartition(":")[2].lower()
    column = SORT_COLUMNS.get(name) or columns.get(name)
    if column is None or column.rows is not None:
        raise ScimRefusal(400, f"sortBy: {path} cannot be sorted by.", scim_type="invalidValue")
    direction = " DESC" if descending else ""
    missing = f"({column.sql}) IS NULL{direction}, " if column.may_be_null else ""
    return f"{missing}{column.sql}{direction}, s.id{direction}"


class _SqlWriter(FilterVisitor[str]):
    """Visitor that writes conditions which are true or false, never NULL, so that NOT works."""

    def __init__(self, columns: Mapping[str, FilterColumn]) -> None:
        self._columns = columns
        # Inside `emails[…]` the names are those of one e-mail address.
        self._within = ""
        self.values: list[object] = []

    def visit_comparison(self, node: Comparison) -> str:
        column = self._column(node.attr_path)
        if column is _NO_COLUMN:
            return _NEVER
        if column.rows is None or self._within:
            return self._compare(column, node.op, node.value)
        if node.op is CompareOperator.ne:
            # None of the values may be equal.
            equal = self._compare(column, CompareOperator.eq, node.value)
            return f"NOT {_exists(column.rows, equal)}"
        find = _in_subquery if node.op is CompareOperator.eq and node.value is not None else _exists
        return find(column.rows, self._compare(column, node.op, node.value))

    def visit_present(self, node: Present) -> str:
        if str(node.attr_path).rpartition(":")[2].lower() == "name" and not self._within:
            return "(s.given_name IS NOT NULL OR s.family_name IS NOT NULL)"
        column = self._column(node.attr_path)
        if column is _NO_COLUMN:
            return _NEVER
        present = f"{column.sql} IS NOT NULL"
        return present if column.rows is None or self._within else _exists(column.rows, present)

    def visit_not(self, node: Not) -> str:
        return f"NOT ({self.visit(node.expr)})"

    def visit_logical_expr(self, node: LogicalExpr) -> str:
        operator = " AND " if node.op is LogicalOperator.and_ else " OR "
        return f"({operator.join(self.visit(term) for term in node.terms)})"

    def visit_value_path(self, node: ValuePath) -> str:
        column = self._column(node.attr_path)
        if column.rows is None:
            return _NEVER
        before, self._within = self._within, f"{node.attr_path.attr.lower()}."
        inner = self.visit(node.val_filter)
        self._within = before
        return _exists(column.rows, inner)

    def _column(self, path: AttrPath) -> FilterColumn:
        name = path.attr if path.sub_attr is None else f"{path.attr}.{path.sub_attr}"
        column = self._columns.get(f"{self._within}{name}".lower())
        if column is None:
            raise _invalid_filter(f"{self._within}{name} cannot be filtered by.")
        return column

    def _compare(self, column: FilterColumn, op: CompareOperator, given: Any) -> str:
        if given is None:
            return _is_null(column, op)
        sql = self._compared(column, op, _value(column, given))
        if not column.may_be_null:
            return sql
        if op is CompareOperator.ne:
            return f"({sql} OR {column.sql} IS NULL)"
        return f"({sql} AND {column.sql} IS NOT NULL)"

    def _compared(self, column: FilterColumn, op: CompareOperator, value: object) -> str:
        if op in _SYMBOLS:
            if column.kind is ColumnKind.boolean and _SYMBOLS[op] not in {"=", "<>"}:
                raise _invalid_filter(f"{op} does not compare true and false.")
            return f"{column.sql} {_SYMBOLS[op]} {self._placeholder(value)}"
        if not isinstance(value, str):
            raise _invalid_filter(f"{op} compares texts only.")
        return self._within_text(column.sql, op, value)

    def _within_text(self, column: str, op: CompareOperator, value: str) -> str:
        """Compare without LIKE, whose case sensitivity differs between the engines."""
        if not value:
            return f"{column} IS NOT NULL"
        placeholder, length = self._placeholder(value), len(value)
        if op is CompareOperator.co:
            return f"replace({column}, {placeholder}, '') <> {column}"
        if op is CompareOperator.sw:
            return f"substr({column}, 1, {length}) = {placeholder}"
        start = f"length({column}) - {length - 1}"
        return f"(length({column}) >= {length} AND substr({column}, {start}) = {placeholder})"

    def _placeholder(self, value: object) -> str:
        self.values.append(value)
        return f"${len(self.values) + _FIRST_VALUES}"


def _exists(rows: ValueRows, condition: str) -> str:
    return f"EXISTS (SELECT 1 FROM {rows.sql} WHERE {rows.owner} = s.id AND {condition})"


def _in_subquery(rows: ValueRows, condition: str) -> str:
    """Write EXISTS as a subquery that an index answers once, not for each row."""
    return f"s.id IN (SELECT {rows.owner} FROM {rows.sql} WHERE {condition})"


def _is_null(column: FilterColumn, op: CompareOperator) -> str:
    if op not in {CompareOperator.eq, CompareOperator.ne}:
        raise _invalid_filter(f"{op} does not compare with null.")
    return f"{column.sql} IS {'NULL' if op is CompareOperator.eq else 'NOT NULL'}"


def _value(column: FilterColumn, given: Any) -> object:
    if column.kind is ColumnKind.boolean:
        return _boolean(given)
    if column.kind is ColumnKind.time:
        return _time(given)
    if not isinstance(given, str):
        raise _invalid_filter("a text must be compared with a text.")
    # No engine takes such a text as a value.
    if "\x00" in given or any("\ud800" <= character <= "\udfff" for character in given):
        raise _invalid_filter("a text has neither U+0000 nor half of a surrogate pair.")
    return comparison_key(given) if column.kind is ColumnKind.text else given


def _boolean(given: Any) -> bool:
    # Some providers write it as a text.
    words = {"true": True, "false": False}
    known = given if isinstance(given, bool) else words.get(str(given).lower())
    if known is None:
        raise _invalid_filter("true or false must be compared with true or false.")
    return known


def _time(given: Any) -> int:
    try:
        moment = given if isinstance(given, datetime) else datetime.fromisoformat(given)
        return to_micros(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (TypeError, ValueError, OverflowError):
        raise _invalid_filter("a time is written 2026-11-15T01:44:56Z.") from None


def _invalid_filter(rule: str) -> ScimRefusal:
    return ScimRefusal(400, f"filter: {rule}", scim_type="invalidFilter")
