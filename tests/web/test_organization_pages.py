"""An organization is managed in the browser, by its administrators alone."""

import csv
import io
import json
import re
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest

import hublet
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import OPERATOR, Organization, OrganizationPlan, Role
from hublet.core import clock
from hublet.core.database import Database
from hublet.web.organizations import audit_routes, audit_words
from login.login_pages import a_person, form_token_of, log_in, notices_in
from people import Headers, a_token, a_user, an_organization, sign_in
from repositories import a_repo
from web.parsed_pages import HTML, parse, submit
from workers import drain

ROOT = "/organizations/engines/settings"
PAGES = (
    "profile", "members", "resource-groups", "service-accounts", "tokens", "network-security", "oauth",
    "audit-log", "scim", "usage",
)  # fmt: skip


@pytest.fixture
async def ada(client: httpx2.AsyncClient, database: Database) -> Headers:
    """Ada, signed in with a browser."""
    await a_person(database, "ada")
    await log_in(client, "ada")
    return await sign_in(database, "ada")


@pytest.fixture
async def engines(database: Database, ada: Headers) -> Organization:
    """Ada's organization, on the largest plan."""
    del ada
    return await an_organization(
        database, "engines", plan=OrganizationPlan.enterprise_plus, members={"ada": Role.admin}
    )


async def send(
    client: httpx2.AsyncClient, page: str, action: str, **fields: str
) -> httpx2.Response:
    """Send a form of the page, of which there may be several to the same path."""
    shown = parse(await client.get(page, headers=HTML))
    forms = [
        each for each in shown.all("form", action=action) if each.attributes["method"] == "post"
    ]
    token = forms[0].one("input", name="form_token").attributes["value"]
    return await client.post(action, data={"form_token": token} | fields, headers=HTML)


async def actions_in(client: httpx2.AsyncClient, ada: Headers) -> list[str]:
    """Return the actions of the audit log, newest first."""
    lines = await client.get("/api/organizations/engines/audit-log", headers=ada)
    return [line["action"] for line in lines.json()]


# ---------------------------------------------------------------- who may


@pytest.mark.usefixtures("ada")
@pytest.mark.parametrize("role", [Role.write, None], ids=["a writer", "a stranger"])
async def test_only_administrators_open_the_settings(
    client: httpx2.AsyncClient, database: Database, role: Role | None
) -> None:
    members = {"grace": Role.admin} | ({} if role is None else {"ada": role})
    await an_organization(database, "engines", members=members)

    answers = {
        page: (await client.get(f"{ROOT}/{page}", headers=HTML)).status_code for page in PAGES
    }

    assert answers == dict.fromkeys(PAGES, 403)
    nothing = await client.get("/organizations/nothing/settings/members", headers=HTML)
    assert nothing.status_code == 404


async def test_who_is_signed_out_comes_back_after_the_login(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_organization(database, "engines", members={"grace": Role.admin})

    response = await client.get(f"{ROOT}/members", headers=HTML)

    assert response.headers["location"].startswith("/login?next=/organizations/engines")


@pytest.mark.usefixtures("engines")
async def test_every_page_names_all_others_and_itself(client: httpx2.AsyncClient) -> None:
    for name in PAGES:
        page = parse(await client.get(f"{ROOT}/{name}", headers=HTML))
        navigation = page.one("nav", class_="side-nav")
        assert (
            navigation.one("a", **{"aria-current": "page"}).attributes["href"] == f"{ROOT}/{name}"
        )
        links = {each.attributes["href"] for each in navigation.all("a")}
        assert {*(f"{ROOT}/{each}" for each in PAGES), f"{ROOT}/webhooks", "/jobs/engines"} == links


@pytest.mark.usefixtures("engines")
async def test_roles_and_secrets_need_a_recent_login(client: httpx2.AsyncClient) -> None:
    clock.move(timedelta(minutes=20))

    response = await send(client, f"{ROOT}/members", f"{ROOT}/members", user="grace", role="read")

    assert response.headers["location"].startswith("/login")


# ---------------------------------------------------------------- the organization itself


async def test_an_organization_is_created(client: httpx2.AsyncClient, ada: Headers) -> None:
    path = "/organizations/new"

    made = await send(client, path, path, name="engines", fullname="Analytical Engines")

    assert (made.status_code, made.headers["location"]) == (303, f"{ROOT}/members")
    members = await client.get("/api/organizations/engines/members", headers=ada)
    assert [(each["user"], each["role"]) for each in members.json()] == [("ada", "admin")]
    again = await send(client, path, path, name="engines")
    assert (again.status_code, notices_in(again)) == (422, ["The name engines is taken."])
    assert 'value="engines"' in again.text


async def test_new_repositories_are_as_private_as_the_profile_says(
    client: httpx2.AsyncClient, engines: Organization, ada: Headers
) -> None:
    saved = await send(
        client, f"{ROOT}/profile", f"{ROOT}/profile", fullname="Engines Ltd", visibility="private"
    )
    assert saved.status_code == 303

    await send(client, "/new", "/new", type="model", name="x1", owner=engines.name, visibility="")

    info = (await client.get("/api/models/engines/x1", headers=ada)).json()
    assert info["private"] is True
    assert "Engines Ltd" in (await client.get("/engines", headers=HTML)).text
    assert (await actions_in(client, ada))[:3] == ["repo.create", *["organization.update"] * 2]


@pytest.mark.usefixtures("engines")
async def test_the_lifetime_of_exchanged_tokens_has_the_limits_of_the_api(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    action = f"{ROOT}/profile/token-exchange"

    await send(client, f"{ROOT}/profile", action, minutes="60")
    refused = await send(client, f"{ROOT}/profile", action, minutes="43201")

    settings = await client.get("/api/organizations/engines/oauth-settings", headers=ada)
    assert settings.json() == {"exchangeSeconds": 3600}
    assert refused.status_code == 422
    assert 'value="43201"' in refused.text


@pytest.mark.usefixtures("engines")
async def test_the_picture_is_uploaded_and_checked(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    page = f"{ROOT}/profile"
    token = form_token_of(await client.get(page), f"{page}/picture")

    async def upload(content: bytes) -> httpx2.Response:
        files = {"picture": ("logo.png", content, "image/png")}
        return await client.post(
            f"{page}/picture", data={"form_token": token}, files=files, headers=HTML
        )

    assert (await upload(b"GIF89a" + bytes(20))).status_code == 303
    refused = await upload(b"<svg/>")
    assert (refused.status_code, "must be a PNG" in refused.text) == (422, True)
    assert (await actions_in(client, ada))[0] == "organization.update"


async def test_the_last_administrator_does_not_leave(
    client: httpx2.AsyncClient, database: Database, engines: Organization
) -> None:
    action = f"{ROOT}/profile/leave"
    refused = await send(client, f"{ROOT}/profile", action, confirm="engines")
    assert refused.status_code == 422
    assert "without an administrator" in notices_in(refused)[0]

    await a_user(database, "grace")
    await send(client, f"{ROOT}/members", f"{ROOT}/members", user="grace", role="admin")
    assert (await send(client, f"{ROOT}/profile", action, confirm="other")).status_code == 422
    left = await send(client, f"{ROOT}/profile", action, confirm=engines.name)

    assert left.headers["location"] == "/engines"
    assert (await client.get(f"{ROOT}/profile", headers=HTML)).status_code == 403


# ---------------------------------------------------------------- members


@pytest.mark.usefixtures("engines")
async def test_members_are_added_changed_found_and_removed(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    page = f"{ROOT}/members"
    for name in ("grace", "bob"):
        await a_user(database, name)
        assert (await send(client, page, page, user=name, role="read")).status_code == 303
    await send(client, page, f"{page}/grace/role", role="write")
    await send(client, page, f"{page}/bob/remove")

    members = (await client.get("/api/organizations/engines/members", headers=ada)).json()
    assert {each["user"]: each["role"] for each in members} == {"ada": "admin", "grace": "write"}
    assert (await actions_in(client, ada))[:4] == [
        "member.remove", "member.role", "member.add", "member.add",
    ]  # fmt: skip
    found = parse(await client.get(f"{page}?search=GRA", headers=HTML)).one("ul", class_="members")
    assert [each.text for each in found.all("a", class_="name")] == ["grace"]
    assert "Nobody of this name." in (await client.get(f"{page}?search=zz_", headers=HTML)).text


@pytest.mark.usefixtures("engines")
@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        pytest.param({"user": "nobody", "role": "read"}, "There is no user nobody.", id="unknown"),
        pytest.param({"user": "ada", "role": "read"}, "without an administrator", id="the last"),
        pytest.param({"user": "ada", "role": "king"}, "role must be one of", id="no role"),
    ],
)
async def test_who_cannot_be_added_is_said_beside_what_was_typed(
    client: httpx2.AsyncClient, fields: dict[str, str], sentence: str
) -> None:
    response = await send(client, f"{ROOT}/members", f"{ROOT}/members", **fields)

    assert response.status_code == 422
    assert sentence in notices_in(response)[0]
    assert f'value="{fields["user"]}"' in response.text


async def test_provisioned_members_are_left_to_their_provider(
    client: httpx2.AsyncClient, engines: Organization, ada: Headers
) -> None:
    scim = f"/api/organizations/{engines.name}/scim-provisioning/v2"
    body = {"schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"], "userName": "grace"}
    await client.post(f"{scim}/Users", headers=ada, json=body)
    group = {
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:Group"],
        "displayName": "engines:write",
    }
    await client.post(f"{scim}/Groups", headers=ada, json=group)
    page = f"{ROOT}/members"

    shown = await client.get(page, headers=HTML)
    token = form_token_of(shown, f"{page}/ada/role")
    answer = await client.post(
        f"{page}/grace/role", data={"form_token": token, "role": "admin"}, headers=HTML
    )

    assert f'action="{page}/grace/role"' not in shown.text
    assert answer.status_code == 422
    assert "An identity provider keeps grace" in notices_in(answer)[0]
    state = parse(await client.get(f"{ROOT}/scim", headers=HTML)).one("main").text
    assert f"http://hub.test{scim}" in state
    assert "ada provisioned grace" in state
    assert "engines:write" in state


@pytest.mark.usefixtures("engines")
async def test_the_link_of_an_invitation_is_shown_once_and_revoked(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    page = f"{ROOT}/members"
    wrong = await send(client, page, f"{page}/invitations", email="nobody", role="write")
    assert (wrong.status_code, 'value="nobody"' in wrong.text) == (422, True)

    made = await send(client, page, f"{page}/invitations", email="", role="write")

    link = parse(made).one("code", id="new-link").text
    assert link.startswith("http://hub.test/invitations/")
    assert made.headers["cache-control"] == "no-store"
    shown = await client.get(page, headers=HTML)
    assert link not in shown.text
    [action] = re.findall(rf'action="({page}/invitations/\w+/revoke)"', shown.text)
    await send(client, page, action)
    assert "Open invitations" not in (await client.get(page, headers=HTML)).text
    assert (await actions_in(client, ada))[:2] == ["invitation.revoke", "invitation.create"]


# ---------------------------------------------------------------- requests to join


async def become(client: httpx2.AsyncClient, database: Database, name: str) -> None:
    """Let another person sit down in front of the browser."""
    client.cookies.clear()
    await a_person(database, name)
    await log_in(client, name)


async def messages_of(client: httpx2.AsyncClient, who: Headers) -> list[str]:
    inbox = (await client.get("/api/notifications", headers=who)).json()
    return [each["post"]["title"] for each in inbox["notifications"] if "post" in each]


@pytest.mark.usefixtures("engines")
async def test_who_asks_to_join_is_accepted(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await become(client, database, "grace")
    assert "Ask to join" in (await client.get("/engines", headers=HTML)).text
    join = "/organizations/engines/join"
    asked = await send(client, join, join, message="I build <b>compilers</b>.")
    assert asked.headers["location"] == "/engines"
    await drain(database)
    assert "grace asks to join engines" in await messages_of(client, ada)

    await become(client, database, "ada")
    page = f"{ROOT}/members"
    assert "I build &lt;b&gt;compilers&lt;/b&gt;." in (await client.get(page, headers=HTML)).text
    await send(client, page, f"{page}/grace/accept", role="contributor")
    await drain(database)

    assert await messages_of(client, await sign_in(database, "grace")) == [
        "You are a member of engines"
    ]
    assert (await actions_in(client, ada))[:3] == [
        "member.add", "join-request.accept", "join-request.create",
    ]  # fmt: skip
    assert "Requests to join" not in parse(await client.get(page, headers=HTML)).one("main").text


@pytest.mark.usefixtures("engines")
async def test_who_is_declined_is_told_why_and_may_ask_again(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    join = "/organizations/engines/join"
    await become(client, database, "grace")
    await send(client, join, join, message="")
    await become(client, database, "ada")

    action = f"{ROOT}/members/grace/decline"
    await send(client, f"{ROOT}/members", action, reason="We are full.")
    await drain(database)

    who = await sign_in(database, "grace")
    [item] = (await client.get("/api/notifications", headers=who)).json()["notifications"]
    assert item["post"]["title"] == "Your request to join engines was declined"
    assert (await actions_in(client, ada))[0] == "join-request.decline"
    await become(client, database, "grace")
    await send(client, join, join, message="")
    await send(client, join, f"{join}/withdraw")
    assert (await actions_in(client, ada))[:2] == ["join-request.withdraw", "join-request.create"]


@pytest.mark.usefixtures("engines")
async def test_members_do_not_ask_to_join(client: httpx2.AsyncClient) -> None:
    path = "/organizations/engines/join"
    page = await client.get(path, headers=HTML)
    assert "already" in parse(page).one("main").text
    assert "Ask to join" not in (await client.get("/engines", headers=HTML)).text


# ---------------------------------------------------------------- groups, accounts, tokens


async def test_a_resource_group_from_its_creation_to_its_end(
    client: httpx2.AsyncClient, database: Database, engines: Organization, ada: Headers
) -> None:
    await a_user(database, "grace")
    await send(client, f"{ROOT}/members", f"{ROOT}/members", user="grace", role="read")
    groups = f"{ROOT}/resource-groups"
    await send(client, groups, groups, name="research", description="What is new")
    taken = await send(client, groups, groups, name="Research")
    assert (taken.status_code, "already" in notices_in(taken)[0]) == (422, True)
    [group] = (await client.get("/api/organizations/engines/resource-groups", headers=ada)).json()
    path = f"{groups}/{group['id']}"

    added = await send(client, path, f"{path}/members", user="grace", role="write")
    assert added.headers["location"] == path
    stranger = await send(client, path, f"{path}/members", user="ada2", role="write")
    assert (stranger.status_code, notices_in(stranger)) == (422, ["There is no user ada2."])
    await a_repo(client, ada, f"{engines.name}/loom", resourceGroupId=group["id"])
    await send(client, path, path, name="lab", description="")

    page = parse(await client.get(path, headers=HTML)).one("main").text
    assert page.startswith("engines/Resource groups lab Members")
    assert "engines/loom" in page
    in_use = await send(client, path, f"{path}/delete")
    assert "still has repositories" in notices_in(in_use)[0]
    gone = {"name": "loom", "organization": "engines"}
    await client.request("DELETE", "/api/repos/delete", headers=ada, json=gone)
    await send(client, path, f"{path}/members/grace/remove")
    assert (await send(client, path, f"{path}/delete")).headers["location"] == groups
    assert (await client.get(path, headers=HTML)).status_code == 404


async def a_service_account(client: httpx2.AsyncClient, ada: Headers) -> str:
    """Create the service account ci in the browser; return the path of its page."""
    accounts = f"{ROOT}/service-accounts"
    made = await send(client, accounts, accounts, name="ci", role="write")
    assert made.status_code == 303
    [account] = (
        await client.get("/api/organizations/engines/service-accounts", headers=ada)
    ).json()
    return f"{accounts}/{account['id']}"


@pytest.mark.usefixtures("engines")
async def test_the_token_of_a_service_account_is_shown_once_and_revoked(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    path = await a_service_account(client, ada)

    made = await send(client, path, f"{path}/tokens", name="runner", role="write", days="30")

    assert made.headers["cache-control"] == "no-store"
    value = parse(made).one("code", id="new-token").text
    who = {"Authorization": f"Bearer {value}"}
    assert (await client.get("/api/whoami-v2", headers=who)).json()["name"] == "ci"
    page = await client.get(path, headers=HTML)
    assert value not in page.text
    [action] = [
        each.attributes["action"]
        for each in parse(page).one("main").all("form")
        if each.attributes["action"].endswith("/revoke")
    ]
    await send(client, path, action)
    await drain(database)
    assert (await client.get("/api/whoami-v2", headers=who)).status_code == 401
    assert (await actions_in(client, ada))[:3] == [
        "service-account-token.revoke", "service-account-token.create", "member.add",
    ]  # fmt: skip


@pytest.mark.usefixtures("engines")
async def test_a_fine_grained_token_needs_scopes_and_ends_when_it_is_said(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    path = await a_service_account(client, ada)

    bare = await send(client, path, f"{path}/tokens", name="x", role="fineGrained", days="0")
    odd = await send(client, path, f"{path}/tokens", name="x", role="read", days="8")
    await send(
        client, path, f"{path}/tokens", name="x", role="fineGrained", days="7", scopes="jobs"
    )

    assert (bare.status_code, odd.status_code) == (422, 422)
    account = path.rpartition("/")[2]
    api = f"/api/organizations/engines/service-accounts/{account}/tokens"
    [token] = (await client.get(api, headers=ada)).json()
    assert (token["scopes"], "expiresAt" in token) == (["jobs"], True)
    assert (await send(client, path, f"{path}/role", role="read")).headers["location"] == path
    assert (await send(client, path, f"{path}/delete")).status_code == 303
    assert (await client.get(path, headers=HTML)).status_code == 404


async def test_plans_without_a_feature_say_so(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    del ada
    await an_organization(database, "engines", members={"ada": Role.admin})

    for page in ("resource-groups", "service-accounts", "scim"):
        shown = parse(await client.get(f"{ROOT}/{page}", headers=HTML)).one("main")
        assert "Not on this plan." in shown.text
        assert shown.all("form") == []


async def test_administrators_cut_tokens_of_others_off(
    client: httpx2.AsyncClient, database: Database, engines: Organization, ada: Headers
) -> None:
    """A token for all of an account works on elsewhere; one's own has no button."""
    grace = await a_user(database, "grace")
    async with database.transaction() as conn:
        await organizations.set_member(conn, OPERATOR, engines, grace, Role.write)
    value = await a_token(database, "grace")
    page = parse(await client.get(f"{ROOT}/tokens", headers=HTML))
    assert [each.text for each in page.all("b", class_="name")] == ["ada's token", "grace's token"]

    (form,) = page.one("main").all("form")
    action = form.attributes["action"]
    assert (await submit(client, page, action)).status_code == 303
    token = form.one("input", name="form_token").attributes["value"]
    unknown = action.replace(action.split("/")[-2], "0" * 24)
    missing = await client.post(unknown, data={"form_token": token}, headers=HTML)

    bearer = {"Authorization": f"Bearer {value}"}
    assert (await client.get("/api/whoami-v2", headers=bearer)).json()["orgs"] == []
    assert (await client.get("/api/jobs/engines", headers=bearer)).status_code == 403
    assert missing.status_code == 422
    assert "Revoked" in parse(await client.get(f"{ROOT}/tokens", headers=HTML)).one("main").text
    assert (await actions_in(client, ada))[0] == "member-token.revoke"


@pytest.mark.usefixtures("engines")
async def test_networks_and_domains_are_changed(client: httpx2.AsyncClient, ada: Headers) -> None:
    page = f"{ROOT}/network-security"
    ranges = "127.0.0.0/8\n2001:db8::/32"
    saved = await send(client, page, page, ranges=ranges, restricted="on")
    await send(client, page, f"{page}/domains", domain="engines.example", role="read")
    away = await send(client, page, page, ranges="203.0.113.0/24", restricted="on")

    assert saved.status_code == 303
    assert (away.status_code, "lock yourself out" in notices_in(away)[0]) == (422, True)
    found = await client.get("/api/organizations/engines/settings/network-security", headers=ada)
    assert found.json()["ipRanges"] == ranges.split()
    shown = parse(await client.get(page, headers=HTML)).one("main").text
    assert "engines.example" in shown
    removed = await send(client, page, f"{page}/domains/engines.example/remove")
    assert removed.status_code == 303


@pytest.mark.usefixtures("engines")
async def test_names_in_other_networks_stand_on_the_page_of_an_organization(
    client: httpx2.AsyncClient,
) -> None:
    page = f"{ROOT}/profile"
    wrong = await send(client, page, f"{page}/socials", github="not a name")
    await send(client, page, f"{page}/socials", github="engines", linkedin="engines")

    links = [each.attributes["href"] for each in parse(await client.get("/engines")).all("a")]
    assert (wrong.status_code, notices_in(wrong)[0][:8]) == (422, "github: ")
    assert "https://github.com/engines" in links
    assert "https://www.linkedin.com/company/engines" in links


# ---------------------------------------------------------------- applications, log, usage


async def test_applications_of_the_organization_are_listed(
    client: httpx2.AsyncClient, engines: Organization, ada: Headers
) -> None:
    body = {"name": "Loom", "redirectUris": [], "scopes": ["openid"], "organization": engines.name}
    app = (await client.post("/api/settings/oauth-apps", headers=ada, json=body)).json()

    page = parse(await client.get(f"{ROOT}/oauth", headers=HTML))

    links = [each.attributes["href"] for each in page.one("main").all("a")]
    assert f"/settings/applications/{app['clientId']}" in links
    new = f"/settings/applications/new?organization={engines.name}"
    assert new in links
    chosen = parse(await client.get(new, headers=HTML)).all("option", selected="")
    assert [each.text for each in chosen] == ["engines"]


@pytest.mark.usefixtures("engines")
async def test_the_audit_log_is_filtered_by_its_address(
    client: httpx2.AsyncClient, database: Database
) -> None:
    for name in ("grace", "bob"):
        await a_user(database, name)
        await send(client, f"{ROOT}/members", f"{ROOT}/members", user=name, role="read")
    today = clock.now().date()

    async def sentences(query: str) -> list[str]:
        page = parse(await client.get(f"{ROOT}/audit-log?{query}", headers=HTML))
        return [each.all("p")[0].text for each in page.all("li") if each.all("p")]

    added = ["ada added bob with the role read", "ada added grace with the role read"]
    assert await sentences("actor=ADA") == added
    assert await sentences("actor=ada&search=GRAC") == added[1:]
    assert await sentences("action=organization") == ["operator created the organization"]
    assert await sentences(f"actor=ada&since={today}&until={today}") == added
    assert await sentences(f"until={today - timedelta(days=1)}") == []
    wrong = await client.get(f"{ROOT}/audit-log?since=yesterday", headers=HTML)
    assert (wrong.status_code, notices_in(wrong)) == (
        422, ["since must be a day, as in 2026-11-17."],
    )  # fmt: skip


@pytest.mark.usefixtures("engines")
async def test_the_audit_log_has_pages_and_is_exported_whole(
    client: httpx2.AsyncClient, database: Database, ada: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_routes, "_PAGE_SIZE", 2)
    monkeypatch.setattr(audit_routes, "_BATCH_SIZE", 2)
    groups = f"{ROOT}/resource-groups"
    for name in ("=1+1", "b", "c"):
        await send(client, groups, groups, name=name)

    seen: list[str] = []
    url: str | None = f"{ROOT}/audit-log?actor=ada"
    while url is not None:
        page = parse(await client.get(url, headers=HTML))
        seen += [each.all("p")[0].text for each in page.all("li") if each.all("p")]
        url = next((each.attributes["href"] for each in page.all("a", rel="next")), None)
    as_csv = await client.get(f"{ROOT}/audit-log/export.csv?actor=ada")
    as_lines = await client.get(f"{ROOT}/audit-log/export.jsonl")

    assert seen == [f"ada created the resource group {name}" for name in ("c", "b", "=1+1")]
    rows = list(csv.DictReader(io.StringIO(as_csv.text)))
    assert [row["target"] for row in rows] == ["c", "b", "'=1+1"]
    assert rows[0]["sentence"] == "ada created the resource group c"
    assert as_csv.headers["content-disposition"] == 'attachment; filename="engines-audit-log.csv"'
    api = await client.get("/api/organizations/engines/audit-log", headers=ada)
    assert [json.loads(line) for line in as_lines.text.splitlines()] == api.json()

    await become(client, database, "grace")
    refused = await client.get(f"{ROOT}/audit-log/export.csv", headers=HTML)
    assert refused.status_code == 403


async def test_what_happens_to_repositories_is_in_the_log(
    client: httpx2.AsyncClient, engines: Organization, ada: Headers
) -> None:
    await a_repo(client, ada, f"{engines.name}/loom")
    settings = "/api/models/engines/loom/settings"
    await client.put(settings, headers=ada, json={"private": True})
    move = {"fromRepo": "engines/loom", "toRepo": "ada/loom", "type": "model"}
    await client.post("/api/repos/move", headers=ada, json=move)
    back = {"fromRepo": "ada/loom", "toRepo": "engines/mill", "type": "model"}
    await client.post("/api/repos/move", headers=ada, json=back)
    gone = {"name": "mill", "organization": "engines"}
    await client.request("DELETE", "/api/repos/delete", headers=ada, json=gone)

    page = parse(await client.get(f"{ROOT}/audit-log?action=repo", headers=HTML))

    assert [each.all("p")[0].text for each in page.one("ol", class_="audit").all("li")] == [
        "ada deleted the model engines/mill",
        "ada moved the model ada/loom to engines/mill",
        "ada moved the model engines/loom to ada/loom",
        "ada changed the settings of the model engines/loom",
        "ada created the model engines/loom",
    ]


def test_every_action_is_said_in_words() -> None:
    """Actions are texts that stand beside the calls which record them."""
    action = re.compile(
        r'(?<![\w.])"((?:organization|member|join-request|invitation|resource-group(?:-member)?|repo'
        r"|service-account(?:-token)?|member-token|credential|oauth-app|oauth-settings|token|webhook|job"
        r'|email-domain|scim-user|scim-group)\.[a-z-]+)"'
    )
    sources = Path(hublet.__file__).parent
    recorded = {
        found
        for path in sources.rglob("*.py")
        if "events" not in path.parts and "audit" in path.read_text()
        for found in action.findall(path.read_text())
    }
    assert len(recorded) > 40
    assert recorded - audit_words.WORDS.keys() == set()


async def test_usage_is_counted_by_kind_and_repository(
    client: httpx2.AsyncClient, engines: Organization, ada: Headers
) -> None:
    await a_repo(client, ada, f"{engines.name}/box", type="bucket")
    for name, size in (("a", 1000), ("b", 500)):
        path = f"/api/buckets/engines/box/files/{name}"
        await client.put(path, headers=ada, content=bytes(size))
    job = {"dockerImage": "local", "command": ["true"], "flavor": "cpu-basic", "environment": {}}
    await client.post("/api/jobs/engines", headers=ada, json=job)

    page = parse(await client.get(f"{ROOT}/usage", headers=HTML)).one("main")

    assert page.all("p", class_="big")[0].text == "1.5 kB"
    assert "1 bucket1.5 kB By repository Bucketengines/box1.5 kB" in page.text
    labels = [each.attributes["aria-label"] for each in page.all("svg", role="img")]
    assert labels == [
        "Storage: last 1.5 kB, highest 1.5 kB",
        "Running time of jobs, by day: last 0 h, highest 0 h",
        "Jobs of the last 30 days: 1 ok, 0 failed",
    ]
