"""Groups of thousands: the cost of a change does not grow with the members who stay."""

from typing import Any, NoReturn

import httpx2
import pytest
from scim2_models.messages import patch_op

from hublet.accounts.organizations import audit_store as audit
from hublet.accounts.records import AuditFilter
from hublet.core.database import Database
from hublet.scim import groups, groups_store
from hublet.scim.protocol import handler, resources
from scim.directories import GROUP, PATCH, Directory, a_directory, error_body

USUAL = [
    {"op": "add", "path": "members", "value": [{"value": "C"}]},
    {"op": "add", "value": {"members": [{"value": "C"}], "displayName": "Mills"}},
    {"op": "remove", "path": 'members[value eq "A"]'},
    {"op": "Remove", "path": "members", "value": [{"value": "A", "$ref": None}]},
    {"op": "remove", "path": "members"},
    {"op": "replace", "path": "members", "value": [{"value": "C"}]},
    {"op": "replace", "path": "displayName", "value": "Mills"},
]


@pytest.fixture
def library_sees_no_members(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither is one made for it, nor does it copy any."""
    copied = patch_op._snapshot  # noqa: SLF001 - it is what takes the time

    def snapshot(resource: Any, *rest: Any) -> Any:
        assert not resource.members
        return copied(resource, *rest)

    def made(**_: Any) -> NoReturn:
        raise AssertionError("A member was made for the library.")

    monkeypatch.setattr(patch_op, "_snapshot", snapshot)
    monkeypatch.setattr(resources, "Member", made)


async def _people(directory: Directory) -> dict[str, str]:
    return {name: (await directory.add(name))["id"] for name in "abc"}


async def _group(directory: Directory, *ids: str) -> str:
    group = await directory.add_group("Engines", [{"id": each} for each in ids])
    return f"/Groups/{group['id']}"


def _filled(value: Any, ids: dict[str, str]) -> Any:
    """Put ids in the place of A, B and C."""
    if isinstance(value, dict):
        return {name: _filled(each, ids) for name, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, ids) for each in value]
    if isinstance(value, str) and '"A"' in value:
        return value.replace("A", ids["a"])
    return ids[value.lower()] if value in {"A", "B", "C"} else value


@pytest.mark.parametrize("operation", USUAL)
@pytest.mark.usefixtures("library_sees_no_members")
async def test_a_change_copies_no_members(invited: Directory, operation: dict[str, Any]) -> None:
    ids = await _people(invited)
    path = await _group(invited, ids["a"], ids["b"])

    response = await invited.patch(path, _filled(operation, ids))

    assert (response.status_code, response.headers["etag"]) == (204, 'W/"2"')


@pytest.mark.usefixtures("library_sees_no_members")
async def test_a_group_is_created_replaced_shown_and_deleted_without(invited: Directory) -> None:
    ids = await _people(invited)
    body = {"schemas": [GROUP], "displayName": "Mills", "members": [{"value": ids["c"]}]}
    path = await _group(invited, ids["a"], ids["b"])

    replaced = await invited.ask("PUT", path, json=body)
    shown = await invited.ask("GET", path)
    listed = await invited.ask("GET", "/Groups", params={"attributes": "displayName,members"})

    assert (replaced.status_code, shown.status_code) == (200, 200)
    assert replaced.json() == shown.json()
    [group] = listed.json()["Resources"]
    for answer in (shown.json(), group):
        assert [member["value"] for member in answer["members"]] == [ids["c"]]
    assert (await invited.ask("DELETE", path)).status_code == 204


async def test_only_what_differs_is_written(
    invited: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = await _people(invited)
    path = await _group(invited, ids["a"], ids["b"])
    written: list[list[str]] = []
    for name in ("add_members", "remove_members"):

        async def noted(_conn: Any, _group_id: str, changed: list[str]) -> None:
            written.append(changed)

        monkeypatch.setattr(groups_store, name, noted)

    members = [{"value": ids["a"]}, {"value": ids["c"]}]
    await invited.patch(path, {"op": "replace", "path": "members", "value": members})

    assert written == [[ids["c"]], [ids["b"]]]


@pytest.mark.parametrize(
    "operations",
    [
        [{"op": "add", "path": "members", "value": [{"value": "A"}]}],
        [{"op": "replace", "path": "members", "value": [{"value": "B"}, {"value": "A"}]}],
        [{"op": "remove", "path": "members", "value": [{"value": "C"}]}],
        [
            {"op": "remove", "path": 'members[value eq "A"]'},
            {"op": "add", "path": "members", "value": [{"value": "A", "type": "User"}]},
        ],
        [{"op": "replace", "value": {"displayName": "Engines"}}],
    ],
)
async def test_what_changes_nothing_leaves_no_trace(
    database: Database, invited: Directory, operations: list[dict[str, Any]]
) -> None:
    ids = await _people(invited)
    path = await _group(invited, ids["a"], ids["b"])
    before = (await invited.ask("GET", path)).json()

    response = await invited.patch(path, *_filled(operations, ids))

    assert (response.status_code, response.headers["etag"]) == (204, 'W/"1"')
    assert (await invited.ask("GET", path)).json() == before
    async with database.read() as conn:
        lines = await audit.list_of(conn, invited.organization.id, AuditFilter())
    assert "scim-group.update" not in [line.action for line in lines]


async def test_the_audit_log_tells_how_many_are_left(
    database: Database, invited: Directory
) -> None:
    ids = await _people(invited)
    path = await _group(invited, ids["a"], ids["b"])

    await invited.patch(path, _filled(USUAL[0], ids))
    await invited.ask("DELETE", path)

    async with database.read() as conn:
        lines = await audit.list_of(conn, invited.organization.id, AuditFilter())
    told = {line.action: line.details["members"] for line in lines if "group" in line.action}
    assert told == {"scim-group.create": 2, "scim-group.update": 3, "scim-group.delete": 3}


async def test_a_group_has_at_most_so_many_members(
    invited: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups, "MAX_MEMBERS", 2)
    ids = await _people(invited)
    path = await _group(invited, ids["a"], ids["b"])
    group = {"schemas": [GROUP], "displayName": "All"}
    everybody = [{"value": each} for each in ids.values()]

    for response in (
        await invited.patch(path, _filled(USUAL[0], ids)),
        await invited.ask("PUT", path, json=group | {"members": everybody}),
        await invited.ask("POST", "/Groups", json=group | {"members": everybody}),
    ):
        assert response.status_code == 400
        assert response.json() == error_body(
            400, "members must have at most 2 items.", "invalidValue"
        )


UNUSUAL = [
    {"op": "remove", "path": 'members[display eq "a"]'},
    {"op": "remove", "path": 'members[not (value eq "A")]'},
    {"op": "add", "path": GROUP, "value": {"members": [{"value": "C"}]}},
]


@pytest.mark.parametrize("operation", UNUSUAL)
async def test_unusual_changes_are_for_small_groups(
    invited: Directory, monkeypatch: pytest.MonkeyPatch, operation: dict[str, Any]
) -> None:
    ids = await _people(invited)
    path = await _group(invited, ids["a"], ids["b"])

    monkeypatch.setattr(handler, "MAX_COST", 1)
    refused = await invited.patch(path, _filled(operation, ids))
    monkeypatch.setattr(handler, "MAX_COST", 2)
    taken = await invited.patch(path, _filled(operation, ids))

    assert refused.json() == error_body(
        400,
        "members: there are too many for a change of this form; name them by their values.",
        "tooMany",
    )
    assert (taken.status_code, taken.headers["etag"]) == (204, 'W/"2"')


async def test_how_large_a_group_of_others_is_nobody_hears(
    client: httpx2.AsyncClient,
    database: Database,
    invited: Directory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = await _people(invited)
    path = await _group(invited, ids["a"], ids["b"])
    other = await a_directory(client, database, name="other")
    monkeypatch.setattr(handler, "MAX_COST", 1)

    response = await other.patch(path, _filled(UNUSUAL[0], ids))

    group_id = path.rpartition("/")[2]
    assert response.json() == error_body(404, f"There is no group {group_id} in this directory.")


async def test_a_changed_group_is_shown_as_far_as_it_is_asked_for(invited: Directory) -> None:
    ids = await _people(invited)
    path = await _group(invited, ids["a"])
    body = {"schemas": [PATCH], "Operations": [_filled(USUAL[0], ids)]}

    response = await invited.ask(
        "PATCH", path, json=body, params={"attributes": "members.value,members.display"}
    )

    assert response.status_code == 200
    assert response.json()["members"] == [
        {"value": ids["a"], "display": "a"},
        {"value": ids["c"], "display": "c"},
    ]
