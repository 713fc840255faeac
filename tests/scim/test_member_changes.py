"""The member changes of a request, as sets of ids."""

from typing import Any

import pytest

from hublet.scim.member_changes import (
    ExtractedChanges,
    extract_from_group,
    extract_from_patch,
    members_after,
)
from scim.directories import GROUP, PATCH

NOTHING = {"op": "add", "path": "members", "value": []}
NAMED = {"op": "replace", "path": "displayName", "value": "Mills"}


def _patch(*operations: Any) -> dict[str, Any]:
    return {"schemas": [PATCH], "Operations": list(operations)}


def _rest_of(extracted: ExtractedChanges | None) -> str:
    """Who is in a group of a and b afterwards."""
    assert extracted is not None
    return "".join(sorted(members_after(extracted.changes, {"a", "b"})))


@pytest.mark.parametrize(
    ("operation", "left"),
    [
        ({"op": "add", "path": "members", "value": [{"value": "c"}]}, "abc"),
        ({"op": "ADD", "path": "MEMBERS", "value": [{"Value": "c"}]}, "abc"),
        ({"OP": "Add", "Path": "members", "VALUE": [{"value": "c", "$ref": None}]}, "abc"),
        ({"op": "add", "path": f"{GROUP}:members", "value": {"value": "c"}}, "abc"),
        ({"op": "add", "path": "members", "value": [{"$ref": "https://x/Users/c"}]}, "abc"),
        ({"op": "add", "path": "members", "value": [{"value": "c", "shoe": 1}]}, "abc"),
        ({"op": "add", "value": {"members": [{"value": "c"}]}}, "abc"),
        ({"op": "add", "value": {f"{GROUP}:Members": [{"value": "c"}]}}, "abc"),
        ({"op": "replace", "path": "members", "value": [{"value": "c"}]}, "c"),
        ({"op": "replace", "value": {"members": [{"value": "c"}]}}, "c"),
        ({"op": "replace", "path": "members", "value": None}, ""),
        ({"op": "replace", "path": "members", "value": []}, ""),
        ({"op": "remove", "path": "members"}, ""),
        ({"op": "remove", "path": "members", "value": []}, "ab"),
        ({"op": "Remove", "path": "members", "value": [{"value": "a"}, {"value": "z"}]}, "b"),
        ({"op": "remove", "path": 'members[value eq "a"]'}, "b"),
        ({"op": "remove", "path": f'{GROUP}:MEMBERS [ VALUE  EQ "a" ]'}, "b"),
        ({"op": "remove", "path": 'members[value eq "a" or value eq "b"]'}, ""),
    ],
)
def test_members_are_taken_out_of_a_patch(operation: dict[str, Any], left: str) -> None:
    extracted = extract_from_patch(_patch(operation))

    assert _rest_of(extracted) == left
    assert extracted is not None
    assert extracted.rest == _patch(NOTHING)


def test_what_is_not_about_members_is_left() -> None:
    mixed = {"op": "replace", "value": {"displayName": "Mills", "members": [{"value": "c"}]}}
    removed = {"op": "remove", "path": 'members[value eq "c"]'}
    added = {"op": "add", "path": "members", "value": [{"value": "d"}]}

    extracted = extract_from_patch(_patch(NAMED, mixed, added, removed))

    assert _rest_of(extracted) == "d"
    assert extracted is not None
    assert extracted.rest == _patch(NAMED, {"op": "replace", "value": {"displayName": "Mills"}})


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "add", "path": "members", "value": None},
        {"op": "add", "path": "members"},
        {"op": "add", "path": "members", "value": "c"},
        {"op": "add", "path": "members", "value": ["c"]},
        {"op": "add", "path": "members", "value": [{"value": 7}]},
        {"op": "add", "path": "members", "value": {"value": "c", "display": "x"}},
        {"op": "add", "path": "members.value", "value": "c"},
        {"op": "add", "path": 'members[value eq "c"]', "value": {"value": "c"}},
        {"op": "add", "path": GROUP, "value": {"members": [{"value": "c"}]}},
        {"op": "add", "value": {GROUP: {"members": [{"value": "c"}]}}},
        {"op": "add", "value": {"members": [{"value": "c"}], "MEMBERS": []}},
        {"op": "add", "path": "members", "value": [{"value": "c"}], "shoe": 1},
        {"op": "move", "path": "members"},
        {"op": "remove", "path": "members", "value": [{}]},
        {"op": "remove", "path": "members", "value": ["a"]},
        {"op": "remove", "path": "members", "value": [{"display": "a"}]},
        {"op": "remove", "path": 'members[value eq "a"]', "value": []},
        {"op": "remove", "path": 'members[value eq "a"].value'},
        {"op": "remove", "path": 'members[value eq "a" and type eq "User"]'},
        {"op": "remove", "path": r'members[value eq "\u0061"]'},
        "x",
    ],
)
def test_other_forms_are_left_to_the_library(operation: Any) -> None:
    assert extract_from_patch(_patch(NAMED, operation)) is None


@pytest.mark.parametrize("payload", [None, [], "x", {}, {"Operations": []}, {"Operations": "x"}])
def test_what_is_no_patch_is_left_to_the_library(payload: Any) -> None:
    assert extract_from_patch(payload) is None


@pytest.mark.parametrize(
    ("told", "left"),
    [
        ({}, ""),
        ({"members": None}, ""),
        ({"members": []}, ""),
        ({"Members": [{"value": "c", "type": "User", "$ref": "x", "display": "C"}]}, "c"),
        ({"members": [{"value": "c"}, {"value": "c"}, {"$ref": "Users/d"}]}, "cd"),
    ],
)
def test_members_are_taken_out_of_a_whole_group(told: dict[str, Any], left: str) -> None:
    extracted = extract_from_group({"displayName": "Mills"} | told)

    assert _rest_of(extracted) == left
    assert extracted is not None
    assert extracted.rest == {"displayName": "Mills"}


@pytest.mark.parametrize(
    "payload",
    [
        [],
        {"members": "c"},
        {"members": {"value": "c"}},
        {"members": [{"value": 7}]},
        {"members": [{"value": "c", "shoe": 1}]},
        {"members": [{"value": "c", "type": "Group"}]},
        {"members": [], "MEMBERS": []},
    ],
)
def test_a_group_of_another_form_is_left_to_the_library(payload: Any) -> None:
    assert extract_from_group(payload) is None
