"""Papers, posts and blogs: who hears of them, and which switch decides."""

import httpx2
import pytest

from community.public_threads import KINDS, a_thread
from hublet.accounts.records import Role
from hublet.core.database import Database
from notifications.recipients import Stage, a_stage, in_inboxes
from people import Headers, a_user, an_organization, sign_in

# Of each kind, the switches for the inbox and for mail: of who watches, and of who takes part.
WATCHING = ("web_discussions_watched", "discussions_watched")
TAKING_PART = {
    "post": ("web_posts_participating", "posts_participating"),
    "blog": ("web_posts_participating", "posts_participating"),
    "paper": ("web_posts_participating", "arxiv_paper_activity"),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
async def stage(client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str) -> Stage:
    """A thread that ada opened, that sam commented on, and in which grace was mentioned."""
    await a_user(database, "grace")
    stage = await a_stage(client, database, await a_thread(client, ada, kind))
    await stage.comment("sam", "What do you think, @grace?")
    await stage.watch("wanda", "user", await stage.user_id("ada"))
    await stage.settle()
    return stage


async def test_those_who_take_part_are_notified_and_so_are_watchers_of_its_owner(
    stage: Stage, kind: str
) -> None:
    comment_id = await stage.comment("carol")

    watching = {} if kind == "paper" else {"wanda": "watched"}
    assert await stage.notified() == {
        "ada": "participating",
        "sam": "participating",
        "grace": "mentioned",
        **watching,
    }
    by = TAKING_PART[kind][1]
    assert await stage.mailed() == {
        "ada": by,
        "sam": by,
        "grace": by,
        **dict.fromkeys(watching, WATCHING[1]),
    }
    assert await stage.leads_to("sam") == comment_id


async def test_the_switches_decide_inbox_and_mail_apart(stage: Stage, kind: str) -> None:
    in_inbox, by_mail = TAKING_PART[kind]
    await stage.switch_off("ada", in_inbox)
    await stage.switch_off("sam", by_mail)
    await stage.switch_off("grace", in_inbox, by_mail)

    await stage.comment("carol")

    people = {"ada", "sam", "grace"}
    assert people & set(await stage.notified()) == {"sam"}
    assert people & set(await stage.mailed()) == {"ada"}


async def test_the_switches_of_discussions_do_not_matter_to_who_takes_part(
    stage: Stage, kind: str
) -> None:
    keys = ("web_discussions_participating", "discussions_participating", *WATCHING)
    await stage.switch_off("sam", *keys)
    await stage.switch_off("wanda", *keys)

    await stage.comment("carol")

    assert set(await stage.notified()) == {"ada", "sam", "grace"}
    assert set(await stage.mailed()) == {"ada", "sam", "grace"}


async def test_a_muted_thread_tells_nothing(stage: Stage) -> None:
    for name in ("ada", "sam", "grace", "wanda"):
        await stage.mute(name, "thread")

    await stage.comment("carol", "And you, @grace?")

    assert (await stage.notified(), await stage.mailed()) == ({}, {})


async def test_a_new_one_tells_watchers_and_mentioned(
    client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str
) -> None:
    await a_user(database, "grace")
    earlier = await a_stage(client, database, await a_thread(client, ada, "blog"))
    await earlier.watch("wanda", "user", await earlier.user_id("ada"))

    address = await a_thread(client, ada, kind, text="For @grace, by @ada.")

    stage = Stage(
        client=client, database=database, address=address, thread_id=await _id(client, address)
    )
    watching = {} if kind == "paper" else {"wanda": "watched"}
    assert await stage.notified() == {"grace": "mentioned", **watching}
    assert await stage.leads_to("grace") is None


async def _id(client: httpx2.AsyncClient, address: str) -> str:
    thread = (await client.get(address)).json()
    found: str = thread.get("discussionId") or thread["id"]
    return found


async def test_an_item_has_the_type_of_its_kind_and_a_post_the_place_of_its_owner(
    stage: Stage, kind: str
) -> None:
    await stage.comment("carol")
    await stage.notified()

    async with stage.database.read() as conn:
        rows = await conn.fetch_all("SELECT DISTINCT type, place_id FROM notifications")
    place = await stage.user_id("ada") if kind == "post" else None
    assert [tuple(row) for row in rows] == [(kind, place)]


async def test_a_blog_of_an_organization_notifies_its_watchers(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(database, "lab", members={"ada": Role.write, "bob": Role.read})
    body = {"title": "Notes", "content": "It works.", "organization": "lab"}

    blog = (await client.post("/api/blog", headers=ada, json=body)).json()

    stage = Stage(client=client, database=database, address="", thread_id=blog["id"])
    assert await stage.notified() == {"bob": "watched"}


async def test_a_changed_blog_tells_only_whom_it_did_not_mention_before(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    for name in ("grace", "alan"):
        await a_user(database, name)
    address = await a_thread(client, ada, "blog", text="Thanks, @grace.")
    stage = await a_stage(client, database, address)
    await stage.watch("wanda", "user", await stage.user_id("ada"))

    text = {"content": "Thanks, @grace and @alan.", "title": "More thanks"}
    await client.patch(address, headers=ada, json=text)

    assert await stage.notified() == {"alan": "mentioned"}
    assert await stage.mailed() == {"alan": "posts_participating"}


async def test_a_deleted_post_leaves_every_inbox(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    stage = await a_stage(client, database, await a_thread(client, ada, "post"))
    other = await a_stage(client, database, await a_thread(client, ada, "blog"))
    for thread in (stage, other):
        await thread.comment("bob")
        assert await thread.notified() == {"ada": "participating"}

    await client.delete(stage.address, headers=ada)

    assert (await stage.notified(), await in_inboxes(database, other.thread_id)) == (
        {},
        {"ada": "participating"},
    )


async def test_who_submitted_a_paper_for_somebody_else_tells_that_one(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    root = await sign_in(database, "root", is_admin=True)
    paper = {
        "arxivId": "2401.00001",
        "title": "Notes on the Engine",
        "summary": "It weaves.",
        "authors": ["Ada Lovelace"],
        "submittedBy": "ada",
    }

    response = await client.post("/api/papers/index", headers=root, json=paper)

    assert response.status_code == 200, response.text
    address = f"/api/papers/{response.json()['id']}"
    stage = Stage(
        client=client, database=database, address=address, thread_id=await _id(client, address)
    )
    assert await stage.notified() == {"ada": "participating"}
