"""Repositories are created, changed, moved and deleted in the browser."""

from datetime import timedelta

import httpx2
import pytest

from hublet.accounts.records import OrganizationPlan, Role
from hublet.core import clock
from hublet.core.database import Database
from login.login_pages import a_person, form_token_of, log_in, notices_in
from people import Headers, an_organization, sign_in
from repositories import a_repo, a_resource_group

SETTINGS = "/ada/engine/settings"


@pytest.fixture
async def ada(client: httpx2.AsyncClient, database: Database) -> Headers:
    """Ada, signed in with a browser."""
    await a_person(database, "ada")
    await log_in(client, "ada")
    return await sign_in(database, "ada")


async def send(
    client: httpx2.AsyncClient, page: str, action: str, **fields: str
) -> httpx2.Response:
    token = form_token_of(await client.get(page), action)
    return await client.post(action, data={"form_token": token} | fields)


@pytest.mark.usefixtures("ada")
@pytest.mark.parametrize(
    ("type_", "path"),
    [
        ("model", "/ada/engine"),
        ("dataset", "/datasets/ada/engine"),
        ("space", "/spaces/ada/engine"),
        ("kernel", "/kernels/ada/engine"),
        ("bucket", "/buckets/ada/engine"),
        ("container", "/containers/ada/engine"),
    ],
)
async def test_a_repository_of_each_type_is_created(
    client: httpx2.AsyncClient, type_: str, path: str
) -> None:
    response = await send(client, "/new", "/new", type=type_, name="engine", sdk="static")

    assert (response.status_code, response.headers["location"]) == (303, path)
    page = await client.get(path)
    assert page.status_code == 200
    assert "ada/engine is there." in page.text
    # Only once.
    assert "ada/engine is there." not in (await client.get(path)).text


@pytest.mark.usefixtures("ada")
async def test_the_page_of_a_type_has_it_chosen(client: httpx2.AsyncClient) -> None:
    assert '<option value="dataset" selected>' in (await client.get("/new-dataset")).text
    assert (await client.get("/new-nothing")).status_code in {400, 404}


async def test_it_belongs_to_an_organization_and_is_as_private_as_wanted(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(database, "analytical", members={"ada": Role.write})

    await send(
        client, "/new", "/new", type="model", name="x1", owner="analytical", visibility="private"
    )

    info = (await client.get("/api/models/analytical/x1", headers=ada)).json()
    assert info["private"] is True


@pytest.mark.usefixtures("ada")
@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        pytest.param({"name": "a b"}, "This is no name for a repository", id="a blank"),
        pytest.param({"name": "x1", "type": "rocket"}, "type must be one", id="an unknown type"),
        pytest.param({"name": "x1", "owner": "grace"}, "grace", id="somebody else's"),
    ],
)
async def test_what_cannot_be_created_is_shown_again(
    client: httpx2.AsyncClient, fields: dict[str, str], sentence: str
) -> None:
    response = await send(client, "/new", "/new", **({"type": "model"} | fields))

    assert response.status_code == 422
    assert sentence in notices_in(response)[0]
    assert f'value="{fields["name"]}"' in response.text


async def test_settings_are_changed(client: httpx2.AsyncClient, ada: Headers) -> None:
    await a_repo(client, ada, "ada/engine")

    await send(client, SETTINGS, f"{SETTINGS}/access", visibility="private", gated="manual")

    info = (await client.get("/api/models/ada/engine", headers=ada)).json()
    assert (info["private"], info["gated"]) == (True, "manual")
    page = (await client.get(SETTINGS)).text
    assert '<option value="private" selected>' in page
    assert "The settings are saved." in page


async def test_a_wrong_value_says_the_rule(client: httpx2.AsyncClient, ada: Headers) -> None:
    await a_repo(client, ada, "ada/engine")

    response = await send(client, SETTINGS, f"{SETTINGS}/access", visibility="hidden")

    assert response.status_code == 422
    assert notices_in(response) == ["visibility must be public, private or protected."]


async def test_a_repository_is_moved_and_old_links_lead_there(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")

    response = await send(client, SETTINGS, f"{SETTINGS}/move", to="ada/motor")

    assert response.headers["location"] == "/ada/motor/settings"
    assert (await client.get("/ada/engine")).headers["location"] == "/ada/motor"


async def test_it_is_deleted_only_when_its_name_was_typed(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")

    refused = await send(client, SETTINGS, f"{SETTINGS}/delete", confirm="engine")
    assert refused.status_code == 422
    assert (await client.get("/ada/engine")).status_code == 200
    await send(client, SETTINGS, f"{SETTINGS}/delete", confirm="ada/engine")

    assert (await client.get("/ada/engine")).status_code == 404


async def test_what_is_dangerous_needs_a_recent_login(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")
    token = form_token_of(await client.get(SETTINGS), f"{SETTINGS}/delete")
    clock.move(timedelta(minutes=20))

    response = await client.post(
        f"{SETTINGS}/delete", data={"form_token": token, "confirm": "ada/engine"}
    )

    assert response.status_code == 303
    assert response.headers["location"].startswith("/login?next=")


async def test_who_may_not_manage_it_finds_no_settings(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await a_repo(client, await sign_in(database, "ada"), "ada/engine")
    await a_person(database, "grace")
    await log_in(client, "grace")

    assert (await client.get(SETTINGS)).status_code in {403, 404}
    assert "Settings" not in (await client.get("/ada/engine")).text.partition("<main")[2]


GROUP = "/analytical/engine/settings/resource-group"


async def _a_repo_of_an_organization(
    client: httpx2.AsyncClient, database: Database, plan: OrganizationPlan
) -> tuple[Headers, str]:
    """Return Ada, its administrator, and the id of a group that she can put the repository into."""
    organization = await an_organization(
        database, "analytical", plan=plan, members={"ada": Role.admin, "grace": Role.write}
    )
    group = await a_resource_group(database, organization, members={"grace": Role.write})
    ada = await sign_in(database, "ada")
    await a_repo(client, ada, "analytical/engine")
    return ada, group.id


async def test_an_administrator_puts_a_repository_into_a_group_and_out_of_it(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    _, group = await _a_repo_of_an_organization(client, database, OrganizationPlan.team)
    page = GROUP.rpartition("/")[0]
    api = "/api/models/analytical/engine/resource-group"

    await send(client, page, GROUP, group=group)
    assert (await client.get(api, headers=ada)).json()["resourceGroup"]["id"] == group
    assert f'<option value="{group}" selected>rockets' in (await client.get(page)).text
    await send(client, page, GROUP, group="")

    assert (await client.get(api, headers=ada)).json() == {"resourceGroup": None}


@pytest.mark.usefixtures("ada")
async def test_a_group_of_somebody_else_is_none(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await _a_repo_of_an_organization(client, database, OrganizationPlan.team)
    other = await an_organization(database, "babbage", plan=OrganizationPlan.team)
    group = await a_resource_group(database, other, "engines")

    response = await send(client, GROUP.rpartition("/")[0], GROUP, group=group.id)

    assert response.status_code == 422
    assert group.id in notices_in(response)[0]
    assert "engines" not in response.text.partition("<main")[2]


async def test_only_administrators_change_the_group(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await a_person(database, "grace")
    _, group = await _a_repo_of_an_organization(client, database, OrganizationPlan.team)
    await log_in(client, "grace")
    page = await client.get(GROUP.rpartition("/")[0])
    token = form_token_of(page, "/analytical/engine/settings/access")

    response = await client.post(GROUP, data={"form_token": token, "group": group})

    assert page.status_code == 200
    assert "Resource group" not in page.text
    assert response.status_code == 403


@pytest.mark.usefixtures("ada")
@pytest.mark.parametrize("name", ["ada/engine", "analytical/engine"])
async def test_without_groups_there_is_nothing_to_choose(
    client: httpx2.AsyncClient, database: Database, ada: Headers, name: str
) -> None:
    await an_organization(database, "analytical", members={"ada": Role.admin})
    await a_repo(client, ada, name)

    assert "Resource group" not in (await client.get(f"/{name}/settings")).text
