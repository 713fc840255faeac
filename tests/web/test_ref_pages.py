"""Branches and tags are listed, created and deleted in the browser."""

from datetime import timedelta

import httpx2
import pytest

from hublet.core import clock
from hublet.core.database import Database
from login.login_pages import a_person, form_token_of, log_in, notices_in
from people import Headers, sign_in
from repos.content import put
from repositories import a_repo
from web.file_pages import a_repo_with, get_page
from web.parsed_pages import HTML, parse

PAGE = "/ada/engine/branches"


@pytest.fixture
async def ada(client: httpx2.AsyncClient, database: Database) -> Headers:
    """Ada, signed in with a browser, and her repository with a branch and a tag."""
    await a_person(database, "ada")
    await log_in(client, "ada")
    ada = await sign_in(database, "ada")
    repo_id, _ = await a_repo_with(client, database, ada, {"a.txt": b"1"})
    await client.post("/api/models/ada/engine/branch/next%2Fbig", headers=ada, json={})
    await client.post("/api/models/ada/engine/tag/main", headers=ada, json={"tag": "v1"})
    await put(database, repo_id, {"a.txt": b"2"}, at=1_700_000_100)
    return ada


async def send(client: httpx2.AsyncClient, verb: str, **fields: str) -> httpx2.Response:
    token = _token(await client.get(PAGE))
    return await client.post(f"{PAGE}/{verb}", data={"form_token": token} | fields, headers=HTML)


def _token(page: httpx2.Response) -> str:
    return form_token_of(page, f"{PAGE}/create")


async def refs_of(client: httpx2.AsyncClient, headers: Headers) -> tuple[list[str], list[str]]:
    refs = (await client.get("/api/models/ada/engine/refs", headers=headers)).json()
    return [each["name"] for each in refs["branches"]], [each["name"] for each in refs["tags"]]


@pytest.mark.usefixtures("ada")
async def test_each_has_its_last_commit_and_main_comes_first(client: httpx2.AsyncClient) -> None:
    page = await get_page(client, PAGE)

    branches, tags = page.root.all("ul", class_="refs-list")
    assert [each.text for each in branches.all("a", class_="name")] == ["main", "next/big"]
    assert [each.text for each in tags.all("a", class_="name")] == ["v1"]
    assert page.links["next/big"] == "/ada/engine/tree/next%2Fbig"
    # Main cannot be deleted.
    assert [each.text for each in branches.all("summary")] == ["Delete"]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("branch", (["main", "next/big", "x"], ["v1"])), ("tag", (["main", "next/big"], ["v1", "x"]))],
)
async def test_a_new_one_starts_at_a_revision(
    client: httpx2.AsyncClient, ada: Headers, kind: str, expected: tuple[list[str], list[str]]
) -> None:
    response = await send(client, "create", kind=kind, name="x", revision="next/big")

    assert (response.status_code, response.headers["location"]) == (303, PAGE)
    branches, tags = await refs_of(client, ada)
    assert (sorted(branches), sorted(tags)) == expected
    text = (await client.get("/ada/engine/resolve/x/a.txt", headers=ada)).text
    assert text == "1"


@pytest.mark.parametrize(
    ("kind", "name"), [("branch", "next/big"), ("tag", "v1")], ids=["a branch", "a tag"]
)
async def test_one_is_deleted(
    client: httpx2.AsyncClient, ada: Headers, kind: str, name: str
) -> None:
    await send(client, "delete", kind=kind, name=name)

    branches, tags = await refs_of(client, ada)
    assert name not in branches + tags
    assert f"The {kind} {name} is deleted." in (await client.get(PAGE)).text


@pytest.mark.parametrize(
    ("verb", "fields", "sentence"),
    [
        pytest.param(
            "create",
            {"kind": "branch", "name": "main"},
            "already exists",
            id="a name that is taken",
        ),
        pytest.param(
            "create", {"kind": "tag", "name": "a b"}, "no name for a tag", id="no name for a ref"
        ),
        pytest.param(
            "create",
            {"kind": "branch", "name": "x", "revision": "gone"},
            "no revision gone",
            id="from an unknown revision",
        ),
        pytest.param(
            "create", {"kind": "note", "name": "x"}, "kind must be", id="neither branch nor tag"
        ),
        pytest.param("delete", {"kind": "branch", "name": "main"}, "keeps its main", id="main"),
        pytest.param("delete", {"kind": "tag", "name": "v9"}, "no revision v9", id="an absent tag"),
    ],
)
async def test_what_is_refused_says_the_rule_and_changes_nothing(
    client: httpx2.AsyncClient, ada: Headers, verb: str, fields: dict[str, str], sentence: str
) -> None:
    before = await refs_of(client, ada)

    response = await send(client, verb, **fields)

    assert response.status_code == 422
    assert sentence in notices_in(response)[0]
    if verb == "create":
        assert f'value="{fields["name"]}"' in response.text
    assert await refs_of(client, ada) == before


async def test_readers_see_them_and_change_nothing(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    token = _token(await client.get(PAGE))
    await a_person(database, "grace")
    await log_in(client, "grace")

    page = parse(await client.get(PAGE, headers=HTML))
    fields = {"kind": "tag", "name": "v1"}
    with_the_token_of_another = await client.post(
        f"{PAGE}/delete", data=fields | {"form_token": token}
    )
    own = page.one("form", action="/ada/engine/like").one("input", name="form_token")
    with_her_own = await client.post(
        f"{PAGE}/delete", data=fields | {"form_token": own.attributes["value"]}
    )

    assert page.one("main").all("summary") == []
    assert with_the_token_of_another.status_code == 403
    assert "v1" in (await refs_of(client, ada))[1]
    assert with_her_own.status_code == 403


async def test_those_of_a_private_or_gated_repository_are_not_shown(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/secret", private=True)
    await a_repo(client, ada, "ada/box", type="bucket")
    settings = "/api/models/ada/engine/settings"
    assert (await client.put(settings, headers=ada, json={"gated": "manual"})).status_code == 200
    await a_person(database, "grace")
    await log_in(client, "grace")

    gated = await client.get(PAGE, headers=HTML)

    assert gated.status_code == 403
    assert "next/big" not in gated.text
    for path in ("/ada/secret/branches", "/ada/nothing/branches", "/buckets/ada/box/branches"):
        assert (await client.get(path, headers=HTML)).status_code == 404


@pytest.mark.usefixtures("ada")
async def test_deletion_needs_a_recent_login(client: httpx2.AsyncClient) -> None:
    token = _token(await client.get(PAGE))
    clock.move(timedelta(minutes=20))

    response = await client.post(
        f"{PAGE}/delete", data={"form_token": token, "kind": "tag", "name": "v1"}
    )

    assert response.headers["location"].startswith("/login?next=")
