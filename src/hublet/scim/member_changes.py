"""Parser of member changes, which are extracted from a request before the SCIM library reads it.

For each change the library copies and compares all members of a group, of which there may be
thousands. The few forms in which providers write them are parsed here, into sets of ids.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import Any

from hublet.core.dataclasses import dataclass

_SCHEMA = "urn:ietf:params:scim:schemas:core:2.0:group"
_NAMES = {"members", f"{_SCHEMA}:members"}
_EQUAL = r'value\s+eq\s+"[\w.:@-]*"'
_BY_VALUE = re.compile(
    rf"(?:{re.escape(_SCHEMA)}:)?members\s*\[\s*({_EQUAL}(?:\s+or\s+{_EQUAL})*)\s*\]",
    re.IGNORECASE,
)

# A patch must have an operation: this one changes nothing.
_NO_OPERATION = {"op": "add", "path": "members", "value": []}


class MemberOperation(Enum):
    add = "add"
    remove = "remove"
    replace = "replace"


_OPERATIONS = {each.value for each in MemberOperation}


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberChange:
    op: MemberOperation
    ids: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedChanges:
    changes: tuple[MemberChange, ...]
    # The request without them.
    rest: dict[str, Any]


def members_after(changes: Iterable[MemberChange], had: AbstractSet[str]) -> frozenset[str]:
    """Return the members of a group after changes, which apply one after the other."""
    ids = frozenset(had)
    for change in changes:
        if change.op is MemberOperation.add:
            ids |= change.ids
        elif change.op is MemberOperation.remove:
            ids -= change.ids
        else:
            ids = change.ids
    return ids


def extract_from_patch(payload: Any) -> ExtractedChanges | None:
    """Extract the member changes of a patch; None for a form that only the library reads."""
    name = _single_key(payload, {"operations"})
    if name is None or not isinstance(payload[name], list) or not payload[name]:
        return None
    changes: list[MemberChange] = []
    rest: list[dict[str, Any]] = []
    for operation in payload[name]:
        parts = _parts(operation)
        if parts is None:
            return None
        change, left = parts
        changes += [] if change is None else [change]
        rest += [] if left is None else [left]
    return ExtractedChanges(changes=tuple(changes), rest=payload | {name: rest or [_NO_OPERATION]})


def extract_from_group(payload: Any) -> ExtractedChanges | None:
    """Extract the members of a whole group; None for a form that only the library reads."""
    if not isinstance(payload, dict):
        return None
    ids: frozenset[str] | None = frozenset()
    name = _single_key(payload, {"members"})
    if name is not None:
        ids = _ids(payload[name] if payload[name] is not None else [], whole=True)
    elif any(each.lower() == "members" for each in payload):
        return None
    if ids is None:
        return None
    rest = {each: value for each, value in payload.items() if each != name}
    return ExtractedChanges(changes=(MemberChange(op=MemberOperation.replace, ids=ids),), rest=rest)


def _single_key(payload: Any, names: AbstractSet[str]) -> str | None:
    """Return the key that is one of these names in any case, if there is exactly one."""
    keys = [each for each in payload if each.lower() in names] if isinstance(payload, dict) else []
    return keys[0] if len(keys) == 1 else None


# The member change of an operation and the rest of it; one of both may be None.
_Parts = tuple[MemberChange | None, dict[str, Any] | None]


def _parts(operation: Any) -> _Parts | None:
    if not isinstance(operation, dict):
        return None
    fields = {name.lower(): value for name, value in operation.items()}
    if len(fields) < len(operation) or not fields.keys() <= {"op", "path", "value"}:
        return None
    op, path = str(fields.get("op")).lower(), fields.get("path") or ""
    if op not in _OPERATIONS or not isinstance(path, str):
        return None
    if path:
        return _parts_at(path.strip(), MemberOperation(op), fields, operation)
    return _parts_without_path(MemberOperation(op), fields.get("value"), operation)


def _parts_at(
    path: str, op: MemberOperation, fields: Mapping[str, Any], operation: dict[str, Any]
) -> _Parts | None:
    if "members" not in path.lower() and path.lower() != _SCHEMA:
        return None, operation
    ids: frozenset[str] | None = None
    if path.lower() in _NAMES:
        if op is not MemberOperation.remove:
            ids = _ids_to_write(op, fields["value"]) if "value" in fields else None
        elif fields.get("value") is None:
            op, ids = MemberOperation.replace, frozenset()
        else:
            ids = _ids_to_remove(fields["value"])
    elif (
        op is MemberOperation.remove
        and fields.get("value") is None
        and (match := _BY_VALUE.fullmatch(path))
    ):
        ids = frozenset(match[1].split('"')[1::2])
    return None if ids is None else (MemberChange(op=op, ids=ids), None)


def _parts_without_path(
    op: MemberOperation, value: Any, operation: dict[str, Any]
) -> _Parts | None:
    if op is MemberOperation.remove or not isinstance(value, dict):
        return None, operation
    about = [each for each in value if "members" in each.lower() or each.lower() == _SCHEMA]
    if not about:
        return None, operation
    if len(about) > 1 or about[0].lower() not in _NAMES:
        return None
    ids = _ids_to_write(op, value[about[0]])
    if ids is None:
        return None
    rest = {name: each for name, each in value.items() if name != about[0]}
    # The key may be written in capitals.
    key = _single_key(operation, {"value"}) or "value"
    return MemberChange(op=op, ids=ids), operation | {key: rest} if rest else None


def _ids_to_write(op: MemberOperation, value: Any) -> frozenset[str] | None:
    if value is None:
        return frozenset() if op is MemberOperation.replace else None
    return _ids(value, whole=False)


def _ids_to_remove(value: Any) -> frozenset[str] | None:
    """Return the members to remove, as Entra ID lists them: entries with nothing but a value."""
    entries: Sequence[Any] = value if isinstance(value, list) else [value]
    ids = [_sole_value(entry) for entry in entries]
    return None if None in ids else frozenset(each for each in ids if each is not None)


def _sole_value(entry: Any) -> str | None:
    if not isinstance(entry, dict) or [name.lower() for name in entry] != ["value"]:
        return None
    [value] = entry.values()
    return value if isinstance(value, str) else None


def _ids(value: Any, *, whole: bool) -> frozenset[str] | None:
    """Return the ids of members in a known form, or None."""
    if isinstance(value, dict) and not whole:
        value = [value]
    if not isinstance(value, list):
        return None
    ids = [_id_in_group(entry) if whole else _id_in_patch(entry) for entry in value]
    return None if None in ids else frozenset(each for each in ids if each is not None)


def _id_in_patch(entry: Any) -> str | None:
    fields = _lowercase_keys(entry)
    # The library has rules of its own for these two.
    if fields is None or fields.keys() & {"display", "ref"}:
        return None
    return _id(fields)


def _id_in_group(entry: Any) -> str | None:
    fields = _lowercase_keys(entry)
    if fields is None or not fields.keys() <= {"value", "$ref", "type", "display"}:
        return None
    return _id(fields) if fields.get("type") in {None, "User"} else None


def _lowercase_keys(entry: Any) -> dict[str, Any] | None:
    if not isinstance(entry, dict):
        return None
    fields = {name.lower(): value for name, value in entry.items()}
    known = (fields.get(name) for name in ("value", "$ref", "type", "display"))
    return fields if all(each is None or isinstance(each, str) for each in known) else None


def _id(fields: Mapping[str, Any]) -> str:
    """Return the id of a member; some providers send only its URL."""
    return fields.get("value") or (fields.get("$ref") or "").rpartition("/")[2]
