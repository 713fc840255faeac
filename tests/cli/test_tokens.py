from datetime import timedelta

import pytest

from cli.hublet_command import Hublet, in_hub
from hublet.core import clock
from hublet.core.config import Settings
from hublet.core.database import Connection
from hublet.tokens import service
from hublet.tokens.format import has_valid_checksum
from hublet.tokens.records import Caller, Scope


@pytest.fixture(autouse=True)
def ada(hublet: Hublet) -> None:
    hublet("user", "add", "ada", "--password", "correct horse")


def caller(settings: Settings, value: str) -> Caller | None:
    async def work(conn: Connection) -> Caller | None:
        return await service.find_caller(conn, value)

    return in_hub(settings, work)


def test_the_token_stands_alone_on_stdout_and_works(hublet: Hublet, settings: Settings) -> None:
    created = hublet("token", "create", "ada")

    value = created.out.removesuffix("\n")
    assert created.code == 0
    assert has_valid_checksum(value)
    found = caller(settings, value)
    assert found is not None
    assert (found.user_name, found.token.role, found.token.name) == ("ada", "write", "command line")
    assert created.err == f"Created the token {found.token.id} of ada. It is shown this once.\n"


def test_a_role_and_a_name_can_be_chosen(hublet: Hublet, settings: Settings) -> None:
    value = hublet("token", "create", "ada", "--role", "read", "--name", "laptop").out.strip()

    found = caller(settings, value)
    assert found is not None
    assert (found.token.role, found.token.name) == ("read", "laptop")


def test_scopes_make_a_token_fine_grained(hublet: Hublet, settings: Settings) -> None:
    flags = ["--scope", "jobs", "--scope", "webhooks"]

    created = hublet("token", "create", "ada", *flags, "--json").json

    assert created == {
        "user": "ada",
        "id": created["id"],
        "name": "command line",
        "role": "fineGrained",
        "scopes": ["jobs", "webhooks"],
        "organizations": [],
        "hint": f"hf_…{created['token'][-4:]}",
        "createdAt": created["createdAt"],
        "expiresAt": None,
        "lastUsedAt": None,
        "token": created["token"],
    }
    found = caller(settings, created["token"])
    assert found is not None
    assert found.scopes == {Scope.jobs, Scope.webhooks}


def test_organizations_narrow_the_scopes(hublet: Hublet, settings: Settings) -> None:
    acme = hublet("org", "add", "acme", "--owner", "ada", "--json").json["id"]
    orbit = hublet("org", "add", "orbit", "--owner", "ada", "--json").json["id"]
    flags = ["--scope", "jobs", "--org", "acme", "--org", "orbit"]

    created = hublet("token", "create", "ada", *flags, "--json").json

    assert created["organizations"] == ["acme", "orbit"]
    found = caller(settings, created["token"])
    assert found is not None
    assert found.token.grants.everywhere == frozenset()
    assert [found.may(Scope.jobs, on=each) for each in (acme, orbit, found.user_id)] == [
        True,
        True,
        False,
    ]


def test_a_token_expires_when_it_was_told_to(hublet: Hublet, settings: Settings) -> None:
    created = hublet("token", "create", "ada", "--expires-in", "30d", "--json").json

    clock.move(timedelta(days=30, minutes=-1))
    before = caller(settings, created["token"])
    clock.move(timedelta(minutes=2))
    after = caller(settings, created["token"])

    assert before is not None
    assert after is None


def test_a_value_is_imported_as_it_is(hublet: Hublet, settings: Settings) -> None:
    created = hublet("token", "create", "ada", "--value", "hf_test-suite")

    assert created.out == "hf_test-suite\n"
    found = caller(settings, "hf_test-suite")
    assert found is not None
    assert found.user_name == "ada"


def test_a_value_is_imported_once(hublet: Hublet) -> None:
    hublet("token", "create", "ada", "--value", "hf_test-suite")

    again = hublet("token", "create", "ada", "--value", "hf_test-suite")

    assert (again.code, again.out, again.err) == (
        1,
        "",
        "hublet: This value was issued or imported before; choose another one.\n",
    )


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param(["nobody"], "There is no user nobody.", id="nobody's token"),
        pytest.param(
            ["ada", "--value", "short"],
            "A given value must have 8 to 200 printable ASCII characters.",
            id="a value that is too short",
        ),
        pytest.param(
            ["ada", "--scope", "jobs", "--org", "nowhere"],
            "There is no organization nowhere.",
            id="an organization that does not exist",
        ),
        pytest.param(
            ["ada", "--scope", "jobs", "--org", "acme"],
            "ada is not a member of acme.",
            id="an organization of others",
        ),
    ],
)
def test_a_refusal_is_one_sentence(hublet: Hublet, arguments: list[str], sentence: str) -> None:
    hublet("org", "add", "acme")

    refused = hublet("token", "create", *arguments)

    assert (refused.code, refused.out, refused.err) == (1, "", f"hublet: {sentence}\n")


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        pytest.param(
            ["--scope", "everything"],
            f"There is no scope everything; the scopes are {', '.join(Scope)}.",
            id="an unknown scope, with the list",
        ),
        pytest.param(
            ["--role", "read", "--scope", "write-repos"],
            "The scope write-repos goes beyond --role read.",
            id="a scope beyond the role",
        ),
        pytest.param(
            ["--org", "acme"],
            "It narrows scopes: name them with --scope.",
            id="an organization without scopes",
        ),
        pytest.param(
            ["--expires-in", "soon"],
            "soon is not a time such as 90m, 12h, 30d or 8w.",
            id="a time that is none",
        ),
        pytest.param(["--role", "admin"], "'admin' is not one of 'read', 'write'", id="a role"),
    ],
)
def test_wrong_usage_exits_with_2(hublet: Hublet, flags: list[str], sentence: str) -> None:
    refused = hublet("token", "create", "ada", *flags)

    assert (refused.code, refused.out) == (2, "")
    assert sentence in refused.err
    assert hublet("token", "list", "ada", "--json").json == []


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
def test_a_role_beside_scopes_is_their_ceiling(hublet: Hublet) -> None:
    flags = ["--role", "read", "--scope", "read-repos"]

    assert hublet("token", "create", "ada", *flags, "--json").json["scopes"] == ["read-repos"]


def test_the_list_shows_hints_and_never_values(hublet: Hublet) -> None:
    hublet("org", "add", "acme", "--owner", "ada")
    flags = ["--scope", "manage-repos", "--org", "acme", "--expires-in", "8w"]
    values = [
        hublet("token", "create", "ada", "--name", "laptop").out.strip(),
        hublet("token", "create", "ada", "--name", "robot", *flags).out.strip(),
    ]

    listed = hublet("token", "list", "ada", "--json")
    shown = hublet("token", "list", "ada")

    assert [(each["name"], each["role"], each["scopes"]) for each in listed.json] == [
        ("laptop", "write", None),
        ("robot", "fineGrained", ["manage-repos", "read-repos", "write-repos"]),
    ]
    heading, laptop, robot = shown.out.splitlines()
    assert heading.split("  ")[0] == "id"
    assert laptop.split()[1:5] == ["laptop", f"hf_…{values[0][-4:]}", "write", "-"]
    assert "manage-repos, read-repos, write-repos  acme" in robot
    assert hublet("token", "list", "ada", "-q").out.split() == [each["id"] for each in listed.json]
    assert not any(value in listed.out + shown.out for value in values)


def test_a_token_is_revoked_by_its_id(hublet: Hublet, settings: Settings) -> None:
    created = hublet("token", "create", "ada", "--json").json

    revoked = hublet("token", "revoke", "ada", created["id"])

    assert (revoked.code, revoked.out) == (0, "")
    assert revoked.err == f"Revoked the token {created['id']}.\n"
    assert caller(settings, created["token"]) is None
    assert hublet("token", "list", "ada").err == "ada has no tokens.\n"


def test_a_token_is_revoked_by_its_value(hublet: Hublet, settings: Settings) -> None:
    created = hublet("token", "create", "ada", "--json").json
    other = hublet("token", "create", "ada").out.strip()

    revoked = hublet("token", "revoke", "--value-stdin", "--json", stdin=f"{created['token']}\n")

    assert revoked.json == {"id": created["id"], "revoked": True}
    assert caller(settings, created["token"]) is None
    assert caller(settings, other) is not None


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
def test_a_disabled_users_token_can_be_revoked_by_its_value(hublet: Hublet) -> None:
    value = hublet("token", "create", "ada").out.strip()
    hublet("user", "disable", "ada")

    revoked = hublet("token", "revoke", "--value-stdin", stdin=value)

    assert revoked.code == 0


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
def test_what_cannot_be_revoked_is_told(hublet: Hublet) -> None:
    hublet("user", "add", "grace", "--password", "correct horse")
    created = hublet("token", "create", "ada", "--json").json

    by_value = hublet("token", "revoke", "--value-stdin", stdin="hf_unknown")
    by_owner = hublet("token", "revoke", "grace", created["id"])

    assert by_value.code == 1
    assert by_value.err == ("hublet: No token has this value: it is unknown, or revoked already.\n")
    assert (by_owner.code, by_owner.err) == (1, f"hublet: There is no token {created['id']}.\n")


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param([], id="nothing"),
        pytest.param(["ada"], id="an owner without an id"),
        pytest.param(["ada", "a" * 24, "--value-stdin"], id="both"),
        pytest.param(["ada", "--value-stdin"], id="an owner and a value"),
    ],
)
def test_one_way_to_name_a_token_is_needed(hublet: Hublet, arguments: list[str]) -> None:
    refused = hublet("token", "revoke", *arguments, stdin="hf_something")

    assert refused.code == 2
    assert "Give USER and ID, or --value-stdin." in refused.err
