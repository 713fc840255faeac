"""Start page, lists, search and the pages of people, as a browser sees them."""

import httpx2
import pytest

from hublet.accounts.records import Role
from hublet.core.database import Database
from login.login_pages import a_person, form_token_of, log_in
from people import Headers, an_organization, sign_in
from repositories import a_push, a_repo, disable
from web.parsed_pages import parse, submit
from workers import drain

BROWSER = {"Accept": "text/html"}


@pytest.fixture
async def ada(database: Database) -> Headers:
    """Ada can also sign in with a browser."""
    await a_person(database, "ada")
    return await sign_in(database, "ada")


async def test_a_list_shows_what_everybody_may_see(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")
    await a_repo(client, ada, "ada/secret", private=True)

    page = (await client.get("/models")).text

    assert 'href="/ada/engine"' in page
    assert "secret" not in page


async def test_the_owner_sees_private_ones_too(client: httpx2.AsyncClient, ada: Headers) -> None:
    await a_repo(client, ada, "ada/secret", private=True)

    await log_in(client, "ada")

    assert 'href="/ada/secret"' in (await client.get("/models")).text


@pytest.mark.parametrize(
    ("query", "found"),
    [
        pytest.param("search=eng", ["ada/engine"], id="a part of the name"),
        pytest.param("author=grace", ["grace/loom"], id="the owner"),
        pytest.param("filter=license:mit", ["grace/loom"], id="a tag"),
        pytest.param("filter=license:mit&author=ada", [], id="all of them"),
        pytest.param("sort=likes", ["ada/engine", "grace/loom"], id="none"),
    ],
)
async def test_filters_of_a_list_are_those_of_the_api(
    client: httpx2.AsyncClient, database: Database, ada: Headers, query: str, found: list[str]
) -> None:
    await a_repo(client, ada, "ada/engine")
    loom = await a_repo(client, await sign_in(database, "grace"), "grace/loom")
    await a_push(database, loom, {"README.md": b"x"}, tags=["license:mit"])

    page = (await client.get(f"/models?{query}")).text

    assert [name for name in ("ada/engine", "grace/loom") if f'href="/{name}"' in page] == found
    assert ("None of them match." in page) == (not found)


async def test_a_wrong_filter_says_the_rule_on_a_page(client: httpx2.AsyncClient) -> None:
    response = await client.get("/models?sort=beauty", headers=BROWSER)

    assert response.status_code == 400
    assert "sort" in response.text
    assert response.headers["content-type"] == "text/html; charset=utf-8"


async def test_a_long_list_goes_on_with_the_same_filters(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    for number in range(31):
        await a_repo(client, ada, f"ada/engine-{number:02}", type="dataset")

    first = (await client.get("/datasets?author=ada")).text
    [more] = [part.partition('"')[0] for part in first.split('rel="next" href="')[1:]]
    last = (await client.get(more.replace("&amp;", "&"))).text

    assert first.count('class="name"') == 30
    assert 'href="/datasets/ada/engine-00"' in last
    assert last.count('class="name"') == 1


async def test_an_empty_list_says_how_to_fill_it(client: httpx2.AsyncClient) -> None:
    assert "hf repos create my-dataset --type dataset" in (await client.get("/datasets")).text


async def test_the_list_of_an_owner_is_the_filtered_one(client: httpx2.AsyncClient) -> None:
    response = await client.get("/ada/datasets")

    assert (response.status_code, response.headers["location"]) == (303, "/datasets?author=ada")


async def test_search_finds_repositories_and_people(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/loom")
    await a_repo(client, ada, "ada/loom-secret", private=True)
    await sign_in(database, "loomer")
    await drain(database)

    page = (await client.get("/search?q=loom")).text

    assert 'href="/ada/loom"' in page
    assert 'href="/loomer"' in page
    assert "loom-secret" not in page


async def test_search_corrects_a_typing_error_and_says_so(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")
    await drain(database)

    page = (await client.get("/search?q=engnie")).text

    assert "These are the results for “engine”." in page
    assert 'href="/ada/engine"' in page


async def test_what_was_searched_for_is_text_and_nothing_else(client: httpx2.AsyncClient) -> None:
    page = (await client.get('/search?q="><script>alert(1)</script>')).text

    assert "<script>alert" not in page


async def test_suggestions_are_for_who_types(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine", private=True)
    await drain(database)
    assert (await client.get("/search/suggestions?q=engi")).json() == []

    await log_in(client, "ada")

    assert (await client.get("/search/suggestions?q=engi")).json() == [
        {"kind": "model", "title": "ada/engine", "path": "/ada/engine"}
    ]


async def test_a_profile_shows_what_the_viewer_may_see(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(database, "analytical", members={"ada": Role.admin})
    await a_repo(client, ada, "ada/engine")
    await a_repo(client, ada, "ada/secret", private=True)

    page = (await client.get("/ada")).text

    assert 'href="/ada/engine"' in page
    assert "secret" not in page
    assert 'href="/analytical"' in page
    assert 'href="/ada"' in (await client.get("/analytical")).text


async def test_an_unknown_name_is_not_found(client: httpx2.AsyncClient) -> None:
    response = await client.get("/nobody", headers=BROWSER)

    assert response.status_code == 404
    assert "<h1>Nothing here</h1>" in response.text


@pytest.mark.parametrize("name", ["grace", "analytical"])
async def test_following_by_a_button(
    client: httpx2.AsyncClient, database: Database, ada: Headers, name: str
) -> None:
    await a_person(database, "grace")
    await an_organization(database, "analytical", members={"grace": Role.admin})
    await log_in(client, "ada")

    for follow, text in (("yes", "1 follower"), ("no", "0 followers")):
        page = await client.get(f"/{name}")
        fields = {"form_token": form_token_of(page, f"/{name}/follow"), "follow": follow}
        assert (await client.post(f"/{name}/follow", data=fields)).status_code == 303
        assert text in (await client.get(f"/{name}")).text
    assert ada


async def test_following_needs_the_page_it_is_on(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_person(database, "grace")
    assert (await client.post("/grace/follow", data={"follow": "yes"})).status_code == 303
    await log_in(client, "ada")

    response = await client.post("/grace/follow", data={"follow": "yes", "form_token": "00"})

    assert response.status_code == 403
    assert ada


async def test_the_start_page_shows_what_is_mine_and_what_happened(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine", private=True)
    public = await a_repo(client, ada, "ada/loom")
    grace = await sign_in(database, "grace")
    asked = await client.post(
        "/api/models/ada/loom/discussions",
        headers=grace,
        json={"title": "Does it weave?", "description": "I wonder."},
    )
    assert asked.status_code == 200
    await drain(database)
    assert "ada/engine" not in (await client.get("/")).text

    await log_in(client, "ada")
    page = (await client.get("/")).text

    assert 'href="/ada/engine"' in page
    assert 'href="/ada/loom/discussions/1"' in page
    assert "Does it weave? #1" in page
    assert "Inbox, 1 unread" in page
    assert public


async def _follow(client: httpx2.AsyncClient, headers: Headers, name: str) -> None:
    response = await client.post(f"/api/users/{name}/follow", headers=headers)
    assert response.status_code == 200, response.text


async def test_followers_and_followed_are_listed_without_disabled_people(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    grace, edith = await sign_in(database, "grace"), await sign_in(database, "edith")
    for headers, name in ((ada, "grace"), (edith, "grace"), (grace, "ada")):
        await _follow(client, headers, name)
    await disable(database, "edith")

    followers = parse(await client.get("/grace/followers", headers=BROWSER)).one("main")
    following = parse(await client.get("/grace/following", headers=BROWSER)).one("main")

    for page in (followers, following):
        assert [each.text for each in page.all("a", class_="name")] == ["ada"]
        assert [each.text for each in page.one("nav", class_="tabs").all("a")] == [
            "Followers 1",
            "Following 1",
        ]
    # Who is not signed in has no buttons.
    assert followers.all("form") == []


async def test_members_are_listed_with_their_roles(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_organization(database, "analytical", members={"ada": Role.admin, "grace": Role.read})

    page = parse(await client.get("/organizations/analytical/members", headers=BROWSER))
    profile = (await client.get("/analytical")).text

    rows = [row.text for row in page.one("ul", class_="found").all("li")]
    assert rows == ["ada admin", "grace read"]
    assert 'href="/organizations/analytical/members"' in profile


async def test_a_row_follows_and_comes_back_to_its_list(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(database, "analytical", members={"ada": Role.admin, "grace": Role.read})
    await log_in(client, "ada")
    path = "/organizations/analytical/members"

    for follow, button in (("yes", "Unfollow"), ("no", "Follow")):
        page = parse(await client.get(path, headers=BROWSER))
        response = await submit(client, page, "/grace/follow", follow=follow)
        assert (response.status_code, response.headers["location"]) == (303, path)
        shown = parse(await client.get(path, headers=BROWSER))
        # Nobody follows themselves: only Grace's row has a button.
        assert [each.text for each in shown.one("ul", class_="found").all("button")] == [button]
    assert ada


async def test_a_form_leads_nowhere_else(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_person(database, "grace")
    await log_in(client, "ada")
    token = form_token_of(await client.get("/grace"), "/grace/follow")

    response = await client.post(
        "/grace/follow",
        data={"form_token": token, "follow": "yes", "next": "https://evil.example.com/"},
    )

    assert response.headers["location"].startswith("/")
    assert not response.headers["location"].startswith("//")
    assert ada


async def test_a_long_list_of_people_goes_on(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_organization(
        database, "analytical", members={f"member-{n:02}": Role.read for n in range(31)}
    )

    first = parse(await client.get("/organizations/analytical/members", headers=BROWSER))
    last = parse(await client.get(first.one("a", rel="next").attributes["href"], headers=BROWSER))

    names = [each.text for page in (first, last) for each in page.all("a", class_="name")]
    assert len(first.all("a", class_="name")) == 30
    assert sorted(names) == [f"member-{n:02}" for n in range(31)]


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/nobody/followers", id="nobody"),
        pytest.param("/analytical/following", id="an organization follows nobody"),
        pytest.param("/organizations/ada/members", id="a person has no members"),
    ],
)
async def test_lists_that_are_not_there_look_like_nothing(
    client: httpx2.AsyncClient, database: Database, ada: Headers, path: str
) -> None:
    await an_organization(database, "analytical")

    response = await client.get(path, headers=BROWSER)

    assert response.status_code == 404
    assert "<h1>Nothing here</h1>" in response.text
    assert ada
