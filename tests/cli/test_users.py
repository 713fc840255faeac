import re

import pytest

from cli.hublet_command import Hublet, in_hub
from hublet.accounts.users import service, store
from hublet.core.config import Settings
from hublet.core.database import Connection

READABLE = r"[a-z2-9]{4}(-[a-z2-9]{4}){3}"


def signs_in(settings: Settings, name: str, password: str) -> bool:
    async def work(conn: Connection) -> bool:
        return await service.find_by_password(conn, name, password) is not None

    return in_hub(settings, work)


def test_a_new_user_gets_a_password_that_is_printed_alone(
    hublet: Hublet, settings: Settings
) -> None:
    added = hublet("user", "add", "ada")

    assert added.code == 0
    assert re.fullmatch(rf"password  {READABLE}\n", added.out)
    assert added.err == "Created the user ada. The password is shown this once.\n"
    assert signs_in(settings, "ada", added.out.split()[1])


def test_a_given_password_is_taken_and_not_shown(hublet: Hublet, settings: Settings) -> None:
    added = hublet("user", "add", "ada", "--password", "correct horse")

    assert (added.code, added.out, added.err) == (0, "", "Created the user ada.\n")
    assert signs_in(settings, "ada", "correct horse")


def test_a_password_can_come_from_standard_input(hublet: Hublet, settings: Settings) -> None:
    hublet("user", "add", "ada", "--password-stdin", stdin="correct horse\n")

    assert signs_in(settings, "ada", "correct horse")


def test_json_shows_a_password_that_was_made_up(hublet: Hublet) -> None:
    added = hublet("user", "add", "ada", "--json")

    assert added.json == {
        "id": added.json["id"],
        "name": "ada",
        "password": added.json["password"],
    }
    assert re.fullmatch(READABLE, added.json["password"])
    assert added.err == ""


def test_json_does_not_repeat_a_given_password(hublet: Hublet) -> None:
    added = hublet("user", "add", "ada", "--password", "correct horse", "--json")

    assert added.json == {"id": added.json["id"], "name": "ada"}


def test_a_full_name_is_a_single_line(hublet: Hublet) -> None:
    refused = hublet("user", "add", "ada", "--fullname", "Ada\nBcc: eve@example.com")

    assert "A full name must be a single line without control characters." in refused.err


def test_a_user_has_what_the_flags_say(hublet: Hublet, settings: Settings) -> None:
    hublet(
        "user", "add", "ada", "--email", "ada@example.com", "--fullname", "Ada Lovelace", "--admin"
    )  # fmt: skip

    async def look(conn: Connection) -> tuple[str, bool, list[str]]:
        user = await service.get_user(conn, "ada")
        emails = await store.list_emails(conn, user_id=user.id)
        verified = [email.address for email in emails if email.verified_at and email.is_primary]
        return user.fullname, user.is_admin, verified

    assert in_hub(settings, look) == ("Ada Lovelace", True, ["ada@example.com"])


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param(["ada"], "The name ada is taken.", id="a name that is taken"),
        pytest.param(["ADA"], "The name ADA is taken.", id="the same name in other letters"),
        pytest.param(["settings"], "The name settings is reserved.", id="a reserved name"),
        pytest.param(
            ["bob", "--password", "short"],
            "A password has at least 8 characters.",
            id="a short password",
        ),
        pytest.param(
            ["bob", "--password", ""],
            "A password has at least 8 characters.",
            id="an empty password is not a missing one",
        ),
        pytest.param(
            ["bob", "--email", "nobody"],
            "An email address is written name@example.com, in ASCII.",
            id="an address that is none",
        ),
    ],
)
def test_a_refusal_is_one_sentence(hublet: Hublet, arguments: list[str], sentence: str) -> None:
    hublet("user", "add", "ada", "--password", "correct horse")

    refused = hublet("user", "add", *arguments)

    assert (refused.code, refused.out, refused.err) == (1, "", f"hublet: {sentence}\n")


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("arguments", "stdin", "sentence"),
    [
        pytest.param(
            ["--password", "correct horse", "--password-stdin"],
            "correct horse",
            "Give --password or --password-stdin, not both.",
            id="two passwords",
        ),
        pytest.param(["--password-stdin"], "", "Standard input is empty.", id="no password"),
    ],
)
def test_wrong_usage_creates_nobody(
    hublet: Hublet, arguments: list[str], stdin: str, sentence: str
) -> None:
    refused = hublet("user", "add", "ada", *arguments, stdin=stdin)

    assert refused.code == 2
    assert sentence in refused.err
    assert hublet("user", "list", "--json").json == []


def test_the_list_shows_everybody_oldest_first(hublet: Hublet) -> None:
    hublet("user", "add", "zoe", "--password", "correct horse", "--admin")
    hublet("user", "add", "ada", "--password", "correct horse", "--fullname", "Ada Lovelace")
    hublet("user", "disable", "ada")

    users = hublet("user", "list", "--json").json
    lines = hublet("user", "list").out.splitlines()

    assert users == [
        {
            "id": users[0]["id"],
            "name": "zoe",
            "fullname": "zoe",
            "type": "user",
            "isAdmin": True,
            "disabled": False,
            "createdAt": users[0]["createdAt"],
        },
        {
            "id": users[1]["id"],
            "name": "ada",
            "fullname": "Ada Lovelace",
            "type": "user",
            "isAdmin": False,
            "disabled": True,
            "createdAt": users[1]["createdAt"],
        },
    ]
    shown = [user["createdAt"][:16].replace("T", " ") for user in users]
    assert lines == [
        "name  full name     type  admin  disabled  created",
        f"zoe   zoe           user  yes    no        {shown[0]}",
        f"ada   Ada Lovelace  user  no     yes       {shown[1]}",
    ]
    assert hublet("user", "list", "-q").out == "zoe\nada\n"


def test_a_list_without_rows_says_so_in_words_only(hublet: Hublet) -> None:
    listed = hublet("user", "list")

    assert (listed.code, listed.out, listed.err) == (0, "", "There are no users yet.\n")


def test_a_list_goes_on_after_its_first_page(hublet: Hublet, settings: Settings) -> None:
    names = [f"user-{number}" for number in range(205)]

    async def fill(conn: Connection) -> None:
        for name in names:
            await service.create_user(conn, name)

    in_hub(settings, fill)

    assert hublet("user", "list", "--quiet").out.split() == names


def test_a_user_is_disabled_and_enabled_again(hublet: Hublet, settings: Settings) -> None:
    hublet("user", "add", "ada", "--password", "correct horse")

    disabled = hublet("user", "disable", "ada")
    locked_out = not signs_in(settings, "ada", "correct horse")
    enabled = hublet("user", "enable", "ada", "--json")

    assert disabled.err == "ada is disabled: tokens and password fail.\n"
    assert locked_out
    assert enabled.json == {"id": enabled.json["id"], "name": "ada", "disabled": False}
    assert signs_in(settings, "ada", "correct horse")


def test_doing_it_twice_is_told_and_no_error(hublet: Hublet) -> None:
    hublet("user", "add", "ada")

    never = hublet("user", "enable", "ada")
    hublet("user", "disable", "ada")
    again = hublet("user", "disable", "ada")

    assert (never.code, never.err) == (0, "ada was not disabled.\n")
    assert (again.code, again.err) == (0, "ada was disabled already.\n")


def test_a_new_password_replaces_the_old_one(hublet: Hublet, settings: Settings) -> None:
    hublet("user", "add", "ada", "--password", "correct horse")

    changed = hublet("user", "password", "ada")

    assert re.fullmatch(rf"password  {READABLE}\n", changed.out)
    assert changed.err == "ada has a new password. The password is shown this once.\n"
    assert signs_in(settings, "ada", changed.out.split()[1])
    assert not signs_in(settings, "ada", "correct horse")


def test_a_new_password_can_be_given(hublet: Hublet, settings: Settings) -> None:
    hublet("user", "add", "ada")

    changed = hublet("user", "password", "ada", "--password-stdin", stdin="battery staple\r\n")

    assert (changed.out, changed.err) == ("", "ada has a new password.\n")
    assert signs_in(settings, "ada", "battery staple")


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
@pytest.mark.parametrize("command", ["disable", "enable", "password"])
def test_an_unknown_user_is_told(hublet: Hublet, command: str) -> None:
    refused = hublet("user", command, "nobody")

    assert (refused.code, refused.err) == (1, "hublet: There is no user nobody.\n")


def test_a_name_of_a_test_suite_needs_a_flag(hublet: Hublet) -> None:
    refused = hublet("user", "add", "__DUMMY_HUB_USER__", "--password", "correct horse")
    imported = hublet(
        "user", "add", "__DUMMY_HUB_USER__", "--password", "correct horse", "--any-name"
    )
    organization = hublet("org", "add", "valid_org_hub", "--any-name")

    assert (refused.code, imported.code, organization.code) == (1, 0, 0)
    assert hublet("user", "list", "-q").out == "__DUMMY_HUB_USER__\n"
    assert hublet("org", "list", "-q").out == "valid_org_hub\n"


def test_links_to_a_password_and_to_an_account_are_printed_alone(hublet: Hublet) -> None:
    hublet("user", "add", "ada")
    hublet("org", "add", "analytical")

    reset = hublet("user", "reset-link", "ada")
    invited = hublet("user", "invite", "--organization", "analytical", "--role", "write")
    refused = hublet("user", "invite", "--role", "king")

    assert re.fullmatch(r"http://\S+/reset-password/\w{43}\n", reset.out)
    assert reset.err == "Send this to ada. It works once, within an hour.\n"
    assert re.fullmatch(r"http://\S+/invitations/\w{43}\n", invited.out)
    assert refused.code == 2
