"""A comment that names another thread leaves an entry there, for those who may see the comment."""

import httpx2
import pytest

from community.discussions import a_discussion
from hublet.accounts.records import OrganizationPlan, Role
from hublet.community.threads.mentions import MAX_REFERENCES, referenced_threads
from hublet.core.database import Database
from people import Headers, an_organization, sign_in
from repositories import a_repo, a_resource_group
from web.parsed_pages import HTML
from web.thread_scenes import PAGES, enter, events_of, open_page, send

API = "/api/models/{}/discussions"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("See #12, #3.", {"": [12, 3]}, id="of the same repository"),
        pytest.param("ada/engine#7", {"ada/engine": [7]}, id="of a model"),
        pytest.param("(datasets/a/b.c#7)", {"datasets/a/b.c": [7]}, id="of a dataset"),
        pytest.param("`#1`\n```\n#2\n```\n<code>#3</code>", {}, id="in code"),
        pytest.param("#0 #x a#1 x/#1 #1a &#39; ##4", {}, id="no numbers of threads"),
        pytest.param("https://hub/ada/engine#5", {}, id="in an address"),
    ],
)
def test_references_are_found_in_prose(text: str, found: dict[str, list[int]]) -> None:
    assert referenced_threads(text) == found


def test_a_text_leaves_so_many_entries_at_most() -> None:
    text = " ".join(f"#{number}" for number in range(1, 100))

    assert referenced_threads(text) == {"": list(range(1, MAX_REFERENCES + 1))}


def test_a_hostile_text_takes_no_longer() -> None:
    for part in ("a/", "a/b", "datasets/", "a.", "#1 "):
        referenced_threads(part * 20_000)


@pytest.fixture
async def bob(database: Database) -> Headers:
    return await sign_in(database, "bob")


@pytest.fixture
async def named(client: httpx2.AsyncClient, ada: Headers) -> str:
    """The page of a public thread, which others name."""
    await a_repo(client, ada, "ada/engine")
    await a_discussion(client, ada, API.format("ada/engine"), title="The named one")
    return f"{PAGES}/1"


async def entries_in(client: httpx2.AsyncClient, path: str) -> list[str]:
    """Return the entries of a timeline, without their times."""
    return [text.partition(" just now")[0] for text in events_of(await open_page(client, path))]


async def test_a_comment_of_the_same_repository_leaves_an_entry(
    client: httpx2.AsyncClient, named: str, bob: Headers
) -> None:
    for number in (2, 3):
        await a_discussion(
            client, bob, API.format("ada/engine"), title=f"Number {number}", description="As #1"
        )
    await client.post(
        f"{API.format('ada/engine')}/2/comment", headers=bob, json={"comment": "As #1 and #2"}
    )

    # One for each thread; none for a comment in the thread itself.
    assert await entries_in(client, named) == [
        "bob mentioned this in Number 2 #2",
        "bob mentioned this in Number 3 #3",
    ]
    assert await entries_in(client, f"{PAGES}/2") == []
    page = await open_page(client, named)
    [link] = [each.attributes["href"] for each in page.all("a") if each.text == "Number 2 #2"]
    assert link.startswith(f"{PAGES}/2#")


async def test_an_edit_and_hiding_take_it_away(
    client: httpx2.AsyncClient, database: Database, named: str, bob: Headers
) -> None:
    await a_discussion(client, bob, API.format("ada/engine"), title="Number 2", description="Hello")
    await enter(client, database, "bob")
    details = (await client.get(f"{API.format('ada/engine')}/2")).json()
    comment = f"comment/{details['events'][0]['id']}"
    thread = f"{PAGES}/2"

    counts = []
    for text in ("As #1", "As before", "As #1 again"):
        await send(client, f"{comment}/edit", thread=thread, content=text)
        counts.append(len(await entries_in(client, named)))
    await send(client, f"{comment}/hide", thread=thread)

    assert counts == [1, 0, 1]
    assert await entries_in(client, named) == []


async def test_a_deleted_thread_leaves_nothing(
    client: httpx2.AsyncClient, named: str, ada: Headers
) -> None:
    await a_discussion(client, ada, API.format("ada/engine"), title="Number 2", description="#1")
    assert len(await entries_in(client, named)) == 1

    await client.delete(f"{API.format('ada/engine')}/2", headers=ada)

    assert await entries_in(client, named) == []


# Who looks at the public thread, and from which repositories they see its mentions.
SEEN = {
    None: {"public"},
    "stranger": {"public"},
    "reader": {"public", "private"},
    "member": {"public", "private", "grouped"},
    "admin": {"public", "private", "grouped"},
}


@pytest.mark.parametrize("name", SEEN)
async def test_only_who_may_see_the_comment_sees_that_it_names_this(
    client: httpx2.AsyncClient, database: Database, named: str, name: str | None
) -> None:
    works = await an_organization(
        database,
        "works",
        plan=OrganizationPlan.team,
        members={"admin": Role.admin, "member": Role.write, "reader": Role.read},
    )
    group = await a_resource_group(database, works, members={"member": Role.read})
    admin = await sign_in(database, "admin")
    for repo, options in {
        "public": {},
        "private": {"private": True},
        "grouped": {"private": True, "resourceGroupId": group.id},
    }.items():
        await a_repo(client, admin, f"works/{repo}", **options)
        await a_discussion(
            client,
            admin,
            API.format(f"works/{repo}"),
            title=f"Title of {repo}",
            description="ada/engine#1",
        )
    await enter(client, database, name)

    page = await client.get(named, headers=HTML)

    for repo in ("public", "private", "grouped"):
        is_seen = repo in SEEN[name]
        assert (f"Title of {repo}" in page.text) is is_seen, repo
        assert (f"works/{repo}" in page.text) is is_seen, repo


async def test_a_mention_that_became_private_disappears(
    client: httpx2.AsyncClient, named: str, bob: Headers
) -> None:
    await a_repo(client, bob, "bob/loom")
    await a_discussion(
        client, bob, API.format("bob/loom"), title="Mine", description="ada/engine#1"
    )
    assert await entries_in(client, named) == ["bob mentioned this in Mine bob/loom#1"]

    await client.put("/api/models/bob/loom/settings", headers=bob, json={"private": True})

    assert await entries_in(client, named) == []


async def test_nobody_leaves_entries_where_they_may_not_look(
    client: httpx2.AsyncClient, database: Database, ada: Headers, bob: Headers
) -> None:
    await a_repo(client, ada, "ada/secret", private=True)
    await a_discussion(client, ada, API.format("ada/secret"))
    await a_repo(client, bob, "bob/loom")
    await a_discussion(
        client, bob, API.format("bob/loom"), description="ada/secret#1 ada/none#1 bob/loom#9"
    )
    await enter(client, database, "ada")

    assert await entries_in(client, "/ada/secret/discussions/1") == []
