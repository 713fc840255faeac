"""Creating and deleting repositories."""

from typing import Any

import httpx2
import pytest

from hublet.accounts.records import OrganizationPlan, Role
from hublet.core.database import Database
from hublet.events import RepoCreated, RepoDeleted
from hublet.repos.git import bare_repos
from outbox_events import published_events
from people import Headers, an_organization, sign_in
from repositories import a_resource_group
from workers import drain

CREATE, DELETE = "/api/repos/create", "/api/repos/delete"
TYPES = ["model", "dataset", "space", "kernel", "bucket", "container"]


async def create(client: httpx2.AsyncClient, headers: Headers, **body: Any) -> httpx2.Response:
    return await client.post(CREATE, headers=headers, json={"name": "engine"} | body)


async def delete(client: httpx2.AsyncClient, headers: Headers, **body: Any) -> httpx2.Response:
    return await client.request("DELETE", DELETE, headers=headers, json={"name": "engine"} | body)


@pytest.mark.parametrize("type_", TYPES)
async def test_a_repository_of_each_type_is_created_and_deleted(
    client: httpx2.AsyncClient, database: Database, ada: Headers, type_: str
) -> None:
    sdk = {"sdk": "static"} if type_ == "space" else {}

    created = await create(client, ada, type=type_, **sdk)
    again = await create(client, ada, type=type_, **sdk)
    deleted = await delete(client, ada, type=type_)
    missing = await delete(client, ada, type=type_)

    prefix = "" if type_ == "model" else f"{type_}s/"
    url = f"http://hub.test/{prefix}ada/engine"
    assert created.json() == {"url": url, "name": "ada/engine", "id": created.json()["id"]}
    assert (again.status_code, again.json()) == (
        409,
        {"error": f"A {type_} repository called ada/engine already exists.", "url": url},
    )
    assert (deleted.status_code, deleted.json()) == (200, {})
    assert (missing.status_code, missing.headers["x-error-code"]) == (404, "RepoNotFound")
    [event, gone] = await published_events(database, RepoCreated, RepoDeleted)
    assert event == gone
    assert (event["repo"]["name"], event["repo"]["type"]) == ("ada/engine", type_)


@pytest.mark.parametrize("sdk", ["gradio", "streamlit", "docker", "static"])
async def test_a_new_space_has_a_readme_with_its_card(
    client: httpx2.AsyncClient, ada: Headers, sdk: str
) -> None:
    await create(client, ada, name="my_first-app", type="space", sdk=sdk)

    space = (await client.get("/api/spaces/ada/my_first-app")).json()
    readme = await client.get("/spaces/ada/my_first-app/raw/main/README.md")
    commits = await client.get("/api/spaces/ada/my_first-app/commits/main")

    assert [each["rfilename"] for each in space["siblings"]] == [".gitattributes", "README.md"]
    assert len(commits.json()) == 1
    assert space["cardData"] == {
        "title": "My First App", "emoji": "🚀", "colorFrom": "blue", "colorTo": "indigo",
        "sdk": sdk, "pinned": False,
    }  # fmt: skip
    body = {"content": readme.text, "repoType": "space"}
    assert (await client.post("/api/validate-yaml", json=body)).json() == {
        "errors": [],
        "warnings": [],
    }


@pytest.mark.parametrize("type_", ["model", "dataset", "kernel"])
async def test_other_repositories_start_without_a_readme(
    client: httpx2.AsyncClient, ada: Headers, type_: str
) -> None:
    await create(client, ada, type=type_)

    tree = await client.get(f"/api/{type_}s/ada/engine/tree/main")

    assert [each["path"] for each in tree.json()] == [".gitattributes"]


@pytest.mark.parametrize(
    ("type_", "media"), [("model", "regular"), ("kernel", "regular"), ("dataset", "lfs")]
)
async def test_a_new_repository_sends_to_lfs_what_it_does_on_the_public_service(
    client: httpx2.AsyncClient, ada: Headers, type_: str, media: str
) -> None:
    await create(client, ada, type=type_)
    files = [{"path": f"a.{end}"} for end in ("safetensors", "tar.x", "txt", "mds", "png", "mp4")]

    response = await client.post(
        f"/api/{type_}s/ada/engine/preupload/main", headers=ada, json={"files": files}
    )

    modes = [each["uploadMode"] for each in response.json()["files"]]
    assert modes == ["lfs", "lfs", "regular", media, media, media]


async def test_names_that_differ_only_in_case_are_one_name(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await create(client, ada, name="engine")

    again = await create(client, ada, name="ada/ENGINE")

    assert again.status_code == 409


async def test_everything_the_public_clients_send_is_accepted(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    response = await create(
        client,
        ada,
        type="space",
        organization=None,
        visibility="protected",
        sdk="docker",
        template="ada/template",
        hardware="t4-small",
        sleepTimeSeconds=3600,
        secrets=[{"key": "K", "value": "V"}],
        variables=[{"key": "K", "value": "V"}],
        volumes=[{"type": "bucket", "source": "ada/box", "mountPath": "/data"}],
        region="eu",
        devMode=True,
        license="mit",
        files=[],
    )

    assert response.status_code == 200


REFUSED = [
    pytest.param(
        {"name": "a--b"},
        "This is no name for a repository: it has no '--' and no '..'.",
        id="a name that the clients refuse",
    ),
    pytest.param(
        {"name": "settings"},
        "This is no name for a repository: settings is reserved for a page of its owner.",
        id="a model with the name of a page",
    ),
    pytest.param(
        {"name": "a/b/c"},
        "This is no name for a repository: it is written owner/name.",
        id="a name with two slashes",
    ),
    pytest.param(
        {"name": "ada/engine", "organization": "acme"},
        "This is no name for a repository: its owner and the organization are not the same.",
        id="two owners",
    ),
    pytest.param(
        {"type": "space"},
        "sdk is required for a space: gradio, streamlit, docker or static.",
        id="a space without an SDK",
    ),
    pytest.param(
        {"type": "space", "sdk": "cobol"},
        "sdk must be one of 'gradio', 'streamlit', 'docker' or 'static'.",
        id="an unknown SDK",
    ),
    pytest.param(
        {"type": "dataset", "sdk": "gradio"},
        "sdk is for spaces only, not for a dataset.",
        id="an SDK for what is no space",
    ),
    pytest.param(
        {"visibility": "protected"},
        "visibility protected is for spaces only.",
        id="a protected model",
    ),
    pytest.param(
        {"visibility": "public", "private": True},
        "private and visibility contradict each other.",
        id="private and public",
    ),
    pytest.param(
        {"visibility": "private", "private": False},
        "private and visibility contradict each other.",
        id="private and not private",
    ),
    pytest.param(
        {"files": [{"path": "a"}]},
        "files must have at most 0 items.",
        id="files, which come with a commit",
    ),
    pytest.param(
        {"type": "notebook"},
        "type must be one of 'model', 'dataset', 'space', 'kernel', 'bucket' or 'container'.",
        id="an unknown type",
    ),
]


@pytest.mark.parametrize(("body", "sentence"), REFUSED)
async def test_what_cannot_be_created_is_refused_with_the_rule(
    client: httpx2.AsyncClient, ada: Headers, body: dict[str, Any], sentence: str
) -> None:
    response = await create(client, ada, **body)

    assert (response.status_code, response.json()) == (400, {"error": sentence})


@pytest.mark.parametrize(
    ("body", "private"),
    [
        pytest.param({}, False, id="public by default"),
        pytest.param({"private": True}, True, id="private"),
        pytest.param({"private": False}, False, id="not private"),
        pytest.param({"visibility": "private"}, True, id="visibility private"),
        pytest.param({"visibility": "private", "private": True}, True, id="both say private"),
        pytest.param({"visibility": "public", "private": False}, False, id="both say public"),
    ],
)
async def test_visibility_is_said_in_either_of_two_fields(
    client: httpx2.AsyncClient, ada: Headers, database: Database, *, body: Any, private: bool
) -> None:
    await create(client, ada, **body)

    [event] = await published_events(database, RepoCreated)
    assert event["repo"]["private"] is private


@pytest.mark.parametrize(
    ("role", "status"), [(None, 403), (Role.read, 403), (Role.contributor, 200), (Role.write, 200)]
)
async def test_contributors_create_in_an_organization(
    client: httpx2.AsyncClient, ada: Headers, database: Database, role: Role | None, status: int
) -> None:
    await an_organization(database, "acme", members={"ada": role} if role else {})

    response = await create(client, ada, organization="acme")

    assert response.status_code == status


async def test_nobody_creates_under_another_name(client: httpx2.AsyncClient, ada: Headers) -> None:
    response = await create(client, ada, organization="bob")

    assert response.status_code == 403
    assert response.json() == {
        "error": "You cannot create a repository under bob: "
        "it is neither you nor one of your organizations."
    }


@pytest.mark.parametrize(
    ("group_role", "status"), [(None, 403), (Role.read, 403), (Role.contributor, 200)]
)
async def test_in_a_resource_group_the_role_there_decides(
    client: httpx2.AsyncClient,
    ada: Headers,
    database: Database,
    group_role: Role | None,
    status: int,
) -> None:
    acme = await an_organization(
        database, "acme", plan=OrganizationPlan.team, members={"ada": Role.read, "root": Role.admin}
    )
    members = {"ada": group_role} if group_role else {}
    group = await a_resource_group(database, acme, members=members)

    response = await create(client, ada, organization="acme", resourceGroupId=group.id)

    assert response.status_code == status


async def test_only_organizations_have_resource_groups(
    client: httpx2.AsyncClient, ada: Headers, database: Database
) -> None:
    await an_organization(database, "acme", plan=OrganizationPlan.team, members={"ada": Role.admin})

    own = await create(client, ada, resourceGroupId="a" * 24)
    unknown = await create(client, ada, organization="acme", resourceGroupId="a" * 24)

    assert (own.status_code, unknown.status_code) == (403, 404)


@pytest.mark.parametrize(
    ("scopes", "status"),
    [(["manage-repos"], 200), (["contribute-repos"], 200), (["write-repos"], 403)],
)
async def test_a_token_creates_with_the_right_scope(
    client: httpx2.AsyncClient, database: Database, scopes: list[str], status: int
) -> None:
    token = await sign_in(database, "ada", scopes=scopes)

    response = await create(client, token)

    assert response.status_code == status


@pytest.mark.parametrize(
    ("role", "status"),
    [(Role.read, 403), (Role.contributor, 403), (Role.write, 200), (Role.admin, 200)],
)
async def test_deleting_anothers_repository_needs_the_role_write(
    client: httpx2.AsyncClient, ada: Headers, database: Database, role: Role, status: int
) -> None:
    await an_organization(database, "acme", members={"ada": Role.contributor, "bob": role})
    bob = await sign_in(database, "bob")
    await create(client, ada, organization="acme")

    response = await delete(client, bob, organization="acme")

    assert response.status_code == status


async def test_a_contributor_deletes_what_they_created(
    client: httpx2.AsyncClient, ada: Headers, database: Database
) -> None:
    await an_organization(database, "acme", members={"ada": Role.contributor})
    await create(client, ada, organization="acme")

    response = await delete(client, ada, name="acme/engine")

    assert response.status_code == 200


async def test_a_private_repository_is_not_there_for_strangers(
    client: httpx2.AsyncClient, ada: Headers, database: Database
) -> None:
    bob = await sign_in(database, "bob")
    await create(client, ada, private=True)

    response = await delete(client, bob, name="ada/engine")

    assert (response.status_code, response.headers["x-error-code"]) == (404, "RepoNotFound")


async def test_the_folder_of_a_deleted_repository_goes(
    client: httpx2.AsyncClient, ada: Headers, database: Database
) -> None:
    repo_id = (await create(client, ada)).json()["id"]
    folder = bare_repos.folder_of(database.hub.settings.database.data_dir, repo_id)
    assert folder.exists()

    await delete(client, ada)
    await drain(database)

    assert not folder.exists()


async def test_a_name_that_is_taken_leaves_no_folder(
    client: httpx2.AsyncClient, ada: Headers, database: Database
) -> None:
    await create(client, ada)
    await create(client, ada)

    data_dir = database.hub.settings.database.data_dir
    assert len(list((data_dir / "repos").glob("??/*.git"))) == 1


async def test_without_a_token_nothing_is_created(client: httpx2.AsyncClient) -> None:
    response = await create(client, {})

    assert response.status_code == 401


@pytest.mark.parametrize(
    ("said", "private"),
    [
        ({}, True),
        ({"private": True}, True),
        ({"private": False}, False),
        ({"visibility": "public"}, False),
    ],
)
@pytest.mark.parametrize("type_", ["model", "dataset", "kernel", "bucket", "container"])
async def test_a_new_repository_is_as_private_as_its_organization_says_unless_its_creator_says(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    type_: str,
    said: dict[str, Any],
    *,
    private: bool,
) -> None:
    await an_organization(database, "engines", members={"ada": Role.admin})
    default = {"defaultVisibility": "private"}
    await client.patch("/api/organizations/engines", headers=ada, json=default)

    created = await create(client, ada, organization="engines", type=type_, **said)

    assert created.status_code == 200, created.text
    shown = await client.get(f"/api/{type_}s/engines/engine", headers=ada)
    assert shown.json()["private"] is private


async def test_the_visibility_of_an_organization_concerns_only_what_is_new_there(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(database, "engines", members={"ada": Role.admin})
    await create(client, ada, name="engines/old")
    default = {"defaultVisibility": "private"}
    await client.patch("/api/organizations/engines", headers=ada, json=default)

    await create(client, ada, name="ada/own")

    shown = [await client.get(f"/api/models/{name}") for name in ("engines/old", "ada/own")]
    assert [each.json()["private"] for each in shown] == [False, False]
