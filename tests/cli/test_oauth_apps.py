import pytest

from cli.hublet_command import Hublet, in_hub
from hublet.core.config import Settings
from hublet.core.database import Connection
from hublet.oauth.apps import service
from hublet.oauth.apps.service import find_app, find_secret_of
from hublet.oauth.records import COMMAND_LINE_CLIENT_ID
from hublet.tokens.records import Scope


@pytest.fixture
def acme(hublet: Hublet) -> str:
    """An Enterprise organization with ada as its administrator."""
    hublet("user", "add", "ada", "--password", "correct horse")
    hublet("org", "add", "acme", "--plan", "enterprise", "--owner", "ada")
    return "acme"


def an_app(hublet: Hublet, *more: str) -> str:
    outcome = hublet("oauth", "app", "create", "Engine", *more)
    assert outcome.code == 0, outcome.err
    return outcome.out.strip()


def actions(settings: Settings) -> list[tuple[str, str]]:
    async def work(conn: Connection) -> list[tuple[str, str]]:
        rows = await conn.fetch_all(
            "SELECT action, actor_name FROM audit_log WHERE action LIKE 'oauth%' ORDER BY id"
        )
        return [(row["action"], row["actor_name"]) for row in rows]

    return in_hub(settings, work)


def test_a_new_app_prints_its_client_id_alone(hublet: Hublet, acme: str) -> None:
    created = hublet("oauth", "app", "create", " My  engine", "--owner", "ada")
    shown = hublet("oauth", "app", "show", created.out.strip(), "--json").json

    assert (created.code, created.err) == (
        0,
        "Created the app My engine. It is public: it has no secret.\n",
    )
    assert shown == {
        "clientId": created.out.strip(),
        "name": "My engine",
        "kind": "registered",
        "owner": "ada",
        "organization": None,
        "redirectUris": [],
        "scopes": ["openid", "profile"],
        "isPublic": True,
        "tokenExchange": False,
        "tokenSeconds": 28800,
        "createdAt": shown["createdAt"],
    }


def test_a_new_secret_is_printed_alone(hublet: Hublet, settings: Settings, acme: str) -> None:
    options = ["--org", acme, "--redirect-uri", "http://localhost/cb", "--scope", "jobs"]
    created = hublet("oauth", "app", "create", "Engine", *options, "--secret")
    [row] = hublet("oauth", "app", "list", "--json").json

    async def fits(conn: Connection) -> bool:
        app = await find_app(conn, row["clientId"])
        assert app is not None
        return await find_secret_of(conn, app, created.out.strip()) is not None

    assert created.err == (
        f"Created the app Engine with the client id {row['clientId']}. "
        "Its secret is shown this once.\n"
    )
    assert in_hub(settings, fits)
    assert (row["owner"], row["organization"], row["isPublic"]) == (None, "acme", False)
    assert (row["redirectUris"], row["scopes"]) == (["http://localhost/cb"], ["jobs"])


def test_as_json_the_secret_stands_beside_the_app(hublet: Hublet, acme: str) -> None:
    created = hublet("oauth", "app", "create", "E", "--owner", "ada", "--secret", "--json").json
    shown = hublet("oauth", "app", "show", created["clientId"], "--json").json

    assert created == shown | {"secret": created["secret"]}
    assert created["secret"].startswith("hf_cs_")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["E"], "Give --owner, --org, or both.", id="nobody's"),
        pytest.param(
            ["E", "--owner", "ada", "--scope", "everything"],
            "There is no scope everything; the scopes are",
            id="an unknown scope",
        ),
        pytest.param(
            ["", "--owner", "ada"], "the name of an app has 1 to 100 characters.", id="no name"
        ),
        pytest.param(
            ["E", "--owner", "ada", *["--redirect-uri", "http://localhost/"] * 21],
            "An app has at most 20 redirect URIs.",
            id="too many redirect URIs",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(
    hublet: Hublet, acme: str, arguments: list[str], words: str
) -> None:
    refused = hublet("oauth", "app", "create", *arguments)

    assert refused.code == 2
    assert words in refused.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--owner", "nobody"], "There is no user nobody."),
        (["--org", "nowhere"], "There is no organization nowhere."),
        (
            ["--owner", "ada", "--redirect-uri", "http://a.io"],
            "redirectUris[0]: http is only for localhost, 127.0.0.1 and [::1]; other hosts need https.",
        ),
    ],
)
def test_what_breaks_a_rule_is_refused_with_the_rule(
    hublet: Hublet, acme: str, arguments: list[str], sentence: str
) -> None:
    refused = hublet("oauth", "app", "create", "E", *arguments)

    assert refused.code == 1
    assert refused.err == f"hublet: {sentence}\n"


def test_the_list_shows_every_app(hublet: Hublet, settings: Settings, acme: str) -> None:
    client_id = an_app(hublet, "--owner", "ada")
    in_hub(settings, service.provision_command_line)

    listed = hublet("oauth", "app", "list", "--json").json
    lines = hublet("oauth", "app", "list").out.splitlines()

    assert [(row["clientId"], row["kind"]) for row in listed] == [
        (client_id, "registered"),
        (COMMAND_LINE_CLIENT_ID, "first-party"),
    ]
    assert listed[1]["scopes"] == sorted(Scope)
    assert lines[0].split()[:3] == ["client", "id", "name"]
    assert lines[1].startswith(client_id)
    assert hublet("oauth", "app", "list", "-q").out.split() == [client_id, COMMAND_LINE_CLIENT_ID]


def test_an_empty_list_says_so(hublet: Hublet) -> None:
    assert hublet("oauth", "app", "list").err == "There are no apps yet.\n"


def test_an_app_is_shown_line_by_line(hublet: Hublet, acme: str) -> None:
    client_id = an_app(hublet, "--owner", "ada", "--org", "acme")

    lines = hublet("oauth", "app", "show", client_id).out.splitlines()

    assert lines[:5] == [
        f"clientId: {client_id}",
        "name: Engine",
        "kind: registered",
        "owner: ada",
        "organization: acme",
    ]


def test_an_app_can_be_deleted(hublet: Hublet, acme: str) -> None:
    client_id = an_app(hublet, "--owner", "ada")

    deleted = hublet("oauth", "app", "delete", client_id, "--yes")
    again = hublet("oauth", "app", "delete", client_id, "-y")

    assert (deleted.code, deleted.out, deleted.err) == (
        0,
        "",
        "Deleted the app Engine. All access to it has ended.\n",
    )
    assert (again.code, again.err) == (
        1,
        f"hublet: There is no app {client_id}, or it is not yours to manage.\n",
    )


def test_an_app_is_deleted_only_when_that_is_wanted(hublet: Hublet, acme: str) -> None:
    client_id = an_app(hublet, "--owner", "ada")

    refused = hublet("oauth", "app", "delete", client_id)

    assert (refused.code, refused.out) == (1, "")
    assert refused.err == (
        f"hublet: Delete the app {client_id}, and with it all access to it? There is no terminal "
        "to ask on: say so with --yes.\n"
    )
    assert hublet("oauth", "app", "show", client_id).code == 0


def test_the_command_line_cannot_be_deleted(hublet: Hublet, settings: Settings) -> None:
    in_hub(settings, service.provision_command_line)

    refused = hublet("oauth", "app", "delete", COMMAND_LINE_CLIENT_ID, "--yes")

    assert (refused.code, refused.err) == (
        1,
        f"hublet: The app {COMMAND_LINE_CLIENT_ID} is part of the hub and stays as it is.\n",
    )


def test_the_operator_allows_the_token_exchange_and_takes_it_back(
    hublet: Hublet, settings: Settings, acme: str
) -> None:
    client_id = an_app(hublet, "--org", acme)

    allowed = hublet("oauth", "app", "allow-exchange", client_id)
    shown = hublet("oauth", "app", "show", client_id, "--json").json
    withdrawn = hublet("oauth", "app", "allow-exchange", client_id, "--off", "--json").json

    assert (allowed.code, allowed.err) == (
        0,
        "Engine may exchange e-mail addresses of acme for tokens.\n",
    )
    assert shown["tokenExchange"] is True
    assert withdrawn == shown | {"tokenExchange": False}
    assert hublet("oauth", "app", "show", client_id, "--json").json == withdrawn
    assert actions(settings) == [
        ("oauth-app.create", "operator"),
        ("oauth-app.allow-exchange", "operator"),
        ("oauth-app.forbid-exchange", "operator"),
    ]


@pytest.mark.parametrize("plan", ["free", "team"])
def test_the_token_exchange_needs_an_enterprise_organization(
    hublet: Hublet, acme: str, plan: str
) -> None:
    free = an_app(hublet, "--owner", "ada")
    bound = an_app(hublet, "--org", acme)
    hublet("org", "plan", acme, plan)

    unbound = hublet("oauth", "app", "allow-exchange", free)
    small = hublet("oauth", "app", "allow-exchange", bound)
    back = hublet("oauth", "app", "allow-exchange", bound, "--off")

    assert (unbound.code, unbound.err) == (
        1,
        f"hublet: The app {free} is bound to no organization, which the token exchange needs.\n",
    )
    sentence = "Token exchanges need the plan enterprise or a larger one, which acme does not have."
    assert (small.code, small.err) == (1, f"hublet: {sentence}\n")
    assert (back.code, back.err) == (0, "Engine may no longer exchange tokens.\n")


def test_the_largest_plan_has_the_token_exchange(hublet: Hublet, acme: str) -> None:
    client_id = an_app(hublet, "--org", acme)
    hublet("org", "plan", acme, "enterprise-plus")

    assert hublet("oauth", "app", "allow-exchange", client_id).code == 0
