"""Community blogs: writing, changing, listing and deleting them."""

import httpx2
import pytest

from account_responses import pages_of
from community.public_threads import a_comment, a_thread, author_card
from hublet.accounts.records import OrganizationPlan, Role
from hublet.core.database import Database
from hublet.events import ThreadCreated, ThreadDeleted, ThreadUpdated
from hublet.tokens.records import TokenRole
from outbox_events import published_events
from people import Headers, a_user, an_organization, sign_in
from repositories import a_resource_group

PATH = "/api/blog"
BODY = {"title": "Notes on the Engine", "content": "# It works\n\nAsk @bob."}


async def an_organizations_blog(
    client: httpx2.AsyncClient, database: Database, ada: Headers, **members: Role
) -> str:
    """Return the address of a blog that ada, who may write there, published for engines."""
    await an_organization(database, "engines", members={"ada": Role.write, **members})
    body = BODY | {"organization": "Engines"}
    return f"{PATH}/engines/{(await client.post(PATH, headers=ada, json=body)).json()['slug']}"


async def test_a_blog_stands_under_its_authors_name(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await a_user(database, "bob")
    response = await client.post(PATH, headers=ada, json=BODY)

    assert response.status_code == 200
    blog = response.json()
    user = await a_user(database, "ada")
    assert blog == {
        "id": blog["id"],
        "slug": "notes-on-the-engine",
        "title": "Notes on the Engine",
        "canonical": False,
        "author": author_card(user),
        "publishedAt": blog["publishedAt"],
        "updatedAt": blog["publishedAt"],
        "numComments": 0,
        "content": "# It works\n\nAsk @bob.",
    }
    assert (await client.get(f"{PATH}/ada/notes-on-the-engine")).json() == blog
    (fact,) = await published_events(database, ThreadCreated)
    assert (fact["thread"]["kind"], fact["thread"]["slug"]) == ("blog", "notes-on-the-engine")
    assert (fact["thread"]["author_id"], fact["mentioned_ids"]) == (user.id, [bob.id])


async def test_an_organizations_blog_shows_both_names(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    address = await an_organizations_blog(client, database, ada)

    blog = (await client.get(address)).json()

    user = await a_user(database, "ada")
    organization = blog["organization"]
    assert blog["author"] == author_card(user)
    assert organization == {
        "_id": organization["_id"],
        "name": "engines",
        "fullname": "engines",
        "avatarUrl": f"http://hub.test/avatars/{organization['_id']}",
        "type": "org",
    }
    assert (await client.get(f"{PATH}/ada/{blog['slug']}")).status_code == 404


@pytest.mark.parametrize("role", [Role.contributor, Role.read, None])
async def test_an_organizations_blog_needs_a_role_that_writes(
    client: httpx2.AsyncClient, database: Database, ada: Headers, role: Role | None
) -> None:
    await an_organization(database, "engines", members={"ada": role} if role else {})

    response = await client.post(PATH, headers=ada, json=BODY | {"organization": "engines"})

    assert (response.status_code, response.json()) == (
        403,
        {"error": "This needs the role write in the organization engines."},
    )


async def test_there_is_no_blog_of_an_organization_that_does_not_exist(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    response = await client.post(PATH, headers=ada, json=BODY | {"organization": "nobody"})

    assert (response.status_code, response.json()) == (
        404,
        {"error": "There is no organization nobody."},
    )


async def test_blogs_of_one_title_get_names_of_their_own(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    slugs = [(await client.post(PATH, headers=ada, json=BODY)).json()["slug"] for _ in range(11)]
    bobs = (await client.post(PATH, headers=bob, json=BODY)).json()["slug"]

    assert slugs[:3] == ["notes-on-the-engine", "notes-on-the-engine-2", "notes-on-the-engine-3"]
    assert slugs[8] == "notes-on-the-engine-9"
    assert len(set(slugs)) == 11
    assert [len(slug) for slug in slugs[9:]] == [len("notes-on-the-engine-") + 8] * 2
    assert bobs == "notes-on-the-engine"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"title": "ab"}, "title must have at least 3 character(s)."),
        ({"title": "x" * 201}, "title must have at most 200 characters."),
        ({"title": "two\r\nlines"}, "title: must be a single line without control characters."),
        ({"content": "\t"}, "content: must say something, blanks alone do not count."),
        ({"content": "x" * 500_001}, "content must have at most 500000 characters."),
        ({"canonical": True}, "canonical is not a known field."),
    ],
)
async def test_a_blog_that_breaks_a_rule_is_refused(
    client: httpx2.AsyncClient, ada: Headers, change: dict[str, object], sentence: str
) -> None:
    address = await a_thread(client, ada, "blog")

    created = await client.post(PATH, headers=ada, json=BODY | change)
    changed = await client.patch(address, headers=ada, json=change)

    assert (created.status_code, created.json()) == (400, {"error": sentence})
    assert (changed.status_code, changed.json()) == (400, {"error": sentence})


async def test_a_blog_needs_a_full_token(client: httpx2.AsyncClient, database: Database) -> None:
    address = await a_thread(client, await sign_in(database, "ada"), "blog")
    reader = await sign_in(database, "ada", role=TokenRole.read)

    for method, path in (("POST", PATH), ("PATCH", address), ("DELETE", address)):
        response = await client.request(method, path, headers=reader, json=BODY)
        assert response.status_code == 403
        assert response.json() == {"error": "This needs a token with the role write."}


async def test_a_changed_blog_keeps_its_address(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    before = (await client.post(PATH, headers=ada, json=BODY)).json()
    address = f"{PATH}/ada/{before['slug']}"

    titled = await client.patch(address, headers=ada, json={"title": "More notes"})
    written = await client.patch(address, headers=ada, json={"content": "It really works."})

    assert titled.status_code == 200
    changed = {"title": "More notes", "updatedAt": titled.json()["updatedAt"]}
    assert titled.json() == before | changed
    assert written.json() == titled.json() | {
        "content": "It really works.",
        "updatedAt": written.json()["updatedAt"],
    }
    assert (await client.get(address)).json() == written.json()
    facts = await published_events(database, ThreadUpdated)
    assert [(fact["changed"], fact["thread"]["title"]) for fact in facts] == [
        (["title"], "More notes"),
        (["content"], "More notes"),
    ]


async def test_only_those_are_told_whom_the_text_did_not_mention_before(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    grace, alan = await a_user(database, "grace"), await a_user(database, "alan")
    body = BODY | {"content": "Thanks, @grace!"}
    blog = (await client.post(PATH, headers=ada, json=body)).json()
    address = f"{PATH}/ada/{blog['slug']}"

    await client.patch(address, headers=ada, json={"content": "Thanks, @grace and @alan!"})

    [created] = await published_events(database, ThreadCreated)
    [updated] = await published_events(database, ThreadUpdated)
    assert created["mentioned_ids"] == [grace.id]
    assert updated["mentioned_ids"] == [alan.id]


async def test_a_change_that_changes_nothing_is_no_fact(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    blog = (await client.post(PATH, headers=ada, json=BODY)).json()

    same = await client.patch(f"{PATH}/ada/{blog['slug']}", headers=ada, json=BODY)

    assert (same.status_code, same.json()) == (200, blog)
    assert await published_events(database, ThreadUpdated) == []


async def test_a_change_needs_something_to_change(client: httpx2.AsyncClient, ada: Headers) -> None:
    response = await client.patch(await a_thread(client, ada, "blog"), headers=ada, json={})

    assert (response.status_code, response.json()) == (
        400,
        {"error": "Give title or content: nothing else of a blog can be changed."},
    )


async def test_nobody_else_changes_or_deletes_a_blog(
    client: httpx2.AsyncClient, database: Database, ada: Headers, admin: Headers
) -> None:
    address = await a_thread(client, ada, "blog")
    bob = await sign_in(database, "bob")

    edited = await client.patch(address, headers=bob, json={"title": "Mine now"})
    edited_by_admin = await client.patch(address, headers=admin, json={"title": "Mine now"})
    deleted = await client.delete(address, headers=bob)

    for response, action in ((edited, "edit"), (edited_by_admin, "edit"), (deleted, "delete")):
        assert (response.status_code, response.json()) == (
            403,
            {"error": f"You cannot {action} this blog: it is somebody else's."},
        )


@pytest.mark.parametrize(
    ("name", "role", "status"),
    [
        pytest.param("ada", Role.write, 200, id="its author who may write there"),
        pytest.param("ada", Role.read, 403, id="its author who may only read now"),
        pytest.param("bob", Role.admin, 200, id="an administrator of the organization"),
        pytest.param("bob", Role.write, 403, id="another writer"),
    ],
)
async def test_who_changes_and_deletes_an_organizations_blog(
    client: httpx2.AsyncClient, database: Database, ada: Headers, name: str, role: Role, status: int
) -> None:
    address = await an_organizations_blog(client, database, ada, root=Role.admin)
    headers, root = await sign_in(database, name), await sign_in(database, "root")
    members = f"/api/organizations/engines/members/{name}"
    await client.put(members, headers=root, json={"role": role})

    edited = await client.patch(address, headers=headers, json={"title": "More notes"})
    deleted = await client.delete(address, headers=headers)

    assert (edited.status_code, deleted.status_code) == (status, status)


async def test_a_deleted_blog_is_gone_with_its_comments(
    client: httpx2.AsyncClient, database: Database, ada: Headers, admin: Headers
) -> None:
    address = await a_thread(client, ada, "blog")
    await a_comment(client, ada, address)

    response = await client.delete(address, headers=admin)

    assert (response.status_code, response.json()) == (200, {})
    gone = await client.get(address)
    assert gone.json() == {
        "error": "There is no blog ada/a-blog-to-talk-about, or you cannot see it."
    }
    (fact,) = await published_events(database, ThreadDeleted)
    assert fact["thread"]["slug"] == "a-blog-to-talk-about"


async def test_blogs_are_listed_without_their_texts_newest_first(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organizations_blog(client, database, ada)
    for title in ("First", "Second", "Third"):
        await client.post(PATH, headers=ada, json=BODY | {"title": title})
    blog = (await client.get(f"{PATH}/ada/third")).json()
    blog.pop("content")

    listed = (await client.get(f"{PATH}?limit=1")).json()

    assert listed == [blog]
    assert await pages_of(client, f"{PATH}?limit=3", "title") == [
        ["Third", "Second", "First"],
        ["Notes on the Engine"],
    ]
    assert await pages_of(client, f"{PATH}?author=Engines", "title") == [["Notes on the Engine"]]
    assert await pages_of(client, f"{PATH}?author=ada&limit=2", "title") == [
        ["Third", "Second"],
        ["First"],
    ]
    assert await pages_of(client, f"{PATH}?author=nobody", "title") == [[]]


async def test_who_hides_comments_under_an_organizations_blog(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    address = await an_organizations_blog(client, database, ada, bob=Role.admin, eve=Role.write)
    stranger = await sign_in(database, "mallory")
    statuses = []
    for name in ("ada", "bob", "eve"):
        comment_id = await a_comment(client, stranger, address)
        headers = await sign_in(database, name)
        response = await client.post(f"{address}/comment/{comment_id}/hide", headers=headers)
        statuses.append(response.status_code)

    assert statuses == [200, 200, 403]


async def test_those_who_write_in_its_resource_group_may_edit_a_blog(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    organization = await an_organization(
        database,
        "engines",
        plan=OrganizationPlan.team,
        members={"ada": Role.write, "bob": Role.read, "eve": Role.write, "root": Role.admin},
    )
    group = await a_resource_group(database, organization, members={"bob": Role.write})
    bob, eve, root = [await sign_in(database, name) for name in ("bob", "eve", "root")]
    body = BODY | {"organization": "engines"}
    address = f"{PATH}/engines/{(await client.post(PATH, headers=ada, json=body)).json()['slug']}"
    move = {"resourceGroupId": group.id}

    async def edits(headers: Headers) -> int:
        changed = {"title": "A new title"}
        return (await client.patch(address, headers=headers, json=changed)).status_code

    before = await edits(bob)
    refused = await client.post(f"{address}/resource-group", headers=ada, json=move)
    moved = await client.post(f"{address}/resource-group", headers=root, json=move)
    during = [await edits(who) for who in (bob, eve, ada, root)]
    seen = [
        (await client.get(f"{address}/resource-group", headers=who)).json()["resourceGroup"]
        for who in (bob, eve)
    ]
    await client.post(f"{address}/resource-group", headers=root, json={"resourceGroupId": None})

    assert (before, refused.status_code) == (403, 403)
    assert moved.json() == {"resourceGroup": {"id": group.id, "name": "rockets"}}
    assert during == [200, 403, 200, 200]
    assert seen == [{"id": group.id, "name": "rockets"}, None]
    assert await edits(bob) == 403
    assert (await client.get(address)).status_code == 200


async def test_only_an_organizations_blog_has_a_resource_group(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    slug = (await client.post(PATH, headers=ada, json=BODY)).json()["slug"]
    address = f"{PATH}/ada/{slug}/resource-group"

    response = await client.post(address, headers=ada, json={"resourceGroupId": "0" * 24})

    assert (response.status_code, response.json()["error"]) == (
        400,
        "Only the blogs of an organization can be in a resource group.",
    )
    assert (await client.get(address, headers=ada)).json() == {"resourceGroup": None}
