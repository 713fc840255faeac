"""The consent page: what a person is told, what is remembered, and whose answer counts."""

import re
from dataclasses import replace
from datetime import timedelta

import httpx2
import pytest

from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import OPERATOR, Role
from hublet.core import clock
from hublet.core.database import Database
from hublet.oauth.apps import store as apps
from hublet.oauth.authorize import codes, consents
from hublet.oauth.records import AppKind, OAuthApp
from hublet.tokens.records import Scope
from oauth.browser_flows import (
    CALLBACK,
    ISSUER,
    an_app,
    answer_consent,
    authorization_parameters,
    hidden_fields,
    redirect_parameters,
    request_authorization,
    signed_in,
    text_of,
)
from people import a_user, an_organization

STALE = "The page is too old, or belongs to another session. Go back to the app and start again."


def chosen_in(page: httpx2.Response) -> dict[str, bool]:
    """Return the organizations that a page offers, and whether each is ticked."""
    boxes = re.findall(r'name="organization" value="(\w+)"( checked)?>', page.text)
    return {organization_id: bool(checked) for organization_id, checked in boxes}


async def organizations_of(database: Database, response: httpx2.Response) -> frozenset[str]:
    """Return the organizations that the code in an answer stands for."""
    async with database.transaction() as conn:
        [code] = await codes.lock(conn, [redirect_parameters(response)["code"]])
    assert code is not None
    return code.content.permission.organization_ids


async def change(database: Database, app: OAuthApp) -> None:
    async with database.transaction() as conn:
        await apps.update(conn, app)


async def test_the_page_says_who_asks_for_what_and_where_it_leads(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_app(database, client_uri="https://loom.example/about")
    await signed_in(client, database)

    page = await request_authorization(client)

    assert page.status_code == 200
    assert text_of(page) == (
        "Allow Loom? Loom loom.example Registered by olga Loom wants to "
        "Get an ID token in addition to the access token openid "
        "See your profile, such as your user name and avatar profile "
        "You will be sent back to app.example ( https://app.example/callback ). Deny Allow "
        "You can take this back at any time under Connected applications ."
    )


async def test_the_page_may_not_be_framed_or_kept(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_app(database)
    await signed_in(client, database)

    headers = (await request_authorization(client)).headers

    assert headers["x-frame-options"] == "DENY"
    assert headers["cache-control"] == "no-store"
    assert headers["content-security-policy"] == (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
        "media-src 'self'; connect-src 'self'; frame-src 'none'; base-uri 'none'; "
        "frame-ancestors 'none'; form-action 'self' https:"
    )


@pytest.mark.parametrize(
    ("redirect_uri", "sources"),
    [
        pytest.param("https://app.example/cb", "'self' https:", id="https"),
        pytest.param("http://[::1]/cb", "'self' http: https:", id="this machine"),
        pytest.param("com.example.app:/cb", "'self' com.example.app:", id="a scheme of its own"),
    ],
)
async def test_the_policy_of_the_page_lets_the_answer_through(
    client: httpx2.AsyncClient, database: Database, redirect_uri: str, sources: str
) -> None:
    await an_app(database, redirect_uris=[redirect_uri])
    await signed_in(client, database)

    page = await request_authorization(client, redirect_uri=redirect_uri)

    policy = page.headers["content-security-policy"]
    assert policy.endswith(f"form-action {sources}")


@pytest.mark.parametrize(
    ("kind", "client_id", "warned"),
    [
        pytest.param(AppKind.registered, "loom", False, id="registered by somebody"),
        pytest.param(AppKind.dynamic, "loom", True, id="registered by itself"),
    ],
)
async def test_an_app_that_nobody_vouches_for_is_marked(
    client: httpx2.AsyncClient, database: Database, kind: AppKind, client_id: str, *, warned: bool
) -> None:
    await an_app(database, kind=kind, client_id=client_id)
    await signed_in(client, database)

    page = await request_authorization(client, client_id=client_id)

    assert ("Nobody here has checked this app" in text_of(page)) is warned


async def test_an_app_with_a_document_is_shown_by_its_host(database: Database) -> None:
    app = await an_app(
        database,
        kind=AppKind.document,
        client_id="https://site.example/app.json",
        client_uri="https://bank.example",
    )
    user = await a_user(database, "ada")

    async with database.read() as conn:
        question = await consents.build_question(conn, app, user_id=user.id, scopes=app.scopes)

    assert (question.host, question.owner_name) == ("site.example", None)
    assert question.is_unverified


@pytest.mark.parametrize(
    ("redirect_uris", "warned"),
    [
        pytest.param(["http://localhost/cb", "http://127.0.0.1/cb"], True, id="only this machine"),
        pytest.param(["http://localhost/cb", CALLBACK], False, id="also a site"),
    ],
)
async def test_an_app_on_the_persons_own_machine_is_marked(
    client: httpx2.AsyncClient, database: Database, redirect_uris: list[str], *, warned: bool
) -> None:
    await an_app(database, redirect_uris=redirect_uris)
    await signed_in(client, database)

    page = await request_authorization(client, redirect_uri=redirect_uris[0])

    assert ("This app runs on your own machine" in text_of(page)) is warned


async def test_no_organization_is_chosen_unless_the_app_asks(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_app(database)
    acme = await an_organization(database, "acme", members={"ada": Role.read})
    globex = await an_organization(database, "globex", members={"ada": Role.admin})
    await an_organization(database, "initech", members={"bob": Role.admin})
    await signed_in(client, database)

    without = await request_authorization(client)
    asked_for = await request_authorization(client, orgIds=globex.id)
    joined = await client.get(
        f"/oauth/authorize?{httpx2.QueryParams(authorization_parameters())}&orgIds={acme.id}&orgIds={globex.id}"
    )

    assert chosen_in(without) == {acme.id: False, globex.id: False}
    assert chosen_in(asked_for) == {acme.id: False, globex.id: True}
    assert chosen_in(joined) == {acme.id: True, globex.id: True}


@pytest.mark.parametrize("exists", [True, False])
async def test_an_organization_of_others_is_left_out_with_a_notice(
    client: httpx2.AsyncClient, database: Database, *, exists: bool
) -> None:
    await an_app(database)
    initech = await an_organization(database, "initech", members={"bob": Role.admin})
    await signed_in(client, database)

    page = await request_authorization(client, orgIds=initech.id if exists else "f" * 24)

    assert "asked for an organization that you do not belong to; it is left out." in text_of(page)
    assert initech.name not in page.text


async def test_the_code_reaches_what_the_person_chose_and_belongs_to(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_app(database)
    acme = await an_organization(database, "acme", members={"ada": Role.read})
    globex = await an_organization(database, "globex", members={"ada": Role.read})
    initech = await an_organization(database, "initech", members={"bob": Role.admin})
    await signed_in(client, database)
    page = await request_authorization(client, orgIds=globex.id)

    response = await answer_consent(client, page, "allow", acme.id, initech.id)

    assert await organizations_of(database, response) == {acme.id}


async def test_what_was_agreed_to_is_not_asked_again(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_app(database)
    acme = await an_organization(database, "acme", members={"ada": Role.read})
    await signed_in(client, database)
    await answer_consent(client, await request_authorization(client), "allow", acme.id)

    same = await request_authorization(client, state="s2")
    smaller = await request_authorization(client, scope="openid")
    with_organization = await request_authorization(client, orgIds=acme.id)

    assert redirect_parameters(same)["state"] == "s2"
    assert [await organizations_of(database, each) for each in (same, smaller)] == [{acme.id}] * 2
    assert "code" in redirect_parameters(with_organization)


async def test_who_left_an_organization_does_not_let_an_app_reach_it(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_app(database)
    acme = await an_organization(database, "acme", members={"ada": Role.read, "bob": Role.admin})
    await signed_in(client, database)
    await answer_consent(client, await request_authorization(client), "allow", acme.id)
    async with database.transaction() as conn:
        await organizations.remove_member(conn, OPERATOR, acme, await a_user(database, "ada"))

    assert await organizations_of(database, await request_authorization(client)) == frozenset()


async def test_more_scopes_are_asked_for_and_shown_as_new(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_app(database)
    await signed_in(client, database)
    await answer_consent(client, await request_authorization(client, scope="openid"))

    page = await request_authorization(client, scope="openid read-repos")

    assert (
        "New: Loom also wants to Read your personal repositories read-repos "
        "What you allowed before Get an ID token in addition to the access token openid"
    ) in text_of(page)


async def test_what_was_agreed_to_in_steps_holds_together(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_app(database)
    await signed_in(client, database)
    await answer_consent(client, await request_authorization(client, scope="openid"))
    await answer_consent(client, await request_authorization(client, scope="profile"))

    assert "code" in redirect_parameters(
        await request_authorization(client, scope="openid profile")
    )


async def test_a_scope_includes_what_it_includes(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_app(database, scopes=[Scope.write_repos, Scope.read_repos])
    await signed_in(client, database)
    await answer_consent(client, await request_authorization(client, scope="write-repos"))

    assert "code" in redirect_parameters(await request_authorization(client, scope="read-repos"))


async def test_what_another_scope_includes_is_not_listed_beside_it(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_app(database, scopes=[Scope.manage_repos, Scope.write_repos, Scope.read_repos])
    await signed_in(client, database)

    page = await request_authorization(client, scope="read-repos write-repos manage-repos")

    assert re.findall(r"<code>([\w-]+-repos)</code>", page.text) == ["manage-repos"]


async def test_another_organization_is_asked_for_and_marked(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_app(database)
    acme = await an_organization(database, "acme", members={"ada": Role.read})
    globex = await an_organization(database, "globex", members={"ada": Role.read})
    await signed_in(client, database)
    await answer_consent(client, await request_authorization(client), "allow", acme.id)

    page = await request_authorization(client, orgIds=globex.id)

    assert chosen_in(page) == {acme.id: True, globex.id: True}
    assert "acme globex asked for now" in text_of(page)


async def test_an_app_that_has_changed_is_asked_about_from_the_start(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database)
    await signed_in(client, database)
    await answer_consent(client, await request_authorization(client))
    await change(database, replace(app, name="Loom 2", revision=app.revision + 1))

    page = await request_authorization(client)

    assert "Loom 2 wants to Get an ID token" in text_of(page)
    assert "New:" not in text_of(page)


async def test_prompt_consent_always_asks(client: httpx2.AsyncClient, database: Database) -> None:
    await an_app(database)
    await signed_in(client, database)
    await answer_consent(client, await request_authorization(client))

    page = await request_authorization(client, prompt="consent")

    assert "Loom wants to Get an ID token" in text_of(page)
    assert "code" in redirect_parameters(await answer_consent(client, page))


async def test_somebody_elses_consent_does_not_count(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_app(database)
    await signed_in(client, database, "bob")
    await answer_consent(client, await request_authorization(client))
    await signed_in(client, database, "ada")

    assert "Allow Loom?" in text_of(await request_authorization(client))


@pytest.mark.parametrize("decision", ["deny", "", "ALLOW"])
async def test_a_no_is_told_to_the_app_and_not_remembered(
    client: httpx2.AsyncClient, database: Database, decision: str
) -> None:
    await an_app(database)
    await signed_in(client, database)

    told = redirect_parameters(
        await answer_consent(client, await request_authorization(client), decision)
    )

    assert told == {
        "error": "access_denied",
        "error_description": "The person said no.",
        "state": "s1",
        "iss": ISSUER,
    }
    assert "Allow Loom?" in text_of(await request_authorization(client))


async def test_requests_in_several_tabs_keep_their_own_parameters(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_app(database)
    await signed_in(client, database)
    tabs = {
        f"s{number}": await request_authorization(client, state=f"s{number}")
        for number in range(20)
    }

    answers = {
        state: redirect_parameters(await answer_consent(client, page))
        for state, page in tabs.items()
    }

    assert {state: told["state"] for state, told in answers.items()} == {s: s for s in tabs}
    assert len({told["code"] for told in answers.values()}) == 20


async def test_an_answer_counts_once(client: httpx2.AsyncClient, database: Database) -> None:
    await an_app(database)
    await signed_in(client, database)
    page = await request_authorization(client, prompt="consent")
    await answer_consent(client, page)

    again = await answer_consent(client, page)

    # It gives no second code: the request starts anew, and here that means another question.
    assert again.status_code == 303
    assert again.headers["location"].startswith("/oauth/authorize?")
    assert "Allow Loom?" in text_of(await client.get(again.headers["location"]))


async def test_a_form_without_its_token_is_refused(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_app(database)
    await signed_in(client, database)
    fields = hidden_fields(await request_authorization(client), "/oauth/consent") | {
        "decision": "allow"
    }

    response = await client.post("/oauth/consent", data=fields | {"form_token": "0" * 64})

    assert response.status_code == 403
    assert "The form does not belong to this session any more." in text_of(response)


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({"Origin": "https://evil.example"}, id="origin"),
        pytest.param({"Sec-Fetch-Site": "cross-site"}, id="as the browser says"),
        pytest.param({"Sec-Fetch-Site": "same-site"}, id="from a neighbour"),
    ],
)
async def test_a_form_of_another_site_is_refused(
    client: httpx2.AsyncClient, database: Database, headers: dict[str, str]
) -> None:
    await an_app(database)
    await signed_in(client, database)
    fields = hidden_fields(await request_authorization(client), "/oauth/consent") | {
        "decision": "allow"
    }

    response = await client.post("/oauth/consent", data=fields, headers=headers)

    assert response.status_code == 403
    assert "The form was sent from another site." in text_of(response)


async def test_another_session_cannot_answer(
    client: httpx2.AsyncClient, database: Database
) -> None:
    # Dex CVE-2022-39222: the last step was open to another browser.
    await an_app(database)
    await signed_in(client, database, "bob")
    of_bob = hidden_fields(await request_authorization(client), "/oauth/consent")
    await signed_in(client, database, "ada")
    of_ada = hidden_fields(await request_authorization(client), "/oauth/consent")

    response = await client.post(
        "/oauth/consent", data=of_ada | {"ticket": of_bob["ticket"], "decision": "allow"}
    )

    assert response.status_code == 400
    assert STALE in text_of(response)


@pytest.mark.parametrize("ticket", ["", "AAAA", "é", "!!!"])
async def test_a_made_up_ticket_is_refused(
    client: httpx2.AsyncClient, database: Database, ticket: str
) -> None:
    await an_app(database)
    await signed_in(client, database)
    fields = hidden_fields(await request_authorization(client), "/oauth/consent") | {
        "decision": "allow"
    }

    response = await client.post("/oauth/consent", data=fields | {"ticket": ticket})

    assert response.status_code == 400
    assert STALE in text_of(response)


@pytest.mark.parametrize(
    ("minutes", "status"), [pytest.param(9, 303, id="in time"), pytest.param(11, 400, id="late")]
)
async def test_a_question_stands_for_ten_minutes(
    client: httpx2.AsyncClient, database: Database, minutes: int, status: int
) -> None:
    await an_app(database)
    await signed_in(client, database)
    page = await request_authorization(client)
    clock.move(timedelta(minutes=minutes))

    assert (await answer_consent(client, page)).status_code == status


async def test_who_is_not_signed_in_any_more_cannot_answer(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_app(database)
    await signed_in(client, database)
    page = await request_authorization(client)
    client.cookies.clear()

    response = await answer_consent(client, page)

    assert response.status_code == 303
    assert httpx2.URL(response.headers["location"]).path == "/login"


async def test_an_app_that_changes_under_the_question_is_asked_about_again(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database)
    await signed_in(client, database)
    page = await request_authorization(client)
    await change(database, replace(app, name="Evil", revision=app.revision + 1))

    response = await answer_consent(client, page)

    assert response.headers["location"].startswith("/oauth/authorize?")
    assert "Allow Evil?" in text_of(await client.get(response.headers["location"]))


async def test_a_redirect_uri_that_goes_under_the_question_gets_nothing(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database)
    await signed_in(client, database)
    page = await request_authorization(client)
    await change(database, replace(app, redirect_uris=("https://app.example/other",)))

    response = await answer_consent(client, page)

    assert response.status_code == 400
    assert "The path differs: /other is registered" in text_of(response)


async def test_a_scope_that_goes_under_the_question_is_told_to_the_app(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database)
    await signed_in(client, database)
    page = await request_authorization(client)
    await change(database, replace(app, scopes=frozenset({Scope.openid})))

    told = redirect_parameters(await answer_consent(client, page))

    assert told["error"] == "invalid_scope"


async def test_an_app_that_goes_under_the_question_gets_nothing(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database)
    await signed_in(client, database)
    page = await request_authorization(client)
    async with database.transaction() as conn:
        await apps.remove(conn, [app.id])

    response = await answer_consent(client, page)

    assert response.headers["location"].startswith("/oauth/authorize?")
    assert (await client.get(response.headers["location"])).status_code == 400
