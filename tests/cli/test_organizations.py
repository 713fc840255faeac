from typing import get_args

import pytest

from cli.hublet_command import Hublet, in_hub
from hublet.accounts.records import DefaultVisibility, OrganizationPlan, Role
from hublet.cli.organizations import PlanName, RoleName, VisibilityName
from hublet.core.config import Settings
from hublet.core.database import Connection


@pytest.fixture
def acme(hublet: Hublet) -> str:
    """An organization with ada as its administrator; grace is there too, but no member."""
    hublet("user", "add", "ada", "--password", "correct horse")
    hublet("user", "add", "grace", "--password", "correct horse")
    hublet("org", "add", "acme", "--owner", "ada")
    return "acme"


def members(hublet: Hublet) -> dict[str, str]:
    listed = hublet("org", "member", "list", "acme", "--json").json
    return {member["name"]: member["role"] for member in listed}


def test_the_names_of_plans_roles_and_visibilities_are_those_of_the_accounts() -> None:
    assert list(get_args(PlanName)) == list(OrganizationPlan)
    assert list(get_args(RoleName)) == list(Role)
    assert list(get_args(VisibilityName)) == list(DefaultVisibility)


def test_the_visibility_of_new_repositories_is_set(hublet: Hublet, acme: str) -> None:
    shown = hublet("org", "visibility", acme, "private")
    data = hublet("org", "visibility", acme, "public", "--json").json

    sentence = "New repositories of acme are private unless their creator says otherwise.\n"
    assert (shown.code, shown.out, shown.err) == (0, "", sentence)
    assert data == {"id": data["id"], "name": "acme", "defaultVisibility": "public"}


def test_an_unknown_visibility_is_refused(hublet: Hublet, acme: str) -> None:
    assert hublet("org", "visibility", acme, "protected").code == 2


def test_an_organization_is_free_unless_a_plan_is_given(hublet: Hublet) -> None:
    free = hublet("org", "add", "acme")
    paid = hublet("org", "add", "orbit", "--plan", "enterprise-plus", "--json")

    assert (free.code, free.out, free.err) == (0, "", "Created the organization acme.\n")
    assert paid.json == {"id": paid.json["id"], "name": "orbit", "plan": "enterprise-plus"}


def test_the_list_shows_every_organization(hublet: Hublet) -> None:
    hublet("org", "add", "orbit", "--plan", "team")
    hublet("org", "add", "acme", "--fullname", "Acme Limited")

    listed = hublet("org", "list", "--json").json
    lines = hublet("org", "list").out.splitlines()

    assert listed == [
        {
            "id": listed[0]["id"],
            "name": "orbit",
            "fullname": "orbit",
            "plan": "team",
            "createdAt": listed[0]["createdAt"],
        },
        {
            "id": listed[1]["id"],
            "name": "acme",
            "fullname": "Acme Limited",
            "plan": "free",
            "createdAt": listed[1]["createdAt"],
        },
    ]
    shown = [each["createdAt"][:16].replace("T", " ") for each in listed]
    assert lines == [
        "name   full name     plan  created",
        f"orbit  orbit         team  {shown[0]}",
        f"acme   Acme Limited  free  {shown[1]}",
    ]
    assert hublet("org", "list", "--quiet").out == "orbit\nacme\n"


def test_an_owner_is_the_first_administrator(hublet: Hublet, acme: str) -> None:
    assert members(hublet) == {"ada": "admin"}


def test_an_owner_who_is_nobody_creates_nothing(hublet: Hublet) -> None:
    refused = hublet("org", "add", "acme", "--owner", "nobody")

    assert (refused.code, refused.err) == (1, "hublet: There is no user nobody.\n")
    assert hublet("org", "list").err == "There are no organizations yet.\n"


def test_a_plan_is_changed(hublet: Hublet, acme: str) -> None:
    changed = hublet("org", "plan", "acme", "enterprise")

    assert changed.err == "acme is on the plan enterprise.\n"
    assert [each["plan"] for each in hublet("org", "list", "--json").json] == ["enterprise"]


def test_a_member_reads_unless_a_role_is_given(hublet: Hublet, acme: str) -> None:
    added = hublet("org", "member", "add", "acme", "grace")

    assert (added.code, added.out) == (0, "")
    assert added.err == "grace is a member of acme with the role read.\n"
    assert members(hublet) == {"ada": "admin", "grace": "read"}


def test_a_member_can_be_added_as_anything(hublet: Hublet, acme: str) -> None:
    added = hublet("org", "member", "add", "acme", "grace", "--role", "contributor", "--json")

    assert added.json == {"organization": "acme", "user": "grace", "role": "contributor"}


def test_adding_somebody_again_does_not_take_rights_away(hublet: Hublet, acme: str) -> None:
    hublet("org", "member", "add", "acme", "grace", "--role", "write")

    same = hublet("org", "member", "add", "acme", "grace", "--role", "write")
    less = hublet("org", "member", "add", "acme", "grace")

    assert same.code == 0
    assert less.code == 1
    assert less.err == (
        "hublet: grace is a member of acme already, with the role write: change that with "
        "hublet org member role.\n"
    )
    assert members(hublet) == {"ada": "admin", "grace": "write"}


def test_a_role_is_changed(hublet: Hublet, acme: str) -> None:
    hublet("org", "member", "add", "acme", "grace")

    hublet("org", "member", "role", "acme", "grace", "admin")

    assert members(hublet) == {"ada": "admin", "grace": "admin"}


def test_a_member_is_removed(hublet: Hublet, acme: str) -> None:
    hublet("org", "member", "add", "acme", "grace")

    removed = hublet("org", "member", "remove", "acme", "grace", "--json")

    assert removed.json == {"organization": "acme", "user": "grace", "role": None}
    assert members(hublet) == {"ada": "admin"}


def test_the_list_of_members_can_be_read_by_people(hublet: Hublet, acme: str) -> None:
    hublet("org", "member", "add", "acme", "grace")

    assert hublet("org", "member", "list", "acme").out.splitlines() == [
        "name   full name  role   disabled",
        "ada    ada        admin  no",
        "grace  grace      read   no",
    ]
    assert hublet("org", "member", "list", "acme", "-q").out == "ada\ngrace\n"


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param(["add", "ada"], "The name ada is taken.", id="a user's name"),
        pytest.param(
            ["plan", "nowhere", "team"],
            "There is no organization nowhere.",
            id="the plan of nothing",
        ),
        pytest.param(
            ["member", "add", "nowhere", "ada"],
            "There is no organization nowhere.",
            id="a member of nothing",
        ),
        pytest.param(
            ["member", "add", "acme", "nobody"], "There is no user nobody.", id="nobody as member"
        ),
        pytest.param(
            ["member", "role", "acme", "grace", "write"],
            "grace is not a member of acme.",
            id="the role of a stranger",
        ),
        pytest.param(
            ["member", "remove", "acme", "grace"],
            "grace is not a member of acme.",
            id="a stranger cannot be removed",
        ),
        pytest.param(
            ["member", "list", "nowhere"],
            "There is no organization nowhere.",
            id="the members of nothing",
        ),
        pytest.param(
            ["member", "remove", "acme", "ada"],
            "acme would be left without an administrator: make somebody else one first.",
            id="the last administrator stays",
        ),
        pytest.param(
            ["member", "role", "acme", "ada", "write"],
            "acme would be left without an administrator: make somebody else one first.",
            id="the last administrator stays one",
        ),
    ],
)
def test_a_refusal_is_one_sentence(
    hublet: Hublet, acme: str, arguments: list[str], sentence: str
) -> None:
    refused = hublet("org", *arguments)

    assert (refused.code, refused.out, refused.err) == (1, "", f"hublet: {sentence}\n")


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["add", "orbit", "--plan", "gold"], id="an unknown plan"),
        pytest.param(["plan", "acme", "gold"], id="an unknown plan to change to"),
        pytest.param(["member", "add", "acme", "grace", "--role", "king"], id="an unknown role"),
        pytest.param(["member", "role", "acme", "ada"], id="no role"),
    ],
)
def test_wrong_usage_exits_with_2(hublet: Hublet, acme: str, arguments: list[str]) -> None:
    refused = hublet("org", *arguments)

    assert refused.code == 2
    assert refused.out == ""
    assert "Error: " in refused.err


def test_the_audit_log_names_the_operator(hublet: Hublet, settings: Settings, acme: str) -> None:
    hublet("org", "plan", "acme", "team")

    async def lines(conn: Connection) -> list[tuple[str, ...]]:
        rows = await conn.fetch_all("SELECT actor_name, action, target FROM audit_log ORDER BY id")
        return [tuple(row) for row in rows]

    assert in_hub(settings, lines) == [
        ("operator", "organization.create", "acme"),
        ("operator", "member.add", "ada"),
        ("operator", "organization.plan", "acme"),
    ]
