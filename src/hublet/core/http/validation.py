"""Validation messages: one sentence for each problem, with the field and the rule it breaks."""

from collections.abc import Sequence
from typing import Any

from hublet.core.schema import MAX_PROBLEMS

# Pydantic's error types, in words that name the rule. `{…}` is filled from the error's context.
_RULES = {
    "missing": "is required",
    "extra_forbidden": "is not a known field",
    "string_type": "must be a string",
    "string_too_short": "must have at least {min_length} character(s)",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must match {pattern}",
    "string_unicode": "must be valid Unicode text",
    "int_type": "must be an integer",
    "int_parsing": "must be an integer",
    "int_parsing_size": "is too large",
    "int_from_float": "must be an integer",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "list_type": "must be an array",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "too_short": "must have at least {min_length} item(s)",
    "too_long": "must have at most {max_length} items",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "enum": "must be one of {expected}",
    "literal_error": "must be one of {expected}",
    "datetime_type": "must be a timestamp such as 2026-11-15T01:44:56Z",
    "datetime_parsing": "must be a timestamp such as 2026-11-15T01:44:56Z",
    "datetime_from_date_parsing": "must be a timestamp such as 2026-11-15T01:44:56Z",
    "timezone_aware": "must be a timestamp with a time zone, such as 2026-11-15T01:44:56Z",
    "url_parsing": "must be a URL",
    "url_type": "must be a URL",
}


def describe_problems(errors: Sequence[Any]) -> str:
    """Return one sentence per problem. The values that were sent are never repeated."""
    sentences = [_describe_problem(error) for error in errors[:MAX_PROBLEMS]]
    if len(errors) > MAX_PROBLEMS:
        # How many is not known: what is over the limit is not looked at.
        sentences.append("And more problems.")
    return " ".join(dict.fromkeys(sentences))


def _describe_problem(error: Any) -> str:
    kind, place, context = error["type"], error["loc"], error.get("ctx") or {}
    if kind == "json_invalid":
        return "The body must be valid JSON."
    # What is not sent as JSON is not read: curl -d alone says that it sends a form.
    if place == ("body",) and isinstance(error.get("input"), bytes):
        return "The body must be JSON, with the header Content-Type: application/json."
    field = _field_name(place)
    if kind == "value_error":
        return f"{field}: {context.get('error', error['msg'])}."
    rule = _RULES.get(kind)
    if rule is None:
        return f"{field}: {error['msg']}."
    return f"{field} {rule.format_map(context)}."


def _field_name(place: Sequence[int | str]) -> str:
    """Name the field as the caller wrote it: `watched[0].type`, or the body itself."""
    source, *path = place
    if not path:
        return "The body" if source == "body" else f"The {source}"
    name = ""
    for step in path:
        name += f"[{step}]" if isinstance(step, int) else f".{step}" if name else step
    return name
