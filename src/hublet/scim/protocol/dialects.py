"""Dialects of identity providers: the deviations of Okta and Entra ID from the RFC."""

from typing import Any

# Entra ID sends it beside the schema of the RFC.
_MICROSOFT_GROUP = "http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group"


def normalize(payload: Any) -> Any:
    """Return the payload of a provider in the form of the RFC, where it has one."""
    if not isinstance(payload, dict):
        return payload
    if isinstance(payload.get("schemas"), list):
        payload["schemas"] = [each for each in payload["schemas"] if each != _MICROSOFT_GROUP]
    if isinstance(payload.get("Operations"), list):
        payload["Operations"] = [
            part for each in payload["Operations"] for part in _split_operation(each)
        ]
    return payload


def _split_operation(operation: Any) -> list[Any]:
    """Split an operation of Entra ID, which writes paths with filters as keys of a value."""
    if not isinstance(operation, dict):
        return [operation]
    is_removal = str(operation.get("op")).lower() == "remove"
    value = _clean_entries(operation.get("value"), by_value=is_removal)
    if not isinstance(value, dict) or operation.get("path"):
        return [operation | {"value": value}] if "value" in operation else [operation]
    filtered = {name: value[name] for name in value if "[" in name}
    rest = {name: value[name] for name in value if name not in filtered}
    spread = [operation | {"path": name, "value": each} for name, each in filtered.items()]
    return spread if filtered and not rest else [operation | {"value": rest}, *spread]


def _clean_entries(value: Any, *, by_value: bool) -> Any:
    """Remove attributes of list entries that do not identify the entry.

    Okta also sends `display`, which is read-only. An entry to be removed is identified by its
    value; Entra ID also sends `"$ref": null`.
    """
    if isinstance(value, dict):
        return {
            name: _clean_entries(each, by_value=by_value) if isinstance(each, list) else each
            for name, each in value.items()
        }
    if not isinstance(value, list):
        return value
    return [_clean_entry(each, by_value=by_value) for each in value]


def _clean_entry(entry: Any, *, by_value: bool) -> Any:
    if not isinstance(entry, dict):
        return entry
    if by_value and "value" in entry:
        return {"value": entry["value"]}
    return {name: entry[name] for name in entry if name.lower() != "display"}
